package service

import (
	"time"

	"hindsight/internal/loop"
)

// unreadEvery is how often what nobody reads of contexts is named. All of it is counted.
const unreadEvery = 10 * time.Minute

// unread is what a decider has said of features and keys that nobody reads, or of values outside their range. They are
// allowed: who renames a feature, or misspells it, or sends it in another unit, must still be able to find out.
type unread struct {
	told   time.Time // zero: never
	untold int64     // since
}

// due counts n more, and reports whether to name them now, and how many were not named since the last time.
func (u *unread) due(n int, now time.Time) (untold int64, due bool) {
	if now.Sub(u.told) < unreadEvery {
		u.untold += int64(n)
		return 0, false
	}
	untold, u.untold, u.told = u.untold, 0, now
	return untold, true
}

// noteUnread counts what nobody reads of a decided context, and names it now and then: names, no values.
func (d *Decider) noteUnread(raw []byte, res *loop.Result, now time.Time) {
	d.m.Unread.Add(float64(res.Unread))
	untold, due := d.unread.due(res.Unread, now)
	if !due {
		return
	}
	d.cfg.Logger.Warn("not read of a context: features that the model does not list, or keys that no context has; if "+
		"a name is misspelt the model learns without it", "names", d.unreadOf(raw, res), "id", res.ID,
		"untold", untold)
}

// unreadOf names for whoever asked what nobody reads of a decided context; "" if all is read.
func (d *Decider) unreadOf(raw []byte, res *loop.Result) string {
	if res.Unread == 0 {
		return ""
	}
	_, names := loop.Unread(d.follower.Replica().Epoch().Rules, raw)
	return names.String()
}

// noteOutside counts the values of a decided context that are outside the range which the model
// states for their feature, and names the features now and then.
func (d *Decider) noteOutside(raw []byte, res *loop.Result, now time.Time) {
	d.m.Outside.Add(float64(res.Outside))
	if untold, due := d.outside.due(res.Outside, now); due {
		names := loop.Outside(d.follower.Replica().Epoch().Rules, raw)
		d.cfg.Logger.Warn("values of a context are outside the range that the model states for their feature: they "+
			"are learned as they are; is the unit right, or the range?", "names", names.String(), "id", res.ID,
			"untold", untold)
	}
}
