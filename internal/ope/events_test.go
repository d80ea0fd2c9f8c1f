package ope

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestEventsByHand: the rows of byHand stand for 1, 3, 1 and 2 events. Of action 0 there
// are 3 events with Σ c·r = 1, of action 1 four: with the prior q̂ = 2/5 and 1/3, so that
// dm = 1/4·2/5 + 3/4·1/3 = .35 everywhere, e = .6, −1/3, 2/3, −.4 and Σ c·w·e = 2.
func TestEventsByHand(t *testing.T) {
	s, policy := byHand()
	s.Events = []float64{1, 3, 1, 2}
	o := Defaults()
	o.Model, o.Lambda = rewardModel{Mean: .5, Count: 2}, 2
	e, err := Evaluate(s, "three quarters", policy, o)
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) Figure { return e.Estimates.Get(name).Value }
	near(t, "events", Figure(e.Events), 7)
	near(t, "ESS", e.ESS, 13*13/(.25+4.5*4.5+36+4))
	near(t, "mean weight", e.MeanWeight, 13./7)
	near(t, "overlap", Figure(e.Overlap), (.5+3+1+2)/7)
	near(t, "IPS", value("ips"), 6.5/7)
	near(t, "SNIPS", value("snips"), 6.5/13)
	near(t, "DM", value("dm"), .35)
	near(t, "DR", value("dr"), .35+2./7)
	near(t, "SNDR", value("sndr"), .35+2./13)
	near(t, "cIPS", value("cips2"), 2.5/7)
	near(t, "Switch", value("switchdr2"), .35-2./7)
	near(t, "DRos", value("dros2"), .35+(.6/2.25-3/4.25+12./38*2/3-2*2./3*.4)/7)
	m := 6.5 / 7 // c·(w·r − m) of the rows, of which Σ c = 7 make the mean
	near(t, "IPS se", e.Estimates.Get("ips").SE, math.Sqrt(((.5-m)*(.5-m)+9*m*m+(6-m)*(6-m)+4*m*m)*(4./3))/7)
	near(t, "SNIPS se", e.Estimates.Get("snips").SE, math.Sqrt((.25+4.5*4.5+36+4)*.25)/13)
	if low := e.Estimates.Get("ips").Bernstein.Low; !math.IsNaN(float64(low)) {
		t.Errorf("empirical Bernstein holds for no ratio, and says %v", low)
	}
	s.Events[1] = .5
	if _, err := Evaluate(s, "x", policy, o); err == nil {
		t.Error("a row that stands for half an event is taken")
	}
}

// TestEventsAreRows: a row that stands for c events gives every estimate that c rows
// give, of a model of all rows. Where all stand for equally many nothing but the reward
// model changes.
func TestEventsAreRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, policy := sampled(t)
		o := Defaults()
		o.Bootstrap, o.Model.Folds = 0, 0
		o.Lambda = rapid.SampledFrom([]float64{1, 10, math.Inf(1)}).Draw(t, "λ")
		repeated, of := &Sample{Actions: s.Actions}, []int{}
		for i := range s.Len() {
			c := rapid.IntRange(1, 4).Draw(t, "c")
			s.Events = append(s.Events, float64(c))
			for range c {
				of = append(of, i)
				repeated.Action, repeated.Reward = append(repeated.Action, s.Action[i]), append(repeated.Reward,
					s.Reward[i])
				repeated.Propensity = append(repeated.Propensity, s.Propensity[i])
			}
		}
		got, err := Evaluate(s, "p", policy, o)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Evaluate(repeated, "p", func(dst []float64, t int) { policy(dst, of[t]) }, o)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range got.Estimates {
			same(t, e.Name, e.Value, want.Estimates[i].Value, 1)
		}
		same(t, "events", Figure(got.Events), Figure(want.Rows), 1)
		same(t, "mean weight", got.MeanWeight, want.MeanWeight, 1)
		same(t, "overlap", Figure(got.Overlap), Figure(want.Overlap), 1)
		same(t, "support", Figure(got.Support), Figure(want.Support), 1)
		last := len(got.Course.SoFar) - 1
		same(t, "course", got.Course.SoFar[last], got.Estimates.Get("snips").Value, 1)

		alike := *s
		alike.Events = make([]float64, s.Len())
		for i := range alike.Events {
			alike.Events[i] = 10
		}
		s.Events = nil
		plain, err := Evaluate(s, "p", policy, o)
		if err != nil {
			t.Fatal(err)
		}
		tenfold, err := Evaluate(&alike, "p", policy, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"ips", "snips"} {
			x, y := tenfold.Estimates.Get(name), plain.Estimates.Get(name)
			same(t, name, x.Value, y.Value, 1)
			same(t, name+" se", x.SE, y.SE, 1)
			same(t, name+" Bernstein", x.Bernstein.High, y.Bernstein.High, 1)
		}
		same(t, "ESS", tenfold.ESS, plain.ESS, 1)
	})
}

