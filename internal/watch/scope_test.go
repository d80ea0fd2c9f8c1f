package watch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
)

func decision(p int, n int64, action int, law ...float64) *codec.Decision {
	d := &codec.Decision{Partition: p, N: n, Action: action, Propensities: law}
	for a := range law {
		d.Actions = append(d.Actions, string(rune('a'+a)))
	}
	return d
}

// Actions are counted over the last decisions, each decision once whoever tells of it.
func TestScopeDecisions(t *testing.T) {
	s := NewScope()
	for n := int64(1); n <= windowSize+10; n++ {
		action := 0
		if n > 10 {
			action = 1
		}
		s.Decision(decision(0, n, action, .75, .25))
		s.Decision(decision(0, n, 0, .75, .25)) // told again
	}
	s.Decision(decision(1, 1, 1, .5, .5)) // of another partition; it takes the place of one
	s.Decision(nil)
	v := s.View()
	if len(v.Actions) != 1 || v.Actions[0] != (playedAction{"b", windowSize}) {
		t.Errorf("actions %v", v.Actions)
	}
	h := (.75*math.Log(4./3)*(windowSize-1) + .25*math.Log(4)*(windowSize-1) + math.Log(2)) / math.Log(2) / windowSize
	if e := v.Exploration; e.Decisions != windowSize || e.Floor != .25 || math.Abs(e.Entropy-h) > 1e-9 {
		t.Errorf("%+v, want entropy %v", e, h)
	}
	if v.Draws != windowSize+11 {
		t.Errorf("%d draws", v.Draws)
	}
}

// The window says what a list of the last decisions says.
func TestDecisionWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w decisionWindow
		var all []string
		for range rapid.IntRange(0, 3*windowSize).Draw(t, "n") {
			name := fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "action"))
			w.add([]float64{1}, name, shadowed{})
			all = append(all, name)
		}
		want := map[string]int{}
		for _, name := range all[max(0, len(all)-windowSize):] {
			want[name]++
		}
		got := w.actions()
		if len(got) != len(want) || len(w.names) > 41 {
			t.Fatalf("%v, want %v", got, want)
		}
		for _, a := range got {
			if want[a.Action] != a.Decisions {
				t.Errorf("%s: %d, want %d", a.Action, a.Decisions, want[a.Action])
			}
		}
	})
	var w decisionWindow
	for i := range 4 * windowSize { // names that come and go leave their places to others
		w.add([]float64{1}, fmt.Sprint(i/windowSize), shadowed{})
	}
	if len(w.names) > 2 {
		t.Errorf("%d places of names", len(w.names))
	}
}

func feedback(n int64, fate codec.Fate, loss, p float64) *codec.Feedback {
	return &codec.Feedback{N: n, Fate: fate, Loss: loss, Actions: []string{"a", "b"}, Propensities: []float64{p, 1 - p},
		Time: n * 1e9, ClosedAt: n*1e9 + 5e8, LearnedThrough: max(0, n-4)}
}

// By hand: losses 0 and 1 with propensities ½ and ⅛ of two actions have weights 1 and 4:
// uniform play is estimated to lose 4/5; as if (1+4)²/(1+16) of the two rounds told of it. About
// their mean of ½ they lost (1·½ − 4·½)/2 = −¾ over it, whose squares' mean is (¼ + 4)/2 = 17/8,
// so that its error is √((17/8 − 9/16)/2) = √(25/32).
func TestScopeFeedback(t *testing.T) {
	s := NewScope()
	s.Feedback(feedback(1, codec.Observed, 0, .5))
	s.Feedback(feedback(2, codec.Imputed, 1, .125))
	s.Feedback(feedback(2, codec.Imputed, 1, .125)) // told again
	s.Feedback(feedback(3, codec.Skipped, 0, .5))
	s.Feedback(feedback(4, codec.WithdrawnRound, 0, .5))
	s.Feedback(feedback(5, codec.Fate(9), 0, .5))
	v := s.View()
	r := v.Recent
	if r.Rounds != 4 || r.Losses != 2 || r.Loss != .5 || r.Uniform != .8 || r.Excess != -.75 ||
		math.Abs(r.StdErr-math.Sqrt(25./32)) > 1e-12 || math.Abs(r.Effective-25./34) > 1e-12 || r.Largest != .8 ||
		math.Abs(r.JoinRatio-1./3) > 1e-12 {
		t.Errorf("%+v", r)
	}
	if v.Fates[codec.Observed] != 1 || v.Fates[codec.Imputed] != 1 || v.Fates[codec.Skipped] != 1 ||
		v.Fates[codec.WithdrawnRound] != 1 || s.last != 4 {
		t.Errorf("%v", v.Fates)
	}
	if v.Delays.N != 1 || v.Delays.Quantile(.5) != .5 || v.Released.N != 4 || v.Released.Most != 3 {
		t.Errorf("delays %+v, released %+v", v.Delays, v.Released)
	}
	if len(v.Losses) != 2 || v.LossStart != 1e9 || v.Losses[1] != (lossBucket{1, 1, 4, 4}) {
		t.Errorf("%+v", v.Losses)
	}
	empty := NewScope().View()
	if !math.IsNaN(empty.Recent.JoinRatio) || !math.IsNaN(empty.Recent.Uniform) ||
		!math.IsNaN(empty.Exploration.Floor) || empty.Head != nil || empty.Evidence != 1 {
		t.Errorf("%+v", empty)
	}
}

