package learner

import (
	"fmt"
	"math"

	"hindsight/pkg/oracle"
)

// DefaultAlpha is the level of the surviving set and of the alarm.
const DefaultAlpha = 0.05

const (
	// judgeEvery is how many rounds of evidence pass between two looks at which
	// functions survive. What holds at all times at once holds at these.
	judgeEvery = 16

	// memberShare is the share ε of E_f that watches f lose against the other functions of the class: who does so by
	// 1/(εα) is refuted at level α whatever the other evidence, and is not evaluated again.
	memberShare = 1.0 / 128

	// forgotten is the weight e^-16 below which a function has no part in the mixture.
	forgotten = 16
)

// ModelsOptions are the parameters of [NewModels].
type ModelsOptions struct {
	Alpha float64 // level in (0,1) of the set and of the alarm; 0: DefaultAlpha
	Alarm bool    // keep the realizability alarm too
}

// Models keeps, of the functions of a finite class, those that the data have not refuted, and for each what the regret
// of all rounds so far is if it is the truth (docs/algorithms.md, sections 2.1 and 5.1):
//
//	L_f = Σ (f(z_s)−y_s)²,  R_f = Σ_s [p_s·f(x_s,·) − min_a f(x_s,a)]
//	log M_f = log mean_g exp(2(L_f − L_g)),  C_t(α) = {f : max_{s≤t} M_f < 1/α}
//	cert_t = charged + max_{f ∈ C_t(α)} R_f,  or  max_{f ∈ C_t(α)} R_f + S_f
//
// where S_f is R_f's sum over the rounds that are charged.
//
// Rounds are added in the order of their decisions. It costs K evaluations of the functions that are left a round, of
// which the oracle's own can be one, and no exp but at every 16th. The package's doc has the proofs.
type Models struct {
	class  oracle.Class
	picker oracle.Picker // nil: the class is evaluated as a whole
	size   int
	alpha  float64
	floor  float64 // log(1/(εα)): what loses by more is dropped
	log    float64 // log |F|

	modelSums
	waiting int64  // rounds that have their feedback and wait for their turn ([inOrder]): 1 each
	alarm   *alarm // nil: off

	f, v, mean, low, next []float64 // scratch: values of all, and of those left
}

// modelSums is the state of [Models] but for the alarm. The slices run along which.
type modelSums struct {
	unknown  int64 // rounds before the sums began: 1 each in both bounds
	charged  int64 // rounds that count 1 each: skipped, imputed, and those
	evidence int64 // rounds in the sums
	which    []int32
	loss     []float64 // L_f
	regret   []float64 // R_f
	silent   []float64 // S_f
	top      []float64 // max_s log M_f
	weight   []float64 // e^{−(L_f−min L)/2} at the last look
	total    float64   // Σ weight
}

// NewModels returns the models of a class, of which nothing is refuted.
func NewModels(class oracle.Class, o ModelsOptions) (*Models, error) {
	if o.Alpha == 0 {
		o.Alpha = DefaultAlpha
	}
	if !(o.Alpha > 0 && o.Alpha < 1) {
		return nil, fmt.Errorf("certificate: alpha is %v: it must be in (0,1), 0.05 is the default", o.Alpha)
	}
	n := class.Size()
	if n < 1 {
		return nil, fmt.Errorf("certificate: the class is empty")
	}
	m := &Models{class: class, size: n, alpha: o.Alpha, floor: oracle.Log(1 / float64(memberShare*o.Alpha)),
		log: oracle.Log(float64(n)), f: make([]float64, n)}
	m.picker, _ = class.(oracle.Picker)
	m.modelSums = newModelSums(n)
	for i := range m.which {
		m.which[i], m.weight[i] = int32(i), 1
	}
	m.total = float64(n)
	for _, s := range []*[]float64{&m.v, &m.mean, &m.low, &m.next} {
		*s = make([]float64, n)
	}
	if o.Alarm {
		a, err := newAlarm(class, n)
		if err != nil {
			return nil, err
		}
		m.alarm = a
	}
	return m, nil
}

func newModelSums(n int) modelSums {
	s := modelSums{which: make([]int32, n)}
	b := make([]float64, 5*n)
	for i, p := range s.slices() {
		*p = b[i*n : (i+1)*n : (i+1)*n]
	}
	return s
}

// Left returns the number of functions that are still evaluated.
func (m *Models) Left() int { return len(m.which) }

// Add takes the next round in the order of decisions. Observed ones are evidence; skipped and imputed ones are charged
// 1 each, for what the model file says silence means is no evidence; withdrawn ones are left out.
func (m *Models) Add(r *Round) {
	switch r.Fate {
	case Observed:
		m.observe(r, nil, nil)
	case Skipped, Imputed:
		m.charged++
		m.silence(r)
	}
}

// borrow takes the evidence of an observed round that another law played: L_f, which holds
// for whatever was played, and nothing of R_f.
func (m *Models) borrow(r *Round) {
	v := m.values(r.Input, r.Action)
	for i, x := range v {
		e := x - r.Loss
		m.loss[i] += float64(e * e)
	}
	m.look(r, v)
}

// look tells the alarm of a round in the sums, with the values of what was played, and judges at every 16th.
func (m *Models) look(r *Round, v []float64) {
	if m.alarm != nil && m.alarm.raised == 0 {
		m.alarm.observe(r, v, m.mixture(v))
	}
	m.evidence++
	if m.evidence%judgeEvery == 0 {
		m.judge(r.N)
	}
}

