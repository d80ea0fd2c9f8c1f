package codec

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"
)

// AppendContext appends c as MessagePack. c is valid ([Context.Validate]).
func AppendContext(dst []byte, c *Context) []byte {
	head, version := len(dst), int64(Version)
	if c.Assigned.Action != "" || len(c.Slots) > 0 || c.Unit != "" {
		version = saysMore
	}
	dst = appendInt(appendKey(appendMap(dst, 1), "v"), version)
	if c.ID != "" {
		dst = appendText(another(dst, head, "id"), c.ID)
	}
	switch {
	case len(c.Vector) > 0:
		dst = appendFloats(another(dst, head, "features"), c.Vector)
	case len(c.Features) > 0:
		dst = appendFeatures(another(dst, head, "features"), c.Features)
	}
	if len(c.Baseline) > 0 {
		dst = appendBaseline(dst, c.Baseline)
		dst[head]++
	}
	if c.LoggedPropensity != 0 {
		dst = appendFloat(another(dst, head, "logged_propensity"), c.LoggedPropensity)
	}
	if c.Actions != nil {
		dst = appendActions(another(dst, head, "actions"), c.Actions)
	}
	if c.Assigned.Action != "" {
		dst = appendAssigned(another(dst, head, "assigned"), &c.Assigned)
	}
	if len(c.Slots) > 0 {
		dst = appendSlots(dst, c.Slots)
		dst[head]++
	}
	if c.Unit != "" {
		dst = appendText(another(dst, head, "unit"), c.Unit)
	}
	return dst
}

func appendActions(dst []byte, actions []Action) []byte {
	dst = appendList(dst, len(actions))
	for i := range actions {
		a := &actions[i]
		if len(a.Features) == 0 {
			dst = appendText(dst, a.Name)
			continue
		}
		dst = appendText(appendKey(appendMap(dst, 2), "name"), a.Name)
		dst = appendFeatures(appendKey(dst, "features"), a.Features)
	}
	return dst
}

func appendFeatures(dst []byte, features []Feature) []byte {
	dst = appendMap(dst, len(features))
	for i := range features {
		f := &features[i]
		if n := len(f.Name); f.Kind == Number && n < shortName { // as most are
			dst = append(dst, shortNumber...)
			b := dst[len(dst)-len(shortNumber):]
			b[0] = 0xa0 | byte(n)
			for j := range n {
				b[1+j] = f.Name[j]
			}
			b[1+n] = mpFloat64
			binary.BigEndian.PutUint64(b[2+n:], math.Float64bits(f.Value))
			dst = dst[:len(dst)-len(shortNumber)+n+10]
			continue
		}
		dst = appendText(dst, f.Name)
		switch f.Kind {
		case Number:
			dst = appendFloat(dst, f.Value)
		case Text:
			dst = appendText(dst, f.Text)
		case Vector:
			dst = appendList(dst, f.Len())
			for j := range f.Len() {
				dst = appendFloat(dst, f.At(j))
			}
		default:
			dst = appendBool(dst, f.Value != 0)
		}
	}
	return dst
}

// Names of fewer bytes than shortName are copied byte by byte; shortNumber is room for one
// and a number, with their heads.
const (
	shortName   = 16
	shortNumber = "\xa0---------------\xcb--------"
)

// AppendContextJSON appends c as JSON. c is valid ([Context.Validate]).
func AppendContextJSON(dst []byte, c *Context) []byte {
	dst = asJSON(AppendContext(dst, c), len(dst))
	if c.Assigned.Action != "" || len(c.Slots) > 0 || c.Unit != "" {
		dst = append(jsonInt(jsonKey(dst[:len(dst)-1], "v"), saysMore), '}')
	}
	return dst
}

// ParseContext parses a context from MessagePack, JSON or the JSON of a CloudEvent, whose id is the round's when its
// data has none. It refuses what is not such a record; whether the values make sense is for [Context.Validate].
//
// Parsing reuses all of dst's memory, so that the same shape again allocates nothing, and what dst held before has no
// influence (an empty Features or Vector may be nil or not, which means the same). On an error dst is of no use but for
// the next call.
func ParseContext(dst *Context, b []byte) error {
	_, err := ReadContext(dst, b, nil)
	return err
}

// ReadContext is [ParseContext] that also returns how many keys of the context and of its
// actions it has no use for, and adds them to strays, unless that is nil: FIELD of the context,
// actions.FIELD of an action. Attributes of a CloudEvent are no such keys.
func ReadContext(dst *Context, b []byte, strays *Names) (unread int, err error) {
	unread, _, err = readContext(dst, b, strays)
	return unread, err
}

