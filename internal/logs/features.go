package logs

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

// Features returns the features that JSON of any depth has: an object of them, or a list as Personalizer's Rank takes
// it. They alias text, are sorted, and their names are distinct.
func Features(text []byte) (out []codec.Feature, err error) {
	d := &dsjson{}
	d.scan.Reset(text)
	switch d.scan.Peek() {
	case 'n', 0:
		return nil, nil
	case '{':
		out = d.featureObject(nil, "", 0)
	default:
		out = d.featureList(nil, "", 0)
	}
	if !d.scan.Ok() {
		return nil, errors.New(d.scan.Msg)
	}
	slices.SortStableFunc(out, func(a, b codec.Feature) int { return strings.Compare(a.Name, b.Name) })
	distinct(len(out), func(i int) *string { return &out[i].Name })
	return out, nil
}

// featureObject reads the members of a JSON object as features whose names begin with prefix: numbers, texts and
// booleans by their keys, objects as a.b, lists as said at featureList. Keys that begin with _ are no features, but
// _text holds words: each is a feature of 1, as Vowpal Wabbit reads it.
func (d *dsjson) featureObject(dst []codec.Feature, prefix string, depth int) []codec.Feature {
	s := &d.scan
	if depth > scan.MaxDepth {
		s.Fail("nested too deep")
		return dst
	}
	for first := s.Open('{'); s.More(&first, '}'); {
		key := s.Key()
		switch {
		case key == "_text" && s.Peek() == '"':
			for word := range strings.FieldsSeq(s.Text()) {
				dst = append(dst, codec.Feature{Name: s.Join(prefix, word), Kind: codec.Number, Value: 1})
			}
		case strings.HasPrefix(key, "_"):
			s.Skip(depth)
		default:
			dst = d.featureValue(dst, prefix, key, depth)
		}
	}
	return dst
}

// featureValue reads the value of a key.
func (d *dsjson) featureValue(dst []codec.Feature, prefix, key string, depth int) []codec.Feature {
	s := &d.scan
	switch s.Peek() {
	case '{':
		return d.featureObject(dst, s.Join(prefix, key), depth+1)
	case '[':
		return d.featureList(dst, s.Join(prefix, key), depth+1)
	case '"':
		return append(dst, codec.Feature{Name: s.Join(prefix, key), Kind: codec.Text, Text: s.Text()})
	case 't':
		s.Word("true")
		return append(dst, codec.Feature{Name: s.Join(prefix, key), Kind: codec.Bool, Value: 1})
	case 'f':
		s.Word("false")
		return append(dst, codec.Feature{Name: s.Join(prefix, key), Kind: codec.Bool})
	case 'n':
		s.Word("null")
		return dst
	}
	return append(dst, codec.Feature{Name: s.Join(prefix, key), Kind: codec.Number, Value: s.Number()})
}

// featureList reads a list: members of objects in it belong to the list's own name, other
// values have their index behind it.
func (d *dsjson) featureList(dst []codec.Feature, prefix string, depth int) []codec.Feature {
	s := &d.scan
	if depth > scan.MaxDepth {
		s.Fail("nested too deep")
		return dst
	}
	i := 0
	for first := s.Open('['); s.More(&first, ']'); i++ {
		if s.Peek() == '{' {
			dst = d.featureObject(dst, prefix, depth+1)
		} else {
			dst = d.featureValue(dst, prefix, strconv.Itoa(i), depth)
		}
	}
	return dst
}

// distinct gives the second of a name the name with #2, and so on; name returns where that of i lies.
func distinct(n int, name func(i int) *string) {
	if codec.Repeated(n, func(i int) string { return *name(i) }) < 0 {
		return
	}
	seen := make(map[string]int, n)
	for i := range n {
		is := name(i)
		k := seen[*is] + 1
		for seen[*is] = k; k > 1; k++ {
			again := *is + "#" + strconv.Itoa(k)
			if _, taken := seen[again]; !taken {
				seen[*is], seen[again] = k, 1
				*is = again
				break
			}
		}
	}
}

// validate checks what a record says against the rules of events, and makes names distinct where they are not.
func validate(c *codec.Context, r *Record) error {
	c.ID, c.Features, c.Actions = r.ID, r.Features, nil
	if len(r.Actions) > 0 {
		c.Actions = r.Actions
	}
	if err := c.ValidateFor(r.long); err == nil {
		return nil
	}
	distinct(len(r.Features), func(i int) *string { return &r.Features[i].Name })
	for a := range r.Actions {
		distinct(len(r.Actions[a].Features), func(i int) *string { return &r.Actions[a].Features[i].Name })
	}
	distinct(len(r.Actions), func(i int) *string { return &r.Actions[i].Name })
	if r.Chosen >= 0 && r.Chosen < len(r.Actions) {
		r.Action = r.Actions[r.Chosen].Name
	}
	return c.ValidateFor(r.long)
}

// another appends an action, whose features keep their memory.
func (r *Record) another(name string) *codec.Action {
	n := len(r.Actions)
	if n < cap(r.Actions) {
		r.Actions = r.Actions[:n+1]
	} else {
		r.Actions = append(r.Actions, codec.Action{})
	}
	a := &r.Actions[n]
	a.Name, a.Features = name, a.Features[:0]
	return a
}

// isBlank reports whether a line has nothing but white space.
func isBlank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }
