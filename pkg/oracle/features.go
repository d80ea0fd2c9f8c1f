package oracle

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// FeatureSpec declares a numeric feature with bounds: it is mapped by them, (x − (Lo+Hi)/2)·√12/(Hi−Lo), which
// standardises the uniform law on [Lo, Hi], instead of by running statistics.
type FeatureSpec struct {
	Name   string
	Lo, Hi float64
}

func (s *FeatureSpec) check() error {
	if !(s.Lo < s.Hi) || s.Hi-s.Lo > maxNumber {
		return fmt.Errorf("feature %q has bounds [%v, %v]: give finite ones, the lower first", s.Name, s.Lo, s.Hi)
	}
	return nil
}

// OfActions returns the declaration for the feature of that name of actions: others are of contexts.
func (s FeatureSpec) OfActions() FeatureSpec {
	s.Name = actionSpec + s.Name
	return s
}

// actionSpec begins what [FeatureSpec.OfActions] returns; no feature has such a name.
const actionSpec = "\x00"

// Limits of the running standardisation (docs/algorithms.md, section 7).
const (
	zLimit     = 5.0   // |z| ≤ 5
	minSD      = 1e-12 // a feature that varies less reads 0
	trustAfter = 50    // examples after which outliers are clipped to m ± 5 sd
	maxNumber  = 1e140 // larger magnitudes are taken as this; its square is finite
)

// Where a feature was found. Features of actions have columns of their own, shared by all actions.
const (
	ofContext byte = iota
	ofAction
)

// slot is all that is known under one feature name: at most one column for
// numbers, one for bools, and one a category of text; -1 is none.
type slot struct {
	scope        byte
	name         string
	number, bool int32
	texts        []textColumn
	index        map[string]int32 // of texts, once there are more than maxScan
}

type textColumn struct {
	text string
	col  int32
}

// maxScan is the number of categories up to which a scan beats a map.
const maxScan = 12

type slotKey struct {
	scope byte
	name  string
}

// column is one element of z. Column 0 is the constant 1.
type column struct {
	mean, inv float64 // z = clip((x − mean)·inv, ±5) for numbers
	n, m2     float64 // running statistics: count and Σ(x−mean)²
	slot      int32
	other     int32 // of a number's first column: its second (features_learn.go); 0: none
	kind      FeatureKind
	bounded   bool // mean and inv come from a FeatureSpec
	text      string
}

// features is a growing dictionary of columns and the map from an input to z.
// Columns are added when a name or category is first learned.
type features struct {
	version int // of what is computed
	specs   map[string]FeatureSpec
	most    int // columns beside the constant
	slots   []slot
	byName  map[slotKey]int32
	cols    []column
	dropped int64 // values of features beyond the limit that were learned as 0
	absence       // since version 2

	hints   []hint    // scratch, by position
	vec     []int32   // cache, by index into a vector: slot
	z       []float64 // scratch: the columns of the context, 0 where an action's go
	at      []int32   // scratch: ascending columns with z ≠ 0
	own     []int32   // scratch: ascending columns that fillAction set
	found   []int32   // scratch: columns of the features being learned
	missing []int32   // scratch: those of them without column, by name
}

func newFeatures(most int, specs []FeatureSpec, version int) (features, error) {
	version, err := knownVersion(version)
	if err != nil {
		return features{}, err
	}
	f := features{version: version, specs: map[string]FeatureSpec{}, most: most}
	for _, s := range specs {
		if _, twice := f.specs[s.Name]; twice {
			return features{}, fmt.Errorf("feature %q is declared twice", s.Name)
		}
		if err := s.check(); err != nil {
			return features{}, err
		}
		f.specs[s.Name] = s
	}
	return f.fresh(), nil
}

// fresh returns features with the same parameters that have seen nothing.
func (f *features) fresh() features {
	return features{version: f.version, specs: f.specs, most: f.most, byName: map[slotKey]int32{},
		cols: []column{{slot: -1}}, z: []float64{1}}
}

// dim returns the number of columns, the constant included.
func (f *features) dim() int { return len(f.cols) }

// hint is what stood at a position of the input last time.
type hint struct {
	name   string
	slot   int32 // -1: nothing
	number int32 // the slot's; -1: nothing
	scope  byte
}

// number returns the column of a number that was found at its position last time too, or -1:
// [features.column] then knows.
func (f *features) number(position int, scope byte, x *Feature) int32 {
	if position < len(f.hints) {
		if h := &f.hints[position]; h.name == x.Name && h.scope == scope && x.Kind == Number {
			return h.number
		}
	}
	return -1
}

// column returns the column of a feature at a position, or -1.
func (f *features) column(position int, scope byte, x *Feature) int32 {
	var h int32
	if position < len(f.hints) && f.hints[position].name == x.Name && f.hints[position].scope == scope &&
		f.hints[position].slot >= 0 {
		h = f.hints[position].slot
	} else if h = f.slot(position, scope, x.Name); h < 0 {
		return -1
	}
	s := &f.slots[h]
	switch {
	case x.Kind == Number:
		return s.number
	case x.Kind == Bool && f.version == 1:
		return s.bool
	}
	return s.category(x.category())
}

// category returns the text of a feature that is one: a bool is the category true or false.
func (x *Feature) category() string {
	switch {
	case x.Kind != Bool:
		return x.Text
	case x.Value != 0:
		return "true"
	}
	return "false"
}

// slot returns the index of the slot of a name, or -1, and remembers it for the position.
func (f *features) slot(position int, scope byte, name string) int32 {
	h, ok := f.byName[slotKey{scope, name}]
	if !ok {
		return -1
	}
	for len(f.hints) <= position {
		f.hints = append(f.hints, hint{slot: -1, number: -1})
	}
	s := &f.slots[h]
	f.hints[position] = hint{s.name, h, s.number, scope}
	return h
}

