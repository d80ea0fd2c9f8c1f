package oracle_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/oracle"
	"hindsight/pkg/oracle/oracletest"
)

// cells is a class of functions of the block and the action alone: of block b, f_i(a)
// is cell[i][a].
type cells [][]float64

func (c cells) Size() int { return len(c) }
func (c cells) Eval(dst []float64, x *oracle.Input, action int) {
	for i := range dst {
		dst[i] = c[i][x.Actions[action].Name[0]-'a']
	}
}

// product is the class of all combinations of factors, enumerated: the digits of a
// function's number, in base |F_1|, |F_2|, …, are its parts.
type product struct {
	of      func(x *oracle.Input) int
	factors []cells
}

func (p product) Size() int {
	n := 1
	for _, f := range p.factors {
		n *= len(f)
	}
	return n
}

func (p product) Eval(dst []float64, x *oracle.Input, action int) {
	block := p.of(x)
	for i := range dst {
		part := i
		for _, f := range p.factors[:block] {
			part /= len(f)
		}
		dst[i] = p.factors[block][part%len(p.factors[block])][x.Actions[action].Name[0]-'a']
	}
}

func blockOf(x *oracle.Input) int { return int(x.Features[0].Value) }

// someFactors are three blocks of 2, 3 and 4 functions of two actions: 24 products.
func someFactors() (all []cells, factors []oracle.Class) {
	rng := rand.New(rand.NewPCG(4, 4))
	for b := range 3 {
		var c cells
		for range b + 2 {
			c = append(c, []float64{rng.Float64(), rng.Float64()})
		}
		all, factors = append(all, c), append(factors, c)
	}
	return all, factors
}

func blockInput(rng *rand.Rand) *oracle.Input {
	return &oracle.Input{Features: []oracle.Feature{{Name: "block", Kind: oracle.Number, Value: float64(rng.IntN(3))}},
		Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}
}

// TestFactoredContract holds that one Hedge a block predicts what Hedge over all
// products does, of which no more than these 24 are enumerated.
func TestFactoredContract(t *testing.T) {
	all, factors := someFactors()
	for _, eta := range []float64{oracle.DefaultEta, oracle.PaperEta} {
		oracletest.Test(t, func() oracle.Regressor {
			return must(oracle.NewFactored(blockOf, factors, oracle.HedgeOptions{Eta: eta}))
		},
			oracletest.Options{Input: blockInput, Tolerance: 1e-12, Reference: func() oracle.Regressor {
				return must(oracle.NewHedge(product{blockOf, all}, oracle.HedgeOptions{Eta: eta}))
			}})
	}
}

// TestFactoredConstants holds that logarithms add up: log(2·3·4).
func TestFactoredConstants(t *testing.T) {
	all, factors := someFactors()
	f := must(oracle.NewFactored(blockOf, factors, oracle.HedgeOptions{}))
	h := must(oracle.NewHedge(product{blockOf, all}, oracle.HedgeOptions{}))
	if math.Abs(f.Regret()-h.Regret()) > 1e-12 || math.Abs(f.Beta()-h.Beta()) > 1e-12 || !f.Proved() {
		t.Errorf("R = %v and %v, β = %v and %v", f.Regret(), h.Regret(), f.Beta(), h.Beta())
	}
	if _, err := oracle.NewFactored(blockOf, nil, oracle.HedgeOptions{}); err == nil {
		t.Error("no factors are accepted")
	}
}
