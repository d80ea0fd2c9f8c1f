package service

import (
	"time"

	"hindsight/internal/loop"
)

// unreadEvery is how often what nobody reads of contexts is named. All of it is counted.
const unreadEvery = 10 * time.Minute

// unread is what a decider has said of features and keys that nobody reads. They are allowed:
// who renames a feature, or misspells it, must still be able to find out.
type unread struct {
	told   time.Time // zero: never
	untold int64     // since
}

// noteUnread counts what nobody reads of a decided context, and names it now and then: names,
// no values.
func (d *Decider) noteUnread(raw []byte, res *loop.Result, now time.Time) {
	d.m.unread.Add(float64(res.Unread))
	u := &d.unread
	if now.Sub(u.told) < unreadEvery {
		u.untold += int64(res.Unread)
		return
	}
	_, names := loop.Unread(d.follower.heart.Epoch().Rules, raw)
	d.cfg.Logger.Warn("not read of a context: features that the model does not list, or keys that no context has; if a name is misspelt the model learns without it",
		"names", names.String(), "id", res.ID, "untold", u.untold)
	u.told, u.untold = now, 0
}
