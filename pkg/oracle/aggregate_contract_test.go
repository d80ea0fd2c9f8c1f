package oracle_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/oracle"
	"hindsight/pkg/oracle/oracletest"
)

func TestAggregateContract(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	const rounds = 100
	for i, o := range []oracle.AggregateOptions{
		{MaxFeatures: 20},
		{Beta: 0.5, Fourier: 16, Columns: 30, Seed: 5, MaxFeatures: 14},
		{Beta: 1, Fourier: 8, MaxFeatures: 4, MaxActions: 3, Steered: true},
	} {
		for name, input := range map[string]func(rng *rand.Rand) *oracle.Input{
			"numbers": oracletest.Input, "sparse": categories, "action features": withActionFeatures} {
			t.Run(fmt.Sprintf("%+v/%s", o, name), func(t *testing.T) {
				options := oracletest.Options{Input: input, Rounds: rounds,
					Reference: func() oracle.Regressor { return newSlowAggregate(o) }}
				if i > 0 {
					options.Part = turns(t)
				}
				oracletest.Test(t, func() oracle.Regressor { return must(oracle.NewAggregate(o)) }, options)
			})
		}
	}
}

// TestAggregateContract2 holds the contract in version 2, of which no slow twin is there.
func TestAggregateContract2(t *testing.T) {
	for _, o := range []oracle.AggregateOptions{
		{MaxFeatures: 20, Version: 2},
		{Beta: 0.5, Fourier: 16, Columns: 30, Seed: 5, MaxFeatures: 14, MaxActions: 3, Steered: true, Version: 2},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			oracletest.Test(t, func() oracle.Regressor { return must(oracle.NewAggregate(o)) },
				oracletest.Options{Input: withActionFeatures, Rounds: 200})
		})
	}
}

// slowAggregate is the aggregate by the book: full matrices, three passes, package
// math, and log-weights; its features are those of slowLinear.
type slowAggregate struct {
	*slowLinear
	o       oracle.AggregateOptions
	cores   map[string][]*slowCore
	logs    []float64
	r       float64 // of the duel
	members int
}

type slowCore struct {
	w []float64
	p [][]float64
}

func newSlowAggregate(o oracle.AggregateOptions) *slowAggregate {
	s := &slowAggregate{
		slowLinear: newSlowLinear(oracle.LinearOptions{MaxFeatures: o.MaxFeatures, MaxActions: o.MaxActions}),
		o:          o, cores: map[string][]*slowCore{}, members: 2, r: 0.5}
	if o.Fourier > 0 {
		s.members = 3
	}
	s.logs = make([]float64, s.members)
	return s
}

func (s *slowAggregate) lambda(member int) float64 {
	d := max(s.o.Columns, 1)
	if member == 2 {
		d += s.o.Fourier
	}
	return math.Max(1, float64(d)/20)
}

// phi returns the features of each member.
func (s *slowAggregate) phi(x *oracle.Input, a int) [][]float64 {
	z := make([]float64, len(s.columns)+1)
	for i, v := range s.z(x, a) {
		z[i] = v
	}
	out := [][]float64{z, z, z}
	if s.members < 3 || len(z) == 1 {
		return out
	}
	phi := s.cosines(s.o.Seed, s.o.Fourier, s.z(x, a), math.Sqrt(float64(max(len(z), s.o.Columns))))
	out[2] = append(phi, z...)
	return out
}

// core returns a core with as many columns as z has, λ as in P = I/λ. New columns come
// behind the old, so that the random features, which come first, never move.
func (s *slowAggregate) core(name string, member, d int) *slowCore {
	for len(s.cores[name]) < 3 {
		s.cores[name] = append(s.cores[name], &slowCore{})
	}
	c := s.cores[name][member]
	for i := len(c.w); i < d; i++ {
		c.w = append(c.w, 0)
		for j := range c.p {
			c.p[j] = append(c.p[j], 0)
		}
		c.p = append(c.p, make([]float64, i+1))
		c.p[i][i] = 1 / s.lambda(member)
	}
	return c
}

func (c *slowCore) mul(z []float64) []float64 {
	out := make([]float64, len(z))
	for i := range z {
		for j := range z {
			out[i] += c.p[i][j] * z[j]
		}
	}
	return out
}

func inner(a, b []float64) (s float64) {
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

// predictions returns the members' predictions.
func (s *slowAggregate) predictions(x *oracle.Input, a int) []float64 {
	phi, name := s.phi(x, a), x.Actions[a].Name
	d := float64(max(len(phi[0]), s.o.Columns))
	u := inner(phi[0], s.core(name, 0, len(phi[0])).mul(phi[0]))
	var f []float64
	for i := range s.members {
		z, c := phi[i], s.core(name, i, len(phi[i]))
		if i == 2 && len(z) == 1 {
			c = s.core(name, 0, 1)
		}
		f = append(f, math.Max(0, math.Min(1, inner(c.w, z)/(1+s.o.Beta*math.Min(1, 16/d)*u))))
	}
	return f
}

func (s *slowAggregate) weights() []float64 {
	q, sum := make([]float64, s.members), 0.0
	for i, l := range s.logs {
		q[i] = math.Exp(l)
		sum += q[i]
	}
	for i := range q {
		q[i] /= sum
	}
	return q
}

func (s *slowAggregate) Predict(dst []float64, x *oracle.Input) {
	for a := range x.Actions {
		_, known := s.ys[x.Actions[a].Name]
		switch {
		case known:
			dst[a] = inner(s.weights(), s.predictions(x, a))
		case len(s.ys) == s.slowLinear.o.MaxActions:
			dst[a] = s.total / s.ny
		default:
			dst[a] = 0
		}
	}
}

func (s *slowAggregate) Update(x *oracle.Input, a int, y float64) {
	name := x.Actions[a].Name
	s.slowLinear.Update(x, a, y)
	if _, known := s.ys[name]; !known {
		return
	}
	f, phi := s.predictions(x, a), s.phi(x, a)
	q := s.weights()
	sum := 0.0
	for i := range q {
		q[i] *= math.Exp(-(f[i] - y) * (f[i] - y) / 2)
		sum += q[i]
	}
	e1, e2 := s.r*math.Exp(-2*(f[0]-y)*(f[0]-y)), (1-s.r)*math.Exp(-2*(f[1]-y)*(f[1]-y))
	s.r = (1-1e-6)*e1/(e1+e2) + 1e-6/2
	alpha := 0.001
	if s.o.Steered {
		alpha *= math.Max(1-s.r, 0.001)
	}
	for i := range q {
		s.logs[i] = math.Log((1-alpha)*q[i]/sum + alpha/float64(s.members))
	}
	for i, rho := range []float64{1, 0.998, 1 - 0.002*(1-s.r)}[:s.members] {
		if i < 2 || len(phi[0]) > 1 {
			s.core(name, i, len(phi[i])).learn(phi[i], y, rho, s.lambda(i))
		}
	}
}

func (c *slowCore) learn(z []float64, y, rho, lambda float64) {
	scale := make([]float64, len(z))
	for i := range z {
		scale[i] = 1
		if rho < 1 {
			scale[i] = math.Min(1/math.Sqrt(rho), 1/math.Sqrt(lambda*c.p[i][i]))
		}
	}
	for i := range z {
		for j := range z {
			c.p[i][j] *= scale[i] * scale[j]
		}
	}
	k := c.mul(z)
	u, e := inner(k, z), y-inner(c.w, z)
	for i := range z {
		c.w[i] += k[i] * e / (1 + u)
		for j := range z {
			c.p[i][j] -= k[i] * k[j] / (1 + u)
		}
	}
}