// TestEventsUnbiased: of rows without reward three in four are dropped. Those that are left
// stand for four each; who forgets it takes the policy for better than it is. Intervals
// cover; they would not if a row that stands for four were four rows.
func TestEventsUnbiased(t *testing.T) {
	w, n := newWorld(), runs(t)/2
	rng := rand.New(rand.NewPCG(9, 9))
	o := Defaults()
	o.Bootstrap = 0
	mean, square, forgot, covered, narrow := 0.0, 0.0, 0.0, 0.0, 0.0
	holds := func(v *Estimate, shrink float64) float64 {
		if math.Abs(float64(v.Value)-w.value()) <= normal95*shrink*float64(v.SE) {
			return 1 / float64(n)
		}
		return 0
	}
	for range n {
		all, policy := w.draw(rng, 800, right)
		s, of := &Sample{Actions: all.Actions}, []int{}
		for t, r := range all.Reward {
			c := 4 - 3*r
			if rng.Float64() < 1/c {
				s.Action, s.Reward, s.Events = append(s.Action, all.Action[t]), append(s.Reward, r), append(s.Events, c)
				s.Propensity = append(s.Propensity, all.Propensity[t])
				of = append(of, t)
			}
		}
		kept := func(dst []float64, t int) { policy(dst, of[t]) }
		e, err := Evaluate(s, "target", kept, o)
		if err != nil {
			t.Fatal(err)
		}
		v := e.Estimates.Get("snips")
		mean += float64(v.Value) / float64(n)
		square += float64(v.Value*v.Value) / float64(n)
		covered += holds(v, 1)
		narrow += holds(v, math.Sqrt(float64(e.Rows)/e.Events))
		s.Events = nil
		if e, err = Evaluate(s, "target", kept, o); err != nil {
			t.Fatal(err)
		}
		forgot += float64(e.Estimates.Get("snips").Value) / float64(n)
	}
	se := math.Sqrt((square - mean*mean) / float64(n-1))
	if off := math.Abs(mean - w.value()); off > 3*se+.003 { // a ratio is biased by O(1/n)
		t.Errorf("mean %v ± %v over %d logs, the truth is %v", mean, se, n, w.value())
	}
	if forgot < w.value()+.1 {
		t.Errorf("without weights the mean is %v, the truth %v: the plant does not show", forgot, w.value())
	}
	noise := 3 * math.Sqrt(.95*.05/float64(n))
	if math.Abs(covered-.95) > .02+noise || narrow > .9 {
		t.Errorf("coverage %.3f; of rows counted as often as they stand for %.3f", covered, narrow)
	}
}

// TestChooseEventsByHand: of two rows with e = 1 the one of weight 100 counts for a tenth of
// a row, the one of weight 1 for 1.9. Clipped at 50 they say 5 and 1.9: a variance of the
// mean of 3.1²/4 = 2.4 and a bias of 2.5 make 8.65; at 20 the bias alone makes 16, at 100
// the variance 16.4. Who forgets how much rows count for in the bias takes 100, and who
// forgets it in the variance 2.
func TestChooseEventsByHand(t *testing.T) {
	counts := []float64{.1, 1.9}
	l := &look{s: &Sample{Action: make([]int32, 2)}, c: func(t int) float64 { return counts[t] },
		of: []float64{100, 0, 0, 1, 0, 0}}
	constant := func(x float64) func(int) float64 { return func(int) float64 { return x } }
	if got := l.best(constant(0), constant(1), func(w, lambda float64) float64 { return min(w, lambda) }); got != 50 {
		t.Errorf("λ is %v, want 50", got)
	}
}
