package service

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// wrote is what a process knows of a partition of decisions that it has written: what was
// acknowledged must be there. A log that loses it all the same, as Kafka does when an operator has a
// replica lead that lacks it, looks to the next owner as if it had never been.
type wrote struct {
	n      atomic.Int64 // of the last decision acknowledged
	offset atomic.Int64 // of the last record acknowledged
}

var errLostTail = errors.New("decisions that were acknowledged are gone: did a replica that lacked them become the leader?")

// note notes an acknowledgement; n is 0 if it was not a decision's.
func (w *wrote) note(n, offset int64) error {
	if was := w.offset.Swap(offset); offset <= was {
		return fmt.Errorf("at offset %d, where offset %d had been: %w", offset, was, errLostTail)
	}
	w.n.Store(max(w.n.Load(), n))
	return nil
}

// lookTail fails if the log ends before what was acknowledged.
func (d *Decider) lookTail(ctx context.Context) error {
	acked := d.cfg.wrote.offset.Load()
	_, end, err := d.cfg.Log.Bounds(ctx, d.topics.Decisions, d.cfg.Partition)
	if err == nil && end <= acked {
		d.fail(fmt.Errorf("%s[%d] ends at %d, offset %d had been written: %w",
			d.topics.Decisions, d.cfg.Partition, end, acked, errLostTail))
	}
	return err
}
