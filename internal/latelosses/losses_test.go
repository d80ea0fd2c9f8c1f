package latelosses

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

func TestMomentsByHand(t *testing.T) {
	var m Moments
	if !math.IsNaN(m.Mean()) || !math.IsNaN(m.SE()) {
		t.Error("nothing has a mean")
	}
	for i, x := range []float64{0, 1, 1, 0, 1} {
		m.Add(x)
		if math.IsNaN(m.SE()) != (i == 0) || i == 1 && m.SE() != 0.5 {
			t.Errorf("%d numbers: ± %v", m.N, m.SE())
		}
	}
	// Σ(x−0.6)² = 3·0.16 + 2·0.36 = 1.2; √(1.2/(5·4)) = 0.2449…
	if m.N != 5 || math.Abs(m.Mean()-0.6) > 1e-15 || math.Abs(m.SE()-math.Sqrt(0.06)) > 1e-15 {
		t.Errorf("%d numbers of mean %v ± %v", m.N, m.Mean(), m.SE())
	}
	m = Moments{}
	for range 1000 {
		m.Add(0.1)
	}
	if m.Mean() != 0.1 || m.SE() != 0 {
		t.Errorf("equal numbers have mean %v ± %v", m.Mean(), m.SE())
	}
}

// By hand: of 1 and 0 in turn the first is missed by ½, the second by 1, the others by the mean
// so far: ½ twice, then ⅓ … Of equal numbers only the first is missed.
func TestRadiusByHand(t *testing.T) {
	radius := func(n, missed, alpha float64) float64 {
		least := math.Inf(1)
		for j := 1; j <= 14; j++ {
			rate := math.Exp2(-float64(j))
			least = min(least, (math.Log(28/alpha)+(-math.Log(1-rate)-rate)*missed)/(rate*n))
		}
		return least
	}
	var m, equal Moments
	if !math.IsInf(m.Radius(.1), 1) {
		t.Error("nothing bounds nothing")
	}
	missed, sum := 0.0, 0.0
	for i := range 3000 {
		x := float64((i + 1) % 2)
		guess := .5
		if i > 0 {
			guess = sum / float64(i)
		}
		missed, sum = missed+(x-guess)*(x-guess), sum+x
		m.Add(x)
		equal.Add(.1)
		n := float64(i + 1)
		if a, b := m.Radius(.005), radius(n, missed, .005); math.Abs(a-b) > 1e-12*b {
			t.Fatalf("of %d numbers %v, expected %v", i+1, a, b)
		}
		if a, b := equal.Radius(.1), radius(n, .16, .1); math.Abs(a-b) > 1e-12*b {
			t.Fatalf("of %d equal numbers %v, expected %v", i+1, a, b)
		}
	}
	if r := m.Radius(.005); r < 2*m.SE() || r > 6*m.SE() {
		t.Errorf("of 3000 it is %v, %v standard errors", r, r/m.SE())
	}
}

// What a bet at any rate gains on a number and loses to its square is never more than the
// bet: the step that the sequence rests on.
func TestBetsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate, e := rapid.Float64Range(0, .5).Draw(t, "rate"), rapid.Float64Range(-1, 1).Draw(t, "e")
		psi := -math.Log1p(-rate) - rate
		if math.Exp(rate*e-psi*e*e) > (1+rate*e)*(1+1e-12) {
			t.Fatal("more is gained than was bet")
		}
	})
}

func TestLateLossesDifferByHand(t *testing.T) {
	rules := &loop.Rules{Range: loop.Range{Max: 1}}
	for _, c := range []struct {
		onTime, late int
		onLoss       float64
		x            float64
		want         bool
	}{
		{35, 35, 0, 1, true}, // as far apart as can be: both radii are 0.496
		{34, 35, 0, 1, false},
		{35, 34, 0, 1, false},
		{0, 1000, 0, 1, false},
		{1000, 0, 0, 1, false},
		{100, 100, 0, .9, true},       // 0.9 apart
		{100000, 200, .5, .59, true},  // radii 0.0002 and 0.086
		{100000, 200, .5, .58, false}, // though no loss is like the other
	} {
		var l Losses
		for range c.onTime {
			l.AddObserved(1, c.onLoss)
		}
		for range c.late {
			l.AddLate(1, rules, codec.Loss, c.x)
		}
		if l.Differ() != c.want {
			t.Errorf("%d on time, %d late of loss %v: differ is %v, radii %v and %v", c.onTime, c.late, c.x, !c.want,
				l.OnTime.Radius(differLevel/2), l.Late.Radius(differLevel/2))
		}
	}
}

