package learner

import (
	"math"
	"slices"

	"hindsight/pkg/oracle"
)

// borrowedBit is in the byte of the fate of a round that another law played.
const borrowedBit = 0x80

// heldRound reads rounds. What it returns aliases their bytes and itself.
type heldRound struct {
	round    Round
	in       oracle.Input
	law      []float64
	vector   []float64
	features []oracle.Feature
	actions  []oracle.Action
}

// of returns a round that waits.
func (h *heldRound) of(w *waiting) *Round {
	h.parse(w.round)
	h.round.N, h.round.Decision = w.n, w.decision
	return &h.round
}

// parse reports whether b is a round and nothing else.
func (h *heldRound) parse(b []byte) bool {
	c, r := newReader(b), &h.round
	*r = Round{}
	h.features = h.features[:0]
	codeHeld(&c, r, h)
	return c.Must(len(c.Bytes()) == 0 && r.Action < len(r.Propensities) && r.Loss <= 1 &&
		r.Fate >= Observed && r.Fate <= Skipped, "")
}

// codeHeld is the bytes of a round that waits ([inOrder]): fate, action, loss, law, and what [Models] and
// its alarm see of the input. What it reads lies in h.
func codeHeld(c *oracle.Coder, r *Round, h *heldRound) {
	mark, loss := byte(r.Fate), r.Loss
	if r.Borrowed {
		mark |= borrowedBit
	}
	if r.Fate != Observed {
		loss = 0 // it may be NaN
	}
	c.Byte(&mark)
	action := c.Count(r.Action, 1)
	c.Float(0, &loss)
	k := c.Count(len(r.Propensities), 8)
	if c.Reading() {
		h.law, h.actions = resize(h.law, k), resize(h.actions, k)
		*r = Round{Input: &h.in, Action: action, Propensities: h.law, Fate: Fate(mark &^ borrowedBit), Loss: loss,
			Borrowed: mark&borrowedBit != 0}
		h.in = oracle.Input{Actions: h.actions}
	}
	in := r.Input
	c.FloatsFrom(0, r.Propensities)
	codeHeldFeatures(c, &in.Features, h)
	if n := c.Count(len(in.Vector), 8); c.Reading() {
		h.vector = resize(h.vector, n)
		in.Vector = h.vector
	}
	c.Floats(in.Vector)
	for i := range r.Propensities {
		c.Text(&in.Actions[i].Name)
		codeHeldFeatures(c, &in.Actions[i].Features, h)
	}
}

func codeHeldFeatures(c *oracle.Coder, fs *[]oracle.Feature, h *heldRound) {
	if n := c.Count(len(*fs), 2); c.Reading() {
		from := len(h.features)
		h.features = slices.Grow(h.features, n)[:from+n]
		*fs = h.features[from : from+n : from+n]
	}
	for i := range *fs {
		f := &(*fs)[i]
		kind := byte(f.Kind)
		c.Byte(&kind)
		if c.Reading() {
			*f = oracle.Feature{Kind: oracle.FeatureKind(kind)}
		}
		if c.Text(&f.Name); f.Kind == oracle.Text {
			c.Text(&f.Text)
		} else {
			c.Float(math.Inf(-1), &f.Value)
		}
	}
}
