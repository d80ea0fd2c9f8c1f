package replay

import (
	"hindsight/pkg/codec"
)

// Environment is a sequence of rounds that knows what every action is worth.
// Its methods are pure functions of the round t = 0 … Len()−1 and safe for
// concurrent use.
type Environment interface {
	// Name says which environment this is, with its parameters.
	Name() string
	// Len returns the number of rounds.
	Len() int
	// Actions returns the names of the K actions, in the order of action indices;
	// the caller must not change them.
	Actions() []string
	// Columns returns the number d of expanded feature columns, the constant
	// included.
	Columns() int
	// Context sets dst to the context of round t, without an id, reusing its memory.
	Context(dst *codec.Context, t int)
	// Truth sets dst[a] to the expected loss of action a in round t, and reports
	// whether it is known; len(dst) = K.
	Truth(dst []float64, t int) bool
	// Loss returns the loss in [0,1] that action a has in round t.
	Loss(t, a int) float64
}

// Order returns env with its rounds in row order i: order 0 is its own, order
// i > 0 a shuffle that depends on seed and i.
func Order(env Environment, i int, seed uint64) Environment {
	if i == 0 {
		return env
	}
	switch e := env.(type) { // what a round's place decides stays with the place
	case *permuted:
		return &permuted{Order(e.Environment, i, seed), e.share, e.of}
	case *noisy:
		return &noisy{Order(e.Environment, i, seed), e.high, e.low, e.losses}
	}
	return &ordered{env, NewStream(seed, "order "+itoa(i)).shuffle(env.Len())}
}

type ordered struct {
	Environment
	rows []int32
}

func (o *ordered) Context(dst *codec.Context, t int) { o.Environment.Context(dst, int(o.rows[t])) }
func (o *ordered) Truth(dst []float64, t int) bool   { return o.Environment.Truth(dst, int(o.rows[t])) }
func (o *ordered) Loss(t, a int) float64             { return o.Environment.Loss(int(o.rows[t]), a) }

// Head returns the first n rounds of env; all of them if n ≤ 0 or there are fewer.
func Head(env Environment, n int) Environment {
	if n <= 0 || n >= env.Len() {
		return env
	}
	return &head{env, n}
}

type head struct {
	Environment
	n int
}

func (h *head) Len() int { return h.n }

// Reference returns the mean expected loss of the uniform policy and of the best
// one, which plays argmin_a f⋆(x,a) in every round; known is false where the
// truth is not known.
func Reference(env Environment) (uniform, best float64, known bool) {
	f := make([]float64, len(env.Actions()))
	for t := range env.Len() {
		if !env.Truth(f, t) {
			return 0, 0, false
		}
		sum, low := 0.0, f[0]
		for _, v := range f {
			sum += v
			low = min(low, v)
		}
		uniform += sum / float64(len(f))
		best += low
	}
	n := float64(max(env.Len(), 1))
	return uniform / n, best / n, true
}

// Regret returns Σ_a p(a)·f⋆(a) − min f⋆ of one round.
func Regret(p, truth []float64) float64 {
	sum, low := 0.0, truth[0]
	for a, v := range truth {
		sum += float64(p[a] * v)
		low = min(low, v)
	}
	return sum - low
}

// Entry describes one environment, delay or learner for people.
type Entry struct {
	Name    string `json:"name"`
	Params  string `json:"params"` // as written behind the name; "" if none
	Meaning string `json:"meaning"`
}

// Environments lists the environments.
func Environments() []Entry {
	var out []Entry
	for _, b := range builtins() {
		out = append(out, b.Entry)
	}
	return append(out,
		Entry{"multiclass", "FILE", "a labelled CSV as a bandit: loss 0 for the label, 1 for the rest (--data; " +
			"label first, n_ numbers, c_ categories)"},
		Entry{"log", "LOG", "a log of decisions in any format, or the topics of a live system (--data; for CSV " +
			"--action-column and others, or --mapping)"})
}
