package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"hindsight/pkg/stream"
)

// A running system drops old records while they are verified. What is gone when a cursor begins to read was as good as
// gone before. Later it may look like a difference, or end the reading. So where something is wrong and records were
// dropped meanwhile, the logs are verified anew. A difference in the same place in two attempts is one.

// mostAttempts is how often the logs are verified while records are dropped.
const mostAttempts = 4

var errDropped = errors.New("retention drops records faster than they are verified: keep them for longer, or verify " +
	"a copy of the log")

// site is what a difference is in.
type site struct {
	topic     string
	partition int
	offset    int64
	field     string
}

// mostSites is how many sites an attempt remembers.
const mostSites = 1 << 16

func (d *Difference) site() site { return site{d.Topic, d.Partition, d.Offset, d.Field} }

// judge verifies the logs until what was dropped meanwhile does not matter.
func (c Config) judge(ctx context.Context) (*Report, error) {
	known := map[site]Difference{} // of the attempts before
	for attempt := 1; ; attempt++ {
		v, err := c.attempt(ctx)
		if !v.doubtful(err) {
			return &v.report, err
		}
		if dropped, failed := v.dropped(ctx); failed != nil || !dropped {
			if v.report.Differences > 0 && errors.Is(err, stream.ErrTruncated) {
				err = nil // a record that differs names what was never there
			}
			return &v.report, errors.Join(err, failed)
		}
		if v.keepKnown(known) {
			return &v.report, nil
		}
		if attempt == mostAttempts {
			return nil, v.tooFast(err)
		}
		maps.Copy(known, v.found)
	}
}

// keepKnown reports the differences alone that an earlier attempt found too, if there are any.
func (v *verification) keepKnown(known map[site]Difference) bool {
	var twice Report
	for s, d := range v.found {
		if _, ok := known[s]; ok {
			twice.add(&d)
		}
	}
	if twice.Differences > 0 {
		v.report.Differences, v.report.First, v.report.Foreign, v.report.Beside = twice.Differences, twice.First, 0, nil
	}
	return twice.Differences > 0
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
		err = fmt.Errorf("%s[%d]@%d %s: want %s, got %s", d.Topic, d.Partition, d.Offset, d.Field, shorten(d.Want),
			shorten(d.Got))
	}
	return fmt.Errorf("%w; the last of %d attempts: %w", errDropped, mostAttempts, err)
}
