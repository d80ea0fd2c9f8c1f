package join

import (
	"context"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// rejected is a reject that waits for the acknowledgement of its cut.
type rejected struct {
	seq uint64
	r   codec.Reject
}

// queueRejects keeps the rejects of a cut until it is acknowledged: their log has no fence.
func (c *Core) queueRejects(ctx context.Context, seq uint64) error {
	for _, r := range c.ready.Rejects {
		r.Fit()
		c.queue = append(c.queue, rejected{seq, r})
		c.queued += len(r.Bytes)
	}
	if c.queued > maxQueued {
		return c.feedback.Flush(ctx)
	}
	return nil
}

// storeRejects appends the rejects of acknowledged cuts.
func (c *Core) storeRejects(ctx context.Context) error {
	acked, k := c.acked.Load(), 0
	for ; k < len(c.queue) && c.queue[k].seq <= acked; k++ {
		r := &c.queue[k].r
		if err := c.appendReject(ctx, r); err != nil {
			return err
		}
		c.queued -= len(r.Bytes)
	}
	rest := copy(c.queue, c.queue[k:])
	clear(c.queue[rest:])
	c.queue = c.queue[:rest]
	return nil
}

func (c *Core) appendReject(ctx context.Context, r *codec.Reject) error {
	rec := stream.Record{Key: []byte(r.ID), Value: codec.AppendReject(nil, r)}
	c.encoder.Encode(&rec)
	if _, err := c.rejects.Append(ctx, &rec); err != nil {
		c.cfg.Hooks.appended(c.cfg.Topics.Rejects, err)
		return err
	}
	if c.cfg.Hooks.Reject != nil {
		c.cfg.Hooks.Reject(r)
	}
	return nil
}

// Refuse appends rejects that follow from no cut. A mark says first that the joiner is still the one:
// their log has no fence.
func (c *Core) Refuse(ctx context.Context, rejects []codec.Reject) error {
	if err := c.Stop(ctx); err != nil {
		return err
	}
	for i := range rejects {
		rejects[i].Fit()
		if err := c.appendReject(ctx, &rejects[i]); err != nil {
			return err
		}
	}
	return c.rejects.Flush(ctx)
}
