package service

import (
	"time"

	"hindsight/internal/latelosses"
)

// warnEvery is how often the same warning is logged at most.
const warnEvery = time.Hour

// warnLate says once in a while that losses that come late differ from those in time:
// what is learned is biased then.
func (j *Joiner) warnLate() {
	if l := &j.late.Losses; l.Differ() && (j.warned.IsZero() || time.Since(j.warned) >= warnEvery) {
		j.warned = time.Now()
		j.cfg.Logger.Warn(latelosses.Warning(l))
	}
}
