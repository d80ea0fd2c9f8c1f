package oracle_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"hindsight/internal/testkit/daily"
	"hindsight/pkg/oracle"
	"hindsight/pkg/oracle/oracletest"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// turns takes turns among the places in which a snapshot is damaged, for kinds of oracles whose states have what
// those of others have, in which all are.
func turns(t *testing.T) func(i int) bool {
	return func(i int) bool { return daily.Turn(t, i, 6) }
}

func TestLinearContract(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	for i, o := range []oracle.LinearOptions{
		{},
		{Beta: 0.5, Lambda: 1.7},
		{Beta: 1, MaxFeatures: 4, MaxActions: 3},
		{Beta: 0.5, Schema: []oracle.FeatureSpec{{Name: "x1", Lo: -2, Hi: 2}}},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			options := oracletest.Options{Reference: func() oracle.Regressor { return newSlowLinear(o) }}
			if i > 0 {
				options.Part = turns(t)
			}
			oracletest.Test(t, func() oracle.Regressor { return must(oracle.NewLinear(o)) }, options)
		})
	}
	for name, input := range map[string]func(rng *rand.Rand) *oracle.Input{
		"numbers": oracletest.Input, "action features": withActionFeatures} {
		o := oracle.LinearOptions{Beta: 0.5, Fourier: 6, Seed: 5, Columns: 30, Bandwidth: 0.7, MaxFeatures: 14}
		t.Run("random features/"+name, func(t *testing.T) {
			oracletest.Test(t, func() oracle.Regressor { return must(oracle.NewLinear(o)) },
				oracletest.Options{Input: input, Rounds: 30,
					Reference: func() oracle.Regressor { return newSlowLinear(o) }})
		})
	}
	t.Run("forgetting", func(t *testing.T) { // TestLinearForgets compares it with another implementation
		oracletest.Test(t, func() oracle.Regressor {
			return must(oracle.NewLinear(oracle.LinearOptions{Beta: 0.5, Forget: 0.99, MaxFeatures: 20}))
		}, oracletest.Options{Rounds: 150})
	})
	for _, o := range []oracle.LinearOptions{{Beta: 0.5, MaxFeatures: 14, Version: 2},
		{Beta: 0.5, Fourier: 6, Forget: 0.99, MaxFeatures: 14, MaxActions: 3, Version: 2}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			oracletest.Test(t, func() oracle.Regressor {
				return must(oracle.NewLinear(o))
			}, oracletest.Options{Input: withActionFeatures, Part: turns(t)})
		})
	}
	t.Run("sparse", func(t *testing.T) {
		oracletest.Test(t, func() oracle.Regressor { return must(oracle.NewLinear(oracle.LinearOptions{Beta: 0.5})) },
			oracletest.Options{Input: categories, Rounds: 150, Part: turns(t), Reference: func() oracle.Regressor {
				return newSlowLinear(oracle.LinearOptions{Beta: 0.5})
			}})
	})
	t.Run("action features", func(t *testing.T) {
		oracletest.Test(t, func() oracle.Regressor { return must(oracle.NewLinear(oracle.LinearOptions{Beta: 0.5})) },
			oracletest.Options{Input: withActionFeatures, Rounds: 150, Part: turns(t),
				Reference: func() oracle.Regressor {
					return newSlowLinear(oracle.LinearOptions{Beta: 0.5})
				}})
	})
}

// TestHedgeContract: the reference keeps no weights, only losses, and takes its
// exponentials from package math.
func TestHedgeContract(t *testing.T) {
	features, actions := []string{"x0", "x1", "flag", "kind=A"}, []string{"a", "b", "c", "d", "e"}
	rng := rand.New(rand.NewPCG(1, 1))
	w := make([][][]float64, 25)
	prior := make([]float64, len(w))
	for i := range w {
		prior[i] = 1 + rng.Float64()
		for range actions {
			row := make([]float64, len(features)+1)
			for j := range row {
				row[j] = 2*rng.Float64() - 1
			}
			w[i] = append(w[i], row)
		}
	}
	for _, o := range []oracle.HedgeOptions{{}, {Eta: oracle.PaperEta}, {Prior: prior}, {Eta: 2, Unproved: true},
		{Vovk: true, Unproved: true}, {Vovk: true, Eta: 1, Prior: prior, Unproved: true}} {
		for name, fresh := range map[string]func() oracle.Class{
			"linear":   func() oracle.Class { return must(oracle.NewLinearClass(features, actions, w)) },
			"logistic": func() oracle.Class { return must(oracle.NewLogisticClass(features, actions, w)) },
		} {
			t.Run(fmt.Sprintf("%s/eta=%v,prior=%v,vovk=%v", name, o.Eta, o.Prior != nil, o.Vovk), func(t *testing.T) {
				oracletest.Test(t, func() oracle.Regressor { return must(oracle.NewHedge(fresh(), o)) },
					oracletest.Options{Reference: func() oracle.Regressor { return &slowHedge{class: fresh(), o: o} }})
			})
		}
	}
}

