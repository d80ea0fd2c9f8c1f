package loop

import (
	"fmt"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// newManyActions decides among as many actions as a context may have, each with two features of its own, by the
// shared oracle, and learns from each decision.
func newManyActions(t testing.TB) *wideHeat {
	o, err := oracle.NewShared(oracle.SharedOptions{Beta: .5, Version: oracle.Newest})
	if err != nil {
		t.Fatal(err)
	}
	m := &wideHeat{t: t, replica: NewReplica()}
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

// TestManyActionsAllocateNothing: deciding among 10,000 actions with features takes no memory once warm.
func TestManyActionsAllocateNothing(t *testing.T) {
	if n := testing.AllocsPerRun(10, newManyActions(t).decide); n > 0 {
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
