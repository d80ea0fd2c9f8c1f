package service

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"hindsight/internal/join"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// wrote is what a process knows of a partition of decisions that it has written: what was
// acknowledged must be there. A log that loses it all the same, as Kafka does when an operator has a
// replica lead that lacks it, looks to the next owner as if it had never been.
type wrote struct {
	n      atomic.Int64 // of the last decision acknowledged
	offset atomic.Int64 // of the last record acknowledged
	left   atomic.Pointer[claim]
}

// claim is the last decision that a process wrote to a partition before it gave that up or lost it. Another owner
// cannot know of it if it is gone by then.
type claim struct {
	n, offset int64
	sum       uint32    // of the record; 0: it was too large to be remembered
	due       time.Time // of the next look
}

// claimEvery is how often a process looks again for what it found.
const claimEvery = time.Minute

// leave notes what the next owner must find.
func (d *Decider) leave() {
	n := d.cfg.wrote.n.Load()
	if n == 0 {
		return
	}
	value, offset, ok := d.recent.get(n)
	if !ok || offset < 0 {
		return
	}
	was := &claim{n: n, offset: offset}
	if len(value) > 0 {
		if !codec.IsJSON(value) { // what this process made is remembered before it is encoded
			value = codec.Stored(nil, d.cfg.Encoding, "", value)
		}
		was.sum = codec.Sum(0, offset, 0, "", value)
	}
	d.cfg.wrote.left.Store(was)
}

// witness looks whether what this process wrote to partitions that it has left since is still there.
func (c *SystemConfig) witness(ctx context.Context) {
	topic := join.TopicsOf(c.Name).Decisions
	for p := range c.written {
		was := c.written[p].left.Load()
		if was == nil || time.Now().Before(was.due) {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		dropped, gone, err := was.look(ctx, c.Log, topic, p)
		cancel()
		if err != nil {
			continue
		}
		was.due = time.Now().Add(claimEvery)
		if dropped || gone {
			c.written[p].left.CompareAndSwap(was, nil)
		}
		if gone {
			c.Metrics.LostTails.Inc()
			c.Logger.Error("logs have lost their tails: decisions that this process made and that were acknowledged "+
				"are gone, and the next owner of the partition may use their numbers again",
				"partition", p, "round", was.n, "offset", was.offset)
		}
	}
}

// look reports whether retention has dropped what was claimed, or the partition does not hold it.
func (w *claim) look(ctx context.Context, log stream.Log, topic string, p int) (dropped, gone bool, err error) {
	gone = true
	err = stream.Scan(ctx, log, topic, p, w.offset, w.offset+1, func(r *stream.Record) error {
		var d codec.Decision
		gone = r.Type != "" || codec.ParseDecision(&d, r.Value) != nil || d.N != w.n ||
			w.sum != 0 && codec.Sum(0, r.Offset, 0, "", r.Value) != w.sum
		return nil
	})
	if first, _, bounds := log.Bounds(ctx, topic, p); bounds != nil || first > w.offset { // dropped meanwhile
		return true, false, bounds
	}
	return false, gone, err
}

var errLostTail = errors.New("decisions that were acknowledged are gone: did a replica that lacked them become the " +
	"leader?")

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
