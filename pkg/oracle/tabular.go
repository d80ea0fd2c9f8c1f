package oracle

import (
	"errors"
	"fmt"
	"strconv"
)

// TabularClass is a finite class of lookup tables: f_i(x, a) is the entry of
// table i under the key of x for action a, clipped to [0,1].
//
// The key is the values of the class's features, in the class's order, joined by
// "|": a text as it is, a number in its shortest decimal form without exponent,
// a bool as true or false, absent as nothing. A class without features has the
// one key "". What a table lacks is predicted 1/2, as is an unknown action.
// A class has scratch space and is not safe for concurrent use.
type TabularClass struct {
	names
	size int
	row  map[string]int32 // key → row
	loss []float64        // [row][action][function]
	at   []int32          // scratch: feature → 1 + its position in the input
	key  []byte           // scratch
}

var (
	_ Class = (*TabularClass)(nil)
	_ Mixer = (*TabularClass)(nil)
)

// NewTabularClass returns a class of |F| = len(tables) functions;
// tables[i][key] holds one loss an action.
func NewTabularClass(features, actions []string, tables []map[string][]float64) (*TabularClass, error) {
	n, err := newNames(features, actions)
	if err != nil {
		return nil, fmt.Errorf("tabular class: %w", err)
	}
	if len(tables) == 0 {
		return nil, errors.New("tabular class: no functions")
	}
	c := &TabularClass{names: n, size: len(tables), row: map[string]int32{}, at: make([]int32, len(features))}
	k := len(actions)
	for i, table := range tables {
		// The numbers of rows depend on the order of the map; nothing else does.
		for key, losses := range table {
			if len(losses) != k {
				return nil, fmt.Errorf("tabular class: function %d, key %q: %d losses for %d actions", i, key, len(losses), k)
			}
			r, ok := c.row[key]
			if !ok {
				r = int32(len(c.row))
				c.row[key] = r
				for range k * c.size {
					c.loss = append(c.loss, unknownLoss)
				}
			}
			for a, v := range losses {
				if v-v != 0 {
					return nil, fmt.Errorf("tabular class: function %d, key %q: loss %v is not finite", i, key, v)
				}
				c.loss[(int(r)*k+a)*c.size+i] = clip01(v)
			}
		}
	}
	return c, nil
}

// Size implements [Class].
func (c *TabularClass) Size() int { return c.size }

// Eval implements [Class].
func (c *TabularClass) Eval(dst []float64, x *Input, action int) {
	dst = dst[:c.size]
	losses := c.losses(c.find(x), action, x.Actions[action].Name)
	if losses == nil {
		for i := range dst {
			dst[i] = unknownLoss
		}
		return
	}
	copy(dst, losses)
}

// Mix implements [Mixer].
func (c *TabularClass) Mix(dst, q []float64, x *Input) {
	r := c.find(x)
	q = q[:c.size]
	for k := range x.Actions {
		s := 0.0
		losses := c.losses(r, k, x.Actions[k].Name)
		for i, v := range q {
			switch {
			case v == 0:
			case losses == nil:
				s += float64(v * unknownLoss)
			default:
				s += float64(v * losses[i])
			}
		}
		dst[k] = s
	}
}

// losses returns the |F| entries of a row for the action name that stands at a
// position; nil if either is unknown.
func (c *TabularClass) losses(row, position int, name string) []float64 {
	a := c.action(position, name)
	if a < 0 || row < 0 {
		return nil
	}
	at := (row*len(c.actions) + a) * c.size
	return c.loss[at : at+c.size]
}

// find returns the row of x, or -1.
func (c *TabularClass) find(x *Input) int {
	c.key = c.appendKey(c.key[:0], x)
	if r, ok := c.row[string(c.key)]; ok {
		return int(r)
	}
	return -1
}

func (c *TabularClass) appendKey(dst []byte, x *Input) []byte {
	clear(c.at)
	for i := range x.Features {
		if f := c.named(i, x.Features[i].Name); f >= 0 {
			c.at[f] = int32(i + 1)
		}
	}
	for f, i := range c.at {
		if f > 0 {
			dst = append(dst, '|')
		}
		switch {
		case f < len(x.Vector):
			dst = appendNumber(dst, x.Vector[f])
		case i == 0:
		case x.Features[i-1].Kind == Text:
			dst = append(dst, x.Features[i-1].Text...)
		case x.Features[i-1].Kind == Bool:
			dst = strconv.AppendBool(dst, x.Features[i-1].Value != 0)
		default:
			dst = appendNumber(dst, x.Features[i-1].Value)
		}
	}
	return dst
}

func appendNumber(dst []byte, v float64) []byte {
	return strconv.AppendFloat(dst, v+0, 'f', -1, 64) // +0: no "-0"
}
