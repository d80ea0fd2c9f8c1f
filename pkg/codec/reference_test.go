package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"
)

// vmihailenco/msgpack is the reference, in both directions: it reads what is
// written here, and what it writes is read here.

// law is an ordered map of propensities.
type law struct {
	names []string
	p     []*float64 // nil: unknown
}

// refLaw returns the propensities of a round and of its action.
func refLaw(actions []string, p []float64, action int, u Unknown) (l law, own *float64) {
	l.names = actions
	for i := range p {
		if u == UnknownLaw || u == UnknownRest && i != action {
			l.p = append(l.p, nil)
		} else {
			l.p = append(l.p, &p[i])
		}
	}
	return l, l.p[action]
}

func (l law) EncodeMsgpack(e *msgpack.Encoder) error {
	if err := e.EncodeMapLen(len(l.names)); err != nil {
		return err
	}
	for i, name := range l.names {
		if err := e.EncodeString(name); err != nil {
			return err
		}
		if err := e.Encode(l.p[i]); err != nil {
			return err
		}
	}
	return nil
}

func (l *law) DecodeMsgpack(d *msgpack.Decoder) error {
	n, err := d.DecodeMapLen()
	for i := 0; i < n && err == nil; i++ {
		var name string
		var p *float64
		if name, err = d.DecodeString(); err == nil {
			err = d.Decode(&p)
		}
		l.names, l.p = append(l.names, name), append(l.p, p)
	}
	return err
}

type refDecision struct {
	V               int      `msgpack:"v"`
	N               int64    `msgpack:"n"`
	Partition       int      `msgpack:"partition"`
	ID              string   `msgpack:"id"`
	Epoch           int64    `msgpack:"epoch"`
	LearnedThrough  int64    `msgpack:"learned_through"`
	Learned         int64    `msgpack:"learned"`
	Gamma           float64  `msgpack:"gamma"`
	ContextsThrough int64    `msgpack:"contexts_through"`
	Source          int64    `msgpack:"source"`
	Time            int64    `msgpack:"time"`
	Action          string   `msgpack:"action"`
	Propensity      *float64 `msgpack:"propensity"`
	Propensities    law      `msgpack:"propensities"`
	Context         []byte   `msgpack:"context"`
	refMode
	Era    int64 `msgpack:"era,omitempty"`
	Prices *law  `msgpack:"prices,omitempty"`
	refUnit
}

func newRefDecision(d *Decision) refDecision {
	version, prices := Version, (*law)(nil)
	if len(d.Prices) > 0 {
		version, prices = saysMore, &law{}
	}
	for _, p := range d.Prices {
		prices.names, prices.p = append(prices.names, p.Name), append(prices.p, &p.X)
	}
	if d.Mode == External {
		version = saysMore
	}
	if d.Unit != "" {
		version = saysMore
	}
	all, own := refLaw(d.Actions, d.Propensities, d.Action, d.Unknown)
	return refDecision{
		version, d.N, d.Partition, d.ID, d.Epoch, d.LearnedThrough, d.Learned, d.Gamma, d.ContextsThrough, d.Source,
		d.Time, d.Actions[d.Action], own, all, d.Context,
		newRefMode(d.Mode, d.Would), d.Era, prices, newRefUnit(d.Unit, d.First),
	}
}

type refFeedback struct {
	V                int      `msgpack:"v"`
	N                int64    `msgpack:"n"`
	Partition        int      `msgpack:"partition"`
	Round            int64    `msgpack:"round"`
	ID               string   `msgpack:"id"`
	Epoch            int64    `msgpack:"epoch"`
	LearnedThrough   int64    `msgpack:"learned_through"`
	Gamma            float64  `msgpack:"gamma"`
	Time             int64    `msgpack:"time"`
	Action           string   `msgpack:"action"`
	Propensity       *float64 `msgpack:"propensity"`
	Propensities     law      `msgpack:"propensities"`
	Fate             *string  `msgpack:"fate,omitempty"` // nil, as the next ones, in the record of an earlier stage
	Reason           *string  `msgpack:"reason,omitempty"`
	Loss             *float64 `msgpack:"loss,omitempty"`
	OutcomePartition *int     `msgpack:"outcome_partition,omitempty"`
	OutcomeOffset    *int64   `msgpack:"outcome_offset,omitempty"`
	ClosedAt         int64    `msgpack:"closed_at"`
	Context          []byte   `msgpack:"context"`
	refMode
	Outcomes refClosed `msgpack:"outcomes,omitempty"`
	Stage    int       `msgpack:"stage,omitempty"`
	refUnit
}

