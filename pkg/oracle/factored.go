package oracle

import (
	"errors"
	"fmt"
)

// Factored is [Hedge] over a product class F = F_1 × … × F_m without enumerating it: every context belongs to one block
// b, and a function (f_1, …, f_m) says f_b of it. The weights of a product prior stay a product, so that one Hedge a
// block, fed with the rounds of its block alone, makes the very predictions of Hedge over all |F_1|·…·|F_m| functions;
// log|F| adds up, and so do the bounds, for KL(q_t‖q_{t+1}) is that of the one block that learned.
type Factored struct {
	of     func(x *Input) int
	blocks []*Hedge
}

var _ Regressor = (*Factored)(nil)

// NewFactored returns the oracle over the product of factors; of returns the block of a
// context, an index of factors, and must be pure.
func NewFactored(of func(x *Input) int, factors []Class, o HedgeOptions) (*Factored, error) {
	if len(factors) == 0 || o.Prior != nil {
		return nil, errors.New("factored: there must be a factor, and no prior over the product")
	}
	f := &Factored{of: of}
	for i, c := range factors {
		h, err := NewHedge(c, o)
		if err != nil {
			return nil, fmt.Errorf("factored: factor %d: %w", i, err)
		}
		f.blocks = append(f.blocks, h)
	}
	return f, nil
}

// Predict implements [Regressor].
func (f *Factored) Predict(dst []float64, x *Input) { f.blocks[f.of(x)].Predict(dst, x) }

// Update implements [Regressor].
func (f *Factored) Update(x *Input, action int, loss float64) {
	f.blocks[f.of(x)].Update(x, action, loss)
}

// Regret returns the bound log|F|/η of [Hedge.Regret] for the product: the sum over
// factors, where one of a single function counts as 2.
func (f *Factored) Regret() float64 {
	sum := 0.0
	for _, h := range f.blocks {
		sum += h.Regret()
	}
	return sum
}

// Proved reports whether Regret and Beta are theorems' bounds.
func (f *Factored) Proved() bool { return f.blocks[0].Proved() }

// Beta returns the stability constant of [Hedge.Beta] for the product.
func (f *Factored) Beta() float64 {
	sum := 0.0
	for _, h := range f.blocks {
		sum += h.Beta()
	}
	return sum
}

// OrderFree implements [Regressor].
func (f *Factored) OrderFree() bool { return true }

const factoredVersion = 1

// AppendBinary implements [Regressor].
func (f *Factored) AppendBinary(b []byte) ([]byte, error) { return appendState(b, f) }

// UnmarshalBinary implements [Regressor].
func (f *Factored) UnmarshalBinary(b []byte) error {
	n := &Factored{of: f.of}
	for _, h := range f.blocks {
		n.blocks = append(n.blocks, h.fresh())
	}
	return readState(b, "factored", f, n)
}

// code is the states of the blocks, each behind its length.
func (f *Factored) code(c *Coder) {
	c.Version(factoredVersion, factoredVersion, "")
	if !c.Must(c.Count(len(f.blocks), 1) == len(f.blocks), "another number of blocks") {
		return
	}
	for _, h := range f.blocks {
		var state []byte
		if !c.Reading() {
			state, _ = h.AppendBinary(nil)
		}
		state = c.Blob(state)
		if !c.Reading() {
			continue
		}
		if err := h.UnmarshalBinary(state); err != nil {
			c.Fail(err)
			return
		}
	}
}
