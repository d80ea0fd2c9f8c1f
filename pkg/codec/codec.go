// Package codec holds Hindsight's events and their bytes.
//
// Four events flow through the loop: a [Context] asks for a decision, a [Decision] records what was drawn and with
// which law, an [Outcome] says what it was worth, a [Feedback] is the one record from which every replica learns.
// Beside them stand the rare records: [Epoch], [Class], [Cut], the marks, [Snapshot] and [Reject].
//
// On a log they are MessagePack maps with named keys, the version "v" first, or JSON of the same keys ([AppendJSON]),
// as the model has it; unknown keys are ignored. At the edges contexts and outcomes may also be JSON or CloudEvents.
// The hot events are written and parsed by hand, without allocation; the rare records by their fields' tags.
// github.com/vmihailenco/msgpack is the reference in tests.
//
// # Aliasing
//
// The strings and byte slices of a parsed event alias the bytes it was parsed from, and are valid as long as those are
// neither reused nor changed. Parse functions reuse the capacity of their destination. The rare records are copies.
package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Version is the record version that this build writes, but where [Newest] is needed.
// Readers accept every version up to that and refuse later ones with [ErrVersion].
const Version = 1

// Limits on everything that comes in. Each is checked by Validate and named in its error.
const (
	MaxIDBytes     = 256          // round ids and outcome ids
	MaxNameBytes   = 256          // feature names, action names
	MaxTextBytes   = 4096         // text values of features that are categories
	MaxActions     = 10_000       // hard limit; a model's max_actions is lower
	MaxFeatures    = 65_536       // features of one context, those of its actions included
	MaxOutcomes    = 32           // outcomes that a model names, and budgets
	MaxRecordBytes = 1<<20 - 4096 // one record with its headers stays under 1 MiB

	MaxOutcomeBytes = 64 << 10 // an outcome; earlier programs took MaxRecordBytes, which is still read
	MaxRejectBytes  = 4 << 10  // what a reject keeps of a record; of earlier programs more
)

// Control records share the decisions and feedback topics with data. Their
// kind is told by the header hindsight-type; a record without it is data.
const (
	TypeHeader = "hindsight-type"
	TypeOpen   = "open"  // a writer took over; written by the log itself
	TypeEpoch  = "epoch" // an [Epoch]
	TypeClass  = "class" // a [Class]
	TypeCut    = "cut"   // a [Cut]
	TypeMark   = "mark"  // a [FeedbackMark] or [DecisionMark]
)

var (
	// ErrVersion reports a record of a version later than [Newest].
	ErrVersion = errors.New("record version is newer than this program")
	// ErrCorrupt reports bytes that are not the record they should be.
	ErrCorrupt = errors.New("corrupt record")
	// ErrTooLarge reports a record over [MaxRecordBytes].
	ErrTooLarge = errors.New("record too large")
)

// Error says which event and field is wrong, and why. Every error of this package is one.
type Error struct {
	Event string // "context", "decision", "outcome", "feedback", …
	Field string // "id", "features.age", "actions[3].name", …; "" when the whole is meant
	Err   error
}

func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s: %v", e.Event, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Event, e.Field, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ContextError returns an [Error] of a context, as those have that find one wrong which they
// can parse: by the rules of its model.
func ContextError(field string, err error) *Error {
	return &Error{Event: "context", Field: field, Err: err}
}

// FeatureKind is the type of a feature's value.
type FeatureKind uint8

// The kinds of feature values. An absent or null feature is left out.
const (
	Number FeatureKind = iota + 1 // Value holds it; finite
	Text                          // Text holds it
	Bool                          // Value holds 0 or 1
	Vector                        // Text holds its numbers, eight bytes each: [Feature.Len], [Feature.At]
)

// Feature is one named value of a context or of an action.
type Feature struct {
	Name  string
	Kind  FeatureKind
	Value float64
	Text  string
}

