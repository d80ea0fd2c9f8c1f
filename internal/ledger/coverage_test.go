package ledger

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"hindsight/internal/testkit/daily"
	_ "hindsight/internal/testkit/roomy"
)

// losses are the mean losses of a world's actions in two contexts, which are equally likely.
var losses = [2][3]float64{{0.3, 0.5, 0.8}, {0.6, 0.45, 0.5}}

// studied are the policies that are judged: an action always, all alike, and the baseline of each context.
var studied = [][2][]float64{
	{{1, 0, 0}, {1, 0, 0}},
	{{0, 0, 1}, {0, 0, 1}},
	{{1. / 3, 1. / 3, 1. / 3}, {1. / 3, 1. / 3, 1. / 3}},
	{{0.9, 0.1, 0}, {0, 0.2, 0.8}},
}

// study is a log of a kind, judged at each of its rounds.
type study struct {
	adaptive bool // the log is of a learner; else uniform
	delay    func(r *rand.Rand, loss float64) float64
	window   int  // in rounds
	arrival  bool // planted: rounds are judged in the order in which they arrive
	peek     bool // planted: predictions know the loss of the round itself
	rounds   int
}

// Delays are shares of the window; above 1 the outcome never comes.
func blind(r *rand.Rand, _ float64) float64 { return r.Float64() }

func byLoss(r *rand.Rand, loss float64) float64 { return 1 - loss }

func dropped(r *rand.Rand, loss float64) float64 {
	if loss > 0 && r.IntN(4) == 0 {
		return 2
	}
	return r.Float64()
}

// decided is a round of a study that waits for its outcome.
type decided struct {
	Round
	context, due int
	law          [3]float64
}

// missed says which intervals were ever wrong in a run.
type missed struct{ value, worst, gain, independent bool }

// run makes a log and judges it.
func (c *study) run(seed uint64) (m missed) {
	r := rand.New(rand.NewPCG(seed, 11))
	l := New(len(studied), Rule{})
	var line []*decided
	var sums, counts [2][3]float64
	plain, gains := make([]moments, len(studied)), make([][2]weighed, len(studied))
	for t := range c.rounds {
		d := &decided{context: r.IntN(2), due: t}
		d.law = c.law(&sums[d.context], &counts[d.context], t)
		d.Actions, d.Law = []string{"a", "b", "c"}, d.law[:]
		d.Action = draw(r, d.law)
		if r.Float64() < losses[d.context][d.Action] {
			d.Loss = 1
		}
		delay := c.delay(r, d.Loss)
		d.Known = delay <= 1
		d.due += int(min(delay, 1) * float64(c.window))
		line = append(line, d)
		for _, d := range c.released(&line, t) {
			c.judge(l, d, plain, gains)
			if d.Known {
				sums[d.context][d.Action] += d.Loss
				counts[d.context][d.Action]++
			}
			m.look(l, plain, gains)
		}
	}
	return m
}

// law is that of inverse gap weighting on mean losses, or uniform.
func (c *study) law(sums, counts *[3]float64, t int) (p [3]float64) {
	if !c.adaptive {
		return [3]float64{1. / 3, 1. / 3, 1. / 3}
	}
	best, mean := 0, [3]float64{}
	for a := range p {
		if mean[a] = (sums[a] + 0.5) / (counts[a] + 1); mean[a] < mean[best] {
			best = a
		}
	}
	rest := 1.0
	for a := range p {
		if a != best {
			p[a] = 1 / (3 + 2*math.Sqrt(float64(t))*(mean[a]-mean[best]))
			rest -= p[a]
		}
	}
	p[best] = rest
	return p
}

func draw(r *rand.Rand, p [3]float64) int {
	switch u := r.Float64(); {
	case u < p[0]:
		return 0
	case u < p[0]+p[1]:
		return 1
	}
	return 2
}

// released takes the rounds that are final at t out of the line: in the order of decisions, unless planted otherwise.
func (c *study) released(line *[]*decided, t int) (out []*decided) {
	kept := (*line)[:0]
	for _, d := range *line {
		if d.due <= t && (c.arrival || len(kept) == 0) {
			out = append(out, d)
		} else {
			kept = append(kept, d)
		}
	}
	*line = kept
	return out
}

