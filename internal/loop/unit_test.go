package loop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// stickyWorld is a decider of partition 1 of 4 whose learner plays one of three actions.
type stickyWorld struct {
	t       *testing.T
	rules   *Rules
	replica *Replica
	decider *Decider
	epoch   int64
	log     [][]byte
}

// own is a unit of partition 1 of 4, and foreign one of partition 2.
const own, foreign = "user-6", "user-5"

func newStickyWorld(t *testing.T) *stickyWorld {
	t.Helper()
	for unit, p := range map[string]int{own: 1, foreign: 2} {
		if got := PartitionOf([]byte(unit), 4); got != p {
			t.Fatalf("%s belongs to partition %d, not %d", unit, got, p)
		}
	}
	w := &stickyWorld{t: t, replica: NewReplica(), rules: &Rules{MaxActions: 9, Range: Range{Max: 1}, Sticky: 100,
		Window: Window{Nanos: 1000}, Actions: []string{"a", "b", "c"}, Baseline: Baseline{Kind: FixedAction,
			Action: "b"}}}
	w.begin(0, func(*Rules) {})
	w.restart()
	return w
}

// begin begins an epoch of changed rules; with since it goes on with the learner of that one.
func (w *stickyWorld) begin(since int64, change func(*Rules)) {
	w.t.Helper()
	rules := *w.rules
	change(&rules)
	w.rules = &rules
	w.epoch++
	e := Epoch{Number: w.epoch, Rules: w.rules, Since: since}
	if since == 0 {
		e.Learner = learner.NewUniform()
	}
	if err := w.replica.Begin(e); err != nil {
		w.t.Fatal(err)
	}
}

// restart makes a decider that has read the log.
func (w *stickyWorld) restart() {
	w.t.Helper()
	w.decider = NewDecider(w.replica, testSeed, "sticky", 1, 1)
	w.decider.Partitions = 4
	for _, b := range w.log {
		var d codec.Decision
		if err := codec.ParseDecision(&d, b); err != nil {
			w.t.Fatal(err)
		}
		w.decider.Remember(&d)
		clear(b) // nothing aliases it
	}
}

// decide decides a context with the keys at a log time.
func (w *stickyWorld) decide(at int64, keys string) codec.Decision {
	w.t.Helper()
	var d codec.Decision
	res := w.decider.Decide(&d, []byte("{"+keys+"}"), "", Source{Offset: RequestSource, Reached: at})
	if res.Verdict != Decided {
		w.t.Fatalf("%s: %v", keys, res.Err)
	}
	if err := d.Validate(); err != nil {
		w.t.Fatal(err)
	}
	w.log = append(w.log, codec.AppendDecision(nil, &d))
	again := codec.Decision{}
	if err := codec.ParseDecision(&again, w.log[len(w.log)-1]); err != nil {
		w.t.Fatal(err)
	}
	w.log[len(w.log)-1] = slices.Clone(w.log[len(w.log)-1])
	return again
}

// repeats checks that a context of the unit repeats round n; 0: that it is drawn anew.
func (w *stickyWorld) repeats(at int64, keys string, n int64) codec.Decision {
	w.t.Helper()
	d := w.decide(at, keys)
	if d.First.N != n || n > 0 && d.First.Partition != 1 {
		w.t.Fatalf("at %d %s repeats %+v, want round %d", at, keys, d.First, n)
	}
	if d.Unit != "" && d.Time != at {
		w.t.Fatalf("at %d %s: its time is %d", at, keys, d.Time)
	}
	return d
}

// TestStickyDraw: one unit gets one draw for a time. Until then its contexts have the law, the action and the mode of
// that draw, whatever was learned meanwhile; other units, and contexts without one, are drawn for themselves.
func TestStickyDraw(t *testing.T) {
	w := newStickyWorld(t)
	unit := fmt.Sprintf(`"unit":%q`, own)
	first := w.repeats(1000, unit, 0)
	for i := range int64(30) {
		d := w.repeats(1000+i, fmt.Sprintf(`%s,"id":"i%d"`, unit, i), first.N)
		if d.Action != first.Action || !slices.Equal(d.Propensities, first.Propensities) || d.Mode != first.Mode {
			t.Fatalf("round %d is %+v, its draw %+v", d.N, d, first)
		}
	}
	if d := w.decide(1005, ""); d.Unit != "" || d.Time != 0 {
		t.Errorf("a request without a unit: %+v", d)
	}
	w.repeats(1099, unit, first.N)
	if w.restart(); w.decider.Units.draws.live != 1 {
		t.Fatalf("%d draws are remembered", w.decider.Units.draws.live)
	}
	w.log = w.log[:0]
	w.repeats(1099, unit, first.N)
	second := w.repeats(1100, unit, 0)
	w.repeats(1199, unit, second.N)
	w.repeats(1250, unit, 0)
	w.repeats(1400, `"unit":"user-8"`, 0)
	if n := w.decider.Units.draws.live; n != 1 {
		t.Errorf("%d draws are remembered, and those of one unit hold", n)
	}
}

