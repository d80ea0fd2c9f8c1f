package oracle

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Step sizes of [Hedge].
const (
	DefaultEta = 0.5      // the largest for which the square loss is exp-concave
	PaperEta   = 1.0 / 18 // of the paper's theorem (thm:Vovk-regret-and-stability)
)

// HedgeOptions are the parameters of [NewHedge].
type HedgeOptions struct {
	Eta      float64   // step size η > 0; 0 means DefaultEta
	Prior    []float64 // q_1 up to a factor, one positive number a function; nil: uniform
	Unproved bool      // allows η > 1/2, for which no bound is proved
	// predicts by Vovk's substitution instead of the mean; Eta is then 2 unless given, and at most 2; it needs Unproved
	Vovk bool
	// η starts at DefaultEta and follows what is outstanding ([Hedge.Slow]); Eta must be 0
	Outstanding bool
}

// Hedge is the Hedge-based version of Vovk's aggregating forecaster over a finite class (paper, alg. hedge-Vovk):
//
//	f̂_t = Σ_f q_t(f)·f,   q_{t+1}(f) ∝ q_t(f)·exp(−η·(f(z_t) − y_t)²)
//
// Its state is a log-weight and a cumulative loss a function. The normalised q is derived from the log-weights after
// each update; there a weight below e^-64 of the largest is 0, in the log-weights it is kept.
type Hedge struct {
	class     Class
	mixer     Mixer // class, or nil if it has no Mix
	eta       float64
	logPrior  []float64
	priorMin  float64 // log(1/min q_1), at least log 2
	proved    bool
	vovk      bool
	slows     bool // η follows what is outstanding
	fed       int64
	logWeight []float64 // maximum 0
	loss      []float64 // L_f = Σ (f(z)−y)² over what was fed, whatever η and prior
	q         []float64 // derived: normalised weights
	f         []float64 // scratch: one value a function
}

var _ Regressor = (*Hedge)(nil)

// Mixer is a [Class] that mixes all its functions over a whole round at once.
type Mixer interface {
	// Mix sets dst[a] = Σ_i q[i]·f_i(x, a), added in the order of i and without the
	// functions with q[i] = 0, to the same bits as with Eval.
	Mix(dst, q []float64, x *Input)
}

// NewHedge returns the oracle over class. It refuses η > 1/2 unless
// o.Unproved, and priors that are not positive and finite.
func NewHedge(class Class, o HedgeOptions) (*Hedge, error) {
	n := class.Size()
	if n < 1 {
		return nil, errors.New("hedge: the class is empty")
	}
	if o.Eta == 0 {
		o.Eta = DefaultEta
		if o.Vovk {
			o.Eta = VovkEta
		}
	}
	if !(o.Eta > 0) || o.Eta > 1e6 {
		return nil, fmt.Errorf("hedge: eta is %v: give a positive number, 0.5 is the default", o.Eta)
	}
	if o.Eta > 0.5 && !o.Unproved {
		return nil, fmt.Errorf("hedge: eta is %v: over 0.5 nothing is proved; say unproved: true to use it", o.Eta)
	}
	if o.Vovk && (!o.Unproved || o.Eta > VovkEta) {
		return nil, fmt.Errorf("hedge: Vovk's substitution at eta %v: it needs eta of at most 2, and unproved: true, "+
			"because its stability is not proved", o.Eta)
	}
	if o.Outstanding && (o.Eta != DefaultEta || o.Vovk) {
		return nil, fmt.Errorf("hedge: eta follows what is outstanding from %v on, by the mean: not from %v",
			DefaultEta, o.Eta)
	}
	h := &Hedge{
		class: class, eta: o.Eta, proved: o.Eta <= 0.5 && !o.Vovk, vovk: o.Vovk, slows: o.Outstanding,
		logWeight: make([]float64, n), loss: make([]float64, n), q: make([]float64, n), f: make([]float64, n),
	}
	h.mixer, _ = class.(Mixer)
	var err error
	if h.logPrior, h.priorMin, err = LogPrior(n, o.Prior); err != nil {
		return nil, fmt.Errorf("hedge: %w", err)
	}
	copy(h.logWeight, h.logPrior)
	h.normalise()
	return h, nil
}

// LogPrior returns the logarithms of n positive numbers q_1, of which nil stands for equal ones, maximum 0, and
// log(1/min q_1) of their shares, at least log 2.
func LogPrior(n int, prior []float64) (logs []float64, scale float64, err error) {
	logs = make([]float64, n)
	if prior == nil {
		return logs, Log(math.Max(float64(n), 2)), nil
	}
	if len(prior) != n {
		return nil, 0, fmt.Errorf("%d priors where %d are needed", len(prior), n)
	}
	sum, low, high := 0.0, math.Inf(1), 0.0
	for i, p := range prior {
		if !(p > 0) || p-p != 0 {
			return nil, 0, fmt.Errorf("prior %d is %v: it must be positive and finite", i, p)
		}
		sum += p
		low, high = math.Min(low, p), math.Max(high, p)
	}
	if sum-sum != 0 || low/high == 0 {
		return nil, 0, errors.New("the priors span too many orders of magnitude")
	}
	for i, p := range prior {
		logs[i] = Log(p / high)
	}
	return logs, math.Max(Log(sum/low), Log(2)), nil
}

