package model

import (
	"fmt"
	"maps"
	"slices"

	"hindsight/pkg/oracle"
)

// tableClass is a class of functions that have a loss an action for each key.
type tableClass struct{}

const tableExample = `{"prior":1,"table":{"DE|true":[0.2,0.8]}}`

func (tableClass) example() string { return tableExample }

func (tableClass) read(c *ClassFile, _ *Function, l *classLine, size *classSize) error {
	if l.W != nil || l.Table == nil {
		return fmt.Errorf("a function of a tabular class has a table and no w; for example %s", tableExample)
	}
	for key, losses := range l.Table {
		size.keys[key] = true
		if len(losses) != len(c.Actions) {
			return fmt.Errorf("table: a key has %d losses for %d actions; for example %s", len(losses), len(c.Actions),
				tableExample)
		}
	}
	size.row = max(1, len(size.keys)) * len(c.Actions)
	return nil
}

func (tableClass) write(dst []byte, f *Function) []byte {
	dst = append(dst, `"table":{`...)
	for i, key := range slices.Sorted(maps.Keys(f.Table)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendNumbers(append(appendJSON(dst, key), ':'), f.Table[key])
	}
	return append(dst, '}')
}

func (tableClass) class(c *ClassFile) (oracle.Class, error) {
	tables := each(c.Functions, func(f *Function) map[string][]float64 { return f.Table })
	return oracle.NewTabularClass(c.Features, c.Actions, tables)
}