// TestStickyEnds: a draw holds in its mode, for its actions and of its learner alone.
func TestStickyEnds(t *testing.T) {
	w := newStickyWorld(t)
	unit := fmt.Sprintf(`"unit":%q`, own)
	first := w.repeats(1000, unit, 0)
	some := w.repeats(1000, unit+`,"actions":["a","b"]`, 0)
	w.repeats(1001, unit+`,"actions":["a","b"]`, some.N)
	w.repeats(1001, unit, 0)
	w.begin(1, func(r *Rules) { r.Mode = codec.Shadow })
	shadow := w.repeats(1002, unit, 0)
	if again := w.repeats(1003, unit, shadow.N); again.Mode != codec.Shadow || !slices.Equal(again.Would,
		shadow.Would) || again.Action != 1 {
		t.Errorf("%+v repeats %+v", again, shadow)
	}
	w.begin(1, func(r *Rules) { r.Mode = codec.Live })
	live := w.repeats(1004, unit, 0)
	w.begin(1, func(r *Rules) { r.Masked = []string{"c"} })
	w.repeats(1005, unit, 0)
	w.begin(1, func(r *Rules) { r.Masked = nil })
	live = w.repeats(1006, unit, 0)
	w.begin(0, func(*Rules) {})
	if w.repeats(1007, unit, 0); live.N <= first.N {
		t.Fatal(live)
	}
}

// TestStickyHoldOut: the baseline answers a share of the units, each in all its rounds.
func TestStickyHoldOut(t *testing.T) {
	w := newStickyWorld(t)
	w.begin(1, func(r *Rules) { r.HoldOut, r.Sticky = .5, 1 })
	w.decider.Partitions = 0
	held := 0
	for u := range 100 {
		modes := map[codec.Mode]bool{}
		for i := range 5 {
			modes[w.decide(int64(1000*u+10*i), fmt.Sprintf(`"unit":"u%d"`, u)).Mode] = true
		}
		if len(modes) != 1 {
			t.Fatalf("unit %d is in modes %v", u, modes)
		}
		if modes[codec.Shadow] {
			held++
		}
	}
	if held < 30 || held > 70 {
		t.Errorf("%d of 100 units are held out", held)
	}
}

// TestStickyAssigned: what another system decided is neither a draw nor a repeat, and tells whose it is.
func TestStickyAssigned(t *testing.T) {
	w := newStickyWorld(t)
	said := fmt.Sprintf(`"unit":%q,"assigned":{"action":"c","propensity":0.5},"id":`, own)
	w.repeats(1000, said+`"x"`, 0)
	first := w.repeats(1000, fmt.Sprintf(`"unit":%q`, own), 0)
	d := w.repeats(1000, said+`"y"`, 0)
	if w.repeats(1001, fmt.Sprintf(`"unit":%q`, own), first.N); d.Mode != codec.External || d.Unit != own {
		t.Errorf("%+v", d)
	}
}

// TestUnitRefused: units have the rules of ids, and their contexts their partition.
func TestUnitRefused(t *testing.T) {
	w := newStickyWorld(t)
	for keys, want := range map[string]string{
		`"unit":17`:        "context: unit: is not a text; write it in quotes",
		`"unit":"a\u0007"`: "context: unit: has a control character",
		`"unit":"` + strings.Repeat("u", codec.MaxIDBytes+1) + `"`: "context: unit: is too long",
		fmt.Sprintf(`"unit":%q`, foreign): "context: unit: belongs to partition 2, and the context came to 1: " +
			"write the contexts of a unit under the unit as key",
	} {
		var d codec.Decision
		res := w.decider.Decide(&d, []byte("{"+keys+"}"), "", Source{Offset: RequestSource})
		if res.Verdict != Invalid || res.Err.Error() != want {
			t.Errorf("%s: %v, want %s", keys, res.Err, want)
		}
	}
	w.begin(0, func(r *Rules) { r.Sticky = 0 })
	for _, keys := range []string{`"unit":17`, fmt.Sprintf(`"unit":%q`, foreign)} {
		var d codec.Decision
		res := w.decider.Decide(&d, []byte("{"+keys+"}"), "", Source{Offset: RequestSource, Reached: 5})
		if res.Verdict != Decided || res.Unread != 1 || d.Unit != "" || d.Time != 0 {
			t.Errorf("%s without sticky units: %+v, %+v", keys, res, d)
		}
		if n, names := Unread(w.rules, []byte("{"+keys+"}")); n != 1 || names.String() != "unit" {
			t.Errorf("%s: unread are %d: %v", keys, n, names)
		}
	}
}