// refUnit are the keys of a round of a unit.
type refUnit struct {
	Unit  string  `msgpack:"unit,omitempty"`
	First *refRef `msgpack:"first,omitempty"`
}

type refRef struct {
	Partition int   `msgpack:"partition"`
	N         int64 `msgpack:"n"`
}

func newRefUnit(unit string, first RoundRef) refUnit {
	if first.N == 0 {
		return refUnit{Unit: unit}
	}
	return refUnit{unit, &refRef{first.Partition, first.N}}
}

// refClosed is an ordered map of outcomes.
type refClosed []Closed

type refOne struct {
	Fate      string  `msgpack:"fate"`
	Value     float64 `msgpack:"value"`
	Partition int     `msgpack:"partition"`
	Offset    int64   `msgpack:"offset"`
	ClosedAt  int64   `msgpack:"closed_at"`
	Stage     int     `msgpack:"stage,omitempty"`
}

func (l refClosed) EncodeMsgpack(e *msgpack.Encoder) error {
	err := e.EncodeMapLen(len(l))
	for _, c := range l {
		err = errors.Join(err, e.EncodeString(c.Name),
			e.Encode(refOne{c.Fate.String(), c.Value, c.Partition, c.Offset, c.ClosedAt, c.Stage}))
	}
	return err
}

func (l *refClosed) DecodeMsgpack(d *msgpack.Decoder) error {
	n, err := d.DecodeMapLen()
	for i := 0; i < n && err == nil; i++ {
		var one refOne
		name, nameErr := d.DecodeString()
		err = errors.Join(nameErr, d.Decode(&one))
		c := Closed{Name: name, Value: one.Value, Partition: one.Partition, Offset: one.Offset, ClosedAt: one.ClosedAt,
			Stage: one.Stage}
		for f := Observed; f <= WithdrawnRound; f++ {
			if f.String() == one.Fate {
				c.Fate = f
			}
		}
		*l = append(*l, c)
	}
	return err
}

// refMode are the keys of a round that was not decided live.
type refMode struct {
	Mode  string    `msgpack:"mode,omitempty"`
	Would []float64 `msgpack:"would,omitempty"`
}

func newRefMode(m Mode, would []float64) refMode {
	if m == Live {
		return refMode{}
	}
	return refMode{m.String(), would}
}

func newRefFeedback(f *Feedback) refFeedback {
	version := Version
	if len(f.Outcomes) > 0 {
		version = saysMore
	}
	if f.Mode == External {
		version = saysMore
	}
	if f.Unit != "" {
		version = saysMore
	}
	all, own := refLaw(f.Actions, f.Propensities, f.Action, f.Unknown)
	ref := refFeedback{
		version, f.N, f.Partition, f.Round, f.ID, f.Epoch, f.LearnedThrough, f.Gamma, f.Time, f.Actions[f.Action],
		own, all, nil, nil, nil, nil, nil,
		f.ClosedAt, f.Context, newRefMode(f.Mode, f.Would), f.Outcomes, f.Stage,
		newRefUnit(f.Unit, f.First),
	}
	if f.Stage == 0 {
		ref.Fate, ref.Reason, ref.Loss = new(f.Fate.String()), &f.Reason, &f.Loss
		ref.OutcomePartition, ref.OutcomeOffset = &f.OutcomePartition, &f.OutcomeOffset
	}
	return ref
}

