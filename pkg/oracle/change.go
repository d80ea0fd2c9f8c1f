package oracle

import "math"

// Constants of what notices a change of the world (docs/algorithms.md, section 7).
const (
	// false-alarm probability of the watch over all actions, and of those of single actions together
	changeAlpha  = 0.001
	changeMargin = 0.02 // losses may exceed the prediction by this,
	changeSlack  = 1    // and by this over √n: early means are not yet what they will be
	changeFrom   = 100  // examples before the first bet of the watch over all actions
	changeOne    = 50   // and of one over a single action
	mostChanges  = 16   // changes that an oracle remembers
)

// ChangeAlarms bounds the probability of a false alarm in a stretch between two changes, of
// all watches of an oracle together, while predictions are met (see watch).
const ChangeAlarms = 2 * changeAlpha

// changeStakes are the fractions κ of its wealth that a bet loses at a loss of 0.
var changeStakes = [...]float64{.1, .25, .5}

// watch bets that what is played loses more than predicted, and more than it did so far. f̂ is
// the prediction without optimism, made before the example is learned. With n the examples so
// far, this one included, i = n − first, and means over the examples before:
//
//	q = max(f̂ + max(0, mean of y − f̂), mean of y) + .02 + 1/√n
//	S_κ ← (S_κ + 1/(i(i+1)))·(1 + κ(y/q − 1)), κ = .1, .25, .5, where i ≥ 1 and q < 1
//	alarm when the mean of S_κ over κ reaches 1/α
//
// Proof that a false alarm, ever, has probability at most α: suppose E[y | past] ≤ q. The parts not yet staked after
// step i sum to Σ_{j>i} 1/(j(j+1)) = 1/(i+1); let W = S + 1/(i+1), so W = 1 before the first bet. q is known before y,
// and 1 + κ(y/q − 1) ≥ 1 − κ > 0 has expectation at most 1. So W stays non-negative, and a bet has
//
//	E[W' | past] ≤ S + 1/(i(i+1)) + 1/(i+1) = S + 1/i = W;
//
// without a bet its part is forfeited and W falls. W and its mean over κ are therefore non-negative supermartingales
// from 1, and by Ville's inequality reach 1/α with probability at most α. The parts let a bet begin at any time of a
// change: after a long quiet time a single stake would be lost. Setting S to 0 only lowers W.
//
// The premise is an assumption: nothing proves that what is played loses, in expectation, at
// most q. The mean of y − f̂ takes up the bias of playing what looks best, which is largest
// early. The mean of y is for regressions that cannot say what they are asked (hashed columns
// that collide): there a low f̂ means little, while what is played still loses no more than it did.
type watch struct {
	n    int64
	bias float64 // Σ (y − f̂)
	lost float64 // Σ y
	s    [len(changeStakes)]float64
}

// expected returns q of the next example, of which f is predicted.
func (w *watch) expected(f float64) float64 {
	n := float64(w.n + 1)
	return max(f+max(0, w.bias/n), w.lost/n) + changeMargin + changeSlack/math.Sqrt(n)
}

// add takes a loss y and what was predicted; it reports whether the alarm is raised, which is when S reaches most.
func (w *watch) add(f, y float64, first int64, most float64) bool {
	q := w.expected(f)
	w.n++
	w.bias += y - f
	w.lost += y
	if w.n <= first || q >= 1 {
		return false
	}
	i := float64(w.n - first)
	part := 1 / float64(i*(i+1))
	for j, k := range changeStakes {
		w.s[j] = float64((w.s[j] + part) * (1 + float64(k*(y/q-1))))
	}
	return w.wealth() >= most
}

// wealth is the mean of S_κ.
func (w *watch) wealth() float64 {
	sum := 0.0
	for _, s := range w.s {
		sum += s
	}
	return sum / float64(len(w.s))
}

// limitOf returns 1/α of the watch over the j-th action, from 0: the α sum to changeAlpha.
func limitOf(j int) float64 {
	k := float64(j + 1)
	return float64(k*(k+1)) / changeAlpha
}

