package learner

import (
	"encoding/binary"
	"fmt"
	"math"
)

// AppendBinary implements [Learner].
func (e *EXP4) AppendBinary(b []byte) ([]byte, error) {
	b = appendHeader(b, kindEXP4, e.learned)
	b = e.tally.counts.appendBinary(b)
	for _, v := range e.tally.floats() {
		b = appendBits(b, *v)
	}
	b = appendBits(b, e.eta)
	b = appendBits(b, e.breadth)
	plain := byte(0)
	if e.plain {
		plain = 1
	}
	b = append(b, plain)
	b = appendBits(b, e.spent)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(e.losses)))
	for _, v := range e.losses {
		b = appendBits(b, v)
	}
	for _, v := range e.logPrior {
		b = appendBits(b, v)
	}
	return b, nil
}

func appendBits(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
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
	next := func() float64 {
		v := math.Float64frombits(binary.LittleEndian.Uint64(b))
		b = b[8:]
		return v
	}
	for _, v := range t.floats() {
		*v = next()
		if !(*v >= 0) || math.IsInf(*v, 0) {
			return fmt.Errorf("exp4: a sum of the certificate is %v: %w", *v, ErrSnapshot)
		}
	}
	eta, breadth := next(), next()
	plain := b[0]
	b = b[1:]
	spent := next()
	size := binary.LittleEndian.Uint64(b)
	b = b[8:]
	if eta != e.eta || breadth != e.breadth || (plain == 1) != e.plain || plain > 1 || size != uint64(n) {
		return fmt.Errorf("exp4: other parameters: %w", ErrSnapshot)
	}
	losses := make([]float64, n)
	for i := range losses {
		losses[i] = next()
		if !(losses[i] >= 0) || math.IsInf(losses[i], 0) {
			return fmt.Errorf("exp4: the loss of policy %d is %v: %w", i, losses[i], ErrSnapshot)
		}
	}
	for _, v := range e.logPrior {
		if next() != v {
			return fmt.Errorf("exp4: other prior: %w", ErrSnapshot)
		}
	}
	if !(spent >= 0) || math.IsInf(spent, 0) || (spent > 0) != (learned > 0) {
		return fmt.Errorf("exp4: %v spent on %d rounds: %w", spent, learned, ErrSnapshot)
	}
	e.learned, e.spent, e.losses, e.tally = learned, spent, losses, t
	e.weigh()
	return nil
}
