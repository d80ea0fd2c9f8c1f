package loop

import (
	"testing"

	"hindsight/pkg/codec"
)

// caller gives a joiner each record as a cut of its own, and keeps what follows.
type caller struct {
	t        testing.TB
	j        *Joiner
	feedback [][]byte
	rejects  []codec.Reject
}

func newCaller(t testing.TB, partitions int, limits codec.Limits, rules func(int64) *Rules) *caller {
	return &caller{t: t, j: NewJoiner(partitions, limits, 1, rules)}
}

func (c *caller) cut(cut codec.Cut, b ...Batch) error {
	cut.Cut = c.j.LastCut() + 1
	if err := c.j.Take(&cut, b); err != nil {
		return err
	}
	var r Ready
	c.j.Ready(&r)
	c.feedback, c.rejects = feedbackBytes(c.feedback, r.Feedback), append(c.rejects, r.Rejects...)
	return nil
}

func (c *caller) decision(at Place, time int64, d codec.Decision, gapTo int64) error {
	return c.cut(codec.Cut{Time: time, Decisions: []codec.Range{{Partition: at.Partition, Next: at.Offset + 1}}},
		Batch{Decisions: []DecisionEvent{{Offset: at.Offset, Time: time, D: d, GapTo: gapTo}}})
}

func (c *caller) decide(at Place, time int64, d codec.Decision) {
	c.t.Helper()
	if err := c.decision(at, time, d, 0); err != nil {
		c.t.Fatal(err)
	}
}

func (c *caller) outcome(at Place, time int64, o codec.Outcome) {
	c.t.Helper()
	e := OutcomeEvent{Offset: at.Offset, Time: time}
	e.Parse("", codec.AppendOutcome(nil, &o), "")
	if err := c.cut(codec.Cut{Time: time, Outcomes: []codec.Range{{Partition: at.Partition, Next: at.Offset + 1}}},
		Batch{Outcomes: []OutcomeEvent{e}}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *caller) advance(time int64) {
	c.t.Helper()
	if err := c.cut(codec.Cut{Time: time}); err != nil {
		c.t.Fatal(err)
	}
}

// ready returns the feedback since the last call.
func (c *caller) ready() (fs []codec.Feedback) {
	fs = make([]codec.Feedback, len(c.feedback))
	for i, b := range c.feedback {
		if err := codec.ParseFeedback(&fs[i], b); err != nil {
			c.t.Fatal(err)
		}
	}
	c.feedback = nil
	return fs
}

// rejected returns the rejects since the last call.
func (c *caller) rejected() []codec.Reject {
	rs := c.rejects
	c.rejects = nil
	return rs
}