// theirs encodes with the reference, with ints of full or of least width.
func theirs(t *rapid.T, x any) []byte {
	var buf bytes.Buffer
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(rapid.Bool().Draw(t, "compact ints"))
	e.SetSortMapKeys(true)
	e.UseCompactFloats(rapid.Bool().Draw(t, "compact floats"))
	if err := e.Encode(x); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// reference checks one record in both directions.
func reference[T, R any](t *rapid.T, x T, ref R, appendTo func([]byte, *T) []byte, parse func(*T, []byte) error) {
	var got R
	if err := msgpack.Unmarshal(appendTo(nil, &x), &got); err != nil || !same2(got, ref) {
		t.Fatalf("the reference reads %+v, %v\nwant %+v", got, err, ref)
	}
	var back T
	if err := parse(&back, theirs(t, &ref)); err != nil || !same(back, x) {
		t.Fatalf("of the reference's bytes: %+v, %v\nwant %+v", back, err, x)
	}
}

// same2 is same, but for types with private fields.
func same2(a, b any) bool {
	var x, y bytes.Buffer
	for buf, v := range map[*bytes.Buffer]any{&x: a, &y: b} {
		e := msgpack.NewEncoder(buf)
		e.SetSortMapKeys(true)
		if e.Encode(v) != nil {
			return false
		}
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

func TestReferenceDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := genDecision().Draw(t, "decision")
		d.Context = append([]byte{}, d.Context...)
		reference(t, d, newRefDecision(&d), AppendDecision, ParseDecision)
	})
}

func TestReferenceFeedback(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := genFeedback().Draw(t, "feedback")
		f.Context = append([]byte{}, f.Context...)
		for i := range f.Outcomes {
			f.Outcomes[i].Value += 0 // the reference's compact floats lose the sign of -0
		}
		reference(t, f, newRefFeedback(&f), AppendFeedback, ParseFeedback)
	})
}

type refOutcome struct {
	ID        string   `msgpack:"id,omitempty" json:"id,omitempty"`
	Unit      string   `msgpack:"unit,omitempty" json:"unit,omitempty"`
	Loss      *float64 `msgpack:"loss" json:"loss"`
	Reward    *float64 `msgpack:"reward" json:"reward"`
	Withdrawn bool     `msgpack:"withdrawn" json:"withdrawn"`
	Activated bool     `msgpack:"activated" json:"activated"`
	Action    string   `msgpack:"action" json:"action"`
	OutcomeID string   `msgpack:"outcome_id" json:"outcome_id"`
	// Outcomes are numbers and nils.
	Outcomes map[string]any `msgpack:"outcomes" json:"outcomes"`
}

func newRefOutcome(o *Outcome) refOutcome {
	ref := refOutcome{ID: o.ID, Unit: o.Unit, Action: o.Action, OutcomeID: o.OutcomeID}
	switch o.Kind {
	case Loss:
		ref.Loss = &o.Value
	case Reward:
		ref.Reward = &o.Value
	case Withdrawn:
		ref.Withdrawn = true
	case Activated:
		ref.Activated = true
	case Named:
		ref.Outcomes = map[string]any{}
		for _, v := range o.Values {
			if ref.Outcomes[v.Name] = any(v.X); v.Withdrawn {
				ref.Outcomes[v.Name] = nil
			}
		}
	}
	return ref
}

func TestReferenceOutcome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := genOutcome().Draw(t, "outcome")
		o.Value = math.Abs(o.Value) // the reference's compact floats lose the sign of -0
		slices.SortFunc(o.Values, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
		for i := range o.Values {
			o.Values[i].X += 0
		}
		ref := newRefOutcome(&o)
		reference(t, o, ref, AppendOutcome, ParseOutcome)
		var got refOutcome
		if err := json.Unmarshal(AppendOutcomeJSON(nil, &o), &got); err != nil || !reflect.DeepEqual(got, ref) {
			t.Fatalf("encoding/json reads %+v, %v; want %+v", got, err, ref)
		}
		b, err := json.Marshal(&ref)
		if err != nil {
			t.Fatal(err)
		}
		var back Outcome
		if err := ParseOutcome(&back, b); err != nil || !reflect.DeepEqual(back, o) {
			t.Fatalf("of encoding/json's bytes: %+v, %v; want %+v", back, err, o)
		}
	})
}