type slowHedge struct {
	class oracle.Class
	o     oracle.HedgeOptions
	loss  []float64
	oracle.Regressor
}

func (s *slowHedge) Predict(dst []float64, x *oracle.Input) {
	f := make([]float64, s.class.Size())
	eta := s.o.Eta
	if eta == 0 {
		eta = 0.5
		if s.o.Vovk {
			eta = 2
		}
	}
	for a := range x.Actions {
		s.class.Eval(f, x, a)
		top, bottom := 0.0, 0.0
		var g [2]float64 // Σ w·exp(−η(f−y)²) for y = 0 and 1
		for i := range f {
			w := 1.0
			if s.o.Prior != nil {
				w = s.o.Prior[i]
			}
			if s.loss != nil {
				w *= math.Exp(-eta * s.loss[i])
			}
			top += w * f[i]
			bottom += w
			for y := range g {
				g[y] += w * math.Exp(-eta*(f[i]-float64(y))*(f[i]-float64(y)))
			}
		}
		dst[a] = top / bottom
		if s.o.Vovk {
			dst[a] = (1 + math.Log(g[1]/g[0])/eta) / 2
		}
	}
}

func (s *slowHedge) Update(x *oracle.Input, a int, y float64) {
	f := make([]float64, s.class.Size())
	if s.loss == nil {
		s.loss = make([]float64, len(f))
	}
	s.class.Eval(f, x, a)
	for i := range f {
		s.loss[i] += (f[i] - y) * (f[i] - y)
	}
}

// categories makes inputs whose columns are mostly zero.
func categories(rng *rand.Rand) *oracle.Input {
	x := oracletest.Input(rng)
	for j := range 3 {
		x.Features = append(x.Features, oracle.Feature{Name: fmt.Sprint("c", j), Kind: oracle.Text,
			Text: fmt.Sprint(rng.IntN(20))})
	}
	return x
}

func withActionFeatures(rng *rand.Rand) *oracle.Input {
	x := oracletest.Input(rng)
	if rng.IntN(2) == 0 {
		x = categories(rng)
	}
	for a := range x.Actions {
		if rng.IntN(3) > 0 {
			x.Actions[a].Features = append(x.Actions[a].Features,
				oracle.Feature{Name: "x1", Kind: oracle.Number, Value: rng.Float64()},
				oracle.Feature{Name: "brand", Kind: oracle.Text, Text: fmt.Sprint(rng.IntN(4))})
		}
	}
	return x
}

// slowLinear is the linear oracle by the book: it keeps every example with its z,
// and solves (λI + Σzzᵀ) w = Σzy anew for each question.
type slowLinear struct {
	o         oracle.LinearOptions
	columns   map[string]int
	stats     map[string][]float64 // clipped values seen
	zs        map[string][]map[int]float64
	ys        map[string][]float64
	total, ny float64
	named     []string // what is hashed of each column, from column 1
	oracle.Regressor
}

func newSlowLinear(o oracle.LinearOptions) *slowLinear {
	if o.Lambda == 0 {
		o.Lambda = 1
	}
	if o.MaxFeatures == 0 {
		o.MaxFeatures = 256
	}
	if o.MaxActions == 0 {
		o.MaxActions = 1 << 30
	}
	return &slowLinear{o: o, columns: map[string]int{}, stats: map[string][]float64{},
		zs: map[string][]map[int]float64{}, ys: map[string][]float64{}}
}

func key(scope string, f oracle.Feature) string {
	if f.Kind == oracle.Text {
		return fmt.Sprintf("%s %d %q %q", scope, f.Kind, f.Name, f.Text)
	}
	return fmt.Sprintf("%s %d %q", scope, f.Kind, f.Name)
}

func moments(v []float64) (mean, sd float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		sd += (x - mean) * (x - mean) / float64(len(v))
	}
	return mean, math.Sqrt(sd)
}

func (s *slowLinear) z(x *oracle.Input, a int) map[int]float64 {
	z := map[int]float64{0: 1}
	put := func(scope string, fs []oracle.Feature) {
		for _, f := range fs {
			k := key(scope, f)
			c, ok := s.columns[k]
			if !ok {
				continue
			}
			switch f.Kind {
			case oracle.Text:
				z[c] = 1
			case oracle.Bool:
				z[c] = f.Value
			default:
				mean, sd := moments(s.stats[k])
				for _, spec := range s.o.Schema {
					if spec.Name == f.Name && scope == "context" {
						mean, sd = (spec.Lo+spec.Hi)/2, (spec.Hi-spec.Lo)/math.Sqrt(12)
					}
				}
				if sd > 1e-12 {
					z[c] = math.Max(-5, math.Min(5, (f.Value-mean)/sd))
				}
			}
		}
	}
	put("context", x.Features)
	put("action", x.Actions[a].Features)
	return z
}