// worth is the value of a policy.
func worth(policy [2][]float64) (v float64) {
	for x := range losses {
		for a, loss := range losses[x] {
			v += policy[x][a] * loss / 2
		}
	}
	return v
}

// judge adds a round, and the gain that it has in truth with the weights that the sequences give it.
func (c *study) judge(l *Ledger, d *decided, plain []moments, gains [][2]weighed) {
	policies := make([][]float64, len(studied))
	for i := range studied {
		policies[i] = studied[i][d.context]
	}
	before := slices.Clone(l.candidates)
	was := l.predictor
	if c.peek {
		b := bucket(d.Actions[d.Action])
		l.predictor.n[b], l.predictor.sum[b] = 1e9, 1e9*d.Loss
	}
	l.Add(&d.Round, policies)
	if c.peek {
		l.predictor = was
		l.predictor.Learn(&d.Round)
	}
	for i, policy := range policies {
		gain := 0.0
		for a, loss := range losses[d.context] {
			gain += (d.law[a] - policy[a]) * loss
		}
		for k := range gains[i] {
			gains[i][k].add(gain, l.candidates[i].known[2+k].rate-before[i].known[2+k].rate)
		}
		if d.Known {
			plain[i].add(policy[d.Action] / d.Law[d.Action] * d.Loss)
		}
	}
}

// look reads all intervals.
func (m *missed) look(l *Ledger, plain []moments, gains [][2]weighed) {
	for i, e := range l.Estimates(nil) {
		v := worth(studied[i])
		m.value = m.value || e.Value.misses(v, v)
		m.worst = m.worst || e.Worst.misses(v, v)
		m.gain = m.gain || e.Gain.misses(gains[i][1].mean(), gains[i][0].mean())
		if n := plain[i].n; n >= 100 {
			m.independent = m.independent || math.Abs(plain[i].mean-v) > 1.96*plain[i].error()
		}
	}
}

// misses reports whether an interval is above or below what its ends should bound.
func (i Interval) misses(low, high float64) bool { return i.Low > low+1e-9 || i.High < high-1e-9 }

// weighed is a weighted mean.
type weighed struct{ sum, weight float64 }

func (w *weighed) add(x, weight float64) { w.sum, w.weight = w.sum+weight*x, w.weight+weight }
func (w *weighed) mean() float64         { return w.sum / w.weight }

// moments are of the usual interval for independent data at a fixed time, by importance weights.
type moments struct{ n, mean, squares float64 }

func (m *moments) add(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / m.n
	m.squares += d * (x - m.mean)
}

func (m *moments) error() float64 { return math.Sqrt(m.squares / (m.n - 1) / m.n) }

// seeds is how many logs a test makes.
func seeds(short, long int) int {
	if os.Getenv("HINDSIGHT_LONG") != "" {
		return long
	}
	return short
}

// count returns in which share of so many logs intervals were ever wrong.
func (c *study) count(n int) (value, worst, gain, independent float64) {
	share := 1 / float64(n)
	for seed := range n {
		m := c.run(uint64(seed))
		value += share * truth(m.value)
		worst += share * truth(m.worst)
		gain += share * truth(m.gain)
		independent += share * truth(m.independent)
	}
	return value, worst, gain, independent
}

func truth(x bool) float64 {
	if x {
		return 1
	}
	return 0
}

func TestIntervalsHoldAtAllTimes(t *testing.T) {
	n := seeds(100, 1000)
	for i, c := range []study{{delay: blind}, {delay: byLoss}, {adaptive: true, delay: byLoss},
		{adaptive: true, delay: blind}} {
		if !daily.Turn(t, i, 2) {
			continue
		}
		c.rounds, c.window = 1500, 60
		value, _, gain, independent := c.count(n)
		t.Logf("adaptive %t: of %d logs ever wrong: value %.3f, gain %.3f, independent data %.3f", c.adaptive, n, value,
			gain, independent)
		if value > Alpha || gain > Alpha {
			t.Errorf("an interval of a value was ever wrong in %.3f, of a gain in %.3f of the logs", value, gain)
		}
		if independent < 2*Alpha {
			t.Errorf("the interval for independent data was ever wrong in %.3f of the logs: it should fail",
				independent)
		}
	}
}

