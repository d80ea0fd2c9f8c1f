package ledger

import (
	"math"
	"testing"
)

// golden are lower ends by confseq; testdata/golden.py prints them.
var golden = []struct {
	kind  string
	alpha float64
	n     int
	low   float64
}{
	{"bounded", 0.05, 100, 0.40147657333112508},
	{"bounded", 0.05, 1000, 0.46847943108810708},
	{"bounded", 0.05, 5000, 0.48384812696693147},
	{"bounded", 0.001, 100, 0.32432294533775663},
	{"bounded", 0.001, 1000, 0.45511506616036795},
	{"bounded", 0.001, 5000, 0.47776091581056113},
	{"rare", 0.05, 1000, 0.01301570078596101},
	{"rare", 0.05, 5000, 0.021770188998315083},
	{"rare", 0.001, 1000, 0.0037335127192492205},
	{"rare", 0.001, 5000, 0.018003922446938329},
	{"heavy", 0.05, 5000, 0.15936992512806092},
	{"heavy", 0.001, 5000, 0.17054996233772751},
	{"constant", 0.05, 100, 0.18984392055322025},
	{"constant", 0.05, 1000, 0.24398439205532202},
	{"constant", 0.05, 5000, 0.2487968784110644},
	{"constant", 0.001, 100, 0.11160346044465733},
	{"constant", 0.001, 1000, 0.23616034604446573},
	{"constant", 0.001, 5000, 0.24723206920889315},
}

// scores are the ones of testdata/golden.py, of time t = 1, 2, ….
var scores = map[string]func(t int) float64{
	"bounded": func(t int) float64 { return float64(t*7919%1000) / 1000 },
	"rare": func(t int) float64 {
		if t*7919%1000 < 30 {
			return 1
		}
		return 0
	},
	"heavy": func(t int) float64 {
		x := float64(t*104729%100) / 400
		if t*7919%1000 < 30 {
			x += 9.5
		}
		return x
	},
	"constant": func(int) float64 { return 0.25 },
}

func TestSequenceIsThatOfConfseq(t *testing.T) {
	for _, g := range golden {
		var s Sequence
		level := Level(g.alpha)
		for i := 1; i <= g.n; i++ {
			s.Add(scores[g.kind](i), level)
		}
		if low := s.Low(level); !(math.Abs(low-g.low) <= 1e-9) {
			t.Errorf("%s, alpha %v, after %d scores: %.12f, confseq has %.12f", g.kind, g.alpha, g.n, low, g.low)
		}
	}
}