// By hand: action a lost 0 and 1, action b ½ in its one round with a loss; what has left the window
// does not count.
func TestWorthByAction(t *testing.T) {
	s := NewScope()
	n := int64(0)
	play := func(action int, fate codec.Fate, loss float64) {
		n++
		f := feedback(n, fate, loss, .5)
		f.Action = action
		s.Feedback(f)
	}
	play(0, codec.Observed, .25)
	for range windowSize - 4 {
		play(1, codec.Skipped, 0)
	}
	play(0, codec.Observed, 0)
	play(0, codec.Observed, 1)
	play(1, codec.Imputed, .5)
	if w := s.View().Worths; len(w) != 2 || w["a"].Rounds != 3 {
		t.Errorf("%+v", w)
	}
	play(1, codec.Skipped, 0) // the first is gone
	if w := s.View().Worths; w["a"] != (actionWorth{2, .5}) || w["b"] != (actionWorth{1, .5}) {
		t.Errorf("%+v", w)
	}
}

// A match counts once, whoever tells of it, and the last of them make the rate.
func TestMatch(t *testing.T) {
	s := NewScope()
	if m := s.match(); m.Rounds != 0 || !math.IsNaN(m.Rate) {
		t.Errorf("of nothing: %+v", m)
	}
	s.Matched(1, 1)
	s.Matched(1, 1)
	s.Matched(2, .5)
	if m := s.match(); m != (matchRate{2, .75}) || s.View().Match != m {
		t.Errorf("%+v", m)
	}
	for n := range int64(windowSize) {
		s.Matched(n+3, 0)
	}
	if m := s.match(); m != (matchRate{windowSize, 0}) {
		t.Errorf("%+v", m)
	}
}

// What is usual: of 31 rounds 30 are observed, each after half a second; of fewer the median
// of the delays is not told.
func TestScopeUsual(t *testing.T) {
	s := NewScope()
	if share, delay := s.usual(); !math.IsNaN(share) || !math.IsNaN(delay) {
		t.Errorf("of nothing: %v, %v", share, delay)
	}
	s.Feedback(feedback(1, codec.Skipped, 0, .5))
	for n := int64(2); n <= 31; n++ {
		if share, delay := s.usual(); share != float64(n-2)/float64(n-1) || !math.IsNaN(delay) {
			t.Errorf("before round %d: %v, %v", n, share, delay)
		}
		s.Feedback(feedback(n, codec.Observed, 0, .5))
	}
	if share, delay := s.usual(); share != 30./31 || delay != .5 {
		t.Errorf("%v, %v", share, delay)
	}
}

// TestExcess: of a learner that has converged on the better of two actions, and plays the other
// once in a thousand rounds, the excess over uniform play is hardly ever over 0.05 and over
// three times its error, though the estimate for uniform play often is below its loss by that;
// of one that plays the worse action more often than not it always is.
func TestExcess(t *testing.T) {
	const worlds = 200
	r := rand.New(rand.NewPCG(3, 9))
	play := func(p float64, losses [2]float64) Recent {
		s := NewScope()
		for n := int64(1); n <= windowSize; n++ {
			action, loss := 0, 0.0
			if r.Float64() >= p {
				action = 1
			}
			if r.Float64() < losses[action] {
				loss = 1
			}
			f := feedback(n, codec.Observed, loss, p)
			f.Action = action
			s.Feedback(f)
		}
		return s.feedback.recent()
	}
	var wrong, below, found int
	var sum float64
	for range worlds {
		x := play(.999, [2]float64{.3, .6})
		if x.Excess > max(.05, 3*x.StdErr) {
			wrong++
		}
		if x.Loss > x.Uniform+.05 {
			below++
		}
		x = play(.75, [2]float64{.9, .3})
		sum += x.Excess / worlds
		if x.Excess > max(.05, 3*x.StdErr) {
			found++
		}
	}
	if wrong > worlds/100 || below < worlds/10 || found < worlds*9/10 || math.Abs(sum-.15) > .01 {
		t.Errorf("of %d: %d wrong, %d below uniform play's estimate by 0.05, %d found, of mean %v", worlds, wrong,
			below, found, sum)
	}
	t.Logf("of %d: %d wrong, %d by the estimate alone; %d found, of mean %.3f", worlds, wrong, below, found, sum)
}

