package ledger

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestSequenceBegins: what the first scores add, by hand. The mean that squares are of is at most 1,
// whatever scores are.
func TestSequenceBegins(t *testing.T) {
	var s Sequence
	if low := s.Low(3); !math.IsInf(low, -1) || s.Mean() != 0 {
		t.Errorf("without scores the mean is %v and the lower end %v", s.Mean(), low)
	}
	s.Add(10, 3)
	s.Add(3, 3)
	want := []float64{10 + 3, 9*9 + 2*2, maxRate, 10*maxRate + 0, (math.Ln2 - maxRate) * 100}
	rate := math.Sqrt(2 * 3 / (2 * math.Log(3) * (0.25 + 81) / 2))
	want[2], want[3] = want[2]+rate, want[3]+3*rate
	want[4] += (-math.Log(1-rate) - rate) * 2 * 2 // the mean of the score before is at most 1
	for i, got := range s.sums() {
		if math.Abs(*got-want[i]) > 1e-12*want[i] {
			t.Errorf("sum %d is %v, want %v", i, *got, want[i])
		}
	}
	if low, want := s.Low(3), (want[3]-3-want[4])/want[2]; s.N != 2 || s.Mean() != 6.5 || math.Abs(low-want) > 1e-12 {
		t.Errorf("after %d scores: mean %v, lower end %v, want %v", s.N, s.Mean(), low, want)
	}
}

// TestScorePassesOver: an action that the log could not draw has no part in a score; those after it have.
func TestScorePassesOver(t *testing.T) {
	r := Round{Actions: []string{"a", "b", "c"}, Law: []float64{0, 0.5, 0.5}, Action: 2, Loss: 1, Known: true}
	want := 1*(1-0.25) + 0.25*0.5 + 0.5*0.25
	got := unscale(score(&r, []float64{0.25, 0.25, 0.5}, []float64{1, 0.5, 0.25}, 1, 0), 0)
	if math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
}

// played adds rounds of a fair law over two actions, of which the first loses as much as the second wins.
func played(l *Ledger, rounds int, policies [][]float64, after func(i int, fired bool)) {
	for i := range rounds {
		fired := l.Add(&Round{N: int64(100 + i), Actions: []string{"a", "b"}, Law: []float64{0.5, 0.5}, Action: i % 2,
			Loss: float64(i % 2), Known: true}, policies)
		if after != nil {
			after(i, fired)
		}
	}
}

// TestBeaten: a candidate is beaten by what is played, and by another, once the intervals have parted, and not before.
func TestBeaten(t *testing.T) {
	l := New(3, Rule{})
	policies := [][]float64{{1, 0}, {0.5, 0.5}, {0, 1}} // gains of about 1/2, 0 and −1/2
	was := [3]bool{}
	played(l, 1500, policies, func(i int, _ bool) {
		e := l.Estimates([]Estimate{{Policy: "before"}})[1:]
		for k := range e {
			beaten := e[k].Gain.High < max(0, e[0].Gain.Low, e[1].Gain.Low, e[2].Gain.Low)
			if e[k].Beaten != beaten {
				t.Fatalf("after %d rounds candidate %d is beaten: %t", i+1, k, e[k].Beaten)
			}
			was[k] = beaten
		}
	})
	if was != [3]bool{false, true, true} {
		t.Errorf("beaten in the end: %v", was)
	}
	e := l.Estimates([]Estimate{{Policy: "before", Gain: Interval{High: -1}}})
	if len(e) != 4 || e[0].Policy != "before" || e[0].Beaten {
		t.Errorf("what was there became %+v", e[0])
	}
	l = New(1, Rule{})
	played(l, 1500, [][]float64{{0, 1}}, nil) // only worse than what is played, of which no candidate is as good
	if e := l.Estimates(nil)[0]; !e.Beaten {
		t.Errorf("a candidate with a gain of %+v is not beaten", e.Gain)
	}
}

// TestEffective: the sample size by hand, of weights that add up to less than one, too.
func TestEffective(t *testing.T) {
	l := New(1, Rule{})
	for _, c := range []struct {
		action int
		known  bool
		policy []float64
		want   float64
		rounds int64
	}{
		{0, true, []float64{0, 1}, 0, 1}, {0, true, []float64{0.25, 0.75}, 1, 2},
		{1, true, []float64{0.5, 0.5}, 1.8, 3},
		{1, false, []float64{0, 1}, 1.8, 3}, {1, true, nil, 1.8, 3},
	} {
		l.Add(&Round{Actions: []string{"a", "b"}, Law: []float64{0.5, 0.5}, Action: c.action, Known: c.known},
			[][]float64{c.policy})
		if e := l.Estimates(nil)[0]; math.Abs(e.Effective-c.want) > 1e-12 || e.Rounds != c.rounds {
			t.Errorf("%+v: effective %v of %d rounds", c, e.Effective, e.Rounds)
		}
	}
	if all, unknown := l.Rounds(); all != 5 || unknown != 1 {
		t.Errorf("%d rounds, %d without a loss", all, unknown)
	}
}

