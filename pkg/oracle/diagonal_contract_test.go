package oracle_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/oracle"
	"hindsight/pkg/oracle/oracletest"
)

const places = 24

// withTerms makes inputs with features of actions, terms of the context and, of most, terms of actions.
func withTerms(rng *rand.Rand) *oracle.Input {
	x := withActionFeatures(rng)
	if rng.IntN(4) > 0 {
		x.Terms = randomTerms(rng)
	}
	if rng.IntN(3) > 0 {
		for range x.Actions {
			x.ActionTerms = append(x.ActionTerms, randomTerms(rng))
		}
	}
	return x
}

func randomTerms(rng *rand.Rand) (terms []oracle.Term) {
	for _, at := range rng.Perm(places)[:rng.IntN(9)] {
		terms = append(terms, oracle.Term{Place: int32(at), Value: 2*rng.Float64() - 1})
	}
	return terms
}

func TestDiagonalContract(t *testing.T) {
	for i, o := range []oracle.DiagonalOptions{
		{Places: places},
		{Places: places, Beta: 0.5, Lambda: 1.7},
		{Places: places, Beta: 1, MaxFeatures: 4, MaxActions: 3},
		{Places: places, Beta: 0.5, Schema: []oracle.FeatureSpec{{Name: "x1", Lo: -2, Hi: 2}}},
	} {
		for name, input := range map[string]func(rng *rand.Rand) *oracle.Input{
			"numbers": oracletest.Input, "terms": withTerms} {
			t.Run(fmt.Sprintf("%+v/%s", o, name), func(t *testing.T) {
				options := oracletest.Options{Input: input, Rounds: 150,
					Reference: func() oracle.Regressor { return newSlowDiagonal(o) }}
				if i > 0 {
					options.Part = turns(t)
				}
				oracletest.Test(t, func() oracle.Regressor { return must(oracle.NewDiagonal(o)) }, options)
			})
		}
	}
	t.Run("newest", func(t *testing.T) { // the slow twin knows version 1 only
		oracletest.Test(t, func() oracle.Regressor {
			return must(oracle.NewDiagonal(oracle.DiagonalOptions{Places: places, Beta: 0.5, Version: oracle.Newest}))
		}, oracletest.Options{Input: withTerms, Part: turns(t)})
	})
}

// slowDiagonal is the diagonal filter by the book, with its weights under names; columns are those of
// slowLinear.
type slowDiagonal struct {
	*slowLinear
	o    oracle.DiagonalOptions
	w, v map[string]float64
}

func newSlowDiagonal(o oracle.DiagonalOptions) *slowDiagonal {
	if o.Lambda == 0 {
		o.Lambda = 10
	}
	return &slowDiagonal{o: o, w: map[string]float64{}, v: map[string]float64{}, slowLinear: newSlowLinear(
		oracle.LinearOptions{MaxFeatures: o.MaxFeatures, MaxActions: o.MaxActions, Schema: o.Schema})}
}

// x returns the elements of an example by the names of their weights.
func (s *slowDiagonal) x(in *oracle.Input, a int) map[string]float64 {
	name, x := in.Actions[a].Name, map[string]float64{}
	for c, v := range s.z(in, a) {
		x[fmt.Sprint(name, " column ", c)] = v
	}
	for _, t := range in.Terms {
		x[fmt.Sprint(name, " place ", t.Place)] = t.Value
	}
	if in.ActionTerms != nil {
		for _, t := range in.ActionTerms[a] {
			x[fmt.Sprint("place ", t.Place)] = t.Value
		}
	}
	return x
}

func (s *slowDiagonal) at(x map[string]float64) (m, u float64) {
	for k, x := range x {
		if _, known := s.v[k]; !known {
			s.v[k] = 1 / s.o.Lambda
		}
		m += s.w[k] * x
		u += s.v[k] * x * x
	}
	return m, u
}

func (s *slowDiagonal) Predict(dst []float64, in *oracle.Input) {
	for a := range in.Actions {
		m, u := s.at(s.x(in, a))
		dst[a] = math.Max(0, math.Min(1, m/(1+s.o.Beta*u)))
		if _, known := s.ys[in.Actions[a].Name]; !known && len(s.ys) == s.slowLinear.o.MaxActions {
			dst[a] = s.total / s.ny
		}
	}
}

func (s *slowDiagonal) Update(in *oracle.Input, a int, y float64) {
	s.slowLinear.Update(in, a, y)
	if _, known := s.ys[in.Actions[a].Name]; !known {
		return
	}
	x := s.x(in, a)
	m, u := s.at(x)
	for k, x := range x {
		s.w[k] += s.v[k] * x * (y - m) / (1 + u)
		s.v[k] = 1 / (1/s.v[k] + x*x)
	}
}

// TestDiagonalGolden pins the bits of what is learned from terms: learners that were fed by them stand in logs.
func TestDiagonalGolden(t *testing.T) {
	h := sha256.New()
	for _, o := range []oracle.Regressor{
		must(oracle.NewDiagonal(oracle.DiagonalOptions{Places: places, Beta: 0.5, Version: 2})),
		must(oracle.NewAggregate(oracle.AggregateOptions{Beta: oracle.ByWhatComes, Fourier: 8, Seed: 1, Version: 2,
			Places: places})),
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			x := withTerms(rng)
			f := make([]float64, len(x.Actions))
			o.Predict(f, x)
			for _, v := range f {
				h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
			}
			o.Update(x, rng.IntN(len(x.Actions)), rng.Float64())
		}
		h.Write(must(o.AppendBinary(nil)))
	}
	if got := fmt.Sprintf("%x", h.Sum(nil)[:8]); got != "9d2a1311a1223897" {
		t.Errorf("predictions and states are %s", got)
	}
}
