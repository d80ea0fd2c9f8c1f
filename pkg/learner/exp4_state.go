package learner

import (
	"fmt"
	"math"
)

// AppendBinary implements [Learner].
func (e *EXP4) AppendBinary(b []byte) ([]byte, error) {
	b = appendHeader(b, kindEXP4, e.learned)
	b = e.tally.counts.appendBinary(b)
	for _, v := range e.tally.floats() {
		b = appendFloats(b, []float64{*v})
	}
	b = append(appendFloats(b, []float64{e.eta, e.breadth}), flag(e.plain))
	b = appendInt64(appendFloats(b, []float64{e.spent}), int64(len(e.losses)))
	return appendFloats(appendFloats(b, e.losses), e.logPrior), nil
}

// UnmarshalBinary implements [Learner].
func (e *EXP4) UnmarshalBinary(b []byte) error {
	learned, b, err := readHeader(b, kindEXP4)
	if err != nil {
		return err
	}
	var t policyTally
	if b, err = t.counts.readBinary(b); err != nil {
		return err
	}
	n := len(e.losses)
	if want := 8*(4+2+1+1+n+len(e.logPrior)) + 1; len(b) != want {
		return fmt.Errorf("%d bytes where %d are expected for %d policies: %w", len(b), want, n, ErrSnapshot)
	}
	r := stateReader{b: b}
	for _, v := range t.floats() {
		*v = r.float(0)
	}
	least := math.Inf(-1)
	eta, breadth, plain := r.float(least), r.float(least), r.byte()
	spent, size := r.float(0), r.int64()
	if eta != e.eta || breadth != e.breadth || plain != flag(e.plain) || size != int64(n) {
		return fmt.Errorf("exp4: other parameters: %w", ErrSnapshot)
	}
	losses := make([]float64, n)
	r.floats(losses, 0)
	for _, v := range e.logPrior {
		if r.float(least) != v {
			return fmt.Errorf("exp4: other prior: %w", ErrSnapshot)
		}
	}
	if r.bad || (spent > 0) != (learned > 0) {
		return fmt.Errorf("exp4: sums that no run leaves: %w", ErrSnapshot)
	}
	e.learned, e.spent, e.losses, e.tally = learned, spent, losses, t
	e.weigh()
	return nil
}
