package oracle

import (
	"fmt"
	"slices"
)

// Head is the regression of one outcome.
type Head struct {
	Name      string // of the outcome; unique
	Regressor        // of y ∈ [0,1], the outcome of its range
	// More of it is a smaller loss: the regression is of 1 − y, so that its optimism hopes for more.
	Good bool

	about map[string]float64 // see Expect
	large float64
	sober bool
}

// Weights says what a round is worth by its outcomes: c + Σ w_k·y_k for an action, w by the index of the head. The
// caller must not change w, and calls with one name always return the same.
type Weights func(action string) (c float64, w []float64)

// Heads predicts a loss that is linear in several outcomes, with one regression ("head") for each:
//
//	f̂(a) = clip(c(a) + Σ w_k(a)·f̂_k(a), 0, 1)
//
// Outcomes are learned one by one, each when it comes ([Heads.HeadUpdate]). A loss that is not linear has a head of
// its own, which [Heads.Update] feeds; it stands beside those of outcomes, with weight 1. The state of a head is kept
// under its name and holds nothing of the weights: they may change while what was learned of the outcomes stays.
type Heads struct {
	heads []Head
	loss  Weights
	own   int // the head of the loss itself; -1: there is none
	lost  float64
	fed   int64

	changes Changes

	at   [][]float64 // scratch: predictions of the heads for x
	done []bool      // scratch: there are predictions
	x    *Input      // of them, until the call that set it returns
}

var _ Regressor = (*Heads)(nil)

// LossHead is the name of the head of the loss itself: no outcome has it.
const LossHead = ""

// NewHeads returns an oracle that owns its heads. loss is the loss by outcomes.
func NewHeads(heads []Head, loss Weights) (*Heads, error) {
	h := &Heads{heads: slices.Clone(heads), loss: loss, own: -1, at: make([][]float64, len(heads)),
		done: make([]bool, len(heads))}
	for k := range heads {
		if h.Head(heads[k].Name) != k {
			return nil, fmt.Errorf("heads: there are two of outcome %q", heads[k].Name)
		}
	}
	h.own = h.Head(LossHead)
	return h, nil
}

// Head returns the index of the head of an outcome, or -1.
func (h *Heads) Head(name string) int {
	return slices.IndexFunc(h.heads, func(o Head) bool { return o.Name == name })
}

// Heads returns the heads, to look at.
func (h *Heads) Heads() []Head { return h.heads }

// Begin makes x the input that [Heads.Sum] predicts. x must stay as it is until the last Sum.
func (h *Heads) Begin(x *Input) {
	h.x = x
	clear(h.done)
}

// Sum sets dst[a] = c(a) + Σ w_k(a)·f̂_k(a), not clipped, for the K actions of the input begun. Each head predicts
// at most once an input, and only if it has weight.
func (h *Heads) Sum(dst []float64, of Weights) {
	for a := range h.x.Actions {
		c, w := of(h.x.Actions[a].Name)
		for k, w := range w {
			if w == 0 {
				continue
			}
			if h.heads[k].Good { // its regression is of 1 − y; so that of one outcome alone is the loss, to the bit
				c, w = c+w, -w
			}
			c += float64(w * h.predicted(k)[a])
		}
		dst[a] = c
	}
}

// predicted returns what the regression of a head predicts of the input begun.
func (h *Heads) predicted(k int) []float64 {
	if !h.done[k] {
		n := len(h.x.Actions)
		if cap(h.at[k]) < n {
			h.at[k] = make([]float64, n, n+n/2)
		}
		h.at[k], h.done[k] = h.at[k][:n], true
		h.heads[k].Predict(h.at[k], h.x)
	}
	return h.at[k]
}

// Predict implements [Regressor].
func (h *Heads) Predict(dst []float64, x *Input) {
	h.Begin(x)
	h.PredictLoss(dst)
	h.x = nil
}

// PredictLoss is Predict for the input begun.
func (h *Heads) PredictLoss(dst []float64) {
	h.Sum(dst, h.loss)
	for a := range h.x.Actions {
		dst[a] = clip01(dst[a])
	}
}

// HeadPredict sets dst[a] to the prediction of the k-th outcome.
func (h *Heads) HeadPredict(k int, dst []float64, x *Input) {
	o := &h.heads[k]
	o.Predict(dst, x)
	if o.Good {
		for a := range x.Actions {
			dst[a] = 1 - dst[a]
		}
	}
}

// HeadUpdate feeds the k-th outcome y ∈ [0,1] of x.Actions[action].
func (h *Heads) HeadUpdate(k int, x *Input, action int, y float64) {
	o := &h.heads[k]
	if o.Good {
		y = 1 - y
	}
	before, _ := o.changes()
	o.Regressor.Update(x, action, y)
	if c, _ := o.changes(); c.Count > before.Count {
		last := c.Last[len(c.Last)-1]
		last.Outcome = o.Name
		h.changes.add(last)
	}
}

// Update implements [Regressor]: it counts a loss, and feeds the head of the loss if there is one.
func (h *Heads) Update(x *Input, action int, loss float64) {
	h.lost += loss
	h.fed++
	if h.own >= 0 {
		h.HeadUpdate(h.own, x, action, loss)
	}
}

// Lost returns the sum of the losses fed, each in [0,1].
func (h *Heads) Lost() float64 { return h.lost }

// Regret returns the sum of what the heads measure, each of its own outcome: by no theorem the regret of f̂.
func (h *Heads) Regret() (sum float64) {
	for k := range h.heads {
		sum += h.heads[k].Regret()
	}
	return sum
}

