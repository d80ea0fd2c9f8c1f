package service

import (
	"fmt"
	"time"

	"hindsight/pkg/stream"
)

// maxAhead is how far log time may be ahead of this process's clock. Log time never goes back: one
// record with the time of next year would end all windows until then. A clock that is off by a day,
// the process's or the log's, is no reason to stand still.
const maxAhead = 48 * time.Hour

// believe reports whether the log time of a record is believed. Where one is not, nothing is joined of
// any input until the clock has been mended and the record is gone: what lies behind it might be the
// outcomes of rounds that would close meanwhile.
func (j *Joiner) believe(topic string, partition int, r *stream.Record) bool {
	if r.Time <= j.latest && j.latest != 0 || j.wall == nil {
		return true
	}
	// the clock is looked at where there is need
	if j.latest = j.wall().UnixNano() + int64(maxAhead); r.Time <= j.latest {
		j.ahead.Store(nil)
		return true
	}
	why := fmt.Errorf("%s[%d]@%d has the time %s: its clock, or that of whoever wrote it, was far ahead; joining "+
		"stands still until that is mended and the record is deleted, then start with --accept-loss",
		topic, partition, r.Offset, time.Unix(0, r.Time).UTC().Format(time.RFC3339))
	j.aheadOwn = topic == j.topics.Feedback
	if j.ahead.Swap(&why) == nil {
		j.cfg.Logger.Error("a record is not believed", "error", why)
	}
	return false
}

// whyHeld returns what is not believed, nil if there is nothing.
func (j *Joiner) whyHeld() error {
	if why := j.ahead.Load(); why != nil {
		return *why
	}
	return nil
}
