package oracle_test

import (
	"fmt"
	"math"
	"math/bits"
	"testing"

	"hindsight/pkg/oracle"
	"hindsight/pkg/oracle/oracletest"
)

func TestSharedContract(t *testing.T) {
	rounds := 80
	if testing.Short() {
		rounds = 25
	}
	for _, o := range []oracle.SharedOptions{
		{Hashed: 24, MaxFeatures: 20},
		{Hashed: 32, Hybrid: true, Beta: 0.5, Lambda: 1.7, MaxFeatures: 20},
		{Hashed: 16, Hybrid: true, MaxFeatures: 4, Beta: 1},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			oracletest.Test(t, func() oracle.Regressor { return must(oracle.NewShared(o)) },
				oracletest.Options{Input: withActionFeatures, Rounds: rounds, Reference: func() oracle.Regressor {
					return newSlowShared(o)
				}})
		})
	}
}

// TestSharedContract2 holds the contract in version 2, of which no slow twin is there.
func TestSharedContract2(t *testing.T) {
	for _, hybrid := range []bool{false, true} {
		o := oracle.SharedOptions{Hashed: 24, Hybrid: hybrid, Beta: 0.5, MaxFeatures: 20, Version: 2}
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			oracletest.Test(t, func() oracle.Regressor { return must(oracle.NewShared(o)) },
				oracletest.Options{Input: withActionFeatures, Rounds: 200})
		})
	}
}

// slowShared keeps every example with its hashed z and solves the ridge equations anew for
// each question; its features are those of slowLinear.
type slowShared struct {
	*slowLinear
	o    oracle.SharedOptions
	keys map[int]uint64 // by column
	zs   [][]float64
	ys   []float64
}

func newSlowShared(o oracle.SharedOptions) *slowShared {
	if o.Lambda == 0 {
		o.Lambda = 1
	}
	return &slowShared{slowLinear: newSlowLinear(oracle.LinearOptions{MaxFeatures: o.MaxFeatures}), o: o,
		keys: map[int]uint64{0: 0}}
}

func mixed(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func hashed(h uint64, s string) uint64 {
	h ^= 14695981039346656037
	for _, c := range []byte(s) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return mixed(h)
}

func (s *slowShared) hashedZ(x *oracle.Input, a int) []float64 {
	out := make([]float64, s.o.Hashed)
	put := func(key uint64, v float64) {
		key = mixed(key + 0x9e3779b97f4a7c15)
		if i, _ := bits.Mul64(key<<1, uint64(len(out))); key>>63 == 1 {
			out[i] -= v
		} else {
			out[i] += v
		}
	}
	context := s.z(&oracle.Input{Features: x.Features, Actions: []oracle.Action{{}}}, 0)
	action := s.z(&oracle.Input{Actions: []oracle.Action{x.Actions[a]}}, 0)
	for c, v := range context {
		put(s.keys[c], v)
		for d, w := range action {
			if d != 0 {
				put(s.keys[c]+mixed(s.keys[d]), v*w)
			}
		}
		if s.o.Hybrid {
			put(s.keys[c]+mixed(hashed(1<<16, x.Actions[a].Name)), v)
		}
	}
	return out
}

func (s *slowShared) Predict(dst []float64, x *oracle.Input) {
	for a := range x.Actions {
		d, z := s.o.Hashed, s.hashedZ(x, a)
		g := make([][]float64, d)
		for i := range g {
			g[i] = make([]float64, d+2)
			g[i][i] = s.o.Lambda
			g[i][d+1] = z[i]
			for n, v := range s.zs {
				g[i][d] += v[i] * s.ys[n]
				for j := range d {
					g[i][j] += v[i] * v[j]
				}
			}
		}
		eliminate(g)
		m, u := 0.0, 0.0
		for i, v := range z {
			m += v * g[i][d]
			u += v * g[i][d+1]
		}
		dst[a] = math.Max(0, math.Min(1, m/(1+s.o.Beta*u)))
	}
}

func (s *slowShared) Update(x *oracle.Input, a int, y float64) {
	s.slowLinear.Update(x, a, y)
	for scope, fs := range [][]oracle.Feature{x.Features, x.Actions[a].Features} {
		for _, f := range fs {
			if f.Kind != oracle.Text {
				f.Text = ""
			}
			if c, ok := s.columns[key([]string{"context", "action"}[scope], f)]; ok {
				s.keys[c] = hashed(hashed(uint64(scope)<<8|uint64(f.Kind), f.Name), f.Text)
			}
		}
	}
	s.zs = append(s.zs, s.hashedZ(x, a))
	s.ys = append(s.ys, y)
}
