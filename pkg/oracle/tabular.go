package oracle

import (
	"errors"
	"fmt"
	"strconv"
)

// TabularClass is a finite class of lookup tables: f_i(x, a) is the entry of
// table i under the key of x for action a, clipped to [0,1].
//
// The key is the values of the class's features, in the class's order, joined by "|": a text as it is, a number in its
// shortest decimal form without exponent, a bool as true or false, absent as nothing. A class without features has the
// one key "". What a table lacks is predicted 1/2, as is an unknown action. A class has scratch space and is not safe
// for concurrent use.
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

	_ Picker = (*TabularClass)(nil)
)

// NewTabularClass returns a class of |F| = len(tables) functions; tables[i][key] holds one loss an action.
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
				return nil, fmt.Errorf("tabular class: function %d: key %q: %d losses for %d actions", i, key,
					len(losses), k)
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
					return nil, fmt.Errorf("tabular class: function %d: key %q: loss %v is not finite", i, key, v)
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

// EvalSome implements [Picker].
func (c *TabularClass) EvalSome(dst []float64, which []int32, x *Input, action int) {
	dst = dst[:len(which)]
	losses := c.losses(c.find(x), action, x.Actions[action].Name)
	for j, i := range which {
		if losses == nil {
			dst[j] = unknownLoss
		} else {
			dst[j] = losses[i]
		}
	}
}

// Mix implements [Mixer].
func (c *TabularClass) Mix(dst, q []float64, x *Input) {
	r := c.find(x)
	q = q[:c.size]
	var rows [4][]float64
	var at [4]int
	n := 0
	for k := range x.Actions {
		losses := c.losses(r, k, x.Actions[k].Name)
		if losses == nil {
			s := 0.0
			for _, v := range q {
				s += float64(v * unknownLoss)
			}
			dst[k] = s
			continue
		}
		rows[n], at[n] = losses, k
		if n++; n == len(rows) {
			mixFour(dst, &at, q, &rows)
			n = 0
		}
	}
	if n > 0 { // the places left over compute the last action again
		for i := n; i < len(rows); i++ {
			rows[i], at[i] = rows[n-1], at[n-1]
		}
		mixFour(dst, &at, q, &rows)
	}
}

// mixFour sets dst[at[j]] = Σ_i q[i]·rows[j][i] for four actions at once: each sum
// waits for its last addition, four do not wait for each other.
func mixFour(dst []float64, at *[4]int, q []float64, rows *[4][]float64) {
	r0, r1, r2, r3 := rows[0][:len(q)], rows[1][:len(q)], rows[2][:len(q)], rows[3][:len(q)]
	s0, s1, s2, s3 := 0.0, 0.0, 0.0, 0.0
	for i, v := range q {
		if v == 0 {
			continue
		}
		s0 += float64(v * r0[i])
		s1 += float64(v * r1[i])
		s2 += float64(v * r2[i])
		s3 += float64(v * r3[i])
	}
	dst[at[0]], dst[at[1]], dst[at[2]], dst[at[3]] = s0, s1, s2, s3
}

// losses returns the |F| entries of a row for the action name that stands at a position; nil if either is unknown.
func (c *TabularClass) losses(row, position int, name string) []float64 {
	a := c.action(position, name)
	if a < 0 || row < 0 {
		return nil
	}
	at := (row*len(c.Actions()) + a) * c.size
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
		if f := c.features.at(i, x.Features[i].Name); f >= 0 {
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