func (s *slot) category(text string) int32 {
	if s.index != nil {
		if c, ok := s.index[text]; ok {
			return c
		}
		return -1
	}
	for i := range s.texts {
		if s.texts[i].text == text {
			return s.texts[i].col
		}
	}
	return -1
}

// value returns z for the value v of column c.
func (c *column) value(v float64) float64 {
	switch c.kind {
	case Text, present:
		return 1
	case Bool:
		if v != 0 {
			return 1
		}
		return 0
	}
	z := (v - c.mean) * c.inv
	switch {
	case z > zLimit:
		return zLimit
	case z < -zLimit:
		return -zLimit
	case z != z:
		return 0
	}
	return z
}

// fill sets f.z to the context's columns.
func (f *features) fill(x *Input) {
	clear(f.z[1:])
	f.markAbsent(ofContext, 1)
	for i := range x.Features {
		c := f.number(i, ofContext, &x.Features[i])
		if c < 0 {
			c = f.column(i, ofContext, &x.Features[i])
		}
		if c >= 0 {
			f.put(c, x.Features[i].Value)
		}
	}
	for i, v := range x.Vector {
		if c := f.vector(i); c >= 0 {
			f.put(c, v)
		}
	}
}

// put sets the columns of a value whose first column is c.
func (f *features) put(c int32, v float64) {
	col := &f.cols[c]
	f.z[c] = col.value(v)
	if col.other != 0 {
		f.putOther(col, v)
	}
}

// fillAction sets the columns of an action's own features, whose names start at a position; unfillAction sets them back
// to 0. An action without any features has no absent ones either.
func (f *features) fillAction(position int, a *Action) {
	f.own = f.own[:0]
	if len(a.Features) == 0 {
		return
	}
	f.markAbsent(ofAction, 1)
	own, ascends := append(f.own, f.absent[ofAction]...), len(f.absent[ofAction]) == 0
	for i := range a.Features {
		x := &a.Features[i]
		c := f.number(position+i, ofAction, x)
		if c < 0 {
			c = f.column(position+i, ofAction, x)
		}
		if c < 0 {
			continue
		}
		f.put(c, x.Value)
		ascends = ascends && (len(own) == 0 || own[len(own)-1] < c)
		if own = append(own, c); f.cols[c].other != 0 {
			own, ascends = append(own, f.cols[c].other), false
		}
	}
	if !ascends {
		slices.Sort(own)
		own = slices.Compact(own)
	}
	f.own = own
}

func (f *features) unfillAction() {
	for _, c := range f.own {
		f.z[c] = 0
	}
}

// vector returns the column of element i of a vector, whose name is i in decimal, or -1.
func (f *features) vector(i int) int32 {
	if i < len(f.vec) && f.vec[i] >= 0 {
		return f.slots[f.vec[i]].number
	}
	var buf [20]byte
	name := strconv.AppendInt(buf[:0], int64(i), 10)
	h, ok := f.byName[slotKey{ofContext, string(name)}]
	if !ok {
		return -1
	}
	f.vec = setHint(f.vec, i, h)
	return f.slots[h].number
}

// add appends a column unless it exists or the limit is reached; it copies the strings. It returns the column, or -1.
func (f *features) add(scope byte, kind FeatureKind, name, text string) int32 {
	if len(f.cols) > f.most {
		return -1
	}
	key := slotKey{scope, name}
	h, ok := f.byName[key]
	if !ok {
		key.name = string(append([]byte(nil), name...))
		h = int32(len(f.slots))
		f.byName[key] = h
		f.slots = append(f.slots, slot{scope: scope, name: key.name, number: -1, bool: -1})
	}
	f.hints = f.hints[:0]
	s := &f.slots[h]
	next := int32(len(f.cols))
	c := column{slot: h, kind: kind}
	switch kind {
	case Number, present, absent:
		if s.number >= 0 && !f.pairs(s.number, kind) {
			return s.number
		}
		f.enlist(s, scope, kind, next)
		declared := name
		if scope == ofAction {
			declared = actionSpec + name
		}
		if spec, ok := f.specs[declared]; ok && kind == Number {
			c.bounded = true
			c.mean = spec.Lo + (spec.Hi-spec.Lo)/2
			c.inv = math.Sqrt(12) / (spec.Hi - spec.Lo)
		}
	case Bool:
		if s.bool >= 0 {
			return s.bool
		}
		s.bool = next
	default:
		if old := s.category(text); old >= 0 {
			return old
		}
		c.kind, c.text = Text, string(append([]byte(nil), text...))
		s.addCategory(c.text, next)
	}
	f.cols = append(f.cols, c)
	f.z = append(f.z, 0)
	return next
}

func (s *slot) addCategory(text string, col int32) {
	s.texts = append(s.texts, textColumn{text, col})
	switch {
	case s.index != nil:
		s.index[text] = col
	case len(s.texts) > maxScan:
		s.index = make(map[string]int32, 2*len(s.texts))
		for _, t := range s.texts {
			s.index[t.text] = t.col
		}
	}
}

// sparse lists the columns of z that are not 0 in f.at and reports whether they are few enough for the sparse kernels.
func (f *features) sparse() bool {
	limit := len(f.z) / 2
	if len(f.z) < 24 {
		return false
	}
	f.at = f.at[:0]
	for i, v := range f.z {
		if v == 0 {
			continue
		}
		if len(f.at) == limit {
			return false
		}
		f.at = append(f.at, int32(i))
	}
	return true
}
