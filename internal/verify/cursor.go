package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hindsight/pkg/stream"
)

// stall is how long a read inside a log's bounds may take: the last records before
// the end may be missing, and then nothing would ever come.
const stall = time.Minute

var errStalled = errors.New("nothing comes, though the log says that its end lies further")

// logCursor reads one partition from a position to an end that was fetched before.
type logCursor struct {
	log       stream.Log
	topic     string
	partition int
	first     int64 // kept by the log
	end       int64

	feed   *feed // of this side and another; nil: there is a reader
	side   int
	reader stream.Reader
	batch  []stream.Record
	i      int
	after  int64 // before it everything was read; 0: nothing was
	time   int64 // running maximum of the log times taken
	read   func(n int)
}

// openCursor fetches a partition's bounds.
func (v *verification) openCursor(ctx context.Context, topic string, partition int) (*logCursor, error) {
	first, end, err := v.Log.Bounds(ctx, topic, partition)
	if err != nil {
		return nil, err
	}
	return &logCursor{log: v.Log, topic: topic, partition: partition, first: first, end: end}, nil
}

// cut reports whether the partition may have lost its beginning to retention: logs
// start at 0 or 1.
func (c *logCursor) cut() bool { return c.first > 1 }

// seek moves the cursor to an offset. Positions before the first kept mean that.
func (c *logCursor) seek(ctx context.Context, from int64) (err error) {
	c.close()
	c.batch, c.i = nil, 0
	if from <= c.first {
		from = stream.Earliest
	}
	c.reader, err = c.log.Read(ctx, c.topic, c.partition, from)
	return err
}

// head returns the next record, nil at the end. It is valid until the next head
// after a take.
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

// next fetches more; nothing at the end.
func (c *logCursor) next(ctx context.Context) (err error) {
	c.i = 0
	if c.feed != nil {
		switch b, err := c.feed.next(ctx, c); {
		case errors.Is(err, errLeft):
			c.feed = nil
		case err != nil || b == nil:
			c.batch, c.after = nil, c.end
			c.close()
			return err
		default:
			c.got(b.recs)
			return nil
		}
	}
	if c.reader == nil {
		if err := c.seek(ctx, c.after); err != nil {
			return err
		}
	}
	if c.reader.Position() >= c.end {
		c.batch, c.after = nil, c.end
		return nil
	}
	batch, err := c.receive(ctx, c.reader, c.batch[:0])
	if err != nil {
		c.batch = nil
		return err
	}
	c.got(batch)
	return nil
}

// got takes what was read.
func (c *logCursor) got(batch []stream.Record) {
	c.batch, c.after = batch, batch[len(batch)-1].Offset+1
	if c.read != nil {
		c.read(len(batch))
	}
}

// receive reads at least one record, which must come.
func (c *logCursor) receive(ctx context.Context, from stream.Reader, dst []stream.Record) ([]stream.Record, error) {
	wait, cancel := context.WithTimeoutCause(ctx, stall, errStalled)
	defer cancel()
	dst, err := from.Next(wait, dst)
	if err == nil {
		return dst, nil
	}
	if wait.Err() != nil {
		err = context.Cause(wait)
	}
	return nil, fmt.Errorf("%s[%d]@%d: %w", c.topic, c.partition, from.Position(), err)
}

// offset returns the offset of the head, which must be there.
func (c *logCursor) offset() int64 { return c.batch[c.i].Offset }

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
	if c.feed != nil {
		c.feed.leave(c.side)
		c.feed = nil
	}
	if c.reader != nil {
		c.reader.Close()
		c.reader = nil
	}
}
