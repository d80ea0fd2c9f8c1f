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
	last, s := j.epochs.last, j.cfg.Source
	if last == nil || j.cfg.since == nil || last.rec.Name != s.Name || last.rec.Version <= s.Version {
		return
	}
	for n, d := range j.epochs.byNum { // each of a switch of the mode, too
		if at, ok := j.epochs.offsets[n]; d.rec.Version == last.rec.Version && (!ok || at < *j.cfg.since) {
			return
		}
	}
	j.cfg.Logger.Warn("the model was renewed since this process read its file: going on with the log's; the next start needs the newer file here, too",
		"version", last.rec.Version, "file", s.Version)
	*s = last.source()
}

// source returns the model of an epoch as its owner had it.
func (d *definition) source() Source {
	s := Source{Name: d.rec.Name, Version: d.rec.Version, Model: d.rec.Model, Mode: d.rec.Mode, Files: d.files}
	for _, f := range d.rec.Files {
		s.Order = append(s.Order, f.Name)
	}
	return s
}
