package service

import (
	"fmt"
	"time"
)

// maxAhead is how far log time may be ahead of this process's clock. Log time never goes back: one
// record with the time of next year would end all windows until then. A clock that is off by a day,
// the process's or the log's, is no reason to stand still.
const maxAhead = 48 * time.Hour

// stands reports whether the next record of an input has a time that is not believed. Then nothing is
// joined, of no input, until the clock has been mended and the record is gone: what lies behind it
// might be the outcomes of rounds that would close meanwhile.
func (j *Joiner) stands() bool {
	for _, in := range j.inputs {
		if len(in.batch) > 0 && j.tooFar(in.batch[0].Time, in.topic, in.partition, in.batch[0].Offset) {
			j.aheadMark = false
			return true
		}
	}
	if !j.aheadMark && j.ahead.Load() != nil {
		j.ahead.Store(nil)
	}
	return false
}

// tooFar reports whether a log time is so far ahead that it is not believed, and notes that.
func (j *Joiner) tooFar(t int64, topic string, partition int, offset int64) bool {
	if t <= j.latest && j.latest != 0 || j.wall == nil {
		return false
	}
	if j.latest = j.wall().UnixNano() + int64(maxAhead); t <= j.latest { // the clock is looked at where there is need
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
