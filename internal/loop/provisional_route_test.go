package loop

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"hindsight/internal/testkit/daily"
	_ "hindsight/internal/testkit/roomy"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// clicks is a world of clicks that come late or never: five actions, whose rates are linear in five numbers.
type clicks struct {
	low, high float64 // rates
	median    float64 // of delays, in rounds, log-normal with σ 1.2
	rotate    int     // actions change places after so many rounds; 0: never
	rounds    bool    // the window is of rounds, and so is the median delay; else of log time, a second a round
}

func newOracle(kind string) oracle.Amender {
	var o oracle.Amender
	var err error
	switch kind {
	case "linear":
		o, err = oracle.NewLinear(oracle.LinearOptions{Version: oracle.Newest, Beta: oracle.ByWhatComes,
			Lambda: oracle.ByWhatComes})
	case "auto":
		o, err = oracle.NewAggregate(oracle.AggregateOptions{Version: oracle.Newest, Beta: oracle.ByWhatComes,
			Fourier: oracle.ByWhatComes, Seed: 1})
	case "diagonal":
		o, err = oracle.NewDiagonal(oracle.DiagonalOptions{Version: oracle.Newest, Beta: .5})
	}
	if err != nil {
		panic(err)
	}
	return o
}

func newLearner(kind string) *learner.DAFA {
	return learner.NewDAFA(newOracle(kind), learner.Root{C: learner.RootBalanced})
}

