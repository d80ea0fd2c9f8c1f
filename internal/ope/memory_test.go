package ope

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"hindsight/pkg/oracle"
)

// watched is a memory that was there before, and looks at the heap as a judgement goes on.
type watched struct {
	room  []float64
	drops int
	most  uint64
}

func (m *watched) Floats(n int) ([]float64, func(), error) { return m.room[:n], func() {}, nil }

func (m *watched) Drop() {
	if m.drops++; m.drops%5 == 1 {
		m.most = max(m.most, liveHeap())
	}
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// someSample is n rows, in memory that is watched.
func someSample(n int) (*Sample, *watched) {
	w := &watched{room: make([]float64, lookFloats*n)}
	s := &Sample{Actions: 3, Memory: w}
	for t := range n {
		s.Action = append(s.Action, int32(t%3))
		s.Propensity = append(s.Propensity, 1./3)
		s.Reward = append(s.Reward, float64(t%7)/7)
		s.Events = append(s.Events, float64(1+t%2))
	}
	return s, w
}

// TestJudgementMemoryIsConstant: beside the sample the heap holds the terms of one block,
// whatever the rows are. Planted: some bytes a row.
func TestJudgementMemoryIsConstant(t *testing.T) {
	if testing.Short() {
		t.Skip("counts bytes of the heap")
	}
	s, w := someSample(4 * blockRows)
	all, actions := []int32{0, 1, 2}, make([]oracle.Action, 3)
	var x [1]oracle.Feature
	s.Context = func(in *oracle.Input, t int) []int32 {
		x[0] = oracle.Feature{Name: "x", Kind: oracle.Number, Value: float64(t % 7)}
		*in = oracle.Input{Features: x[:], Actions: actions}
		return all
	}
	o := Defaults()
	o.Bootstrap, o.Model.Folds = 2, 2
	for _, planted := range []bool{false, true} {
		w.most = 0
		before := liveHeap()
		var leaked [][]byte
		law := func(dst []float64, _ int) {
			dst[0], dst[1] = .5, .5
			if planted {
				leaked = append(leaked, make([]byte, 16))
			}
		}
		if e, err := Evaluate(s, "half", law, o); err != nil || e.RewardModel != "ridge" {
			t.Fatal(e, err)
		}
		runtime.KeepAlive(leaked)
		const block, slack = blockRows * 64, 2 << 20 // what append has room for, too
		held := int64(w.most) - int64(before)
		t.Logf("planted %v: %d bytes", planted, held)
		if (held > block+slack) != planted {
			t.Errorf("planted %v: %d bytes beside %d rows", planted, held, s.Len())
		}
	}
}

// TestBinomial compares the draws' mean and variance with the law's, and holds the ends.
func TestBinomial(t *testing.T) {
	rng := rand.NewPCG(1, 2)
	for _, c := range []struct {
		n int
		p float64
	}{{1, .5}, {10, .3}, {200, .499}, {1000, 1. / 3}, {64, .999}, {5, 0}} {
		const draws = 20_000
		sum, square := 0.0, 0.0
		for range draws {
			k := binomial(rng, c.n, c.p)
			if k < 0 || k > c.n {
				t.Fatalf("%d of %d", k, c.n)
			}
			sum += float64(k)
			square += float64(k) * float64(k)
		}
		mean := sum / draws
		variance := square/draws - mean*mean
		want, spread := float64(c.n)*c.p, float64(c.n)*c.p*(1-c.p)
		if math.Abs(mean-want) > 5*math.Sqrt(spread/draws) || math.Abs(variance-spread) > .08*spread {
			t.Errorf("n = %d, p = %v: mean %v and variance %v, want %v and %v", c.n, c.p, mean, variance, want, spread)
		}
	}
}

// TestBinomialAgain: what a seed draws stays what it is, or figures of the same log change.
func TestBinomialAgain(t *testing.T) {
	rng := rand.NewPCG(1, 2)
	if k := [3]int{binomial(rng, 64, .5), binomial(rng, 128, .5), binomial(rng, 1000, .3)}; k != [3]int{31, 69, 304} {
		t.Errorf("%d", k)
	}
}

// TestOneBlock: as many rows as a block has are read once.
func TestOneBlock(t *testing.T) {
	read, done := 0, 0
	r := resampling{row: func(int) terms { read++; return terms{} }, done: func() { done++ }, rng: rand.NewPCG(1, 2),
		sums: make([]terms, 1)}
	r.draw(0, blockRows, []int{1})
	if read != blockRows || done != 1 {
		t.Errorf("%d rows in %d blocks", read, done)
	}
	// One more is read in halves, of which each gets half of the draws, or nearly so.
	r.sums[0] = terms{}
	r.row = func(t int) (x terms) {
		if x.c = 1; t <= blockRows/2 {
			x.w = 1
		}
		return x
	}
	if r.draw(0, blockRows+1, []int{1000}); done != 3 || r.sums[0].c != 1000 || math.Abs(r.sums[0].w-500) > 80 {
		t.Errorf("%v of %v draws are of the first half, of %d blocks", r.sums[0].w, r.sums[0].c, done)
	}
}

// TestBlocksOfABootstrap: samples over several blocks have the spread of their estimate.
func TestBlocksOfABootstrap(t *testing.T) {
	if testing.Short() {
		t.Skip("draws 8 million rows")
	}
	s, _ := someSample(2*blockRows + 100)
	s.Memory, s.Events = nil, nil
	o := Defaults()
	o.Bootstrap = 60
	e, err := Evaluate(s, "logging", nil, o)
	if err != nil {
		t.Fatal(err)
	}
	ips := e.Estimates.Get("ips")
	half := float64(ips.Bootstrap.High-ips.Bootstrap.Low) / 2
	if r := half / (normal95 * float64(ips.SE)); !(r > .6 && r < 1.4) || ips.Bootstrap.Low > ips.Value ||
		ips.Bootstrap.High < ips.Value {
		t.Errorf("bootstrap %v, normal %v to %v", ips.Bootstrap, ips.Low, ips.High)
	}
}

// TestRidgesHaveRoom: regressions of all folds are of as many actions as have room, and of no more.
func TestRidgesHaveRoom(t *testing.T) {
	const actions, folds = 4000, 3
	r, err := newRidges(&Sample{Actions: actions}, Range{0, 1}, make([]float64, actions*folds))
	if err != nil {
		t.Fatal(err)
	}
	each := oracle.LinearBytes(1, ridgeColumns+1) * folds
	if n := float64(len(r.names)); n*each > ridgeBytes || (n+1)*each <= ridgeBytes || len(r.of) != folds {
		t.Errorf("%v actions of %v bytes", n, each)
	}
}