// silence adds a round of which no loss is known to S_f.
func (m *Models) silence(r *Round) {
	mean, low := m.terms(r)
	for i, v := range mean {
		m.silent[i] += v - low[i]
	}
}

// terms returns what a round loses by its law, and at least, under each function that is left; nothing
// of one with a single action.
func (m *Models) terms(r *Round) (mean, low []float64) {
	if len(r.Propensities) < 2 {
		return nil, nil
	}
	n := len(m.which)
	mean, low = m.mean[:n], m.low[:n]
	for a, p := range r.Propensities {
		spread(mean, low, m.values(r.Input, a), p, a == 0)
	}
	return mean, low
}

// observe adds an observed round. If h is the oracle over the class, the values of all functions at the played action
// are computed once and returned for its update, and fhat, if not nil, is filled with its predictions.
func (m *Models) observe(r *Round, h *oracle.Hedge, fhat []float64) (played []float64) {
	n := len(m.which)
	mean, low := m.mean[:n], m.low[:n]
	values := func(a int) []float64 {
		if h == nil || fhat == nil && a != r.Action {
			return m.values(r.Input, a)
		}
		played = h.Values(r.Input, a)
		if fhat != nil {
			fhat[a] = h.Mean(played)
		}
		return m.pick(played)
	}
	for a, p := range r.Propensities {
		if a != r.Action {
			spread(mean, low, values(a), p, a == 0 || a == 1 && r.Action == 0)
		}
	}
	v := values(r.Action)
	spread(mean, low, v, r.Propensities[r.Action], len(r.Propensities) == 1)
	settle(m.regret, m.loss, mean, low, v, r.Loss)
	m.look(r, v)
	return played
}

// wide reports whether enough functions are left that evaluating all costs little more.
func (m *Models) wide() bool { return m.picker == nil || 2*len(m.which) >= m.size }

// values returns the values of the functions left.
func (m *Models) values(x *oracle.Input, action int) []float64 {
	n := len(m.which)
	if m.picker != nil && n < m.size {
		m.picker.EvalSome(m.v[:n], m.which, x, action)
		return m.v[:n]
	}
	m.class.Eval(m.f, x, action)
	return m.pick(m.f)
}

// pick returns those of the functions left out of the values of all.
func (m *Models) pick(f []float64) []float64 {
	if len(m.which) == m.size {
		return f
	}
	v := m.v[:len(m.which)]
	for j, i := range m.which {
		v[j] = f[i]
	}
	return v
}

// spread adds p·v to mean and lowers low to v; the first action begins both.
func spread(mean, low, v []float64, p float64, first bool) {
	mean, low = mean[:len(v)], low[:len(v)]
	if first {
		for i, x := range v {
			mean[i], low[i] = p*x, x
		}
		return
	}
	for i, x := range v {
		mean[i] += float64(p * x)
		low[i] = min(low[i], x) // without a branch: which is the least cannot be foretold
	}
}

// settle adds the round's regret under each function, and its square loss.
func settle(regret, loss, mean, low, v []float64, y float64) {
	regret, loss, mean, low = regret[:len(v)], loss[:len(v)], mean[:len(v)], low[:len(v)]
	for i, x := range v {
		regret[i] += mean[i] - low[i]
		e := x - y
		loss[i] += float64(e * e)
	}
}

// mixture returns Σ weight·v, the prediction of the models by the last look.
func (m *Models) mixture(v []float64) float64 {
	if m.total <= 0 {
		return 0.5
	}
	w := m.weight[:len(v)]
	var s0, s1 float64 // two sums, which do not wait for each other
	for len(v) >= 2 {
		s0 += float64(w[0] * v[0])
		s1 += float64(w[1] * v[1])
		v, w = v[2:], w[2:]
	}
	if len(v) > 0 {
		s0 += float64(w[0] * v[0])
	}
	return (s0 + s1) / m.total
}

// judge renews log M_f and drops what is refuted at level εα; n is the place of the round in the log.
func (m *Models) judge(n int64) {
	least := math.Inf(1)
	for _, l := range m.loss {
		least = math.Min(least, l)
	}
	sum := 0.0
	m.total = 0
	for i, l := range m.loss {
		w := 0.0
		if half := (l - least) / 2; half < forgotten {
			w = oracle.Exp(-half)
		}
		m.weight[i] = w
		m.total += w
		square := w * w
		sum += float64(square * square) // e^{−2(L−min)}
	}
	shift := m.log - oracle.Log(sum)
	dropped := false
	for i, l := range m.loss {
		m.top[i] = math.Max(m.top[i], float64(2*(l-least))-shift)
		dropped = dropped || m.top[i] >= m.floor
	}
	if dropped {
		m.drop()
	}
	if m.alarm != nil && m.alarm.raised == 0 {
		m.alarm.judge(n, m.loss, m.alpha)
	}
}

// drop leaves out the functions that are refuted at level εα. The mixture goes on without them.
func (m *Models) drop() {
	to := 0
	m.total = 0
	for i := range m.which {
		if m.top[i] >= m.floor {
			continue
		}
		m.which[to] = m.which[i]
		for _, s := range m.slices() {
			(*s)[to] = (*s)[i]
		}
		m.total += m.weight[i]
		if m.alarm != nil {
			m.alarm.move(to, i)
		}
		to++
	}
	m.cut(to)
}
