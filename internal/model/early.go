package model

import (
	"fmt"
	"slices"
	"strings"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// Hurry is the key early: what rounds are learned as before their feedback. nil: nothing.
type Hurry struct {
	After   loop.Window // of waiting for an outcome; none: the median delay
	Silence *float64    // what no outcome till then counts as, on the scale of loss or reward; nil: default_loss
}

// hurry is the key early.
func hurry(at **Hurry) group {
	return group{words: []string{"none", "median"}, set: func(word string) {
		if *at = &(Hurry{}); word == "none" {
			*at = nil
		}
	}, rows: func() []field {
		e := *at
		return []field{{key: "after", into: orWord(&e.After, "median", loop.Window{}, windowForm(&e.After))},
			{key: "silence", into: &e.Silence, example: "0", omit: e.Silence == nil}}
	}}
}

// provisional returns the rule that the key early makes, nil if there is none.
func (m *Model) provisional() *loop.Provisional {
	e := m.Hurry
	if e == nil {
		return nil
	}
	r := &loop.Provisional{After: e.After, Silence: m.DefaultLoss}
	if e.Silence != nil {
		r.Silence, _ = m.silence()
	}
	return r
}

// silence returns the loss in [0,1] that no outcome counts as.
func (m *Model) silence() (float64, error) {
	kind := codec.Loss
	if m.Reward {
		kind = codec.Reward
	}
	return m.Range.ToLoss(kind, *m.Hurry.Silence)
}

// amendable are the kinds of oracles that learn that a loss was another.
var amendable = []string{Auto, Linear, Diagonal, Hedge}

// hurryProblems are those of the key early.
func (m *Model) hurryProblems(add adder) {
	e := m.Hurry
	if e == nil {
		return
	}
	switch {
	case m.Learner.Kind != DAFA:
		add("early", "learner: %s does not learn what is provisional; use learner: dafa", m.Learner.Kind)
	case !slices.Contains(amendable, m.Oracle.Kind):
		add("early", "oracle: %s cannot take back what it learned; use oracle: %s", m.Oracle.Kind,
			strings.Join(amendable, " or "))
	case m.Named != nil:
		add("early", "it is for models with one loss: stages of outcomes with windows of their own are learned early "+
			"anyway")
	case !m.Impute:
		add("early", "silence is learned early, and missing: skip learns nothing of it; use missing: impute, or "+
			"order: early")
	case m.Outcomes != loop.First || m.Activation:
		add("early", "the first outcome of a round must be its last word; take outcomes and activation out")
	case m.Arrival || m.Early:
		add("early", "what is final is learned in order; use order: fifo")
	}
	if w := m.Window; e.After.Rounds > 0 && w.Rounds > 0 && e.After.Rounds >= w.Rounds ||
		e.After.Nanos > 0 && w.Nanos > 0 && e.After.Nanos >= w.Nanos {
		add("early", "after: %s is not before the window of %s ends", FormatWindow(e.After), FormatWindow(w))
	}
	if e.Silence != nil {
		if _, err := m.silence(); err != nil {
			add("early", "silence: %v", err)
		}
	}
}

// hurry gives a learner a second oracle, by which it decides.
func (m *Model) hurry(l learner.Learner, files map[string][]byte) (learner.Learner, error) {
	if m.Hurry == nil {
		return l, nil
	}
	reg, err := m.Oracle.kind().build(m, files)
	if err != nil {
		return nil, err
	}
	fast, ok := reg.(oracle.Amender)
	d, dafa := l.(*learner.DAFA)
	if !ok || !dafa {
		return nil, fmt.Errorf("model %s: early is not for its learner", m.Name)
	}
	d.Early(fast)
	return d, nil
}
