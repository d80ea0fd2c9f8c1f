package loop

import (
	"fmt"
	"slices"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// Window bounds how long a round waits for its outcome: either Rounds later
// decisions of its partition or Nanos of log time; exactly one is positive.
type Window struct {
	Rounds int64
	Nanos  int64
}

// Aggregate says which of several outcomes of a round counts.
type Aggregate uint8

// The ways to aggregate the outcomes of a round. All but First release at the window's end.
const (
	First Aggregate = iota
	Last
	Sum
	Mean
	Max
	Min
)

// Aggregates returns the names of the ways in the model file, in their order.
func Aggregates() []string { return []string{"first", "last", "sum", "mean", "max", "min"} }

// Range maps losses and rewards of the user's scale onto losses in [0,1]: loss = (x−Min)/(Max−Min), or for a reward
// (Max−x)/(Max−Min). Out of range is a malformed outcome unless Clip.
type Range struct {
	Min, Max float64
	Clip     bool
}

// ToLoss maps a loss or reward of the user's scale to [0,1].
func (r *Range) ToLoss(kind codec.OutcomeKind, x float64) (float64, error) {
	if (x < r.Min || x > r.Max) && !r.Clip {
		return 0, fmt.Errorf("%w: %v is not in [%v, %v]", errRange, x, r.Min, r.Max)
	}
	if kind == codec.Reward {
		return clip01((r.Max - x) / (r.Max - r.Min)), nil
	}
	return clip01((x - r.Min) / (r.Max - r.Min)), nil
}

// FromLoss returns the loss on the user's scale that reads as the given loss in [0,1].
func (r *Range) FromLoss(loss float64) float64 {
	return min(max(r.Min+float64(loss*(r.Max-r.Min)), r.Min), r.Max)
}

func clip01(x float64) float64 { return min(max(x, 0), 1) }

// scale returns what a loss, a reward or a named outcome counts as: a loss in [0,1], or itself.
func (r *Range) scale(kind codec.OutcomeKind, x float64) (float64, error) {
	if kind != codec.Named {
		return r.ToLoss(kind, x)
	}
	if (x < r.Min || x > r.Max) && !r.Clip {
		return 0, fmt.Errorf("%w: %v is not in [%v, %v]", errRange, x, r.Min, r.Max)
	}
	return min(max(x, r.Min), r.Max), nil
}

// FeatureRule restricts one feature of a model that lists its features.
type FeatureRule struct {
	Name    string
	Kind    FeatureKind
	Bounded bool    // numbers are expected in [Lo, Hi]; others are accepted, and counted
	Lo, Hi  float64 // of a vector Hi is its length
}

// Length returns that of a vector.
func (f *FeatureRule) Length() int { return int(f.Hi) }

// FeatureKind is the declared type of a feature.
type FeatureKind uint8

// The declared types of features.
const (
	NumberFeature FeatureKind = iota + 1
	TextFeature
	BoolFeature
	NgramsFeature // a text whose words count; of actions too
	VectorFeature // of actions too
)

// String returns the type's name in the model file.
func (k FeatureKind) String() string {
	if k > VectorFeature {
		k = 0
	}
	return [...]string{"unknown", "number", "text", "bool", "{text: ngrams}", "vector"}[k]
}

// wire returns the kind of the values in a context.
func (k FeatureKind) wire() codec.FeatureKind {
	switch k {
	case NgramsFeature:
		return codec.Text
	case VectorFeature:
		return codec.Vector
	}
	return codec.FeatureKind(k)
}

// places returns how many places of terms a feature has.
func (f *FeatureRule) places() int {
	switch f.Kind {
	case NgramsFeature:
		return oracle.TextPlaces
	case VectorFeature:
		return f.Length()
	}
	return 0
}

// Long reports whether a feature may be a text of any length, or a vector.
func (r *Rules) Long(name string) bool {
	return slices.ContainsFunc(r.Features, func(f FeatureRule) bool { return f.Name == name && f.places() > 0 })
}

// Places returns how many places the terms of contexts have ([oracle.Term]).
func (r *Rules) Places() (n int) {
	for i := range r.Features {
		n += r.Features[i].places()
	}
	return n
}

// Rules are what a model says about events, for one epoch.
type Rules struct {
	Actions     []string      // eligible when a context lists none, and the only ones it may list; nil: any
	MaxActions  int           // most eligible actions of a round
	Features    []FeatureRule // nil: any feature of any type
	Range       Range
	Reward      bool // outcomes are rewards on Range, for what is shown; each outcome says itself what it is
	Window      Window
	Impute      bool    // what silence means: true: DefaultLoss is learned, false: skipped
	DefaultLoss float64 // in [0,1]
	Outcomes    Aggregate
	Activation  bool // a round without an activation in the window is withdrawn
	Arrival     bool // release in the order of arrival instead of FIFO
	Early       bool // release rounds decided early in the order of arrival; see Waits
	Mode        codec.Mode
	Baseline    Baseline
	Masked      []string   // actions that no round may play, listed by a context or not
	Guard       GuardRules // of the learner against the baseline

	// Named are the outcomes that the model names, sorted by name; then Worth says what they are worth, Range is its
	// range, Window the longest of theirs, and Impute, DefaultLoss and Outcomes are those of no outcome. nil: one loss.
	Named   []OutcomeRule
	Worth   *learner.Formula
	Budgets []string // sorted: the names of what the learner charges for

	Slots []SlotRule // that a context may have; nil: any

	Candidates []Candidate    // that are judged on what is played
	Policies   []FilePolicies // those of them that are of files, by their places
	Promote    Promotion      // of one of them
	HoldOut    float64        // share of ids that the baseline answers in live mode, in [0,1)

	Provisional *Provisional // what is learned before it is final; nil: nothing

	Sticky int64 // ns of log time for which the draw of a unit holds for its later contexts; 0: each is drawn
}

// OutcomeRule is what a model says of one named outcome.
type OutcomeRule struct {
	Name    string
	Range   Range // of its values, which are no losses: [Range.Clip] as there
	Window  Window
	Impute  bool    // what silence means: true: Default is learned, false: it is skipped
	Default float64 // on its own scale
	Take    Aggregate
}

// Waits reports whether a round, the n-th of its partition, waits until the earlier rounds of its partition are
// released. With Early it does not if more than a third of the earlier rounds were outstanding when it was decided:
// until then a learner that waits for its turn knows too little. With several partitions learnedThrough counts the
// feedback of all of them, so that rounds begin to wait sooner.
func (r *Rules) Waits(n, learnedThrough int64) bool {
	switch {
	case r.Arrival:
		return false
	case r.Early:
		return (n-1)-learnedThrough <= (n-1)/3
	}
	return true
}

// Epoch is one model at work: its number in the feedback log, its rules, and a
// learner of its own or that of the epochs before it.
type Epoch struct {
	Number  int64
	Rules   *Rules
	Learner learner.Learner // nil: the one at work, if Since is set
	Since   int64           // the first of the epochs whose learner this one goes on with; 0: it is new
}

// since returns the first epoch whose rounds the learner learns.
func (e *Epoch) since() int64 {
	if e.Since > 0 {
		return e.Since
	}
	return e.Number
}