// ReadValid is [ReadContext] and [Context.ValidateFor] in one: what was seen to be valid while it was read is not
// looked at again.
func ReadValid(dst *Context, b []byte, strays *Names, long func(name string) bool) (unread int, err error) {
	unread, checked, err := readContext(dst, b, strays)
	if err == nil {
		err = dst.validate(long, checked)
	}
	return unread, err
}

// readContext is ReadContext that also returns how many actions, from the first on, have features that are valid if the
// first's are: finite numbers of the same names, in their order.
func readContext(dst *Context, b []byte, strays *Names) (unread, checked int, err error) {
	if len(b) > MaxRecordBytes {
		return 0, 0, wrong("context", "", ErrTooLarge)
	}
	r := newReader(b)
	r.strays = strays
	r.context(dst)
	if !r.isCloudEvent() {
		return r.unread, r.checked, r.end("context")
	}
	if strays != nil {
		strays.clear()
	}
	r, id := openCloudEvent(b)
	r.strays = strays
	r.context(dst)
	if dst.ID == "" {
		dst.ID = id
	}
	return r.unread, r.checked, r.end("context")
}

func (r *reader) context(c *Context) {
	actions := c.Actions[:0]
	c.ID, c.Features, c.Vector, c.Actions, c.Baseline = "", c.Features[:0], c.Vector[:0], nil, c.Baseline[:0]
	c.LoggedPropensity, c.numbers = 0, c.numbers[:0]
	c.Assigned, c.Slots, c.Unit, c.unitOther = Assigned{Law: c.Assigned.Law[:0]}, c.Slots[:0], "", false
	r.numbers = &c.numbers
	var seen uint32
	s := r.entries()
	for r.entry(&s) {
		switch s.key {
		case "v":
			r.once(&seen, 0).version()
		case "id":
			c.ID = r.once(&seen, 1).textOrNull()
		case "features":
			r.once(&seen, 2).contextFeatures(c)
		case "actions":
			if !r.once(&seen, 3).null() {
				c.Actions = r.actions(actions)
			}
		case "baseline":
			c.Baseline = r.once(&seen, 4).baseline(c.Baseline)
		case "logged_propensity":
			if !r.once(&seen, 5).null() {
				c.LoggedPropensity = r.float()
			}
		case "assigned":
			r.once(&seen, 6).assigned(&c.Assigned)
		case "slots":
			c.Slots = r.once(&seen, 7).slots(c.Slots)
		case "unit":
			c.Unit, c.unitOther = r.once(&seen, 8).contextUnit()
		default:
			if s.key == cloudMark && r.json && !r.inner {
				r.cloud = true
				c.Actions = actions // keep the memory for its data
				return
			}
			r.stray("", s.key)
		}
	}
}

// stray skips the value of a key that nobody reads.
func (r *reader) stray(where, key string) {
	r.unread++
	if r.strays != nil {
		r.strays.Add(where + key)
	}
	r.skip()
}

// textOrNull reads text; null is "".
func (r *reader) textOrNull() string {
	if r.null() {
		return ""
	}
	return r.text()
}

func (r *reader) contextFeatures(c *Context) {
	switch r.kind() {
	case tokNull:
		r.null()
	case tokMap:
		c.Features = r.namedFeatures(c.Features)
	case tokList:
		for s := r.open(tokList); r.more(&s); {
			c.Vector = append(c.Vector, r.float())
			r.countFeature()
			if r.err != nil {
				r.in(item("", len(c.Vector)-1))
			}
		}
	case tokNone:
		r.fail(r.noValue())
	default:
		r.fail(errFeatures)
	}
}

func (r *reader) countFeature() {
	if r.features++; r.features > MaxFeatures {
		r.fail(errManyFeatures)
	}
}

// namedFeatures reads a map of features and appends them to dst.
func (r *reader) namedFeatures(dst []Feature) []Feature {
	for s := r.open(tokMap); r.more(&s); {
		if !r.json {
			was := len(dst)
			dst = r.shortNumbers(dst, s.left+1, nil)
			if s.left -= len(dst) - was; s.left < 0 {
				break
			}
		}
		name := r.key()
		kind := r.kind()
		if kind == tokNull {
			r.null()
			continue
		}
		dst = append(dst, Feature{Name: name})
		r.feature(&dst[len(dst)-1], kind)
		r.countFeature()
		if r.err != nil {
			r.inKey(name)
			return dst
		}
	}
	return dst
}