// tree is a context as maps and lists.
func tree(c *Context) map[string]any {
	named := func(features []Feature) map[string]any {
		m := map[string]any{}
		for _, f := range features {
			switch f.Kind {
			case Number:
				m[f.Name] = f.Value
			case Text:
				m[f.Name] = f.Text
			case Bool:
				m[f.Name] = f.Value == 1
			case Vector:
				list := []any{}
				for i := range f.Len() {
					list = append(list, f.At(i))
				}
				m[f.Name] = list
			}
		}
		return m
	}
	m := map[string]any{}
	if c.ID != "" {
		m["id"] = c.ID
	}
	if len(c.Features) > 0 {
		m["features"] = named(c.Features)
	} else if len(c.Vector) > 0 {
		list := []any{}
		for _, x := range c.Vector {
			list = append(list, x)
		}
		m["features"] = list
	}
	if c.Actions != nil {
		list := []any{}
		for _, a := range c.Actions {
			if len(a.Features) == 0 {
				list = append(list, a.Name)
			} else {
				list = append(list, map[string]any{"name": a.Name, "features": named(a.Features)})
			}
		}
		m["actions"] = list
	}
	if oneAction(c.Baseline) {
		m["baseline"] = c.Baseline[0].Name
	} else if len(c.Baseline) > 0 {
		law := map[string]any{}
		for _, s := range c.Baseline {
			law[s.Name] = s.P
		}
		m["baseline"] = law
	}
	if c.LoggedPropensity != 0 {
		m["logged_propensity"] = c.LoggedPropensity
	}
	if a := &c.Assigned; a.Action != "" {
		said := map[string]any{"action": a.Action}
		if a.Propensity != 0 {
			said["propensity"] = a.Propensity
		}
		if len(a.Law) > 0 {
			law := map[string]any{}
			for _, s := range a.Law {
				law[s.Name] = s.P
			}
			said["propensities"] = law
		}
		if a.By != "" {
			said["by"] = a.By
		}
		m["assigned"] = said
	}
	if c.Unit != "" {
		m["unit"] = c.Unit
	}
	if len(c.Slots) > 0 {
		list := []any{}
		for i := range c.Slots {
			list = append(list, slotTree(&c.Slots[i], named))
		}
		m["slots"] = list
	}
	return m
}

// slotTree returns what a slot is on the wire: its name, if there is no more.
func slotTree(s *Slot, named func([]Feature) map[string]any) any {
	m := map[string]any{"name": s.Name}
	if len(s.Features) > 0 {
		m["features"] = named(s.Features)
	}
	if len(s.Actions) > 0 {
		list := []any{}
		for _, name := range s.Actions {
			list = append(list, name)
		}
		m["actions"] = list
	}
	if oneAction(s.Baseline) {
		m["baseline"] = s.Baseline[0].Name
	} else if len(s.Baseline) > 0 {
		law := map[string]any{}
		for _, x := range s.Baseline {
			law[x.Name] = x.P
		}
		m["baseline"] = law
	}
	if len(m) == 1 {
		return s.Name
	}
	return m
}

func TestReferenceContext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := genContext().Draw(t, "context")
		want := tree(&c)
		var packed, text map[string]any
		if err := msgpack.Unmarshal(AppendContext(nil, &c), &packed); err != nil {
			t.Fatal(err)
		}
		delete(packed, "v")
		if !reflect.DeepEqual(packed, want) {
			t.Fatalf("the reference reads\n%v\nwant\n%v", packed, want)
		}
		if err := json.Unmarshal(AppendContextJSON(nil, &c), &text); err != nil {
			t.Fatal(err)
		}
		delete(text, "v")
		if !reflect.DeepEqual(text, want) {
			t.Fatalf("encoding/json reads\n%v\nwant\n%v", text, want)
		}
		var back Context
		if err := ParseContext(&back, theirs(t, want)); err != nil || !reflect.DeepEqual(tree(&back), want) {
			t.Fatalf("of the reference's bytes: %+v, %v; want %v", back, err, want)
		}
		b, err := json.MarshalIndent(want, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := ParseContext(&back, b); err != nil || !reflect.DeepEqual(tree(&back), want) {
			t.Fatalf("of encoding/json's bytes: %+v, %v; want %v", back, err, want)
		}
	})
}