// Size returns |F|.
func (h *Hedge) Size() int { return len(h.q) }

// Class returns the class.
func (h *Hedge) Class() Class { return h.class }

// AppendWeights appends the |F| normalised weights q_t.
func (h *Hedge) AppendWeights(dst []float64) []float64 { return append(dst, h.q...) }

// AppendLosses appends the |F| cumulative square losses L_f of what was fed.
func (h *Hedge) AppendLosses(dst []float64) []float64 { return append(dst, h.loss...) }

// Predict implements [Regressor].
func (h *Hedge) Predict(dst []float64, x *Input) {
	dst = dst[:len(x.Actions)]
	if h.vovk {
		h.substitute(dst, x)
		return
	}
	if h.mixer != nil {
		h.mixer.Mix(dst, h.q, x)
	} else {
		for a := range dst {
			h.class.Eval(h.f, x, a)
			s := 0.0
			for i, w := range h.q {
				if w != 0 {
					s += float64(w * h.f[i])
				}
			}
			dst[a] = s
		}
	}
	for a, v := range dst {
		dst[a] = clip01(v)
	}
}

// Update implements [Regressor].
func (h *Hedge) Update(x *Input, action int, loss float64) {
	h.class.Eval(h.f, x, action)
	hedgeStep(h.logWeight, h.loss, h.f, h.eta, loss)
	h.fed++
	h.normalise()
}

// Values returns the |F| values f_i(x, x.Actions[action]), to read, until the next call of h.
func (h *Hedge) Values(x *Input, action int) []float64 {
	h.class.Eval(h.f, x, action)
	return h.f
}

// Mean returns the prediction Σ q_i f_i of the values of all functions, to the same bits as Predict.
func (h *Hedge) Mean(f []float64) float64 {
	s := 0.0
	f = f[:len(h.q)]
	for i, w := range h.q {
		if w != 0 {
			s += float64(w * f[i])
		}
	}
	return clip01(s)
}

// UpdateValues is Update with the values of all functions at the example, which another use of them has computed.
func (h *Hedge) UpdateValues(f []float64, loss float64) {
	hedgeStep(h.logWeight, h.loss, f[:len(h.logWeight)], h.eta, loss)
	h.fed++
	h.normalise()
}

// hedgeStep adds e_i = (f_i − y)² to the loss of each function and takes η·e_i from
// its log-weight: one pass over three slices of the same length.
func hedgeStep(logWeight, loss, f []float64, eta, y float64) {
	logWeight, loss = logWeight[:len(f)], loss[:len(f)]
	for i, v := range f {
		e := v - y
		e = float64(e * e)
		loss[i] += e
		logWeight[i] -= float64(eta * e)
	}
}

// smallest is the log of the smallest weight, relative to the largest, that [Shares]
// keeps: below it a weight cannot move a float64 sum.
const smallest = -64

// Shares sets q to the shares of weights, of which it is given the logarithms; it moves the largest of those to 0.
// q may be logs.
func Shares(q, logs []float64) {
	top := math.Inf(-1)
	for _, v := range logs {
		if v > top {
			top = v
		}
	}
	sum := 0.0
	for i := range logs {
		logs[i] -= top
		w := 0.0
		if v := logs[i]; v >= smallest {
			w = Exp(v)
		}
		q[i] = w
		sum += w
	}
	for i := range q {
		q[i] /= sum
	}
}

// Slow tells an oracle with Outstanding of a round that was decided while sigma others were outstanding: from
// here on η is at most 1/sigma, rounded down to a power of two. Others ignore it.
func (h *Hedge) Slow(sigma int64) {
	eta := h.eta
	for h.slows && eta*float64(sigma) > 1 {
		eta /= 2
	}
	h.setEta(eta)
}

func (h *Hedge) setEta(eta float64) {
	if eta == h.eta {
		return
	}
	h.eta = eta
	for i, l := range h.loss {
		h.logWeight[i] = h.logPrior[i] - float64(eta*l)
	}
	h.normalise()
}

// Slows reports whether η follows what is outstanding.
func (h *Hedge) Slows() bool { return h.slows }

// normalise moves the largest log-weight to 0 and derives q.
func (h *Hedge) normalise() { Shares(h.q, h.logWeight) }

// Regret returns the bound on Σ E(f̂_t−f⋆)²(z_t): log(1/min q_1)/η, which is 2 log|F| at the default η and uniform
// prior; at [PaperEta] the paper's 2 log|F|/η = 36 log|F|. Unless [Hedge.Proved], it is that same formula without a
// theorem behind it. |F| = 1 counts as 2. Where η follows what is outstanding it stays 2 log|F|, which tunes γ alone.
func (h *Hedge) Regret() float64 {
	switch {
	case h.eta == PaperEta:
		return 36 * h.priorMin
	case h.slows:
		return h.priorMin / DefaultEta
	}
	return h.priorMin / h.eta
}

