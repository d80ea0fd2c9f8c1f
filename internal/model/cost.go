package model

import (
	"fmt"
	"slices"
	"strings"
)

// named is the reason of an oracle that is never the default.
const named = "the model names it"

// Cost says in one line, for the start of a program, which oracle a model has, why, and what it costs at most. d is the
// number of columns that the oracle expects, or what the model lists, or else its limit; K is the most actions that it
// allows.
func (m *Model) Cost() string {
	if !m.UsesOracle() {
		return "oracle none; the learner " + m.Learner.Kind + " does not regress"
	}
	c := m.resolved()
	parts := c.Oracle.kind().cost(c)
	if m.Named != nil {
		parts = slices.Insert(parts, min(2, len(parts)), m.headsText())
	}
	return "oracle " + m.Oracle.Kind + "; " + strings.Join(parts, "; ")
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
	return fmt.Sprintf("at most %s for each partition decided here, %s while a snapshot is written or read, of which "+
		"Go's collector gives back a third under a GOMEMLIMIT", bytesText(most), bytesText(3*most))
}

// work counts numbers of state: a decision reads the weights of each action, the frequencies once, and if optimistic
// the matrix of the first regression; an update moves the weights and matrices of one action.
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