// shortNumbers reads up to most features of MessagePack whose names are short and whose values are floats of 64 bits,
// as most are, up to the first that is something else. Names that known has at the same place share its memory, which
// whoever compares them later sees by the address.
func (r *reader) shortNumbers(dst []Feature, most int, known []Feature) []Feature {
	b, i := r.b, r.i
	most = min(most, MaxFeatures-r.features) // the next one fails elsewhere
	was := len(dst)
	for len(dst)-was < most {
		rest := b[i:]
		if len(rest) < 10 || rest[0]&0xe0 != 0xa0 {
			break
		}
		n := int(rest[0] & 31)
		if len(rest) < n+10 || rest[n+1] != mpFloat64 {
			break
		}
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, 1)
		}
		dst = dst[:len(dst)+1]
		f := &dst[len(dst)-1] // field by field: a value that is made first and then copied waits for its own stores
		f.Value = math.Float64frombits(binary.BigEndian.Uint64(rest[n+2:]))
		name := unsafe.String(unsafe.SliceData(rest[1:]), n)
		if k := len(dst) - 1; k < len(known) && known[k].Name == name {
			if name = known[k].Name; finite(f.Value) {
				r.alike++
			}
		}
		f.Name, f.Kind, f.Text = name, Number, ""
		i += n + 10
	}
	r.i, r.features = i, r.features+len(dst)-was
	return dst
}

// feature reads a value of the kind that comes next.
func (r *reader) feature(f *Feature, next token) {
	switch next {
	case tokNum:
		f.Kind, f.Value = Number, r.float()
	case tokText, tokBytes:
		f.Kind, f.Text = Text, r.text()
	case tokBool:
		f.Kind = Bool
		if r.bool() {
			f.Value = 1
		}
	case tokNone:
		r.fail(r.noValue())
	default:
		r.vector(f, next)
	}
}

// vector reads a list of numbers into the memory of the context; a value of another kind is no feature.
func (r *reader) vector(f *Feature, next token) {
	if next != tokList {
		r.fail(errFeature)
		return
	}
	b := *r.numbers
	from := len(b)
	for s := r.open(tokList); r.more(&s); {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.float()))
		if r.countFeature(); r.err != nil {
			r.in(item("", (len(b)-from)/8-1))
		}
	}
	*r.numbers = b
	f.Kind, f.Text = Vector, unsafe.String(unsafe.SliceData(b[from:]), len(b)-from)
}

// actions reads the list of actions into dst, which is empty, and returns it, not
// nil. It reuses the features of what dst held in its capacity.
func (r *reader) actions(dst []Action) []Action {
	if dst == nil {
		dst = []Action{}
	}
	var known []Feature
	for s := r.open(tokList); r.more(&s); {
		n := len(dst)
		if n == MaxActions {
			r.fail(errManyActions)
			return dst
		}
		if n < cap(dst) {
			dst = dst[:n+1]
		} else {
			dst = append(dst, Action{})
		}
		a := &dst[n]
		a.Name, a.Features, r.alike = "", a.Features[:0], 0
		switch r.kind() {
		case tokText, tokBytes:
			a.Name = r.text()
		case tokMap:
			if !r.shortAction(a, known) {
				r.action(a)
			}
		case tokNone:
			r.fail(r.noValue())
		default:
			r.fail(errAction)
		}
		if r.err != nil {
			r.in(item("", n))
		}
		if n == r.checked && (n == 0 || r.alike == len(a.Features)) {
			r.checked++
		}
		known = a.Features
	}
	return dst
}

// shortAction reads an action of MessagePack with a short name and then features, all of which are numbers that
// shortNumbers reads, known being those of the action before; it reports false if it is none, and has then read
// nothing.
func (r *reader) shortAction(a *Action, known []Feature) bool {
	const head, middle = "\x82\xa4name", "\xa8features"
	rest := r.b[r.i:]
	if len(rest) <= len(head) || string(rest[:len(head)]) != head || rest[len(head)]&0xe0 != 0xa0 {
		return false
	}
	name := rest[len(head)+1:]
	n := int(rest[len(head)] & 31)
	if len(name) <= n+len(middle) || string(name[n:n+len(middle)]) != middle || name[n+len(middle)]&0xf0 != 0x80 {
		return false
	}
	was, features, most := r.i, r.features, int(name[n+len(middle)]&15)
	r.i += len(head) + 1 + n + len(middle) + 1
	if a.Features = r.shortNumbers(a.Features, most, known); len(a.Features) < most {
		r.i, r.features, a.Features = was, features, a.Features[:0]
		return false
	}
	a.Name = unsafe.String(unsafe.SliceData(name), n)
	return true
}

func (r *reader) action(a *Action) {
	byID := false
	var seen uint32
	s := r.entries()
	for r.entry(&s) {
		switch s.key {
		case "name":
			a.Name = r.once(&seen, 0).text()
		case "features":
			if !r.once(&seen, 1).null() {
				a.Features = r.namedFeatures(a.Features)
			}
		default:
			byID = byID || s.key == "id"
			r.stray("actions.", s.key)
		}
	}
	if byID && seen&1 == 0 {
		r.fail(errActionID)
	}
	r.require(seen, actionKeys)
}

var actionKeys = []string{"name"}