// Change says that regressions were restarted, because the actions played lost more than they
// predicted by more than chance explains.
type Change struct {
	Example int64  `json:"example"`           // number of the example, from 1, that raised the alarm
	Action  string `json:"action"`            // whose regression was restarted; empty: all
	Outcome string `json:"outcome,omitempty"` // whose regressions they are, of [Heads]
}

// Changes are those that an oracle noticed.
type Changes struct {
	Count int64    `json:"count"` // ever
	Last  []Change `json:"last"`  // the last 16 of them, oldest first
}

// add records a change. A recorded change is never overwritten: callers may keep Last.
func (c *Changes) add(x Change) {
	c.Count++
	last := c.Last[max(0, len(c.Last)-mostChanges+1):]
	c.Last = append(append(make([]Change, 0, len(last)+1), last...), x)
}

// watches are the watch over all examples, and what was noticed.
type watches struct {
	all     watch
	changes Changes
}

// changed feeds the watches with the example of action n that was just counted, before it is
// learned: f is its prediction without optimism. It returns the first action whose regression
// must start anew, and the one after the last. Their watches start anew.
func (o *Linear) changed(n int32, f, y float64) (from, to int32) {
	a := &o.actions[n]
	f, y = o.watched(f), o.watched(y)
	switch {
	case o.all.add(f, y, changeFrom, 1/changeAlpha):
		for i := range o.actions {
			o.actions[i].watch = watch{}
		}
		o.all = watch{}
		o.changes.add(Change{Example: o.fed})
		return 0, int32(len(o.actions))
	case a.watch.add(f, y, changeOne, limitOf(int(n))):
		a.watch = watch{}
		clear(o.all.s[:]) // this action explains it
		o.changes.add(Change{Example: o.fed, Action: o.known.names[n]})
		return n, n + 1
	}
	return 0, 0
}

// Changes returns the changes that it noticed; ok is false in version 1, which watches for none.
func (o *fitted) Changes() (c Changes, ok bool) { return o.changes, o.version > 1 }

// Changes returns the changes that it noticed, as [Linear.Changes].
func (o *Aggregate) Changes() (c Changes, ok bool) { return o.lin.Changes() }

// renew starts cores 1 and 3 and the diagonal member of an action anew. Core 2 goes on and forgets by itself: where
// only the noise grew, what it knows still holds. q, which Overhead is about, goes on too.
func (o *Aggregate) renew(n int32) {
	o.lin.actions[n].reset(o.lambda[0])
	o.fadings[n].random.reset(o.lambda[2])
	o.wide.reset(n)
}

// mix returns f̂ without optimism, from the means of the members.
func (o *Aggregate) mix(m [wideMember + 1]float64) float64 {
	s := 0.0
	for i, q := range o.q {
		s += float64(q * clip01(m[i]))
	}
	return clip01(s)
}

// code is the state of a watch whose alarm is raised at most, of an oracle that was fed so many examples.
func (w *watch) code(c *Coder, fed int64, most float64) bool {
	c.Ints(&w.n)
	c.Float(math.Inf(-1), &w.bias, &w.lost)
	c.Floats(w.s[:])
	n := float64(w.n)
	return c.Must(w.n <= fed && math.Abs(w.bias) <= n && w.lost >= 0 && w.lost <= n &&
		min(w.s[0], w.s[1], w.s[2]) >= 0 && w.wealth() < most, "damaged watch")
}

// code is the state of the watch over all examples, and the changes.
func (w *watches) code(c *Coder, fed int64) {
	ok := w.all.code(c, fed, 1/changeAlpha) && w.changes.code(c)
	before := int64(0)
	for _, c := range w.changes.Last {
		ok = ok && before < c.Example && c.Example <= fed
		before = c.Example
	}
	c.Must(ok && w.changes.Count <= fed, "damaged watch")
}

func (s *Changes) code(c *Coder) bool {
	c.Ints(&s.Count)
	n := c.Count(len(s.Last), 2)
	if !c.Must(int64(n) == min(s.Count, mostChanges), "damaged changes") {
		return false
	}
	if c.Reading() {
		s.Last = make([]Change, n)
	}
	for i := range s.Last {
		c.Ints(&s.Last[i].Example)
		c.String(&s.Last[i].Action)
	}
	return c.Must(true, "damaged changes")
}
