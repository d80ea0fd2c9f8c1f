package model

import (
	"fmt"

	"hindsight/pkg/oracle"
)

// mixedClass is a class of functions that differ in what they are. A shared one is over features of actions, and its
// functions have one output.
type mixedClass struct{ shared bool }

// mixedLine is what a line of a mixed or shared class has beside its prior: one of these.
type mixedLine struct {
	// a row an action, or a feature of actions and one more: one number a feature, then the intercept
	Linear   [][]float64 `json:"linear"`
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

func (l *mixedLine) given() bool { return l.Linear != nil || l.Logistic != nil || l.Trees != nil }

func (k mixedClass) example() string {
	if k.shared {
		return `{"prior":1,"linear":[[0.1,0.5],[-0.2,0.5]]} or ` +
			`{"prior":1,"trees":[{"splits":[[1,14.5,-1,-2]],"leaves":[[0.2],[0.6]]}]}`
	}
	return `{"prior":1,"logistic":[[0.1,0.5],[-0.2,0.5]]} or ` +
		`{"prior":1,"trees":[{"splits":[[0,14.5,-1,-2]],"leaves":[[0.2,0.8],[0.6,0.1]]}]}`
}

func (k mixedClass) read(c *ClassFile, f *Function, l *classLine, size *classSize) error {
	if l.W != nil || l.Table != nil || !l.given() {
		return fmt.Errorf("a function of a %s class has linear, logistic or trees; for example %s", c.Kind, k.example())
	}
	f.Mixed = oracle.MixedFunction{Linear: l.Linear, Logistic: l.Logistic}
	size.mixed += (len(l.Linear) + len(l.Logistic)) * (len(c.Features) + 1)
	outputs := len(c.Actions)
	if k.shared {
		outputs = 1
	}
	for i := range l.Trees {
		tree := oracle.Tree{Leaves: l.Trees[i].Leaves}
		for j, s := range l.Trees[i].Splits {
			column, low, high := int(s[0]), int(s[2]), int(s[3])
			if float64(column) != s[0] || float64(low) != s[2] || float64(high) != s[3] {
				return fmt.Errorf("trees[%d].splits[%d] is %v: expected [column, at, low, high], all but at whole; "+
					"for example %s", i, j, s, k.example())
			}
			tree.Splits = append(tree.Splits, oracle.Split{Column: column, At: s[1], Low: low, High: high})
		}
		size.mixed += 4*len(tree.Splits) + outputs*len(tree.Leaves)
		f.Mixed.Trees = append(f.Mixed.Trees, tree)
	}
	if size.mixed > maxClassNumbers {
		return fmt.Errorf("the functions so far have %d numbers, more than the %d that fit; use fewer, or "+
			"smaller trees", size.mixed, maxClassNumbers)
	}
	one := *c
	one.Functions = []Function{*f}
	if _, err := k.class(&one); err != nil {
		return fmt.Errorf("%w; for example %s", err, k.example())
	}
	return nil
}

func (mixedClass) write(dst []byte, f *Function) []byte {
	switch m := &f.Mixed; {
	case m.Linear != nil:
		return appendRows(append(dst, `"linear":`...), m.Linear)
	case m.Logistic != nil:
		return appendRows(append(dst, `"logistic":`...), m.Logistic)
	}
	return appendList(append(dst, `"trees":`...), f.Mixed.Trees, func(dst []byte, t oracle.Tree) []byte {
		dst = appendList(append(dst, `{"splits":`...), t.Splits, func(dst []byte, s oracle.Split) []byte {
			return appendNumbers(dst, []float64{float64(s.Column), s.At, float64(s.Low), float64(s.High)})
		})
		return append(appendRows(append(dst, `,"leaves":`...), t.Leaves), '}')
	})
}

func (k mixedClass) class(c *ClassFile) (oracle.Class, error) {
	mixed := each(c.Functions, func(f *Function) oracle.MixedFunction { return f.Mixed })
	if k.shared {
		return oracle.NewSharedClass(c.Features, c.ActionFeatures, mixed)
	}
	return oracle.NewMixedClass(c.Features, c.Actions, mixed)
}
