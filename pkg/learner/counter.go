package learner

import (
	"fmt"

	"hindsight/pkg/oracle"
)

// counter counts learned rounds; every baseline has one.
type counter struct{ learned int64 }

// Learned implements [Learner].
func (c *counter) Learned() int64 { return c.learned }

// NeedsFIFO implements [Learner]: baselines guarantee nothing.
func (c *counter) NeedsFIFO() bool { return false }

func (c *counter) takes(r *Round) bool {
	if r.Partial || r.Fate != Observed && r.Fate != Imputed {
		return false
	}
	c.learned++
	return true
}

func (c *counter) readAll(b []byte, kind byte) error {
	learned, rest, err := readHeader(b, kind)
	if err != nil {
		return err
	}
	if len(rest) != 0 {
		return fmt.Errorf("%d bytes too many: %w", len(rest), ErrSnapshot)
	}
	c.learned = learned
	return nil
}

func (c *counter) readWith(b []byte, kind byte, reg oracle.Regressor) error {
	learned, rest, err := readHeader(b, kind)
	if err != nil {
		return err
	}
	if err := reg.UnmarshalBinary(rest); err != nil {
		return err
	}
	c.learned = learned
	return nil
}
