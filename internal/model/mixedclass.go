package model

import (
	"fmt"

	"hindsight/pkg/oracle"
)

// mixedLine is what a line of a mixed or shared class has beside its prior: one of these.
type mixedLine struct {
	Linear   [][]float64 `json:"linear"`   // a row an action, or a feature of actions and one more: one number a feature, then the intercept
	Logistic [][]float64 `json:"logistic"` // the same
	Trees    []treeLine  `json:"trees"`    // the function is their mean
}

// treeLine is one tree: [column, at, low, high] a split, the first being the root, and
// a loss an action a leaf. A column of at most `at` goes to low: to a later split, counted
// from 0, or to leaf i, which is −1−i.
type treeLine struct {
	Splits [][4]float64 `json:"splits"`
	Leaves [][]float64  `json:"leaves"`
}

const mixedExample = `{"prior":1,"logistic":[[0.1,0.5],[-0.2,0.5]]} or {"prior":1,"trees":[{"splits":[[0,14.5,-1,-2]],"leaves":[[0.2,0.8],[0.6,0.1]]}]}`

func (l *mixedLine) given() bool { return l.Linear != nil || l.Logistic != nil || l.Trees != nil }

// parseMixed takes a line of a mixed class.
func (c *ClassFile) parseMixed(f *Function, l *mixedLine, size *classSize) error {
	f.Mixed = oracle.MixedFunction{Linear: l.Linear, Logistic: l.Logistic}
	size.mixed += (len(l.Linear) + len(l.Logistic)) * (len(c.Features) + 1)
	for i := range l.Trees {
		tree := oracle.Tree{Leaves: l.Trees[i].Leaves}
		for j, s := range l.Trees[i].Splits {
			column, low, high := int(s[0]), int(s[2]), int(s[3])
			if float64(column) != s[0] || float64(low) != s[2] || float64(high) != s[3] {
				return fmt.Errorf("trees[%d].splits[%d] is %v: expected [column, at, low, high], all but at whole; for example %s", i, j, s, c.example())
			}
			tree.Splits = append(tree.Splits, oracle.Split{Column: column, At: s[1], Low: low, High: high})
		}
		size.mixed += 4*len(tree.Splits) + c.outputs()*len(tree.Leaves)
		f.Mixed.Trees = append(f.Mixed.Trees, tree)
	}
	if size.mixed > MaxClassNumbers {
		return fmt.Errorf("the functions so far have %d numbers, more than the %d that fit; use fewer, or smaller trees", size.mixed, MaxClassNumbers)
	}
	size.row = 0
	if err := c.checkMixed(f.Mixed); err != nil {
		return fmt.Errorf("%w; for example %s", err, c.example())
	}
	return nil
}

// appendMixed appends what a function has beside its prior.
func appendMixed(dst []byte, f *oracle.MixedFunction) []byte {
	switch {
	case f.Linear != nil:
		return appendRows(append(dst, `,"linear":`...), f.Linear)
	case f.Logistic != nil:
		return appendRows(append(dst, `,"logistic":`...), f.Logistic)
	}
	dst = append(dst, `,"trees":[`...)
	for i := range f.Trees {
		if i > 0 {
			dst = append(dst, ',')
		}
		t := &f.Trees[i]
		splits := make([][]float64, len(t.Splits))
		for j, s := range t.Splits {
			splits[j] = []float64{float64(s.Column), s.At, float64(s.Low), float64(s.High)}
		}
		dst = append(appendRows(append(dst, `{"splits":`...), splits), `,"leaves":`...)
		dst = append(appendRows(dst, t.Leaves), '}')
	}
	return append(dst, ']')
}
