package logs

import (
	"strings"

	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

type recordKind uint8

const (
	Event recordKind = iota + 1 // a decision that was made, with what the log says came of it
	// an observation on its own: it belongs to the event of its ID, which may lie before or behind
	Outcome
)

// Flags say more of a record.
type Flags uint8

const (
	// Inactive events were not activated: nobody saw the decision, so that it is neither
	// learned nor counted, unless an outcome that is an Activation comes.
	Inactive Flags = 1 << iota
	// Defaulted events have no observation: their value is what the log's own reward rule gives where nothing came.
	Defaulted
	// Activation outcomes activate the event.
	Activation
)

// Record is one record of a log, in the shape that all formats share. Its strings and
// slices alias memory that the next call of [Reader.Next] uses again.
//
// Of an [Outcome] only Line, ID, Kind, Flags, Action, Outcome, Value, OutcomeTime and Values
// are set, and Action only where it says of which action it is.
type Record struct {
	Kind  recordKind
	Flags Flags
	Line  int64 // in its file, from 1; of a format without lines the number of the record
	File  string

	ID   string // of the round; "" where the log has none
	Unit string // whom or what it is about, whose rounds may depend on each other; "": nobody is named
	Time int64  // of the decision, ns since 1970; [NoTime]

	Features []codec.Feature // of the context
	Actions  []codec.Action  // eligible, with their features; nil: the log does not say
	Baseline []int           // what a baseline would have ranked, indices into Actions, best first; nil: none

	Action       string    // played; the name of Actions[Chosen] where Actions is known
	Chosen       int       // index into Actions; -1 where Actions is not known
	Propensity   float64   // of the action played, in (0,1]; 0 where it is not known
	Propensities []float64 // the whole law, aligned with Actions; nil where not all is known

	Learned bool // a learner drew the action that had learned rounds of the log

	Outcome     codec.OutcomeKind // [codec.Loss], [codec.Reward], [codec.Withdrawn] or [codec.Named]; 0: none came
	Value       float64           // of Loss and Reward; finite
	OutcomeTime int64             // when it was known, ns since 1970; [NoTime]

	Values []codec.TimedValue // named outcomes that came
	// Arms are the named outcomes that each action would have had: no action was played, and Actions are those of Arms.
	Arms []codec.Arm

	// Weight counts the events that this one stands for, since others were dropped by chance: 1/(1−pdrop), at least 1.
	Weight float64

	long func(name string) bool // which features may be long texts or vectors; nil: none
}

// Reset makes r an empty event that keeps its memory.
func (r *Record) reset() {
	*r = Record{
		Kind: Event, Time: scan.NoTime, OutcomeTime: scan.NoTime, Chosen: -1, Weight: 1,
		long:     r.long,
		Features: r.Features[:0], Actions: r.Actions[:0], Baseline: r.Baseline[:0], Propensities: r.Propensities[:0],
		Values: r.Values[:0],
	}
}

// Observed reports whether an outcome came: a loss, a reward or a withdrawal.
func (r *Record) observed() bool { return r.Outcome != 0 && r.Flags&Defaulted == 0 }

func cloneFeatures(in []codec.Feature) (out []codec.Feature) {
	for _, f := range in {
		f.Name, f.Text = strings.Clone(f.Name), strings.Clone(f.Text)
		out = append(out, f)
	}
	return out
}