// TestLateLossesAtEveryLook: of losses that are alike hardly any ever differ, though one looks
// after each; the test of two standard errors would have said so of many. Those that are not
// alike are found.
func TestLateLossesAtEveryLook(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	const worlds, rounds = 200, 1500
	r := rand.New(rand.NewPCG(11, 5))
	play := func(late float64) (ever, fixed bool) {
		var l Losses
		rules := &loop.Rules{Range: loop.Range{Max: 1}}
		bernoulli := func(p float64) float64 {
			if r.Float64() < p {
				return 1
			}
			return 0
		}
		for range rounds {
			if r.Float64() < .3 {
				l.AddLate(1, rules, codec.Loss, bernoulli(late))
			} else {
				l.AddObserved(1, bernoulli(.3))
			}
			a, b := l.OnTime.SE(), l.Late.SE()
			ever = ever || l.Differ()
			fixed = fixed || l.Late.N >= 30 && math.Abs(l.OnTime.mean-l.Late.mean) > 2*math.Sqrt(a*a+b*b)
		}
		return ever, fixed
	}
	var alike, fixed, unlike int
	for range worlds {
		ever, two := play(.3)
		alike, fixed = alike+count(ever), fixed+count(two)
		ever, _ = play(.6)
		unlike += count(ever)
	}
	if alike > worlds/100 || fixed < worlds/5 || unlike < worlds*9/10 {
		t.Errorf("of %d worlds whose losses are alike %d differ, by two standard errors %d; of those that are not %d do",
			worlds, alike, fixed, unlike)
	}
	t.Logf("alike: %d differ, by two standard errors %d; not alike: %d, of %d", alike, fixed, unlike, worlds)
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestFollowByHand: of each round the first loss after its window counts, of rounds without one in time
// only, and of the last epoch only.
func TestFollowByHand(t *testing.T) {
	rules := &loop.Rules{Range: loop.Range{Min: 0, Max: 2}}
	w := NewFollow(10, func(int64) *loop.Rules { return rules })
	n := int64(0)
	feedback := func(id string, fate codec.Fate, loss float64) {
		n++
		w.AddFeedback(&codec.Feedback{N: n, ID: id, Epoch: 1, Fate: fate, Loss: loss})
	}
	reject := func(reason, id string, kind codec.OutcomeKind, value float64) {
		o := codec.Outcome{ID: id, Kind: kind, Value: value}
		w.AddReject(&codec.Reject{Reason: reason, ID: id, Bytes: codec.AppendOutcome(nil, &o)})
	}
	late := codec.ReasonLate
	feedback("r1", codec.Observed, 0.5)
	reject(codec.ReasonDuplicate, "r1", codec.Loss, 2)
	feedback("r2", codec.Skipped, 0)
	reject(late, "r2", codec.Withdrawn, 0) // no loss
	reject(late, "r2", codec.Loss, 3)      // out of range
	reject(late, "r2", codec.Reward, 0.5)
	reject(late, "r2", codec.Loss, 2)   // the second
	reject(late, "r3", codec.Loss, 0)   // its feedback waits for its turn
	reject(late, "r4", codec.Loss, 0.5) // likewise
	feedback("r3", codec.Imputed, 1)
	feedback("r4", codec.Observed, 0.5)
	l := w.Losses.Of("")
	if l.OnTime.N != 2 || l.OnTime.Mean() != 0.5 || l.Late.N != 2 || l.Late.Mean() != 0.375 {
		t.Errorf("%d of %v on time, %d of %v late", l.OnTime.N, l.OnTime.Mean(), l.Late.N, l.Late.Mean())
	}
	feedback("r5", codec.Skipped, 0)
	for range 10 {
		feedback("r6", codec.WithdrawnRound, 0)
	}
	if reject(late, "r5", codec.Loss, 1); l.Late.N != 2 {
		t.Error("a loss counts of a round that is forgotten")
	}
	l.AddObserved(2, 1)
	l.AddObserved(1, 0)
	if l.OnTime.N != 1 || l.OnTime.Mean() != 1 || l.Late.N != 0 {
		t.Error("losses of an earlier epoch are still there")
	}
	l.AddLate(3, &loop.Rules{Range: loop.Range{Max: 1}, Outcomes: loop.Sum}, codec.Loss, 1)
	if l.OnTime.N != 1 || l.Late.N != 0 {
		t.Error("a part of a sum is taken for a loss")
	}
}

// TestFollowNamed: each named outcome is compared by itself, live and from the log: of a round whose quality is late
// and whose cost came in time, quality alone is late. Records of earlier stages do not count twice.
func TestFollowNamed(t *testing.T) {
	rules := &loop.Rules{Range: loop.Range{Min: -4, Max: 1}, Named: []loop.OutcomeRule{
		{Name: "cost", Range: loop.Range{Max: 4}}, {Name: "quality", Range: loop.Range{Max: 1}}}}
	w, x, all := NewFollow(1000, func(int64) *loop.Rules { return rules }), Outcomes{}, ByOutcome{}
	late := func(id string, values ...codec.Value) {
		o := codec.Outcome{ID: id, Kind: codec.Named, Values: values}
		r := codec.Reject{Reason: codec.ReasonLate, ID: id, Bytes: codec.AppendOutcomeJSON(nil, &o)}
		w.AddReject(&r)
		x.AddReject(&r)
	}
	var fed []codec.Feedback
	feed := func(f codec.Feedback) {
		f.N, f.Epoch = int64(len(fed)+1), 1
		fed = append(fed, f)
		w.AddFeedback(&f)
	}
	for i := range 200 {
		id := fmt.Sprint("r", i)
		cost := codec.Closed{Name: "cost", Fate: codec.Observed, Value: 1}
		feed(codec.Feedback{ID: id, Stage: 1, Outcomes: []codec.Closed{cost}})
		if i%2 == 0 {
			feed(codec.Feedback{ID: id, Fate: codec.Observed, Loss: .25, Outcomes: []codec.Closed{cost,
				{Name: "quality", Fate: codec.Observed, Value: .875}}})
			continue
		}
		values := []codec.Value{{Name: "cost", X: 4}, {Name: "quality", X: .125}, {Name: "quality", X: .25}}
		if i%4 == 1 { // before the feedback, which waits for its turn
			late(id, values...)
		}
		feed(codec.Feedback{ID: id, Fate: codec.Skipped, Outcomes: []codec.Closed{cost,
			{Name: "quality", Fate: codec.Skipped}}})
		if i%4 == 3 {
			late(id, append(values[:1:1], codec.Value{Name: "quality", Withdrawn: true})...)
			late(id, values[1:]...)
		}
	}
	for i := range fed {
		x.AddFeedback(all, &fed[i], rules)
	}
	for of, l := range map[string]ByOutcome{"live": w.Losses, "of the log": all} {
		q, c, one := Compare(l.Of("quality")), Compare(l.Of("cost")), Compare(l.Of(""))
		if q.OnTime.N != 100 || *q.OnTime.Mean != .125 || q.Late.N != 100 || *q.Late.Mean != .875 || !q.Differ {
			t.Errorf("%s: quality %s", of, q.Line(nil))
		}
		if c.OnTime.N != 200 || *c.OnTime.Mean != .75 || c.Late.N != 0 || one.Late.N != 0 || one.OnTime.N != 100 {
			t.Errorf("%s: %d costs in time, %d late; %d and %d of the reward", of, c.OnTime.N, c.Late.N, one.OnTime.N,
				one.Late.N)
		}
		if text := Warning(l, false); !strings.HasPrefix(text, "outcome quality, as losses in [0,1]: the losses that "+
			"came late differ (0.875 ") {
			t.Errorf("%s: %s", of, text)
		}
		if named := l.Named(); len(named) != 1 || !named["quality"].Differ {
			t.Errorf("%s: %+v", of, named)
		}
	}
}

// TestFollowUnits: a late outcome that names a unit, or a repeat, is of the unit's last draw, and counts once for it.
func TestFollowUnits(t *testing.T) {
	rules := &loop.Rules{Range: loop.Range{Min: 0, Max: 1}}
	w := NewFollow(10, func(int64) *loop.Rules { return rules })
	n := int64(0)
	feedback := func(id, unit string, fate codec.Fate, first int64) {
		n++
		w.AddFeedback(&codec.Feedback{N: n, ID: id, Unit: unit, First: codec.RoundRef{N: first}, Epoch: 1, Fate: fate,
			Loss: .5})
	}
	reject := func(id, unit string, value float64) {
		o := codec.Outcome{ID: id, Unit: unit, Kind: codec.Loss, Value: value}
		w.AddReject(&codec.Reject{Reason: codec.ReasonLate, ID: id, Bytes: codec.AppendOutcome(nil, &o)})
	}
	l := w.Losses.Of("")
	want := func(what string, late int64, mean float64) {
		t.Helper()
		if l.Late.N != late || l.Late.Mean() != mean {
			t.Errorf("%s: %d late of %v, want %d of %v", what, l.Late.N, l.Late.Mean(), late, mean)
		}
	}
	feedback("draw", "u", codec.Skipped, 0)
	feedback("again", "u", codec.Skipped, 1)
	reject("", "other", 1)
	reject("", "u", 1)
	reject("", "u", 0)
	reject("again", "", 0)
	want("of the unit", 1, 1)
	feedback("b", "v", codec.Skipped, 0)
	feedback("b2", "v", codec.Skipped, 3)
	reject("b2", "", 0)
	want("of a repeat", 2, .5)
	reject("", "w", .5) // its feedback waits for its turn
	feedback("c", "w", codec.Skipped, 0)
	want("before the feedback", 3, .5)
	feedback("d", "w", codec.Observed, 0)
	reject("", "w", 1)
	want("of a draw that was observed", 3, .5)
	feedback("e", "x", codec.Skipped, 0)
	for range 10 {
		feedback("f", "", codec.WithdrawnRound, 0)
	}
	reject("", "x", 1)
	if want("forgotten", 3, .5); len(w.rounds) != 1 { // it may be of a draw to come
		t.Errorf("%d keys are kept", len(w.rounds))
	}
}

// TestFollowKeeps: of a round without feedback the first eight losses are kept, and those of a round count once. The
// named outcomes of a unit are those of its last draw.
func TestFollowKeeps(t *testing.T) {
	rules := &loop.Rules{Range: loop.Range{Max: 1}, Named: []loop.OutcomeRule{{Name: "a", Range: loop.Range{Max: 1}},
		{Name: "b", Range: loop.Range{Max: 1}}}}
	w := NewFollow(100, func(int64) *loop.Rules { return rules })
	late := func(id, unit, name string, x float64) {
		o := codec.Outcome{ID: id, Unit: unit, Kind: codec.Named, Values: []codec.Value{{Name: name, X: x}}}
		w.AddReject(&codec.Reject{Reason: codec.ReasonLate, ID: id, Bytes: codec.AppendOutcome(nil, &o)})
	}
	silent := func(id, unit string) {
		w.AddFeedback(&codec.Feedback{N: w.n + 1, ID: id, Unit: unit, Epoch: 1, Fate: codec.Skipped,
			Outcomes: []codec.Closed{{Name: "a", Fate: codec.Skipped}, {Name: "b", Fate: codec.Skipped}}})
	}
	want := func(what, name string, n int64) {
		t.Helper()
		if got := w.Losses.Of(name).Late.N; got != n {
			t.Errorf("%s: %d late, want %d", what, got, n)
		}
	}
	for i := range 9 {
		late("r1", "", "a", 2) // out of range
		if i == 6 {
			late("r2", "", "a", 1)
			late("r1", "", "b", 2)
		}
	}
	late("r1", "", "a", 1) // the tenth
	for range 7 {
		late("r2", "", "b", 2)
	}
	late("r2", "", "b", 1) // the eighth
	silent("r1", "")
	want("the tenth of a round", "a", 0)
	silent("r2", "")
	want("the first of another", "a", 1)
	want("the eighth", "b", 1)
	silent("draw", "u")
	late("", "u", "a", 1)
	late("", "u", "b", 1)
	late("", "u", "b", 1)
	want("of a unit", "a", 2)
	want("of a unit", "b", 2)
	silent("draw2", "u")
	late("", "u", "a", 1)
	want("of the next draw of the unit", "a", 3)
}

// TestSilences: a round waits for its own loss and for each outcome of which nothing came; a repeat, or an id that was
// there before, waits for none. Whoever looks may stop at any.
func TestSilences(t *testing.T) {
	f := codec.Feedback{Fate: codec.Imputed, Outcomes: []codec.Closed{{Name: "a", Fate: codec.Skipped},
		{Name: "b", Fate: codec.Observed}, {Name: "c", Fate: codec.Imputed}}}
	for stop, want := range []string{"", ",a", ",a,c", ",a,c"} {
		var got []string
		for name := range silences(&f) {
			if got = append(got, name); len(got) == stop+1 {
				break
			}
		}
		if strings.Join(got, ",") != want {
			t.Errorf("stopped at %d: %q, want %q", stop, got, want)
		}
	}
	repeat, again := f, f
	repeat.First.N, again.Reason = 1, codec.ReasonDuplicateID
	for _, f := range []*codec.Feedback{&repeat, &again, {Fate: codec.Observed}} {
		for name := range silences(f) {
			t.Errorf("%+v waits for %q", f, name)
		}
	}
}