// TestOneUnknown: one round without a loss makes the worst case worse, and the state of its ledger goes on exactly.
func TestOneUnknown(t *testing.T) {
	l := New(1, Rule{})
	played(l, 50, [][]float64{{0.5, 0.5}}, nil)
	short := len(l.Append(nil))
	if e := l.Estimates(nil)[0]; e.Worst != e.Value || e.WorstGain != e.Gain {
		t.Errorf("with all losses: %+v", e)
	}
	l.Add(&Round{Actions: []string{"a", "b"}, Law: []float64{0.5, 0.5}}, [][]float64{{0.25, 0.75}})
	e := l.Estimates(nil)[0]
	if e.Worst == e.Value || e.WorstGain == e.Gain {
		t.Errorf("without one loss: %+v", e)
	}
	state, again := l.Append(nil), New(1, Rule{})
	if len(state) != short+4*41 { // of four sequences more: their counts and five sums
		t.Errorf("a state of %d bytes has become one of %d", short, len(state))
	}
	if err := again.Restore(state); err != nil || !reflect.DeepEqual(again.Estimates(nil), l.Estimates(nil)) {
		t.Errorf("%v: %+v, not %+v", err, again.Estimates(nil), l.Estimates(nil))
	}
}

// TestPromotedAbove: a gain whose lower end is what the rule asks for does not do; the round after which it is more is
// told once, by its N. The rule's candidate may be unknown in a round.
func TestPromotedAbove(t *testing.T) {
	policies := [][]float64{{0, 1}, {1, 0}}
	lows, best, at := []float64{}, math.Inf(-1), 0
	l := New(2, Rule{Candidate: 1, BetterBy: 2, Alpha: 0.05})
	played(l, 400, policies, func(i int, fired bool) {
		lows = append(lows, unscale(l.gain.Low(Level(0.05)), 1))
		if i < 390 && lows[i] > best {
			best, at = lows[i], i
		}
	})
	if best <= 0 || l.Fired() != 0 {
		t.Fatalf("the gain is at least %v, and the rule held after %d", best, l.Fired())
	}
	next := at + 1
	for next < len(lows) && lows[next] <= best {
		next++
	}
	fired := 0
	l = New(2, Rule{Candidate: 1, BetterBy: best, Alpha: 0.05})
	played(l, 400, policies, func(i int, is bool) {
		if is {
			fired++
			if i != next {
				t.Errorf("the rule holds after round %d, not %d", i, next)
			}
		}
	})
	if want := int64(100 + next); fired != 1 || l.Fired() != want {
		t.Errorf("the rule held %d times, first after %d, not %d", fired, l.Fired(), want)
	}
	l = New(2, Rule{Candidate: 1, BetterBy: -2, Alpha: 0.05})
	for k, policies := range [][][]float64{{{1, 0}, nil}, {nil, {1, 0}}} {
		if l.Add(&Round{N: 7, Actions: []string{"a", "b"}, Law: []float64{1, 0}, Known: true}, policies) {
			t.Errorf("%d: one round promotes", k)
		}
	}
	if l.gain.N != 1 {
		t.Errorf("the rule has read %d rounds of one", l.gain.N)
	}
}

// TestWorstOfUnseen: a candidate's gain over a round without a loss is counted at the loss that makes it least.
func TestWorstOfUnseen(t *testing.T) {
	for _, c := range []struct {
		policy []float64
		shift  float64
		want   float64
	}{{[]float64{0.3, 0.7}, 0, 0}, {[]float64{0.3, 0.7}, 1, 0}, {[]float64{0.2, 0.8}, 1, 1}} {
		r := Round{Actions: []string{"a", "b"}, Law: []float64{0.25, 0.75}}
		if got := worst(&r, c.policy, c.shift); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestDamagedState: a figure that is none is no state, wherever it stands.
func TestDamagedState(t *testing.T) {
	l := New(1, Rule{Alpha: 0.05})
	r := rand.New(rand.NewPCG(1, 9))
	for i := range 20 {
		l.Add(&Round{Actions: []string{"a", "b"}, Law: []float64{0.5, 0.5}, Action: i % 2, Loss: r.Float64(),
			Known: i > 0}, [][]float64{{0.25, 0.75}})
	}
	state, c := l.Append(nil), &l.candidates[0]
	floats := []*float64{&c.weight, &c.squares}
	for b := range buckets {
		floats = append(floats, &l.predictor.n[b], &l.predictor.sum[b])
	}
	sequences := []*Sequence{&l.gain}
	for k := range c.known {
		sequences = append(sequences, &c.known[k], &c.all[k])
	}
	for _, s := range sequences {
		sums := s.sums()
		floats = append(floats, sums[:]...)
	}
	for i, x := range floats {
		was := *x
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			*x = bad
			if New(1, Rule{Alpha: 0.05}).Restore(l.Append(nil)) == nil {
				t.Errorf("float %d: %v is restored", i, bad)
			}
		}
		*x = was
	}
	if want := 2*buckets + 2 + 9*5; len(floats) != want {
		t.Errorf("the state has %d floats, not %d", len(floats), want)
	}
	if err := New(1, Rule{Alpha: 0.05}).Restore(state); err != nil {
		t.Error(err)
	}
}
