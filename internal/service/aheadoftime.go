package service

import (
	"fmt"
	"time"
)

// maxAhead is how far log time may be ahead of this process's clock. Log time never goes back: one
// record with the time of next year would end all windows until then. A clock that is off by a day,
// the process's or the log's, is no reason to stand still.
const maxAhead = 48 * time.Hour

// tooFar reports whether a log time is so far ahead that it is not believed. Then nothing is joined
// until the clock has been mended and the record is gone.
func (j *Joiner) tooFar(t int64, topic string, partition int, offset int64) bool {
	if j.wall == nil || t <= j.wall().UnixNano()+int64(maxAhead) {
		if j.ahead.Load() != nil {
			j.ahead.Store(nil)
		}
		return false
	}
	why := fmt.Errorf("%s[%d]@%d has the time %s: its clock, or that of whoever wrote it, was far ahead; "+
		"joining stands still until that is mended and the record is deleted, then start with --accept-loss",
		topic, partition, offset, time.Unix(0, t).UTC().Format(time.RFC3339))
	if j.ahead.Swap(&why) == nil {
		j.cfg.Logger.Error("a record is not believed", "error", why)
	}
	return true
}

// whyHeld returns what is not believed, nil if there is nothing.
func (j *Joiner) whyHeld() error {
	if why := j.ahead.Load(); why != nil {
		return *why
	}
	return nil
}