// play returns the expected regret of rounds of this world, with rounds learned early or not. With a slow learner
// that one learns all feedback as if nothing else was in the log.
func (c clicks) play(t testing.TB, kind string, early bool, seed uint64, rounds int,
	slow *learner.DAFA) (regret float64, l *learner.DAFA) {
	const window = 2000
	rng := rand.New(rand.NewPCG(seed, 1))
	var theta [5][6]float64
	for a := range theta {
		for j := range theta[a] {
			theta[a][j] = rng.NormFloat64()
		}
		theta[a][0] /= 4
	}
	rules := &Rules{Actions: []string{"a", "b", "c", "d", "e"}, MaxActions: 5, Range: Range{Max: 1},
		Window: Window{Nanos: window * 1e9}, Impute: true, DefaultLoss: 1}
	if c.rounds {
		rules.Window = Window{Rounds: window}
	}
	l = newLearner(kind)
	if early {
		rules.Provisional = &Provisional{Silence: 1}
		l.Early(newOracle(kind))
	}
	replica := NewReplica()
	if err := replica.Begin(Epoch{Number: 1, Rules: rules, Learner: l}); err != nil {
		t.Fatal(err)
	}
	decider := NewDecider(replica, []byte("seed"), "clicks", 0, 100)
	joiner := NewJoiner(1, codec.Limits{Heart: Heart, Pending: 1 << 40, Dedup: 10}, 1,
		func(int64) *Rules { return rules })
	due := make(map[int][]OutcomeEvent)
	var d codec.Decision
	var ready Ready
	var raw []byte
	finals, told := int64(0), []int64{0} // feedback, also by N
	slowReplica := NewReplica()
	if slow != nil {
		plain := *rules
		plain.Provisional = nil
		if err := slowReplica.Begin(Epoch{Number: 1, Rules: &plain, Learner: slow}); err != nil {
			t.Fatal(err)
		}
	}
	offset := int64(0)
	for i := range rounds {
		var x [6]float64
		x[0] = 1
		for j := 1; j < 6; j++ {
			x[j] = 2*rng.Float64() - 1
		}
		raw = fmt.Appendf(raw[:0], `{"id":"r%d","features":{"f":%v,"g":%v,"h":%v,"i":%v,"j":%v}}`, i, x[1], x[2], x[3],
			x[4], x[5])
		if v := decider.Decide(&d, raw, "", Source{Offset: RequestSource}); v.Verdict != Decided {
			t.Fatal(v.Err)
		}
		shift := 0
		if c.rotate > 0 {
			shift = i / c.rotate
		}
		var rate [5]float64
		best := 0.0
		for a := range rate {
			s := 0.0
			for j, v := range theta[(a+shift)%5] {
				s += v * x[j]
			}
			rate[a] = c.low + (c.high-c.low)*min(1, max(0, .5+s/2))
			best = max(best, rate[a])
		}
		for a, p := range d.Propensities {
			regret += p * (best - rate[a])
		}
		after := i + 1 + int(c.median*math.Exp(1.2*rng.NormFloat64()))
		if rng.Float64() < rate[d.Action] && after-i <= window {
			due[after] = append(due[after], OutcomeEvent{O: codec.Outcome{ID: fmt.Sprint("r", i), Kind: codec.Loss}})
		}
		now := int64(i+1) * 1e9
		e := DecisionEvent{Offset: int64(i), Time: now, D: d}
		e.D.Context = bytes.Clone(raw)
		cut := &codec.Cut{Cut: joiner.LastCut() + 1, Time: now, Decisions: []codec.Range{{Next: int64(i) + 1}}}
		batches := []Batch{{Decisions: []DecisionEvent{e}}}
		if came := due[i+1]; came != nil {
			for k := range came {
				came[k].Offset, came[k].Time = offset, now
				offset++
			}
			cut.Outcomes = []codec.Range{{Next: offset}}
			batches = append(batches, Batch{Outcomes: came})
			delete(due, i+1)
		}
		if err := joiner.Take(cut, batches); err != nil {
			t.Fatal(err)
		}
		joiner.Ready(&ready)
		for k := range ready.Feedback {
			f := &ready.Feedback[k]
			if err := replica.Learn(f, nil); err != nil {
				t.Fatal(err)
			}
			if f.Stage == 0 {
				finals++
			}
			if told = append(told, finals); f.Stage == 0 && slow != nil {
				g := *f
				g.N, g.LearnedThrough = finals, told[f.LearnedThrough]
				if err := slowReplica.Learn(&g, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return regret, l
}

// TestEarlyPays: provisional losses save most of what waiting for silence costs, and never cost anything that shows.
func TestEarlyPays(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	seeds := 2
	if os.Getenv("HINDSIGHT_LONG") != "" {
		seeds = 8
	}
	for i, w := range []struct {
		kind string
		clicks
		gain float64 // at least, of the regret; 0: none, and no harm
	}{
		{"auto", clicks{low: .02, high: .1, median: 100}, .12},
		{"auto", clicks{low: .3, high: .5, median: 100}, .28},
		{"auto", clicks{low: .3, high: .5, median: 100, rounds: true}, .2},
		{"linear", clicks{low: .02, high: .1, median: 100}, .12},
		{"linear", clicks{low: .3, high: .5, median: 100}, .12},
		{"linear", clicks{low: .02, high: .1, median: 400}, 0},
		{"linear", clicks{low: .3, high: .5, median: 600}, 0},
		{"linear", clicks{low: .02, high: .1, median: 100, rotate: 5000}, 0},
		{"auto", clicks{low: .02, high: .1, median: 100, rotate: 5000}, 0},
		{"auto", clicks{low: .3, high: .5, median: 600}, 0},
		{"diagonal", clicks{low: .02, high: .1, median: 100}, 0},
		{"diagonal", clicks{low: .3, high: .5, median: 100}, 0},
		{"diagonal", clicks{low: .3, high: .5, median: 600}, 0},
	} {
		if w.gain == 0 && seeds < 8 || !daily.Turn(t, i, 2) {
			continue
		}
		n, waits, sum, squares := float64(seeds), 0.0, 0.0, 0.0
		for seed := range seeds {
			wait, _ := w.play(t, w.kind, false, uint64(seed), 20_000, nil)
			early, _ := w.play(t, w.kind, true, uint64(seed), 20_000, nil)
			waits, sum, squares = waits+wait, sum+early-wait, squares+(early-wait)*(early-wait)
		}
		mean := sum / n
		se := math.Sqrt(max(0, squares/n-mean*mean) / (n - 1))
		t.Logf("%-8s %v: waiting %.0f, early %+.0f ± %.0f (%+.1f %%)", w.kind, w.clicks, waits/n, mean, se,
			100*sum/waits)
		if sum > -w.gain*waits || w.gain == 0 && mean > 2*se {
			t.Errorf("%s %v: %+.1f %% of the regret, want at most %+.0f", w.kind, w.clicks, 100*sum/waits, -100*w.gain)
		}
	}
}

// TestSlowState: feedback alone decides the slow state, to the bit, and what it says of regret.
func TestSlowState(t *testing.T) {
	for _, kind := range []string{"linear", "auto", "diagonal"} {
		slow := newLearner(kind)
		_, l := clicks{low: .3, high: .5, median: 100}.play(t, kind, true, 1, 4000, slow)
		got, err := l.Oracle().AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		want, err := slow.Oracle().AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		a, b := l.Certificate(), slow.Certificate()
		if a.Drift < b.Drift { // the law was that of another state even where nothing was outstanding
			t.Errorf("%s: the drift is %v, without a fast state %v", kind, a.Drift, b.Drift)
		}
		if b.Drift = a.Drift; !bytes.Equal(got, want) || a != b || l.Provisional() == 0 || a.Learned < 1000 {
			t.Errorf("%s: the slow state differs: %+v, want %+v; %d provisional", kind, a, b, l.Provisional())
		}
	}
}
