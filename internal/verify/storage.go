package verify

import (
	"context"
	"errors"
	"time"

	"hindsight/pkg/stream"
)

// stall is how long a read inside a log's bounds may take: the last records before
// the end may be missing, and then nothing would ever come.
const stall = time.Minute

var errStalled = errors.New("nothing comes, though the log says that its end lies further; on Kafka a transaction " +
	"may be open")

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

// storage is a log whose readers say where they fail, and fail where nothing comes.
type storage struct{ stream.Log }

func (l storage) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	r, err := l.Log.Read(ctx, topic, partition, from)
	if err != nil {
		return nil, err
	}
	return &storedReader{Reader: r, place: stream.Place{Topic: topic, Partition: partition}}, nil
}

type storedReader struct {
	stream.Reader
	place stream.Place
	time  int64 // log time of the last record read
}

func (r *storedReader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	wait, cancel := context.WithTimeoutCause(ctx, stall, errStalled)
	defer cancel()
	dst, err := r.Reader.Next(wait, dst)
	if err == nil {
		if k := len(dst); k > 0 {
			r.time = dst[k-1].Time
		}
		return dst, nil
	}
	if wait.Err() != nil {
		err = context.Cause(wait)
	}
	at := r.Position()
	told := r.place.Fail("read", at, err)
	if broken(err) {
		told = &brokenLog{Difference{Topic: r.place.Topic, Partition: r.place.Partition, Offset: at, Time: r.time,
			Field: "record", Want: "a record that the log can read", Got: err.Error()}, told}
	}
	return dst, told
}