func TestWorstCaseHoldsWhereTheWindowDropsByLoss(t *testing.T) {
	n := seeds(50, 1000)
	for i, adaptive := range []bool{false, true} {
		if !daily.Turn(t, i, 2) {
			continue
		}
		c := study{adaptive: adaptive, delay: dropped, rounds: 3000, window: 60}
		value, worst, _, _ := c.count(n)
		t.Logf("adaptive %t: of %d logs ever wrong: as if at random %.3f, worst case %.3f", adaptive, n, value, worst)
		if worst > Alpha {
			t.Errorf("the worst-case interval was ever wrong in %.3f of the logs", worst)
		}
		if value < 2*Alpha {
			t.Errorf("the interval that takes rounds as missing at random was wrong in %.3f: it should fail", value)
		}
	}
}

// Each of these faults makes intervals wrong, and the test above must see it.
func TestCoverageFindsFaults(t *testing.T) {
	for name, c := range map[string]study{
		"predictions from after the round": {delay: blind, peek: true, rounds: 1500, window: 60},
		"rounds in the order of arrival":   {delay: byLoss, arrival: true, rounds: 800, window: 800},
	} {
		if value, _, _, _ := c.count(20); value <= 2*Alpha {
			t.Errorf("%s: values were ever wrong in %.3f of the logs", name, value)
		}
	}
}

// Few rounds leave intervals as wide as losses, and gains, can be.
func TestIntervalsBegin(t *testing.T) {
	l := New(1, Rule{})
	l.Add(&Round{Actions: []string{"a", "b"}, Law: []float64{0.5, 0.5}, Loss: 1, Known: true}, [][]float64{{1, 0}})
	e := l.Estimates(nil)[0]
	if want := (Interval{1.5, 0, 1}); e.Value != want || e.Worst != want { // 2·(1 − 1/2) + 1/2
		t.Errorf("the loss after one round is %+v, at worst %+v", e.Value, e.Worst)
	}
	if want := (Interval{-0.5, -1, 1}); e.Gain != want || e.WorstGain != want { // (2 − 1)·(0 − 1/2)
		t.Errorf("the gain after one round is %+v, at worst %+v", e.Gain, e.WorstGain)
	}
}

// A policy that the log does not cover has a wide interval, and not a wrong one.
func TestMissingOverlapIsNotWrong(t *testing.T) {
	l := New(1, Rule{})
	r := Round{Actions: []string{"a", "b"}, Law: []float64{1, 0}, Known: true}
	for i := range 5000 {
		r.Loss = float64(i % 2)
		l.Add(&r, [][]float64{{0.5, 0.5}})
	}
	e := l.Estimates(nil)[0] // of a it is 0.5, of b anything
	if e.Value.Low < 0.2 || e.Value.Low > 0.25 || e.Value.High < 0.75 || e.Value.High > 0.8 {
		t.Errorf("value %+v, want about [0.25, 0.75]", e.Value)
	}
	if e.Gain.Low < -0.3 || e.Gain.Low > -0.25 || e.Gain.High < 0.25 || e.Gain.High > 0.3 {
		t.Errorf("gain %+v, want about [-0.25, 0.25]", e.Gain)
	}
}

func TestScoreByHand(t *testing.T) {
	r := Round{Actions: []string{"a", "b"}, Law: []float64{0.25, 0.75}, Action: 0, Loss: 1, Known: true}
	policy, q := []float64{0.5, 0.5}, []float64{0.4, 0.2}
	for _, c := range []struct{ shift, want float64 }{
		{0, 2*(1-0.4) + 0.5*0.4 + 0.5*0.2},
		{1, 1*(1-0.4) + (0.5-0.25)*0.4 + (0.5-0.75)*0.2},
	} {
		if got := unscale(score(&r, policy, q, 1, c.shift), c.shift); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("shift %v: %v, want %v", c.shift, got, c.want)
		}
	}
	r.Law, policy = []float64{0.01, 0.99}, []float64{1, 0} // weight 100: of the prediction 4/100 is used
	if got, want := unscale(score(&r, policy, q, 0, 0), 0), 100*(0-0.04)+0.04; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestWorstIsLeast(t *testing.T) {
	for _, policy := range [][]float64{{1, 0}, {0.5, 0.5}, {0.2, 0.8}, {0, 1}} {
		r := Round{Actions: []string{"a", "b"}, Law: []float64{0.25, 0.75}}
		for _, shift := range []float64{0, 1} {
			of := func(x float64) float64 { return score(&r, policy, []float64{0.4, 0.2}, x, shift) }
			if x := worst(&r, policy, shift); of(x) > min(of(0), of(1)) {
				t.Errorf("policy %v, shift %v: %v is not the worst", policy, shift, x)
			}
		}
	}
}