// Counts returns the sizes of the largest head, and what all of them could not do.
func (h *Heads) Counts() (n LinearCounts) {
	for k := range h.heads {
		o, ok := h.heads[k].Regressor.(interface{ Counts() LinearCounts })
		if !ok {
			continue
		}
		c := o.Counts()
		n.Fed, n.Columns, n.Actions = max(n.Fed, c.Fed), max(n.Columns, c.Columns), max(n.Actions, c.Actions)
		n.FeaturesDropped += c.FeaturesDropped
		n.ActionsDropped += c.ActionsDropped
		n.Resets += c.Resets
	}
	return n
}

// OrderFree implements [Regressor].
func (h *Heads) OrderFree() bool {
	for k := range h.heads {
		if !h.heads[k].OrderFree() {
			return false
		}
	}
	return true
}

// headsVersion is the first byte of a snapshot.
const headsVersion = 1

// AppendBinary implements [Regressor].
func (h *Heads) AppendBinary(b []byte) ([]byte, error) { return appendState(b, h) }

// UnmarshalBinary implements [Regressor]. A head that the snapshot does not have goes on as it is, one that only
// the snapshot has is left out. Of 1 − y or y is what the snapshot's heads learned.
func (h *Heads) UnmarshalBinary(b []byte) error {
	before, err := h.AppendBinary(nil)
	if err != nil {
		return err
	}
	if err = h.read(b); err != nil && h.read(before) != nil {
		panic("heads do not read what they wrote")
	}
	return err
}

// read is UnmarshalBinary that leaves some heads changed if it fails.
func (h *Heads) read(b []byte) error {
	n := *h
	n.changes = Changes{}
	return readState(b, "heads", h, &n)
}

func (h *Heads) code(c *Coder) {
	c.Version(headsVersion, headsVersion, "")
	c.Float(0, &h.lost)
	c.Ints(&h.fed)
	h.changes.code(c)
	for i := range h.changes.Last {
		c.String(&h.changes.Last[i].Outcome)
	}
	n := c.Count(len(h.heads), 10)
	c.Must(h.lost <= float64(h.fed), "damaged header")
	for k := 0; k < n && c.Must(true, "damaged head"); k++ {
		h.codeHead(c, k)
	}
}

// codeHead is the k-th head that is written, or one that is read: of 1 − y or y is what it learned.
func (h *Heads) codeHead(c *Coder, k int) {
	var o Head
	if !c.Reading() {
		o = h.heads[k]
	}
	c.String(&o.Name)
	c.Flag(&o.Good)
	state := c.Part(o.Regressor)
	if k = h.Head(o.Name); !c.Reading() || k < 0 || !c.Must(true, "damaged head") {
		return
	}
	h.heads[k].Good = o.Good
	h.heads[k].expect()
	if err := h.heads[k].UnmarshalBinary(state); err != nil {
		c.Fail(fmt.Errorf("outcome %q: %w", o.Name, err))
	}
}

// Changes returns the changes that heads noticed, each with its outcome, in the order in which they were noticed; an
// example is one of its outcome. ok is false if none watches.
func (h *Heads) Changes() (c Changes, ok bool) {
	for k := range h.heads {
		_, watches := h.heads[k].changes()
		ok = ok || watches
	}
	return h.changes, ok
}

func (o *Head) changes() (c Changes, ok bool) {
	if w, is := o.Regressor.(interface{ Changes() (Changes, bool) }); is {
		return w.Changes()
	}
	return c, false
}

// Expect has a head that has learned nothing begin, for each action, at a value that is roughly right instead of 0,
// and predict without optimism, as costs are: they are to be known, not hoped for. nil: no value is known. good says
// whether more is better, so that a change for the worse is noticed; it is looked for among values up to large, where
// that is more than 0: of costs small ones matter, too.
func (h *Heads) Expect(k int, good bool, about map[string]float64, large float64) error {
	o := &h.heads[k]
	if _, ok := o.Regressor.(expecting); !ok {
		return fmt.Errorf("the oracle of outcome %q cannot begin at a value: take auto, linear or diagonal", o.Name)
	}
	o.Good, o.sober, o.about, o.large = good, true, about, large
	o.expect()
	return nil
}

// expect tells the regression of a head where to begin.
func (o *Head) expect() {
	if !o.sober {
		return
	}
	begin := make(map[string]float64, len(o.about))
	for name, v := range o.about {
		if v = clip01(v); o.Good {
			v = 1 - v
		}
		begin[name] = v
	}
	o.Regressor.(expecting).expect(begin, o.large)
}

// expecting is a regressor that may begin at values.
type expecting interface {
	expect(about map[string]float64, large float64)
}

// beginning is what an oracle predicts of actions before it has learned anything of them.
type beginning struct {
	about map[string]float64 // by action
	sober bool               // no optimism, whatever β is
	large float64            // the least value that is 1 to the watches; 0: 1
}

func (b *beginning) expect(about map[string]float64, large float64) {
	*b = beginning{about, true, large}
}

func (o *Linear) expect(about map[string]float64, large float64) {
	o.beginning.expect(about, large)
	o.beta = 0
}

func (o *Aggregate) expect(about map[string]float64, large float64) { o.lin.expect(about, large) }

// watched returns v ≥ 0 as watches take it: concave in v, so that what bounds it in expectation still does.
func (b *beginning) watched(v float64) float64 {
	if b.large == 0 {
		return v
	}
	return min(v/b.large, 1)
}

// begin sets where the regressions of an action begin that core 1 has.
func (o *Aggregate) begin(n int32) {
	f, v := &o.fadings[n], o.lin.actions[n].begin
	f.plain.begin, f.random.begin, f.random.constant = v, v, len(o.fourier.phase)
	if o.wide.places > 0 {
		o.wide.begin(n, v)
	}
}
