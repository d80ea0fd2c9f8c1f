package loop

import (
	"math"

	"hindsight/pkg/codec"
)

// End is the log time after everything: a cut of that time closes every round.
const End = math.MaxInt64

// Place is where a record lies.
type Place struct {
	Partition int
	Offset    int64
}

// Batch is what a cut takes of one partition, in the order of offsets: decisions or outcomes.
type Batch struct {
	Decisions []DecisionEvent
	Outcomes  []OutcomeEvent
}

// DecisionEvent is a record of a decisions partition.
type DecisionEvent struct {
	Offset int64
	Time   int64 // as the log has it
	D      codec.Decision
	GapTo  int64 // rounds D.N..GapTo were lost with the log's tail; 0: D is a decision, or with D.N = 0 nothing
}

// Parse reads a record, which the event then aliases. A record that is neither a decision nor a gap leaves D.N = 0. So
// does an error, after which the caller may pass over a record that is not the service's own ([codec.Foreign]).
func (e *DecisionEvent) Parse(kind string, raw []byte) error {
	e.D.N, e.GapTo = 0, 0
	switch kind {
	case "":
		if err := codec.ParseDecision(&e.D, raw); err != nil {
			e.D.N = 0
			return err
		}
	case codec.TypeMark:
		m, err := codec.ParseDecisionMark(raw)
		if err != nil {
			return err
		}
		if m.GapFrom > 0 {
			e.D.N, e.GapTo = m.GapFrom, m.GapTo
		}
	}
	return nil
}

// through returns the last round that the event tells of; 0: none.
func (e *DecisionEvent) through() int64 { return max(e.D.N, e.GapTo) }

// OutcomeEvent is a record of an outcomes partition.
type OutcomeEvent struct {
	Offset int64
	Time   int64 // as the log has it
	O      codec.Outcome
	Err    error  // the record is not an outcome, and is rejected
	Raw    []byte // as it came, for a reject; nil: O as this build writes it
	Pass   bool   // a control record
	Last   bool   // no outcome of this round comes later
}

// Parse reads a record, which the event then aliases. ceID is the id of a CloudEvents header, or empty.
func (e *OutcomeEvent) Parse(kind string, raw []byte, ceID string) {
	if raw == nil { // an empty record, which is what came
		raw = []byte{}
	}
	e.Raw, e.Err, e.Pass, e.Last = raw, nil, kind != "", false
	if e.Pass {
		return
	}
	if e.Err = codec.ParseOutcome(&e.O, raw); e.Err != nil {
		return
	}
	if e.O.OutcomeID == "" {
		e.O.OutcomeID = ceID
	}
	e.Err = e.O.Validate()
}
