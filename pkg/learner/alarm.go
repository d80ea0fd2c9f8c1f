package learner

import (
	"fmt"
	"math"

	"hindsight/pkg/oracle"
)

const (
	rivals       = 3
	rivalColumns = 32  // most columns of the regressions, the constant left out
	rivalActions = 256 // most actions that they learn
	rivalFrom    = 5   // examples of an action before they are asked
)

// lambdas are the rates at which E2 bets on a function's losses being too large, and as many on their being too small.
var lambdas = [4]float64{.1, .2, .4, .8}

// alarm bets against every function of a class at once (docs/algorithms.md, 2.1):
//
//	E_f = (1−ε)·½(E1_f + E2_f) + ε·M_f
//	E1_f = mean_j exp(2(L_f − L_{g_j})) over predictable rivals g_j:
//	  f̂ + the action's mean residual, f̂ + a ridge of its residuals, a ridge of its losses
//	E2_f = mean_{a,λ} exp(λ·Z_{f,a} − λ²·n_a/8),  Z_{f,a} = Σ_{s: a_s=a} (y_s − f(z_s))
//
// and is raised, for good, when each f had E_f ≥ 1/α at some look. E_f of a few functions is computed at every look: as
// long as one that was not refuted before still is not, the others need not be asked.
type alarm struct {
	names  []string       // of the class's actions; nil: all count as one
	number map[string]int // their indices

	alarmSums
	resid, plain *oracle.Linear

	one    oracle.Input // scratch: an input with the played action alone
	answer [1]float64
}

// alarmSums is the state of the alarm but for the regressions.
type alarmSums struct {
	raised  int64           // place in the log of the round at which it was; 0: it is not
	rival   [rivals]float64 // L_{g_j}
	played  []int64         // n_a
	bias    []float64       // Σ (y − f̂) of the action
	z       [][]float64     // Z_{f,a}: [action][function left]
	refuted []bool          // by function left
}

func newAlarm(class oracle.Class, size int) (*alarm, error) {
	a := &alarm{number: map[string]int{}}
	if c, ok := class.(interface{ Actions() []string }); ok {
		a.names = c.Actions()
	}
	k := max(len(a.names), 1)
	for i, name := range a.names {
		a.number[name] = i
	}
	a.alarmSums = newAlarmSums(k, size)
	var err error
	if a.resid, err = newRival(k); err == nil {
		a.plain, err = newRival(k)
	}
	if err != nil {
		return nil, fmt.Errorf("alarm: %w", err)
	}
	return a, nil
}

func newRival(k int) (*oracle.Linear, error) {
	return oracle.NewLinear(oracle.LinearOptions{MaxFeatures: rivalColumns, MaxActions: min(k, rivalActions)})
}

func newAlarmSums(k, size int) alarmSums {
	s := alarmSums{played: make([]int64, k), bias: make([]float64, k), z: make([][]float64, k),
		refuted: make([]bool, size)}
	b := make([]float64, k*size)
	for a := range s.z {
		s.z[a] = b[a*size : (a+1)*size : (a+1)*size]
	}
	return s
}

// action returns the index of an action, -1 if the class does not know it.
func (a *alarm) action(position int, name string) int {
	if a.names == nil {
		return 0
	}
	if position < len(a.names) && a.names[position] == name {
		return position
	}
	if i, ok := a.number[name]; ok {
		return i
	}
	return -1
}

// observe takes a round: v are the values of the functions left at what was played, fhat their mixture.
func (a *alarm) observe(r *Round, v []float64, fhat float64) {
	k := a.action(r.Action, r.Input.Actions[r.Action].Name)
	if k < 0 {
		return // no function knows it: there is nothing to hold against them
	}
	z := a.z[k][:len(v)]
	for i, x := range v {
		z[i] += r.Loss - x
	}
	n := float64(a.played[k])
	a.one.Features, a.one.Vector, a.one.Actions = r.Input.Features, r.Input.Vector, r.Input.Actions[r.Action:r.Action+1]
	g := [rivals]float64{unit(fhat + a.bias[k]/(n+1)), fhat, fhat}
	if a.played[k] >= rivalFrom {
		a.resid.Predict(a.answer[:], &a.one)
		// It learns (1+residual)/2; its prior pulls towards -1, by about 1/(n+1).
		g[1] = unit(fhat + (float64(2*a.answer[0]) - 1 + 1/(n+1)))
		a.plain.Predict(a.answer[:], &a.one)
		g[2] = a.answer[0]
	}
	for j, x := range g {
		e := x - r.Loss
		a.rival[j] += float64(e * e)
	}
	a.resid.Update(&a.one, 0, unit((1+r.Loss-fhat)/2))
	a.plain.Update(&a.one, 0, r.Loss)
	a.bias[k] += r.Loss - fhat
	a.played[k]++
	a.one = oracle.Input{}
}

func unit(v float64) float64 { return math.Max(0, math.Min(v, 1)) }

// judge raises the alarm at place n of the log if every function is refuted. Those
// that are not left were refuted by M_f.
func (a *alarm) judge(n int64, loss []float64, alpha float64) {
	for i, done := range a.refuted {
		if done {
			continue
		}
		if (1-memberShare)*a.evidence(i, loss[i]) < 1/alpha {
			return
		}
		a.refuted[i] = true
	}
	a.raised = n
}

// least returns min_f ½(E1_f + E2_f) over the functions left that are not refuted; +Inf if there is none.
func (a *alarm) least(loss []float64) float64 {
	low := math.Inf(1)
	for i, done := range a.refuted {
		if !done {
			low = math.Min(low, a.evidence(i, loss[i]))
		}
	}
	return low
}

// evidence returns ½(E1_f + E2_f) of the i-th function left.
func (a *alarm) evidence(i int, loss float64) float64 {
	e1 := 0.0
	for _, l := range a.rival {
		e1 += wager(float64(2 * (loss - l)))
	}
	e2 := 0.0
	for k, n := range a.played {
		z, n := a.z[k][i], float64(n)
		for _, l := range lambdas {
			cost := float64(l*l) * n / 8
			e2 += wager(float64(l*z)-cost) + wager(-float64(l*z)-cost)
		}
	}
	return (e1/rivals + e2/float64(2*len(lambdas)*len(a.played))) / 2
}

// wager is e^x, without overflow, and 0 where it is too small to count.
func wager(x float64) float64 {
	switch {
	case x < -40:
		return 0
	case x > 600:
		x = 600
	}
	return oracle.Exp(x)
}

// move makes function i of those left the function to.
func (a *alarm) move(to, i int) {
	a.refuted[to] = a.refuted[i]
	for _, z := range a.z {
		z[to] = z[i]
	}
}

// cut leaves the first n functions.
func (a *alarm) cut(n int) {
	a.refuted = a.refuted[:n]
	for k := range a.z {
		a.z[k] = a.z[k][:n]
	}
}
