package model

import (
	"fmt"

	"hindsight/pkg/oracle"
)

// rowClass is a class of functions that have a row of weights an action: linear, or their logistic.
type rowClass struct{ logistic bool }

const functionExample = `{"prior":1,"w":[[0.1,0.5],[-0.2,0.5]]}`

func (rowClass) example() string { return functionExample }

func (rowClass) read(c *ClassFile, _ *Function, l *classLine, size *classSize) error {
	if l.Table != nil || l.W == nil {
		return fmt.Errorf("a function of a %s class has w and no table; for example %s", c.Kind, functionExample)
	}
	if len(l.W) != len(c.Actions) {
		return fmt.Errorf("w has %d rows for %d actions: one row an action", len(l.W), len(c.Actions))
	}
	for a, row := range l.W {
		if len(row) != len(c.Features)+1 {
			return fmt.Errorf("w[%d], action %q, has %d numbers: expected %d, one a feature and the intercept",
				a, c.Actions[a], len(row), len(c.Features)+1)
		}
	}
	size.row = len(c.Actions) * (len(c.Features) + 1)
	return nil
}

func (rowClass) write(dst []byte, f *Function) []byte { return appendRows(append(dst, `"w":`...), f.W) }

func (k rowClass) class(c *ClassFile) (oracle.Class, error) {
	w := each(c.Functions, func(f *Function) [][]float64 { return f.W })
	if k.logistic {
		return oracle.NewLogisticClass(c.Features, c.Actions, w)
	}
	return oracle.NewLinearClass(c.Features, c.Actions, w)
}
