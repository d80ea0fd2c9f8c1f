package codec

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

// TestNames holds that each mode and encoding is read by its name, and no other is.
func TestNames(t *testing.T) {
	for i, name := range Modes() {
		if m, err := ParseMode(name); err != nil || m != Mode(i) || m.String() != name {
			t.Errorf("mode %s: %v, %v", name, m, err)
		}
	}
	for i, name := range Encodings() {
		if e, err := ParseEncoding(name); err != nil || e != Encoding(i) || e.String() != name {
			t.Errorf("encoding %s: %v, %v", name, e, err)
		}
	}
	for _, name := range []string{"", "other", "External"} {
		_, mode := ParseMode(name)
		_, encoding := ParseEncoding(name)
		if mode == nil || encoding == nil {
			t.Errorf("%q is read: %v, %v", name, mode, encoding)
		}
	}
	if a, b := string(OpenValue(JSON)), OpenValue(MessagePack); a != `{"type":"open"}` || b != nil {
		t.Errorf("an open record says %q, or %q", a, b)
	}
}

// TestCauses holds what each cause of an epoch says.
func TestCauses(t *testing.T) {
	for cause, want := range map[string]string{
		"":                         "lost false, by the guard false, by the rule false, shares false, alarm 0",
		CauseLost:                  "lost true, by the guard false, by the rule false, shares false, alarm 0",
		CauseLostShare:             "lost true, by the guard false, by the rule false, shares true, alarm 0",
		CauseTaught:                "lost false, by the guard false, by the rule false, shares false, alarm 0",
		"promote: by hand":         "lost false, by the guard false, by the rule true, shares true, alarm 0",
		PromotionCause(12):         "lost false, by the guard false, by the rule true, shares true, alarm 0",
		AlarmCause(12):             "lost false, by the guard true, by the rule false, shares false, alarm 12",
		"guard: by hand":           "lost false, by the guard true, by the rule false, shares false, alarm 0",
		AlarmCause(12) + "9" + "x": "lost false, by the guard true, by the rule false, shares false, alarm 0",
	} {
		x := Epoch{Cause: cause}
		if got := fmt.Sprintf("lost %v, by the guard %v, by the rule %v, shares %v, alarm %d", x.Lost(), x.ByGuard(),
			x.ByRule(), x.Shares(), x.Alarm()); got != want {
			t.Errorf("%q: %s, want %s", cause, got, want)
		}
	}
	if got, want := PromotionCause(12), "promote: the rule held at feedback 12"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestForeign holds that bytes which are no record are foreign, and a record of a later version is not.
func TestForeign(t *testing.T) {
	damaged := ParseContext(new(Context), []byte("x"))
	later := ParseContext(new(Context), fmt.Appendf(nil, `{"v":%d}`, Newest+1))
	for _, c := range []struct {
		err     error
		foreign bool
	}{{nil, false}, {damaged, true}, {later, false}, {errors.New("away"), false}} {
		if Foreign(c.err) != c.foreign || (UnlessForeign(c.err) == nil) != (c.foreign || c.err == nil) {
			t.Errorf("%v: foreign %v, else %v", c.err, Foreign(c.err), UnlessForeign(c.err))
		}
	}
	if !errors.Is(damaged, ErrCorrupt) || errors.Is(later, ErrCorrupt) {
		t.Errorf("%v, %v", damaged, later)
	}
}

// TestVoids holds which claims an era makes void: those of earlier eras about feedback behind its beginning.
func TestVoids(t *testing.T) {
	x := FeedbackMark{Eras: []EraStart{{Era: 1, N: 0}, {Era: 3, N: 10}}}
	for _, c := range []struct {
		era, n int64
		void   bool
	}{{2, 9, false}, {2, 10, false}, {2, 11, true}, {3, 11, false}, {4, 11, false}, {0, 1, true}, {0, 0, false}} {
		if got := x.Voids(c.era, c.n); got != c.void {
			t.Errorf("era %d, feedback %d: %v", c.era, c.n, got)
		}
	}
	if new(FeedbackMark).Voids(0, 9) {
		t.Error("a mark without eras makes a claim void")
	}
}

// TestWhole holds which numbers are whole ones.
func TestWhole(t *testing.T) {
	for f, want := range map[float64]bool{0: true, -1: true, .5: false, 1 << 62: true, -1 << 63: true, 1 << 63: false,
		math.Nextafter(1<<63, 0): true, math.Nextafter(-1<<63, -1<<64): false, math.Inf(1): false,
		math.Inf(-1): false} {
		var r reader
		if n := r.whole(f); (r.err == nil) != want || want && float64(n) != f || !want && n != 0 {
			t.Errorf("%v: %d, %v", f, n, r.err)
		}
	}
	var r reader
	if r.whole(math.NaN()); r.err == nil {
		t.Error("NaN is whole")
	}
}

// TestSlotsReply holds that the reply to a context with slots has each round's reply by its slot's name.
func TestSlotsReply(t *testing.T) {
	slots := []Slot{{Name: `a"b`}, {Name: "c"}}
	d := sampleDecision()
	d.Unit, d.First = "u", RoundRef{Partition: 3, N: 7}
	text := [][]byte{AppendDecisionJSON(nil, &d, "", false), AppendStored(nil, "i", true)}
	packed := [][]byte{AppendDecisionReply(nil, &d, "", false), AppendStored(nil, "i", false)}
	sameReply(t, AppendSlotsReply(nil, "i", slots, text, true), AppendSlotsReply(nil, "i", slots, packed, false))
	const want = `{"id":"i","slots":{"a\"b":{"x":1},"c":{}}}`
	if got := string(AppendSlotsReply(nil, "i", slots, [][]byte{[]byte(`{"x":1}`), []byte("{}")}, true)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	d.First.N = 0
	sameReply(t, AppendDecisionJSON(nil, &d, "", false), AppendDecisionReply(nil, &d, "", false))
}

// TestPlainSlots holds that a slot with anything beside its name is written with it.
func TestPlainSlots(t *testing.T) {
	for _, s := range []Slot{{Name: "a"}, {Name: "a", Features: []Feature{{Name: "x", Kind: Number, Value: 1}}},
		{Name: "a", Actions: []string{"b"}}, {Name: "a", Baseline: []Share{{"b", 1}}}} {
		want := Context{ID: "i", Slots: []Slot{s}}
		var got Context
		if err := ParseContext(&got, AppendContext(nil, &want)); err != nil || !same(got, want) {
			t.Errorf("%+v became %+v, %v", want, got, err)
		}
	}
}

// TestStoredFits holds that a record is stored as JSON up to the largest record, and else as MessagePack.
func TestStoredFits(t *testing.T) {
	d := sampleDecision()
	for _, over := range []int{0, 1} {
		d.Context = fmt.Appendf(nil, `{"id":"8f3a","x":"%s"}`, "")
		b := Stored(nil, JSON, "", AppendDecision(nil, &d))
		fill := make([]byte, MaxRecordBytes-len(b)+over)
		for i := range fill {
			fill[i] = 'x'
		}
		d.Context = fmt.Appendf(nil, `{"id":"8f3a","x":"%s"}`, fill)
		if b := Stored(nil, JSON, "", AppendDecision(nil, &d)); IsJSON(b) != (over == 0) {
			t.Errorf("%d bytes over: JSON %v, %d bytes", over, IsJSON(b), len(b))
		}
	}
}
