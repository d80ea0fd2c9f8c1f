package model

import "fmt"

// costs says which oracle a model has, why, and what it costs at most: for one line at the
// start of a program.
type costs struct {
	Oracle   string // kind
	Why      string
	State    string // what is kept, in columns and bytes
	Decision string // what a decision reads and an update moves, in numbers of state
}

// named is the reason of an oracle that is never the default.
const named = "the model names it"

// String returns all of it in one line.
func (c costs) String() string {
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
func (m *Model) Cost() costs {
	if !m.UsesOracle() {
		return costs{Oracle: "none", Why: "the learner " + m.Learner.Kind + " does not regress"}
	}
	c := m.resolved()
	out := c.Oracle.kind().cost(c)
	if m.Named != nil {
		out.State += "; " + m.headsText()
	}
	return out
}

// mostMemory returns how many bytes the matrices of a learner take at most.
func (m *Model) mostMemory() int64 {
	most := m.Memory()
	if !m.follows() {
		return most
	}
	heads := int64(max(1, len(m.heads()))) // each of which has its limit
	if m.learnedActions() == 0 || most > heads*MaxMemory {
		most = heads * MaxMemory
	}
	if m.Oracle.Fourier.Auto {
		most += heads * 5e6
	}
	return most
}

// Peak says what a process that decides a partition needs for its learner at most; "" of a
// learner whose size is that of its files. While a snapshot is written or read its bytes are
// in memory, too, and as much may wait for Go's collector if no limit makes it hurry.
func (m *Model) Peak() string {
	c := m.resolved()
	most := c.mostMemory()
	if !c.UsesOracle() || most == 0 {
		return ""
	}
	return fmt.Sprintf("at most %s for each partition decided here, %s while a snapshot is written or read, "+
		"of which Go's collector gives back a third under a GOMEMLIMIT", bytesText(most), bytesText(3*most))
}

// work counts numbers of state: a decision reads the weights of each action, the
// frequencies once, and if optimistic the matrix of the first regression; an update moves
// the weights and matrices of one action.
func work(actions, frequencies int, optimistic bool, columns ...int) string {
	read, moved := 0, 0
	for i, d := range columns {
		read += d
		if i == 0 && optimistic {
			read += d * (d + 1) / 2
		}
		moved += d + d*(d+1)/2
	}
	return fmt.Sprintf("a decision among %d actions reads %d numbers of state, an update moves %d",
		actions, actions*read+frequencies, moved)
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
