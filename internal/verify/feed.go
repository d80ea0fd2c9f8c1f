package verify

import (
	"context"
	"errors"
	"sync"

	"hindsight/pkg/stream"
)

// The two checks that run side by side both read decisions and feedback. Reading is
// most of the work, so a feed reads a partition once for both, and holds what one of
// them has read and the other has not. Who is too far ahead waits; unless the other
// waits for it at another partition: then the one that is behind goes on with a reader
// of its own.

// feedRoom is how many bytes all feeds of a log together hold for who is behind.
const feedRoom = 64 << 20

// The sides of a feed.
const (
	decisionSide = iota
	fateSide
)

// errLeft says that a side has to go on with a reader of its own.
var errLeft = errors.New("too far behind")

// feeds are the feeds of a verification.
type feeds struct {
	mu      sync.Mutex
	wake    sync.Cond // broadcast whenever something has changed
	most    int       // bytes that one feed holds
	waiting [2]*feed  // where a side waits for the other; nil: it does not
}

func newFeeds(n int) *feeds {
	s := &feeds{most: feedRoom / max(n, 1)}
	s.wake.L = &s.mu
	return s
}

// feed reads one partition for both sides. Its fields are guarded by the mutex of its
// feeds, but for reader, tap and pos, which belong to who fetches.
type feed struct {
	*feeds
	reader stream.Reader
	tap    func(*stream.Record) error // sees each record first; may be nil

	fetching bool
	pos      int64        // the reader's position, -1 before the first fetch
	window   []*feedBatch // what some side needs yet
	base     int          // number of the first of them
	held     int          // bytes in them
	spare    []*feedBatch
	at       [2]int  // number of the batch that a side reads
	here     [2]bool // the side reads this feed
}

// feedBatch are records whose bytes are its own.
type feedBatch struct {
	recs  []stream.Record
	bytes []byte
}

// share makes two cursors at the beginning of a partition read it together. tap sees
// each record before them.
func (s *feeds) share(decisions, fates *logCursor, tap func(*stream.Record) error) {
	f := &feed{feeds: s, tap: tap, pos: -1, at: [2]int{-1, -1}, here: [2]bool{true, true}}
	decisions.feed, decisions.side = f, decisionSide
	fates.feed, fates.side = f, fateSide
}

// next returns the next batch for a side, which has done with the one before. It
// returns nil if the partition was read to end, and errLeft if the side has to read
// by itself from where it is.
func (f *feed) next(ctx context.Context, c *logCursor) (*feedBatch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at[c.side]++
	f.trim(true)
	for {
		other := 1 - c.side
		switch i := f.at[c.side] - f.base; {
		case !f.here[c.side]:
			return nil, errLeft
		case i < len(f.window):
			return f.window[i], nil
		case f.pos >= c.end:
			return nil, nil
		case f.fetching:
			f.wake.Wait()
		case !f.full(other):
			if err := f.fetch(ctx, c); err != nil {
				return nil, err
			}
		case f.waiting[other] != nil && f.waiting[other].full(c.side):
			f.here[other] = false
			f.trim(false) // it still reads the batch that it has
		default:
			f.waiting[c.side] = f
			f.wake.Wait()
			f.waiting[c.side] = nil
		}
	}
}

// full reports whether a side is so far behind that no more can be held for it.
func (f *feed) full(side int) bool {
	return f.here[side] && f.held >= f.most && len(f.window) > 1
}

// trim forgets what both sides have read, and tells that something has changed.
func (f *feed) trim(reuse bool) {
	first := f.base + len(f.window)
	for side, at := range f.at {
		if f.here[side] {
			first = min(first, max(at, f.base))
		}
	}
	for ; f.base < first; f.base++ {
		b := f.window[0]
		f.window = f.window[1:]
		f.held -= len(b.bytes)
		if reuse && len(f.spare) < 4 { // more would keep what the largest gap took
			f.spare = append(f.spare, b)
		}
	}
	f.wake.Broadcast()
}

// fetch reads a batch, if there is more before a cursor's end. Meanwhile the other side may take what is there.
func (f *feed) fetch(ctx context.Context, c *logCursor) error {
	b := &feedBatch{}
	if n := len(f.spare); n > 0 {
		b, f.spare = f.spare[n-1], f.spare[:n-1]
	}
	f.fetching = true
	f.mu.Unlock()
	pos, err := f.read(ctx, c, b)
	f.mu.Lock()
	f.fetching, f.pos = false, pos
	f.wake.Broadcast()
	if err != nil {
		return err
	}
	if len(b.recs) > 0 {
		f.window = append(f.window, b)
		f.held += len(b.bytes)
	}
	return nil
}

func (f *feed) read(ctx context.Context, c *logCursor, b *feedBatch) (pos int64, err error) {
	if f.reader != nil {
		b.recs, err = c.receive(ctx, f.reader, b.recs[:0])
	} else if f.reader, _, b.recs, err = c.begin(ctx, b.recs[:0]); f.reader == nil {
		return -1, err
	}
	if err != nil {
		return f.reader.Position(), err
	}
	for i := range b.recs {
		if f.tap == nil {
			break
		}
		if err := f.tap(&b.recs[i]); err != nil {
			return f.reader.Position(), err
		}
	}
	b.own()
	return f.reader.Position(), nil
}

// own copies the bytes of the records, which were the reader's.
func (b *feedBatch) own() {
	b.bytes = b.bytes[:0]
	size := 0
	for i := range b.recs {
		size += len(b.recs[i].Key) + len(b.recs[i].Value)
	}
	if cap(b.bytes) < size {
		b.bytes = make([]byte, 0, size+size/8)
	}
	keep := func(x []byte) []byte {
		if x == nil {
			return nil
		}
		n := len(b.bytes)
		b.bytes = append(b.bytes, x...)
		return b.bytes[n:len(b.bytes):len(b.bytes)]
	}
	for i := range b.recs {
		b.recs[i].Key, b.recs[i].Value = keep(b.recs[i].Key), keep(b.recs[i].Value)
	}
}

// leave ends a side's reading. The last that leaves closes the reader.
func (f *feed) leave(side int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.here[side] = false
	f.trim(true)
	if !f.here[1-side] && f.reader != nil {
		f.reader.Close()
		f.reader = nil
	}
}
