package service

import (
	"context"

	"hindsight/internal/join"
)

// note notes where the feedback log ends now, once, or the next time if the log is away: what
// begins there or later was asked for while this process was there.
func (c *SystemConfig) note(outer context.Context) {
	if c.since != nil {
		return
	}
	ctx, cancel := context.WithTimeout(outer, lookLimit)
	defer cancel()
	if _, end, err := c.Log.Bounds(ctx, join.TopicsOf(c.Source.Name).Feedback, 0); err == nil {
		c.since = &end
	}
}

// adoptModel makes the model of the log the one that this joiner announces, if it has a
// higher version and began since this process read its file: then somebody had the joiner of
// that time read a newer one ([Control.Renew]), which may have been this process's, too. One
// that starts with an older file than the log's is refused all the same, and so is an older
// file that it is to read later: whoever asks for that is told.
func (j *Joiner) adoptModel() {
	if j.cfg.since == nil {
		return
	}
	if s := j.epochs.Renewed(j.cfg.Source, *j.cfg.since); s != nil {
		j.cfg.Logger.Warn("the model was renewed since this process read its file: going on with the log's; the next start needs the newer file here, too",
			"version", s.Version, "file", j.cfg.Source.Version)
		*j.cfg.Source = *s
	}
}
