package verify

import (
	"context"
	"errors"
	"fmt"

	"hindsight/pkg/stream"
)

// A running system drops old records while they are verified. What is gone when a cursor
// begins to read was as good as gone before. Later it may look like a difference, or end the
// reading. So where something is wrong and records were dropped meanwhile, the logs are
// verified anew. What was dropped in an attempt is known in the next one: what is wrong in
// the same place there is a difference.

// mostAttempts is how often the logs are verified while records are dropped.
const mostAttempts = 4

var errDropped = errors.New("retention drops records faster than they are verified: keep them for longer, or verify a copy of the log")

// site is what a difference is in.
type site struct {
	topic     string
	partition int
	offset    int64
	field     string
}

// mostSites is how many sites findings remember.
const mostSites = 1 << 16

// findings are the differences of all attempts, and those found in two.
type findings struct {
	attempt int
	sites   map[site]int // and the attempt that found them last
	twice   int64
	first   *Difference // of those found twice
}

func (f *findings) add(d *Difference) {
	at := site{d.Topic, d.Partition, d.Offset, d.Field}
	last, known := f.sites[at]
	if known || len(f.sites) < mostSites {
		f.sites[at] = f.attempt
	}
	if !known || last == f.attempt {
		return
	}
	f.twice++
	if f.first == nil || d.before(f.first) {
		f.first = d
	}
}

// judge verifies the logs until what was dropped meanwhile does not matter.
func (c Config) judge(ctx context.Context) (*Report, error) {
	v, err := c.attempt(ctx, true, nil)
	found := &findings{sites: map[site]int{}}
	if errors.Is(err, errTwice) {
		v, err = c.attempt(ctx, false, found)
	}
	for v.doubtful(err) {
		switch dropped, failed := v.dropped(ctx); {
		case failed != nil:
			return nil, failed
		case !dropped:
			return &v.report, err
		case found.twice > 0:
			v.report.Differences, v.report.First, v.report.Foreign, v.report.Beside = found.twice, found.first, 0, nil
			return &v.report, nil
		case found.attempt == mostAttempts:
			return nil, v.tooFast(err)
		}
		v, err = c.attempt(ctx, false, found)
	}
	return &v.report, err
}

// doubtful reports whether what came of an attempt may come of records dropped meanwhile.
func (v *verification) doubtful(err error) bool {
	return err == nil && v.report.Differences > 0 || errors.Is(err, stream.ErrTruncated) || errors.Is(err, errStalled)
}

// dropped reports whether a log has dropped records since the verification asked what it keeps.
func (v *verification) dropped(ctx context.Context) (bool, error) {
	for i := range v.opened {
		c := &v.opened[i]
		if first, _, err := v.Log.Bounds(ctx, c.topic, c.partition); err != nil || first > c.first {
			return err == nil, err
		}
	}
	return false, nil
}

// tooFast returns the error after the last attempt, which says what that one ended with.
func (v *verification) tooFast(err error) error {
	if d := v.report.First; err == nil {
		err = fmt.Errorf("%s[%d]@%d %s: want %s, got %s", d.Topic, d.Partition, d.Offset, d.Field, shorten(d.Want), shorten(d.Got))
	}
	return fmt.Errorf("%w; the last of %d attempts: %w", errDropped, mostAttempts, err)
}
