package world

import (
	"encoding/binary"
	"fmt"

	"hindsight/internal/random"
	"hindsight/pkg/oracle"
)

// unstable is the environment of the paper's lower bound (thm:lower-bound): T contexts that come in order, two actions,
// F = {f_1, …, f_T, f⋆} with f⋆(x, a1) ∈ {0, 1} by a fair coin, f⋆(x, a2) = 1 − f⋆(x, a1), and f_i equal to f⋆ at x_i
// and fair coins elsewhere. Its [unstableOracle] has regret 0 and no stability; the same rounds with Hedge-Vovk over F
// show that it is the oracle that fails.
type unstable struct {
	rounds int
	coins  random.Stream // (function, round·2 + action); function T is f⋆
}

// newUnstable returns the environment of a seed.
func newUnstable(seed uint64, rounds int, _ []float64) *World {
	u := &unstable{rounds, random.New(seed, "unstable")}
	w := newWorld(rounds, 2, "unstable")
	w.Features, w.mean = []string{"t"}, u.star
	w.value = func(t, _ int) float64 { return float64(t) } // the number of the round is all there is
	w.Oracle = func() (oracle.Regressor, error) { return &unstableOracle{env: u}, nil }
	return w
}

// newUnstableHedge returns the same with Hedge-Vovk over the class in place of the unstable oracle.
func newUnstableHedge(seed uint64, rounds int, _ []float64) *World {
	w := newUnstable(seed, rounds, nil)
	u := &unstable{rounds, random.New(seed, "unstable")}
	w.Name, w.OrderFree = "unstable-hedge", true
	w.Oracle = func() (oracle.Regressor, error) { return oracle.NewHedge(unstableClass{u}, oracle.HedgeOptions{}) }
	return w
}

// star returns f⋆(x_t, a).
func (e *unstable) star(t, a int) float64 {
	return float64(e.coins.Uint64(uint64(e.rounds), uint64(t))>>63 ^ uint64(a))
}

// of returns f_i(x_t, a), i and t counting from 0.
func (e *unstable) of(i, t, a int) float64 {
	if i == t || i == e.rounds {
		return e.star(t, a)
	}
	return float64(e.coins.Uint64(uint64(i), uint64(2*t+a)) >> 63)
}

// roundOf returns t of a context, 0 if it has none that is known.
func (e *unstable) roundOf(x *oracle.Input) int { return indexIn(x, "t", e.rounds) }

// unstableClass is F, evaluated where it is needed.
type unstableClass struct{ env *unstable }

func (c unstableClass) Size() int { return c.env.rounds + 1 }

func (c unstableClass) Eval(dst []float64, x *oracle.Input, action int) {
	t := c.env.roundOf(x)
	for i := range dst {
		dst[i] = c.env.of(i, t, action)
	}
}

// unstableOracle predicts by f_{n+1} after n rounds: by f_t, which knows f⋆(x_t) and nothing else, in the round t that
// follows t−1 learned ones. For that round it errs never, so R_T = 0; one round late it tosses coins.
type unstableOracle struct {
	env *unstable
	fed int64
}

func (o *unstableOracle) Predict(dst []float64, x *oracle.Input) {
	t := o.env.roundOf(x)
	for a := range dst {
		dst[a] = o.env.of(int(min(o.fed, int64(o.env.rounds-1))), t, a)
	}
}

func (o *unstableOracle) Update(*oracle.Input, int, float64) { o.fed++ }
func (o *unstableOracle) Regret() float64                    { return 0 }
func (o *unstableOracle) OrderFree() bool                    { return false }

// Proved says that Regret is a theorem's; there is no stability constant.
func (o *unstableOracle) Proved() bool  { return true }
func (o *unstableOracle) Beta() float64 { return 0 }

const unstableVersion = 1

func (o *unstableOracle) AppendBinary(b []byte) ([]byte, error) {
	return binary.LittleEndian.AppendUint64(append(b, unstableVersion), uint64(o.fed)), nil
}

func (o *unstableOracle) UnmarshalBinary(b []byte) error {
	if len(b) != 9 || b[0] != unstableVersion || int64(binary.LittleEndian.Uint64(b[1:])) < 0 {
		return fmt.Errorf("unstable: %w", oracle.ErrSnapshot)
	}
	o.fed = int64(binary.LittleEndian.Uint64(b[1:]))
	return nil
}