func TestRareLong(t *testing.T) {
	long := make([]byte, 70_000)
	s := sampleSnapshot()
	s.Bytes = long
	got, err := ParseSnapshot(AppendSnapshot([]byte("x")[1:], &s))
	if err != nil || !same(got, s) {
		t.Fatalf("%v", err)
	}
	e := Epoch{V: Version, Epoch: 1}
	if got, err := ParseEpoch(AppendEpoch(nil, &Epoch{Epoch: 1})); err != nil || !same(got, e) {
		t.Fatalf("%+v, %v", got, err)
	}
}

// rareReference holds that a record is what the reference writes of its struct, and behind that the
// checksum.
func rareReference[T any](t *testing.T, appendTo func([]byte, *T) []byte, parse func([]byte) (T, error)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		var x T
		drawRare(t, reflect.ValueOf(&x).Elem())
		var buf bytes.Buffer
		e := msgpack.NewEncoder(&buf)
		e.UseCompactInts(true)
		if err := e.Encode(&x); err != nil {
			t.Fatal(err)
		}
		want := append(buf.Bytes(), crcKey+"0000"...)
		switch want[0] { // one key more
		case 0x8f: // it takes the longer form
			want = append([]byte{0xde, 0, 16}, want[1:]...)
		case 0xde:
			want[2]++
		default:
			want[0]++
		}
		want = repair(want)
		if got := appendTo(nil, &x); string(got) != string(want) {
			t.Fatalf("%+v\n got %q\nwant %q", x, got, want)
		}
		if got, err := parse(want); err != nil || !reflect.DeepEqual(got, x) {
			t.Fatalf("%v\n got %+v\nwant %+v", err, got, x)
		}
	})
}

// drawRare sets all that the tags of the reference name.
func drawRare(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			switch f := v.Type().Field(i); {
			case f.Tag.Get("msgpack") == "v":
				v.Field(i).SetInt(Version)
			case f.Tag.Get("msgpack") != "-" && !slices.Contains([]string{"Cause", "Continues"}, f.Name):
				drawRare(t, v.Field(i))
			}
		}
	case reflect.Slice:
		least := -1
		if v.Type().Elem() == reflect.TypeFor[int64]() {
			least = 1 // of lists that are left out where they are empty
		}
		switch n := rapid.SampledFrom([]int{-1, 1, 2, 17, 300}).Draw(t, "length"); {
		case n < least, n < 0:
		case v.Type().Elem().Kind() == reflect.Uint8:
			v.SetBytes(rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes"))
		default:
			n = min(n, 17)
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				drawRare(t, v.Index(i))
			}
		}
	case reflect.String:
		v.SetString(rapid.StringN(0, 300, -1).Draw(t, "text"))
	default:
		bits := rapid.IntRange(0, 63).Draw(t, "bits")
		v.SetInt(rapid.Int64().Draw(t, "number") >> bits)
	}
}

func TestReferenceRare(t *testing.T) {
	rareReference(t, AppendEpoch, ParseEpoch)
	rareReference(t, AppendClass, ParseClass)
	rareReference(t, func(_ []byte, x *OldMark) []byte { return appendOldMark(x) },
		func(b []byte) (OldMark, error) { return parsed[OldMark](oldMarkRecord, b) })
	rareReference(t, AppendDecisionMark, ParseDecisionMark)
	rareReference(t, AppendSnapshot, ParseSnapshot)
	rareReference(t, AppendReject, ParseReject)
}
