package verify

import (
	"context"
	"errors"

	"hindsight/pkg/stream"
)

// mostBegun is how often reading begins where the first records are dropped before they come.
const mostBegun = 10

// logCursor reads one partition from a position to an end that was fetched before.
type logCursor struct {
	log       stream.Log
	topic     string
	partition int
	first     int64 // kept by the log, when it was asked and when reading began
	end       int64

	reader stream.Reader
	batch  []stream.Record
	i      int
	after  int64 // before it everything was read; 0: nothing was
	time   int64 // running maximum of the log times taken
	read   func(n int)
	to     *queue // who else needs what is read; nil: nobody does
}

// openCursor fetches a partition's bounds.
func (v *verification) openCursor(ctx context.Context, topic string, partition int) (*logCursor, error) {
	first, end, err := v.Log.Bounds(ctx, topic, partition)
	if err != nil {
		return nil, err
	}
	c := logCursor{log: v.Log, topic: topic, partition: partition, first: first, end: end}
	v.opened = append(v.opened, c)
	return &c, nil
}

// cut reports whether the partition may have lost its beginning to retention: logs start at 0 or 1.
func (c *logCursor) cut() bool { return c.first > 1 }

// seek moves the cursor to an offset. Positions before the first kept mean that.
func (c *logCursor) seek(from int64) {
	c.close()
	c.batch, c.i, c.after = nil, 0, from
}

// head returns the next record, nil at the end. It is valid until the next head after a take.
func (c *logCursor) head(ctx context.Context) (*stream.Record, error) {
	if c.i == len(c.batch) {
		if c.first >= c.end || c.after >= c.end {
			return nil, nil
		}
		if err := c.next(ctx); err != nil || len(c.batch) == 0 {
			return nil, err
		}
	}
	if r := &c.batch[c.i]; r.Offset < c.end {
		return r, nil
	}
	return nil, nil
}

// next fetches more; nothing at the end. Where the first records are dropped before they come, it begins anew.
func (c *logCursor) next(ctx context.Context) (err error) {
	c.i = 0
	for try := 1; ; try++ {
		c.batch = c.batch[:0]
		if err = c.open(ctx); err != nil {
			return err
		}
		for err == nil && len(c.batch) == 0 && c.reader.Position() < c.end {
			c.batch, err = c.reader.Next(ctx, c.batch)
		}
		if !errors.Is(err, stream.ErrTruncated) || c.after > c.first || try == mostBegun {
			break
		}
		c.reader.Close()
		c.reader = nil
	}
	k := len(c.batch)
	if err != nil || k == 0 {
		return err
	}
	c.after = c.batch[k-1].Offset + 1
	if c.to != nil {
		c.to.put(c.batch)
	}
	if c.read != nil {
		c.read(k)
	}
	return nil
}

// open makes a reader, if there is none: of all that is kept now, unless something was read.
func (c *logCursor) open(ctx context.Context) (err error) {
	if c.reader != nil {
		return nil
	}
	from := stream.Earliest
	if c.after > c.first {
		from = c.after
	}
	c.reader, err = c.log.Read(ctx, c.topic, c.partition, from)
	if err != nil || from != stream.Earliest {
		return err
	}
	first, _, err := c.log.Bounds(ctx, c.topic, c.partition) // the reader may be behind what was aborted
	c.first = max(c.first, first)
	return err
}

// walk gives f each record up to the end, and closes the cursor.
func (c *logCursor) walk(ctx context.Context, f func(r *stream.Record) error) error {
	defer c.close()
	for {
		r, err := c.head(ctx)
		if err != nil || r == nil {
			return err
		}
		if err := f(r); err != nil {
			return err
		}
		c.take()
	}
}

// offset returns the offset of the head, which must be there.
func (c *logCursor) offset() int64 { return c.batch[c.i].Offset }

// failed returns an error that says which record verifying ended with.
func (c *logCursor) failed(offset int64, err error) error {
	return &stream.Error{Op: "verify", Topic: c.topic, Partition: c.partition, Offset: offset, Err: err}
}

// logTime returns the head's log time, made monotone.
func (c *logCursor) logTime(r *stream.Record) int64 { return max(c.time, r.Time) }

// keyless notes a control record with a key, which none has.
func (c *logCursor) keyless(v *verification, r *stream.Record) {
	if len(r.Key) > 0 {
		v.differ(at(c, r, "key", "none", string(r.Key)))
	}
}

// take moves behind the head.
func (c *logCursor) take() {
	c.time = c.logTime(&c.batch[c.i])
	c.i++
}

func (c *logCursor) close() {
	if c.to != nil {
		c.to.end()
	}
	if c.reader != nil {
		c.reader.Close()
		c.reader = nil
	}
}
