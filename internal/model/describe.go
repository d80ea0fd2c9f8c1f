package model

import (
	"fmt"

	"hindsight/pkg/oracle"
)

// Cost says which oracle a model has, why, and what it costs at most: for one line at the
// start of a program.
type Cost struct {
	Oracle   string // kind
	Why      string
	State    string // what is kept, in columns and bytes
	Decision string // what a decision reads and an update moves, in numbers of state
}

// String returns all of it in one line.
func (c Cost) String() string {
	s := "oracle " + c.Oracle
	for _, part := range []string{c.Why, c.State, c.Decision} {
		if part != "" {
			s += "; " + part
		}
	}
	return s
}

// Cost describes the oracle of a model. d is the number of columns that the oracle
// expects, or what the model lists, or else its limit; K is the most actions that it allows.
func (m *Model) Cost() Cost {
	c := m.Clone()
	c.Resolve(0, 0)
	o := c.Oracle
	switch {
	case !m.usesOracle():
		return Cost{Oracle: "none", Why: "the learner " + m.Learner.Kind + " does not regress"}
	case c.follows():
		return c.costOfFollowing()
	case o.Kind == Auto:
		return c.costOfAuto()
	case o.Kind == Linear:
		return c.costOfLinear()
	case o.Kind == Shared || o.Kind == Hybrid:
		out := Cost{Oracle: o.Kind, Why: named}
		out.State = fmt.Sprintf("1 regression of %d columns, %s", o.Hashed, bytesText(c.Memory()))
		out.Decision = work(c.mostActions(), 0, o.Beta.Value > 0, int(o.Hashed))
		return out
	case o.Kind == Hedge:
		return Cost{Oracle: Hedge, Why: named, State: "one weight a function of " + o.Class}
	}
	return Cost{Oracle: o.Kind, Why: "the environment brings it"}
}

// named is the reason of an oracle that is never the default.
const named = "the model names it"

// costOfFollowing describes an oracle that sizes itself by the actions and columns that come.
func (m *Model) costOfFollowing() Cost {
	o := m.Oracle
	c := Cost{Oracle: o.Kind, Why: named}
	regressions, random := "1 regression", ""
	if o.Kind == Auto {
		c.Why, regressions = "the default", "2 regressions"
		if o.Fourier != (Number{}) {
			regressions = "3 regressions"
		}
		if o.Fourier.Auto {
			random = ", the third on random features while actions × (columns + 128)² ≤ 1e6"
		}
	}
	c.State = fmt.Sprintf("%s an action, as large as the columns seen%s; at most %s in all: "+
		"actions and columns beyond are counted and not learned", regressions, random, bytesText(m.mostMemory()))
	return c
}

// mostMemory returns how many bytes the matrices of a learner take at most.
func (m *Model) mostMemory() int64 {
	most := m.Memory()
	if !m.follows() {
		return most
	}
	if m.learnedActions() == 0 || most > MaxMemory {
		most = MaxMemory
	}
	if m.Oracle.Fourier.Auto {
		most += 5e6
	}
	return most
}

// Peak says what a process that decides a partition needs for its learner at most; "" of a
// learner whose size is that of its files. While a snapshot is written or read its bytes are
// in memory, too, and as much may wait for Go's collector if no limit makes it hurry.
func (m *Model) Peak() string {
	c := m.Clone()
	c.Resolve(0, 0)
	most := c.mostMemory()
	if !c.usesOracle() || most == 0 {
		return ""
	}
	return fmt.Sprintf("at most %s for each partition decided here, %s while a snapshot is written or read, "+
		"of which Go's collector gives back a third under a GOMEMLIMIT", bytesText(most), bytesText(3*most))
}

func (m *Model) costOfAuto() Cost {
	o, k, d := m.Oracle, m.mostActions(), m.columns()
	if o.Columns.Value > 0 {
		d = int(o.Columns.Value)
	}
	n := int(o.Fourier.Value)
	c := Cost{Oracle: Auto}
	square := fmt.Sprintf("%d actions × (%d + %d)²", k, d, oracle.DefaultFourier)
	switch {
	case n > 0 && n == oracle.AutoFourier(k, d):
		c.Why = "with random features, because " + square + " ≤ 1e6"
	case n > 0:
		c.Why = fmt.Sprintf("with %d random features, because the model names them", n)
	case oracle.AutoFourier(k, d) == 0:
		c.Why = "without random features, because " + square + " > 1e6"
	case oracle.AggregateBytes(k, m.MaxFeatures+1, oracle.DefaultFourier) > MaxMemory:
		c.Why = "without random features, because the limits of actions and columns leave no memory for them"
	default:
		c.Why = "without random features, because the model says so"
	}
	cores, said := []int{d, d}, fmt.Sprintf("2 regressions of %d columns", d)
	if n > 0 {
		cores, said = append(cores, d+n), fmt.Sprintf("3 regressions of %d, %d and %d columns", d, d, d+n)
	}
	c.State = state(said, oracle.AggregateBytes(1, d, n), m.Memory())
	c.Decision = work(k, n*(d-1), o.Beta.Value > 0, cores...)
	return c
}

func (m *Model) costOfLinear() Cost {
	k, d := m.mostActions(), m.columns()
	c := Cost{Oracle: Linear, Why: named}
	random := int(m.Oracle.Fourier.Value)
	if random > 0 && m.Oracle.Columns.Value > 0 {
		d = int(m.Oracle.Columns.Value)
	}
	other := m.Clone()
	other.Oracle = newAuto()
	if need := other.autoMemory(); need > MaxMemory {
		c.Why = fmt.Sprintf("because auto would need up to %s, more than %s", bytesText(need), bytesText(MaxMemory))
	}
	said := fmt.Sprintf("1 regression of %d columns", d+random)
	if random > 0 {
		said += fmt.Sprintf(", %d of them random features,", random)
	}
	c.State = state(said, oracle.LinearBytes(1, d+random), m.Memory())
	c.Decision = work(k, random*(d-1), m.Oracle.Beta.Value > 0, d+random)
	return c
}

// state says what is kept: of one action with the columns said, and of all at the limits.
func state(regressions string, action float64, most int64) string {
	return fmt.Sprintf("%s an action, %s each; at most %s in all", regressions, bytesText(int64(action)), bytesText(most))
}

// work counts numbers of state: a decision reads the weights of each action, the
// frequencies once, and if optimistic the matrix of the first regression; an update moves
// the weights and matrices of one action.
func work(actions, frequencies int, optimistic bool, cores ...int) string {
	read, moved := 0, 0
	for i, d := range cores {
		read += d
		if i == 0 && optimistic {
			read += d * (d + 1) / 2
		}
		moved += d + d*(d+1)/2
	}
	return fmt.Sprintf("a decision among %d actions reads %d numbers of state, an update moves %d", actions, actions*read+frequencies, moved)
}

// bytesText writes a number of bytes.
func bytesText(n int64) string {
	switch v := float64(n); {
	case n >= 1e9:
		return fmt.Sprintf("%.3g GB", v/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.3g MB", v/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.3g kB", v/1e3)
	}
	return fmt.Sprintf("%d bytes", n)
}