// TestCreditByHand: outcomes of a unit, and of the ids of repeats, are those of the unit's draw while that waits. A
// repeat is closed at once, leaves behind its draw, and teaches nothing.
func TestCreditByHand(t *testing.T) {
	h := newByHand(t, &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 10}, Outcomes: Sum, Sticky: 100})
	draw := func(time int64, id string, first int64) {
		h.n++
		d := handDecision(h.n, id)
		if d.Unit = "u"; first > 0 {
			d.First = codec.RoundRef{N: first}
		}
		h.caller.decide(Place{0, h.n}, time, d)
	}
	loss := func(time int64, id, unit string) {
		h.outcome(time, codec.Outcome{ID: id, Unit: unit, Kind: codec.Loss, Value: .25})
	}
	loss(99, "", "u") // before there is a draw
	draw(100, "first", 0)
	draw(101, "again", 1)
	loss(102, "first", "")
	loss(103, "again", "")
	loss(104, "", "u")
	loss(104, "", "v")
	h.ready()
	h.decide(111, "other")
	repeat := codec.Feedback{ID: "again", Fate: codec.Skipped, Reason: codec.ReasonRepeat, ClosedAt: 101}
	h.ready(codec.Feedback{ID: "first", Fate: codec.Observed, Loss: .75, ClosedAt: 110}, repeat)
	loss(112, "again", "")
	loss(112, "", "u")
	draw(113, "second", 0)
	loss(114, "", "u")
	loss(114, "first", "")
	draw(115, "late", 4) // it repeats "second"
	loss(116, "late", "")
	h.outcome(116, codec.Outcome{ID: "late", Kind: codec.Loss, Value: .25, Action: "b"})
	h.advance(200)
	h.ready(codec.Feedback{ID: "other", Fate: codec.Skipped, ClosedAt: 121},
		codec.Feedback{ID: "second", Fate: codec.Observed, Loss: .5, ClosedAt: 123},
		codec.Feedback{ID: "late", Fate: codec.Skipped, Reason: codec.ReasonRepeat, ClosedAt: 115})
	want := []string{codec.ReasonOrphan, codec.ReasonOrphan, codec.ReasonLate, codec.ReasonLate, codec.ReasonLate,
		codec.ReasonMismatch}
	got := h.rejected()
	if len(got) != len(want) {
		t.Fatalf("%d rejects: %+v", len(got), got)
	}
	for i, r := range got {
		if r.Reason != want[i] {
			t.Errorf("reject %d of outcome %d is %s, want %s", i, r.Offset, r.Reason, want[i])
		}
	}
}

// TestRepeatsTeachNothing: neither a learner nor the judge of candidates nor a guard counts a repeat.
func TestRepeatsTeachNothing(t *testing.T) {
	rules := judgedRules()
	rules.Guard = GuardRules{Alpha: .1, Margin: .01}
	var j Judge
	var g Guard
	j.Begin(1, false, rules)
	g.Begin(1, false, rules)
	f := judged()
	f.Mode = codec.Live
	f.Unit, f.First = "u", codec.RoundRef{N: 1}
	j.Add(f)
	g.Add(f)
	if n := j.Estimates()[0].Rounds; n != 0 || g.Sums().Rounds != 0 {
		t.Errorf("%d rounds are judged, %+v", n, g.Sums())
	}
	f.First = codec.RoundRef{}
	j.Add(f)
	g.Add(f)
	if n := j.Estimates()[0].Rounds; n != 1 || g.Sums().Rounds != 1 {
		t.Errorf("%d rounds are judged, %+v", n, g.Sums())
	}
}