// Buckets merge, and nothing is lost.
func TestSeries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s series
		var n int64
		var sum float64
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			at, loss := rapid.Int64Range(-1e9, 1e16).Draw(t, "time"), rapid.Float64Range(0, 1).Draw(t, "loss")
			s.add(at, loss, 2)
			n++
			sum += loss
		}
		var got lossBucket
		for _, b := range s.buckets[:s.used] {
			got = lossBucket{got.Rounds + b.Rounds, got.Loss + b.Loss, got.Weight + b.Weight, got.Weighted + b.Weighted}
		}
		if got.Rounds != n || math.Abs(got.Loss-sum) > 1e-9 || got.Weight != float64(2*n) ||
			math.Abs(got.Weighted-2*sum) > 1e-9 {
			t.Errorf("%+v, want %d rounds with %v", got, n, sum)
		}
	})
	var s series
	for i := range int64(2 * seriesBuckets) {
		s.add(i*1e9, 1, 1)
	}
	if s.width != 2e9 || s.used != seriesBuckets || s.buckets[7].Rounds != 2 {
		t.Errorf("width %d, %d buckets, %+v", s.width, s.used, s.buckets[7])
	}
}

// A quantile is no less than the true one and less than twice that.
func TestHistogram(t *testing.T) {
	h := Histogram{Unit: 1e-3}
	for i := 1; i <= 1000; i++ {
		h.add(float64(i))
	}
	for _, q := range []float64{.01, .5, .9, .99, 1} {
		if got, want := h.Quantile(q), 1000*q; got < want || got >= 2*want && got > h.Most {
			t.Errorf("quantile %v is %v, the truth is %v", q, got, want)
		}
	}
	h.add(1e300)
	if h.Counts[len(h.Counts)-1] != 1 || !math.IsNaN((&Histogram{}).Quantile(.5)) {
		t.Error("the ends")
	}
}

// The last rejects are kept, newest first, and the head of the line.
func TestScopeRejectsAndHead(t *testing.T) {
	s := NewScope()
	for i := range int64(keptRejects + 5) {
		s.Reject(&codec.Reject{Topic: "outcomes", Offset: i, Reason: codec.ReasonLate, ID: "x", Detail: "planted",
			Bytes: []byte("planted")})
	}
	s.wait(lineHead{Partition: 2, N: 7, ID: "seven"})
	v := s.View()
	if len(v.Rejects) != keptRejects || v.Rejects[0].Offset != keptRejects+4 || v.Rejects[0].Detail != "planted" ||
		v.Rejects[keptRejects-1].Offset != 5 {
		t.Errorf("%+v", v.Rejects)
	}
	if v.Head == nil || *v.Head != (lineHead{Partition: 2, N: 7, ID: "seven"}) {
		t.Errorf("head %+v", v.Head)
	}
	s.wait(lineHead{Partition: -1})
	if s.View().Head != nil {
		t.Error("a head of nothing")
	}
}

// Many rejects of one reason leave those of others: of each topic and reason the last two at least.
func TestScopeKeepsEachReason(t *testing.T) {
	s := NewScope()
	kinds := [][2]string{{"contexts", codec.ReasonMalformed}, {"contexts", codec.ReasonDuplicateID},
		{"outcomes", codec.ReasonLate}, {"outcomes", codec.ReasonDuplicate},
		{"outcomes", codec.ReasonMismatch}, {"outcomes", codec.ReasonMalformed}, {"outcomes", codec.ReasonOrphan}}
	for i := range int64(500) {
		k := kinds[min(i/2, int64(len(kinds)-1))]
		s.Reject(&codec.Reject{Topic: k[0], Offset: i, Reason: k[1]})
	}
	of := map[[2]string][]int64{}
	for _, r := range s.View().Rejects {
		k := [2]string{r.Topic, r.Reason}
		of[k] = append(of[k], r.Offset)
	}
	for i, k := range kinds[:len(kinds)-1] {
		if got := of[k]; len(got) != 2 || got[0] != int64(2*i+1) {
			t.Errorf("%v: %v", k, got)
		}
	}
	if got := of[kinds[len(kinds)-1]]; len(got) != keptRejects-12 || got[0] != 499 ||
		got[len(got)-1] != 499-int64(len(got))+1 {
		t.Errorf("the last orphans: %v", got)
	}
}

func TestScopeDoesNotAllocate(t *testing.T) {
	s, d, f := NewScope(), decision(0, 1, 0, .5, .3, .2), feedback(1, codec.Observed, .5, .5)
	s.Decision(d)
	if n := testing.AllocsPerRun(2000, func() {
		d.N++
		f.N++
		d.Action = int(d.N % 3)
		s.Decision(d)
		s.Feedback(f)
		s.wait(lineHead{N: d.N, ID: "a"})
	}); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

// What a round costs here.
func BenchmarkScope(b *testing.B) {
	s, d, f := NewScope(), decision(0, 1, 0, .5, .3, .1, .05, .05), feedback(1, codec.Observed, .5, .5)
	b.ReportAllocs()
	for b.Loop() {
		d.N++
		f.N++
		s.Decision(d)
		s.Feedback(f)
	}
}
