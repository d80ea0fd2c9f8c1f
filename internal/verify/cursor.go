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

// brokenLog is an error that says that a log has no record where it must have one, or that
// its storage finds one damaged.
type brokenLog struct {
	Difference
	err error
}

// broken reports whether an error of a log says so.
func broken(err error) bool {
	return errors.Is(err, stream.ErrGap) || errors.Is(err, stream.ErrCorrupt)
}

func (b *brokenLog) Error() string { return b.err.Error() }
func (b *brokenLog) Unwrap() error { return b.err }

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

	losses []loss  // of the logs
	kept   []int64 // by loss: the offset behind the last record taken that is certainly older
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
	if c.after == 0 && batch[0].Offset > c.first {
		if err := c.shortened(ctx); err != nil {
			return err
		}
	}
	c.got(batch)
	return nil
}

// shortened asks again what the log keeps: retention may have taken records since.
func (c *logCursor) shortened(ctx context.Context) error {
	first, _, err := c.log.Bounds(ctx, c.topic, c.partition)
	c.first = max(c.first, first)
	return err
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
	at := from.Position()
	told := fmt.Errorf("%s[%d]@%d: %w", c.topic, c.partition, at, err)
	if broken(err) {
		return nil, &brokenLog{Difference{Topic: c.topic, Partition: c.partition, Offset: at, Time: c.time,
			Field: "record", Want: "a record that the log can read", Got: err.Error()}, told}
	}
	return nil, told
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
	for i := range c.losses {
		if c.time < c.losses[i].since {
			c.kept[i] = c.offset() + 1
		}
	}
	c.i++
}

// watch lets the cursor see what it keeps from before each loss.
func (c *logCursor) watch(l *losses) { c.losses, c.kept = l.all, make([]int64, len(l.all)) }

// lost reports whether a loss may have taken a record from an offset, which was there before
// a log time.
func (c *logCursor) lost(offset, before int64) bool {
	for i := range c.losses {
		if before <= c.losses[i].time && offset >= c.kept[i] {
			return true
		}
	}
	return false
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
