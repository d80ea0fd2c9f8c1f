package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hindsight/pkg/stream"
)

// What a reader asks of a broker.
const (
	readBytes  = 1 << 20 // of one fetch; a larger batch comes whole
	waitMillis = 500     // most that a broker waits for the first record
	chunks     = 3       // one in use, one ready, one being fetched
)

// chunk is what one fetch brought.
type chunk struct {
	memory  []byte // reused
	batches []byte // of memory
	high    int64  // the end of the partition as the broker told, but for transactions that are open
	aborted []aborted
	err     error
	of      *fetcher
}

// leaderSource fetches from the partition's leader on a connection of its own.
type leaderSource struct {
	line
	waits time.Time // since when there is nothing but an open transaction; zero: that is not so
}

// fetch returns batches from an offset on, none if there are none after a while. What it
// returned before is overwritten if its chunk is passed again. It waits out a leader that moves.
func (s *leaderSource) fetch(ctx context.Context, offset int64, into *chunk) error {
	start, told := time.Now(), false
	for backoff, fresh := firstBackoff, false; ; fresh = true {
		err := s.try(ctx, offset, into, fresh)
		if !isTransient(err) || time.Since(start) > s.c.patience {
			return err
		}
		if backoff == maxBackoff && !told {
			told = true
			s.c.o.Logger.Warn("partition cannot be read now", "topic", s.p.Topic, "partition", s.p.Partition,
				"error", err)
		}
		if err := s.c.pause(ctx, &backoff); err != nil {
			return err
		}
	}
}

func (s *leaderSource) close() {
	s.line.close()
	s.c.log.hold(s.p, nil)
}

func (s *leaderSource) try(ctx context.Context, offset int64, into *chunk, fresh bool) error {
	cn, err := s.connection(ctx, fresh)
	if err != nil {
		return err
	}
	// a broker that hangs may lead no more
	_ = cn.SetDeadline(time.Now().Add(s.c.o.RequestTimeout/4 + waitMillis*time.Millisecond))
	cn.in = into.memory
	r, err := cn.fetch(&s.p, offset, waitMillis, readBytes, committed)
	into.memory, cn.in = cn.in, nil
	if err != nil {
		s.drop(cn)
		return err
	}
	switch k := kafkago.Error(r.code); {
	case k == 0:
		into.batches, into.high, into.aborted = r.batches, r.stable, r.aborted
		s.noteOpen(ctx, &r)
		return nil
	case k == kafkago.OffsetOutOfRange:
		return s.outside(ctx, offset)
	case k == kafkago.UnknownTopicOrPartition:
		s.drop(cn)
		if _, err := s.c.leader(ctx, &s.p, true); err != nil {
			return err
		}
		return errNoLeader
	case isTransientCode(k):
		s.drop(cn) // another broker leads
	}
	return classify(r.code)
}

// outside says on which side an offset is that a broker does not have.
func (s *leaderSource) outside(ctx context.Context, offset int64) error {
	first, next, err := s.c.ends(ctx, &s.p)
	switch {
	case err != nil:
		return err
	case offset < first:
		return stream.ErrTruncated
	case offset > next:
		return stream.ErrAhead
	}
	return fmt.Errorf("%w: the broker moved while it was asked for offset %d", stream.ErrUnavailable, offset)
}

// fetcher fetches ahead of a reader until it meets an error.
type fetcher struct {
	src   *leaderSource
	full  chan *chunk // what was fetched, in order; the last one has err
	empty chan *chunk
	done  chan struct{} // closed when it is over
	stop  context.CancelFunc
}

// startFetcher fetches from an offset on.
func startFetcher(ctx context.Context, src *leaderSource, offset int64) *fetcher {
	ctx, cancel := context.WithCancel(ctx)
	f := &fetcher{src: src, full: make(chan *chunk, chunks), empty: make(chan *chunk, chunks),
		done: make(chan struct{}), stop: cancel}
	for range chunks {
		f.empty <- &chunk{of: f}
	}
	go f.run(ctx, offset)
	return f
}

func (f *fetcher) run(ctx context.Context, offset int64) {
	defer close(f.done)
	defer f.src.close()
	corrupt := 0
	for {
		var c *chunk
		select {
		case c = <-f.empty:
		case <-ctx.Done():
			return
		}
		for c.batches = nil; len(c.batches) == 0 && c.err == nil; {
			if c.err = f.src.fetch(ctx, offset, c); c.err != nil {
				break
			}
			var next int64
			next, c.err = checkBatches(c, offset)
			if errors.Is(c.err, ErrCorrupt) && corrupt < 3 { // on the way, perhaps
				corrupt++
				c.batches, c.err = nil, nil
				continue
			}
			corrupt, offset = 0, max(offset, next)
		}
		last := c.err != nil
		select {
		case f.full <- c:
		case <-ctx.Done():
			return
		}
		if last {
			return
		}
	}
}

// checkBatches checks the CRCs, cuts a batch off that is not whole, and returns the offset after the last one.
func checkBatches(c *chunk, offset int64) (next int64, err error) {
	next = offset
	rest := c.batches
	for len(rest) > 0 {
		s, r, ok, err := cutBatch(rest)
		if err == nil && ok {
			err = s.check()
		}
		if err != nil {
			if at := len(c.batches) - len(rest); at > 0 { // give what is good first
				c.batches = c.batches[:at]
				return next, nil
			}
			return next, fmt.Errorf("%w, at offset %d", err, next)
		}
		if !ok {
			break
		}
		next, rest = max(next, s.next), r
	}
	if next == offset && len(c.batches) > 0 {
		return next, fmt.Errorf("%w: asked for offset %d, the broker gave what is before it, or a part of it",
			ErrCorrupt,
			offset)
	}
	c.batches = c.batches[:len(c.batches)-len(rest)]
	return next, nil
}

// close ends the fetcher and waits for it.
func (f *fetcher) close() {
	f.stop()
	f.src.close()
	<-f.done
}