// VectorOf returns a feature that is a vector.
func VectorOf(name string, x []float64) Feature {
	var b []byte
	for _, v := range x {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return Feature{Name: name, Kind: Vector, Text: string(b)}
}

// Len returns how many numbers a vector has.
func (f *Feature) Len() int { return len(f.Text) / 8 }

// At returns the i-th number of a vector.
func (f *Feature) At(i int) float64 { return math.Float64frombits(word(f.Text, 8*i)) }

// Action is one thing that may be chosen, with its own features if any.
type Action struct {
	Name     string
	Features []Feature
}

// Context asks for one decision.
//
// JSON and MessagePack: {"id", "features": {name: number|text|bool|[number…]} or [number…], "actions": [name | {"name",
// "features"}…], "baseline": name | {name: probability…}, "logged_propensity": p, "assigned": {"action", "propensity"
// or "propensities": {name: probability…}, "by"}, "unit"}. All keys are optional; a missing id is minted, missing
// actions are the model's list, a missing baseline is the model's.
type Context struct {
	ID       string
	Features []Feature // in the order of the bytes, names unique
	Vector   []float64 // "features" as an array; then Features is empty
	Actions  []Action  // in the order of the bytes, names unique; nil: the model's list
	Baseline []Share   // what the caller would do without a learner: names unique, sums to 1; empty: the model says it

	// LoggedPropensity is that of the action that Baseline names, where another system drew
	// it: it is kept for whoever reads the log, and nothing is weighted by it. 0: not said.
	LoggedPropensity float64

	// Assigned is what another system decided. Then the context needs an id, nothing is drawn, and no baseline counts.
	Assigned Assigned

	Unit string // whom or what it is about: draws of models with sticky units hold for it; "": nobody is named

	// Slots are places that one request fills, one after the other: each becomes a round of its own, so that no round
	// has any. Empty: the context asks for one action.
	Slots []Slot

	unitOther bool // the unit is no text

	numbers []byte  // of the features that are vectors: memory that parsing reuses
	seen    []int32 // table of the names of actions: memory that Validate reuses
}

// Decision records one round: what was known, the whole law, and the draw.
//
// MessagePack: {"v", "n", "partition", "id", "epoch", "learned_through", "learned", "gamma", "contexts_through",
// "source", "time", "action", "propensity", "propensities": {name: p…} in the order of the intervals, "context":
// bytes}, of a round that was not decided live "mode" and, of one in shadow, "would": [p…] in the same order, "era"
// unless it is 0, and of a model with budgets "prices": {name: x…}. A decision for a unit has "unit" and, if it repeats
// a draw, "first": {"partition", "n"}, which names that one. Unknown propensities of mode external are null. As a
// reply, and in JSON, it is the short form of [AppendDecisionJSON].
type Decision struct {
	Partition       int     // of the decisions topic
	N               int64   // 1, 2, 3, … dense in its partition
	ID              string  // of the round: the context's, or minted
	Epoch           int64   // of the model that decided
	LearnedThrough  int64   // τ: feedbacks 1..τ had been learned (or passed over)
	Learned         int64   // rounds learned in this epoch so far
	Gamma           float64 // the learner's γ at this round; 0 if it has none
	ContextsThrough int64   // next unread offset of contexts[partition]
	Source          int64   // offset of the context; -1: it came as a request
	Time            int64   // log time of the context, ns since 1970; 0 unknown. Data only
	Actions         []string
	Propensities    []float64 // multiples of 2^-53 that sum to exactly 1, one per action
	Action          int       // index into Actions of the drawn action
	Context         []byte    // as it came
	Mode            Mode      // other than Live: Propensities are the baseline's, or of External what was said
	Unknown         Unknown   // of External: what was not
	Would           []float64 // the law that the learner would have drawn from; empty but in Shadow
	Era             int64     // of the feedback log at LearnedThrough
	Prices          []Price   // of a model with budgets, in the order of their names
	Unit            string    // of the context, if the model has sticky units
	First           RoundRef  // the draw of Unit that this round repeats: the law, the action and the mode are its
}

// OutcomeKind says what an outcome reports.
type OutcomeKind uint8

// The kinds of outcomes.
const (
	Loss      OutcomeKind = iota + 1 // Value is a loss in the model's range
	Reward                           // Value is a reward in the model's range
	Withdrawn                        // the decision was never shown
	Activated                        // the decision was shown (models with activation: required)
	Named                            // Values are outcomes that the model names
)

// Value is one named outcome: a finite number on its own scale.
type Value struct {
	Name      string
	X         float64
	Withdrawn bool // null on the wire: this outcome will not come
}

// Outcome says what a round was worth.
//
// JSON and MessagePack: {"id", one of "loss": x | "reward": x | "withdrawn":
// true | "activated": true | "outcomes": {name: x or null…}, optional "action",
// optional "outcome_id"}; "unit" in the place of "id" names the draw of that unit.
type Outcome struct {
	ID        string // of the round; "": Unit says it
	Kind      OutcomeKind
	Value     float64 // finite; 0 unless Loss or Reward
	Action    string  // "" if not said; otherwise must match the decision's
	OutcomeID string  // "" if none; repeats of it are duplicates
	Values    []Value // of Named: names unique, in the order of the bytes
	Unit      string  // whose last draw the outcome is of; "": ID says it
}

// Closed is what became of one named outcome of a round.
type Closed struct {
	Name      string
	Fate      Fate
	Value     float64 // on its own scale; 0 unless observed or imputed
	Partition int     // of the outcome that decided it; -1 if none
	Offset    int64   // likewise
	ClosedAt  int64   // log time, ns
	Stage     int     // of the earlier record that told of it; 0: this one does
}

// Price is what the learner charged for one unit of a budgeted cost when it decided.
type Price struct {
	Name string // of the budget
	X    float64
}

// Fate is what became of a round.
type Fate uint8

// The fates of rounds. Every round has exactly one.
const (
	Observed       Fate = iota + 1 // the first valid outcome came in time: learned
	Imputed                        // nothing came in the window; the model's default_loss is learned
	Skipped                        // nothing came in the window: not learned, charged 1
	WithdrawnRound                 // never shown: not learned, not charged
)

var fateNames = [...]string{"unknown", "observed", "imputed", "skipped", "withdrawn"}

// String returns the fate's name in logs and JSON.
func (f Fate) String() string {
	if name := f.name(); name != fateNames[0] {
		return name
	}
	return fmt.Sprintf("fate(%d)", uint8(f))
}

// name is String without the memory for a fate that does not exist.
func (f Fate) name() string {
	if f > WithdrawnRound {
		f = 0
	}
	return fateNames[f]
}

// Reasons of feedback and of rejects.
const (
	ReasonOverflow    = "overflow"     // feedback: more than max_pending rounds waited
	ReasonDuplicateID = "duplicate-id" // feedback or reject: the round id was used before
	ReasonInactive    = "inactive"     // feedback: no activation came in the window
	ReasonLost        = "lost"         // feedback: the feedback log lost the record of the round's epoch
	ReasonRepeat      = "repeat"       // feedback: the round repeats the draw of its unit, which has the outcome
	ReasonLate        = "late"         // reject: after the window
	ReasonDuplicate   = "duplicate"    // reject: the round has its outcome already
	ReasonOrphan      = "orphan"       // reject: no such round
	ReasonMismatch    = "mismatch"     // reject: the outcome names another action
	ReasonMalformed   = "malformed"    // reject: not a valid event; Detail says why
)

// Feedback closes one round. It holds all that learning and the certificate
// need: the feedback log is the off-policy data set. On the wire the fate is its name.
//
// MessagePack: {"v", "n", "partition", "round", "id", "epoch", "learned_through", "gamma", "time", "action",
// "propensity", "propensities", "fate", "reason", "loss", "outcome_partition", "outcome_offset", "closed_at",
// "context"}, and "mode", "would", "unit" and "first" as its decision has them. Of a model that names outcomes also
// "outcomes": {name: {"fate", "value", "partition", "offset", "closed_at"}…}, with "stage" too where an earlier record
// told of it. A record of an earlier stage leaves out fate, reason, loss, outcome_partition and outcome_offset, and has
// "stage".
type Feedback struct {
	N                int64  // 1, 2, 3, … dense in the feedback log: the paper's t
	Partition        int    // of the decision
	Round            int64  // the decision's N
	ID               string // of the round
	Epoch            int64  // of the decision
	LearnedThrough   int64  // of the decision
	Gamma            float64
	Time             int64 // log time of the decision, ns
	Actions          []string
	Propensities     []float64
	Action           int
	Fate             Fate
	Reason           string  // "" or one of the reasons above
	Loss             float64 // in [0,1]; 0 unless observed or imputed
	OutcomePartition int     // of the outcome that decided the fate; -1 if none
	OutcomeOffset    int64   // likewise
	ClosedAt         int64   // log time at which the round was closed, ns
	Context          []byte  // as it came
	Mode             Mode    // of the decision
	Would            []float64
	Unknown          Unknown

	// Outcomes are those that the model names, in the order of their names: in the record of the last stage all,
	// in that of an earlier one those of that stage. Empty: the model has one loss.
	Outcomes []Closed
	// Stage is 1, 2, … in a record that tells of some outcomes before the round has its fate: it has no Fate, Reason,
	// Loss and outcome. The last stage's record, which is the round's feedback, has 0.
	Stage int

	Unit  string // of the decision
	First RoundRef
}

// FileRef names one file that a model uses.
type FileRef struct {
	Name   string `msgpack:"name"`
	Size   int64  `msgpack:"size"`
	SHA256 string `msgpack:"sha256"` // lower-case hex
}

// Epoch announces a model in the feedback log. Everything behind it is decided and learned by that model.
type Epoch struct {
	V          int       `msgpack:"v"`
	Epoch      int64     `msgpack:"epoch"`      // 1, 2, 3, …
	Name       string    `msgpack:"name"`       // of the model
	Version    int64     `msgpack:"version"`    // of the model file
	Partitions int       `msgpack:"partitions"` // P
	SeedHash   string    `msgpack:"seed_hash"`  // SHA-256 of the secret seed, hex
	Model      []byte    `msgpack:"model"`      // the canonical model file without its mode
	Mode       Mode      `msgpack:"-"`          // the last line of the model in the log: see LoggedModel
	SHA256     string    `msgpack:"sha256"`     // of LoggedModel, hex
	Files      []FileRef `msgpack:"files"`
	Through    int64     `msgpack:"through"` // feedbacks before this record
	// The fresh learner first learns feedbacks WarmFrom..WarmTo; WarmTo = 0: none. Of WarmEpoch = 0 all of them;
	// otherwise those that made the state after feedback WarmTo, at which that epoch was at work.
	WarmFrom  int64 `msgpack:"warm_from,omitempty"`
	WarmTo    int64 `msgpack:"warm_to,omitempty"`
	WarmEpoch int64 `msgpack:"warm_epoch,omitempty"`
	// Continues is the first of the epochs whose learner this one goes on with, as it is
	// here; rounds of those are learned too. 0: the learner is a new one.
	Continues int64  `msgpack:"continues,omitempty"`
	Cause     string `msgpack:"cause,omitempty"` // who asked for Mode, for people and [CauseTaught]; "": the model file
}

// Class carries one piece of a file that the next [Epoch] names. A sequence without its epoch record is ignored.
type Class struct {
	V     int    `msgpack:"v"`
	File  string `msgpack:"file"`
	Part  int    `msgpack:"part"` // 0, 1, …
	Parts int    `msgpack:"parts"`
	Bytes []byte `msgpack:"bytes"` // at most 512 KiB
}

// Snapshot is one chunk of a learner's state. It is complete when all Parts of the same (Epoch, LearnedThrough, Nonce)
// are there and their bytes, joined, have SHA256.
type Snapshot struct {
	V              int    `msgpack:"v"`
	Epoch          int64  `msgpack:"epoch"`
	LearnedThrough int64  `msgpack:"learned_through"`
	FeedbackFrom   int64  `msgpack:"feedback_from"` // a feedback offset at or before N = LearnedThrough+1: a hint
	Nonce          string `msgpack:"nonce"`         // of the writer's incarnation
	Part           int    `msgpack:"part"`
	Parts          int    `msgpack:"parts"`
	SHA256         string `msgpack:"sha256"` // of all bytes, hex
	Bytes          []byte `msgpack:"bytes"`
	Era            int64  `msgpack:"era,omitempty"` // of the feedback log at LearnedThrough
}

// Reject keeps a record that could not be used, with the reason. Its identity
// is (Topic, Partition, Offset); the same one may be written more than once.
type Reject struct {
	V         int    `msgpack:"v"`
	Topic     string `msgpack:"topic"` // "contexts" or "outcomes"
	Partition int    `msgpack:"partition"`
	Offset    int64  `msgpack:"offset"`
	Time      int64  `msgpack:"time"` // log time of the record, ns
	Reason    string `msgpack:"reason"`
	Detail    string `msgpack:"detail"`         // for people
	ID        string `msgpack:"id"`             // round id, if it could be read
	Bytes     []byte `msgpack:"bytes"`          // as it came
	Size      int    `msgpack:"size,omitempty"` // of the record, if Bytes is only its beginning
	Cut       int64  `msgpack:"cut,omitempty"`  // of an outcome: the cut that took it
	Era       int64  `msgpack:"era,omitempty"`  // of an outcome: the era of that cut
}