// Proved reports whether Regret and Beta are theorems' bounds: η ≤ 1/2.
func (h *Hedge) Proved() bool { return h.proved }

// Rate returns η and log(1/min q_1), log|F| of a uniform prior; |F| = 1 counts as 2.
func (h *Hedge) Rate() (eta, scale float64) { return h.eta, h.priorMin }

// Beta returns the stability constant β ≥ Σ E‖f̂_t − f̂_{t+1}‖²_∞ (paper,
// assum:stability), 0 if none is proved: half the bound on Σ E KL(q_t‖q_{t+1}),
//
//	(e^η − 1 − η)·log(1/min q_1) / (1 − e^{−η(1−η/2)})
//
// which is 0.48 log|F| at the default; at [PaperEta] the paper's 2 log|F|.
func (h *Hedge) Beta() float64 {
	switch {
	case !h.proved || h.slows:
		return 0
	case h.eta == PaperEta:
		return 2 * h.priorMin
	}
	return HedgeKL(h.eta) / 2 * h.priorMin
}

// HedgeKL returns the factor of log(1/min q_1) in the bound on
// Σ E KL(q_t‖q_{t+1}) for 0 < η ≤ 1/2: 2(e^η−1−η)/(1−e^{−η(1−η/2)}).
func HedgeKL(eta float64) float64 {
	// Both differences by their series: they cancel for small η.
	tail := func(x float64, from int) float64 { // Σ_{k≥from} x^k/k!
		term, sum := 1.0, 0.0
		for k := 1; k < 40; k++ {
			term = float64(term*x) / float64(k)
			if k >= from {
				sum += term
			}
		}
		return sum
	}
	return 2 * tail(eta, 2) / -tail(-float64(eta*(1-eta/2)), 1)
}

// OrderFree implements [Regressor]: the weights depend on the set fed only.
func (h *Hedge) OrderFree() bool { return true }

const hedgeVersion = 1

// AppendBinary implements [Regressor].
func (h *Hedge) AppendBinary(b []byte) ([]byte, error) { return appendState(b, h) }

// UnmarshalBinary implements [Regressor].
func (h *Hedge) UnmarshalBinary(b []byte) error { return readState(b, "hedge", h, h.fresh()) }

// fresh returns an oracle whose state can be read without changing h.
func (h *Hedge) fresh() *Hedge {
	c, n := *h, len(h.q)
	c.logWeight, c.loss, c.q = make([]float64, n), make([]float64, n), make([]float64, n)
	return &c
}

func (h *Hedge) code(c *Coder) {
	c.Version(hedgeVersion, hedgeVersion, "")
	eta := h.eta
	c.Float(math.Inf(-1), &eta)
	c.Ints(&h.fed)
	n, slowed := c.Count(len(h.q), 24), h.slows && eta > 0 && eta <= DefaultEta
	if !c.Must(n == len(h.q) && (eta == h.eta || slowed), "other step size or class size") {
		return
	}
	if c.Reading() {
		h.eta = eta
	}
	for _, p := range h.logPrior {
		c.Same("other prior", p)
	}
	c.Floats(h.logWeight)
	c.FloatsFrom(0, h.loss)
	if c.Must(true, "damaged weights, or a negative loss") &&
		c.Must(slices.Max(h.logWeight) == 0, "weights not normalised") && c.Reading() {
		h.normalise()
	}
}

// Vovk's substitution (Vovk 2001, Competitive On-line Statistics, section 2.4; for outcomes anywhere in [0,1] Haussler,
// Kivinen and Warmuth 1998): the square loss is η-mixable for η ≤ 2, that is, for every q there is a prediction p with
//
//	(p − y)² ≤ g(y) = −(1/η)·log Σ_f q(f)·exp(−η(f − y)²)   for all y in [0,1],
//
// and p = ½ + (g(0) − g(1))/2 is one. The right sides telescope as they do for the mean, so R_T ≤ log(1/min q_1)/η: ½
// log|F| at η = 2, where the mean has 2 log|F|. How far predictions move from round to round, on which the price of
// delay depends, is not proved: a certificate must measure the drift.

// VovkEta is the largest step size for which the substitution exists.
const VovkEta = 2

// substitute sets dst[a] to the substitution's prediction of each action.
func (h *Hedge) substitute(dst []float64, x *Input) {
	for a := range dst {
		h.class.Eval(h.f, x, a)
		low, high := 0.0, 0.0 // Σ q·exp(−η(f−y)²) for y = 0 and y = 1
		for i, w := range h.q {
			if w == 0 {
				continue
			}
			f := h.f[i]
			low += float64(w * Exp(-h.eta*float64(f*f)))
			high += float64(w * Exp(-h.eta*float64((1-f)*(1-f))))
		}
		dst[a] = clip01(0.5 - (Log(low)-Log(high))/(2*h.eta))
	}
}
