package loop

import (
	"fmt"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// manyActions decides among as many actions as a context may have, each with two features of its own, by the
// shared oracle, and learns from each decision.
type manyActions struct {
	t       testing.TB
	replica *Replica
	decider *Decider
	dec     codec.Decision
	raws    [][]byte
	n       int64
	fb      codec.Feedback
}

func newManyActions(t testing.TB) *manyActions {
	o, err := oracle.NewShared(oracle.SharedOptions{Beta: .5, Version: oracle.Newest})
	if err != nil {
		t.Fatal(err)
	}
	m := &manyActions{t: t, replica: NewReplica()}
	m.replica.Begin(Epoch{Number: 1, Rules: &Rules{MaxActions: codec.MaxActions},
		Learner: learner.NewDAFA(o, learner.Root{C: learner.RootBalanced})})
	m.decider = NewDecider(m.replica, testSeed, "many", 0, 8) // ids it remembers: few, so that it is warm soon
	for i := range 8 {
		c := codec.Context{Features: []codec.Feature{number("hour", float64(i)), number("age", float64(i*i%7))}}
		for a := range codec.MaxActions {
			c.Actions = append(c.Actions, codec.Action{Name: fmt.Sprint("item", a), Features: []codec.Feature{
				number("price", float64(a%97)/97), number("rank", float64(a*i%89)/89)}})
		}
		m.raws = append(m.raws, codec.AppendContext(nil, &c))
	}
	for range 50 {
		m.decide()
		m.learn()
	}
	return m
}

func number(name string, v float64) codec.Feature {
	return codec.Feature{Name: name, Kind: codec.Number, Value: v}
}

func (m *manyActions) decide() {
	m.n++
	if r := m.decider.Decide(&m.dec, m.raws[m.n%8], "", Source{Offset: RequestSource}); r.Verdict != Decided {
		m.t.Fatal(r.Err)
	}
}

func (m *manyActions) learn() {
	d := &m.dec
	m.fb = codec.Feedback{N: m.n, Round: m.n, Epoch: 1, ID: "x", LearnedThrough: m.n - 1, Gamma: d.Gamma,
		Actions: d.Actions, Propensities: d.Propensities, Action: d.Action, Context: d.Context, Fate: codec.Observed,
		Loss: float64(m.n%5) / 4}
	if err := m.replica.Learn(&m.fb, nil); err != nil {
		m.t.Fatal(err)
	}
}

// TestManyActionsAllocateOnce: deciding among 10,000 actions with features takes memory once warm for one
// thing: the table in which a repeated name is found, of more names than fit on a stack.
func TestManyActionsAllocateOnce(t *testing.T) {
	if n := testing.AllocsPerRun(10, newManyActions(t).decide); n > 1 {
		t.Errorf("%v allocations a decision", n)
	}
}

// BenchmarkManyActions is a decision among 10,000 actions with features, from the bytes to the draw.
func BenchmarkManyActions(b *testing.B) {
	m := newManyActions(b)
	b.ReportAllocs()
	for b.Loop() {
		m.decide()
	}
}