// A rule under which nothing may be promoted is looked at after every round, and so is one of a better candidate.
func TestPromotionIsTestedAtEveryRound(t *testing.T) {
	n := seeds(200, 2000)
	fired := func(gain float64, rounds int) (share float64) {
		for seed := range n {
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			l := New(1, Rule{BetterBy: 0.01, Alpha: 0.05})
			law, policies := []float64{0.5, 0.5}, [][]float64{{0, 1}}
			for range rounds {
				d := Round{N: 1, Actions: []string{"a", "b"}, Law: law, Action: r.IntN(2), Known: true}
				if r.Float64() < 0.1+gain*float64(1-2*d.Action) { // b gains that over playing either
					d.Loss = 1
				}
				if l.Add(&d, policies) {
					share += 1 / float64(n)
					break
				}
			}
		}
		return share
	}
	if share := fired(0.01, 3000); share > 0.05 {
		t.Errorf("a candidate that is better by no more than the rule asks was promoted in %.3f of %d logs", share, n)
	} else {
		t.Logf("false promotions: %.4f of %d", share, n)
	}
	if share := fired(0.03, 20000); share < 0.8 {
		t.Errorf("a candidate that is better by 0.03 was promoted in %.3f of %d logs", share, n)
	} else {
		t.Logf("promoted with a gain of 0.03: %.3f of %d", share, n)
	}
}

func TestStateGoesOnExactly(t *testing.T) {
	rule := Rule{Candidate: 1, BetterBy: 0.1, Alpha: 0.05}
	whole, half := New(2, rule), New(2, rule)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		d := Round{Actions: []string{"a", "b"}, Law: []float64{0.3, 0.7}, Action: r.IntN(2), Loss: r.Float64(),
			Known: r.IntN(5) > 0}
		policies := [][]float64{{1, 0}, {0.5, 0.5}}
		if i%3 == 0 {
			policies[0] = nil
		}
		whole.Add(&d, policies)
		half.Add(&d, policies)
		if i%97 == 0 {
			state := half.Append(nil)
			if half = New(2, rule); half.Restore(state) != nil {
				t.Fatal("not restored")
			}
			longer := append(slices.Clone(state), 0)
			for n := range len(longer) + 1 {
				if n != len(state) && New(2, rule).Restore(longer[:n]) == nil {
					t.Fatalf("%d bytes are a state of %d", n, len(state))
				}
			}
		}
	}
	if !reflect.DeepEqual(whole, half) {
		t.Errorf("after restarts it is\n%+v\nnot\n%+v", half, whole)
	}
	if New(2, rule).Restore(append([]byte{version + 1}, whole.Append(nil)[1:]...)) == nil {
		t.Error("another version is restored")
	}
	long := append([]byte{version}, bytes.Repeat([]byte{0xff}, 11)...)
	if New(2, rule).Restore(append(long, whole.Append(nil)...)) == nil {
		t.Error("a number of more than 64 bits is restored")
	}
	if err := New(3, rule).Restore(whole.Append(nil)); err == nil {
		t.Error("the state of two candidates is one of three")
	}
}

// TestStateIsPinned: the same rounds make the same bits, of the state and of what is said, with a rule and without.
func TestStateIsPinned(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		want string
	}{{Rule{}, "cceb38c87988f01f"}, {Rule{Candidate: 1, BetterBy: 0.1, Alpha: 0.05}, "44652cf995896324"}} {
		l, r := New(2, c.rule), rand.New(rand.NewPCG(3, 4))
		for i := range 300 {
			d := Round{N: int64(i), Actions: []string{"a", "a long name", "\xff"}, Law: []float64{0.25, 0.5, 0.25},
				Action: r.IntN(3), Loss: float64(r.IntN(64)) / 64, Known: r.IntN(5) > 0}
			l.Add(&d, [][]float64{{1, 0, 0}, {0.125, 0.25, 0.625}})
		}
		got := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(l.Append(nil), l.Estimates(nil), l.gain.Mean())))
		if got[:16] != c.want {
			t.Errorf("%+v: %s, was %s", c.rule, got[:16], c.want)
		}
	}
}
