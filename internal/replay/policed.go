package replay

import (
	"math"

	"hindsight/internal/model"
	"hindsight/pkg/codec"
)

// Policed is an environment whose losses an adversary fixed beforehand, and whose
// regret is against the best policy of a class that it brings, not against the best
// action of every round.
type Policed struct {
	name              string
	rounds            int
	actions, features []string
	value             func(t, feature int) float64 // of a feature; nil: no features
	loss              func(t, a int) float64
	policies          *model.PolicyFile
	advice            func(i, t int) int // of policy i, an action
	delays            string             // under which the environment is meant; "": any
}

var _ Environment = (*Policed)(nil)

// Policies returns the file of the class Π.
func (e *Policed) Policies() []byte { return e.policies.Append(nil) }

// OwnDelays returns the specification of the delays that the environment is meant to
// be played with; "" if any will do.
func (e *Policed) OwnDelays() string { return e.delays }

// bestPolicy returns the loss of the best policy over the rounds that env shows; ok is false if
// regret is not against policies there.
func bestPolicy(env Environment) (best float64, ok bool) {
	e := policed(env)
	if e == nil {
		return 0, false
	}
	best = math.Inf(1)
	for i := range e.policies.Policies {
		sum := 0.0
		for t := range env.Len() {
			at := roundOf(env, t)
			sum += e.loss(at, e.advice(i, at))
		}
		best = min(best, sum)
	}
	return best, true
}

// Name implements [Environment].
func (e *Policed) Name() string { return e.name }

// Len implements [Environment].
func (e *Policed) Len() int { return e.rounds }

// Actions implements [Environment].
func (e *Policed) Actions() []string { return e.actions }

// Columns implements [Environment].
func (e *Policed) Columns() int { return len(e.features) + 1 }

// Context implements [Environment].
func (e *Policed) Context(dst *codec.Context, t int) {
	*dst = codec.Context{Features: dst.Features[:0], Actions: appendActions(dst.Actions[:0], e.actions)}
	for i, name := range e.features {
		dst.Features = append(dst.Features, codec.Feature{Name: name, Kind: codec.Number, Value: e.value(t, i)})
	}
}

// Truth implements [Environment]: losses are certain.
func (e *Policed) Truth(dst []float64, t int) bool {
	for a := range dst {
		dst[a] = e.loss(t, a)
	}
	return true
}

// Loss implements [Environment].
func (e *Policed) Loss(t, a int) float64 { return e.loss(t, a) }

// bare returns the environment that env shows in some row order, or the first rounds of.
func bare(env Environment) Environment {
	switch e := env.(type) {
	case *ordered:
		return bare(e.Environment)
	case *head:
		return bare(e.Environment)
	}
	return env
}

// roundOf returns which round of its [bare] environment round t of env is.
func roundOf(env Environment, t int) int {
	switch e := env.(type) {
	case *ordered:
		return roundOf(e.Environment, int(e.rows[t]))
	case *head:
		return roundOf(e.Environment, t)
	}
	return t
}

// policed returns the environment that env shows if its regret is against policies, else nil.
func policed(env Environment) *Policed {
	e, _ := bare(env).(*Policed)
	return e
}

// OwnDelays returns the delays that an environment is meant to be played with, "" if
// any will do.
func OwnDelays(env Environment) string {
	if e, ok := env.(interface{ OwnDelays() string }); ok {
		return e.OwnDelays()
	}
	return ""
}

// constants are the policies that play one action always.
func constants(actions []string) *model.PolicyFile {
	f := &model.PolicyFile{Actions: actions}
	for _, a := range actions {
		f.Policies = append(f.Policies, model.PolicyLine{Prior: 1, Rules: always(a)})
	}
	return f
}

func unless(wrong bool) float64 {
	if wrong {
		return 1
	}
	return 0
}