func (s *slowLinear) Predict(dst []float64, x *oracle.Input) {
	for a := range x.Actions {
		name := x.Actions[a].Name
		if _, known := s.ys[name]; !known {
			dst[a] = 0
			if len(s.ys) == s.o.MaxActions {
				dst[a] = s.total / s.ny
			}
			continue
		}
		d := len(s.columns) + 1 + s.o.Fourier
		g := make([][]float64, d)
		for i := range g {
			g[i] = make([]float64, d+2) // right sides: Σzy, and z of the question
			g[i][i] = s.o.Lambda
		}
		for n, z := range s.zs[name] {
			for i, v := range z {
				g[i][d] += v * s.ys[name][n]
				for j, w := range z {
					g[i][j] += v * w
				}
			}
		}
		z := s.point(x, a)
		for i, v := range z {
			g[i][d+1] = v
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

// eliminate solves a positive definite system in place.
func eliminate(g [][]float64) {
	for i := range g {
		for j := range g {
			if j == i {
				continue
			}
			r := g[j][i] / g[i][i]
			for k := i; k < len(g[i]); k++ {
				g[j][k] -= r * g[i][k]
			}
		}
	}
	for i := range g {
		for k := len(g); k < len(g[i]); k++ {
			g[i][k] /= g[i][i]
		}
	}
}

func (s *slowLinear) Update(x *oracle.Input, a int, y float64) {
	s.total += y
	s.ny++
	learn := func(scope string, fs []oracle.Feature) {
		fs = append([]oracle.Feature(nil), fs...)
		sort.SliceStable(fs, func(i, j int) bool { return fs[i].Name < fs[j].Name })
		for _, f := range fs {
			k := key(scope, f)
			if _, ok := s.columns[k]; !ok {
				if len(s.columns) == s.o.MaxFeatures {
					continue
				}
				s.columns[k] = len(s.columns) + 1
			}
			v := f.Value
			if mean, sd := moments(s.stats[k]); len(s.stats[k]) > 50 && sd > 0 {
				v = math.Max(mean-5*sd, math.Min(mean+5*sd, v))
			}
			s.stats[k] = append(s.stats[k], v)
		}
	}
	learn("context", x.Features)
	learn("action", x.Actions[a].Features)
	s.name("context", x.Features)
	s.name("action", x.Actions[a].Features)
	name := x.Actions[a].Name
	if _, known := s.ys[name]; !known && len(s.ys) == s.o.MaxActions {
		return
	}
	s.zs[name] = append(s.zs[name], s.point(x, a))
	s.ys[name] = append(s.ys[name], y)
}

// point is what a regression takes: z, or with random features these behind the constant.
func (s *slowLinear) point(x *oracle.Input, a int) map[int]float64 {
	z, m := s.z(x, a), s.o.Fourier
	if m == 0 || len(s.columns) == 0 {
		return z
	}
	wide := s.o.Bandwidth * math.Sqrt(float64(max(len(s.columns)+1, s.o.Columns)))
	phi := map[int]float64{0: 1}
	for c, v := range z {
		if c > 0 {
			phi[m+c] = v
		}
	}
	for j, v := range s.cosines(s.o.Seed, m, z, wide) {
		phi[1+j] = v
	}
	return phi
}

// cosines are m random features of z.
func (s *slowLinear) cosines(seed uint64, m int, z map[int]float64, wide float64) (out []float64) {
	for j := range uint64(m) {
		sum := 2 * math.Pi * draw(seed, "\x00\x00\x00\x00", j)
		for i, text := range s.named {
			n := math.Sqrt(-2*math.Log(draw(seed, text, 2*j))) * math.Cos(2*math.Pi*draw(seed, text, 2*j+1))
			sum += z[i+1] * n / wide
		}
		out = append(out, math.Sqrt2*math.Cos(sum))
	}
	return out
}

// draw is the i-th number of what is hashed.
func draw(seed uint64, text string, i uint64) float64 {
	b := binary.BigEndian.AppendUint64([]byte("hindsight/fourier/1\x00"), seed)
	h := sha256.Sum256(append(b, text...))
	z := binary.BigEndian.Uint64(h[:]) + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return (float64(z>>12) + 0.5) / (1 << 52)
}

// name notes what is hashed of the columns that are new.
func (s *slowLinear) name(scope string, fs []oracle.Feature) {
	byColumn := map[int]string{}
	for _, f := range fs {
		c, ok := s.columns[key(scope, f)]
		if !ok || c <= len(s.named) {
			continue
		}
		where := byte(0)
		if scope == "action" {
			where = 1
		}
		text := string([]byte{where, byte(f.Kind), byte(len(f.Name))}) + f.Name
		if f.Kind != oracle.Text {
			f.Text = ""
		}
		byColumn[c] = text + string([]byte{byte(len(f.Text))}) + f.Text
	}
	for c := len(s.named) + 1; byColumn[c] != ""; c++ {
		s.named = append(s.named, byColumn[c])
	}
}
