package service

import (
	"context"
	"math"
	"time"

	"hindsight/internal/join"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// announce writes the model as an epoch record if the log does not have it.
func (j *Joiner) announce(ctx context.Context) error {
	s := j.cfg.Source
	fresh, err := s.Follows(j.epochs.Last, j.cfg.Partitions, j.cfg.seedHash())
	if err != nil {
		return err
	}
	if !fresh {
		return j.resume(ctx)
	}
	rec := s.Record(j.nextEpoch(), j.cfg.Partitions, j.cfg.seedHash(), j.Heart().LastN())
	if mode, ok := j.lost.modeBehind(j.epochs.Newest()); ok && mode != rec.Mode { // as somebody had asked
		rec.Mode, rec.Cause = mode, codec.CauseLost
	}
	if err := j.epochs.Plan(ctx, s, &rec, j.pause); err != nil {
		return err
	}
	return j.begin(ctx)
}

// nextEpoch returns a number that no epoch has had.
func (j *Joiner) nextEpoch() int64 { return 1 + max(j.epochs.Newest(), j.lost.epoch) }

// resume goes on with the model of the log. Where the record of an epoch behind the last one is gone
// another begins in its place.
func (j *Joiner) resume(ctx context.Context) error {
	last, mode := j.epochs.Last, j.epochs.Last.Rules.Mode
	if j.nextEpoch() > last.Rec.Epoch+1 {
		if lost, ok := j.lost.modeBehind(j.epochs.Newest()); ok {
			mode = lost
		}
		j.cfg.Logger.Error("the record of an epoch is gone, with the feedback log's tail or by retention: another "+
			"begins", "lost", j.nextEpoch()-1, "mode", mode.String())
		cause := codec.CauseLost
		if r := last.Rules.Promote; mode == codec.Live && r.Switch && r.Share < 1 {
			cause = codec.CauseLostShare // the rule may have asked for it
		}
		return j.goOn(ctx, j.nextEpoch(), mode, cause)
	}
	if last.Rec.Cause == codec.CauseTaught && j.cfg.Source.Cause == "" { // deciders wait for it
		return j.goOn(ctx, j.nextEpoch(), mode, "")
	}
	if file := j.cfg.Source.Mode; file != mode {
		j.cfg.Logger.Warn("the mode that was asked for last holds, not the model file's", "mode", mode.String(),
			"file", file.String(), "cause", last.Rec.Cause)
	}
	return nil
}

// begin writes the epoch that is planned.
func (j *Joiner) begin(ctx context.Context) error {
	d := j.epochs.Last
	first, err := j.core.Append(ctx, d.Records())
	if err != nil {
		return err
	}
	j.epochs.Began(d.Rec.Epoch, first)
	j.shownAt = time.Time{}
	j.showControl(time.Now())
	j.cfg.Logger.Info("epoch begins", "model", d.Rec.Name, "version", d.Rec.Version, "epoch", d.Rec.Epoch,
		"mode", d.Rules.Mode.String(), "continues", d.Rec.Continues)
	return j.core.Mark(ctx)
}

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

// adoptModel makes the model of the log the one that this joiner announces, if it has a higher version and began since
// this process read its file: then somebody had the joiner of that time read a newer one ([Control.Renew]), which may
// have been this process's, too. One that starts with an older file than the log's is refused all the same, and so is
// an older file that it is to read later: whoever asks for that is told.
func (j *Joiner) adoptModel() {
	if j.cfg.since == nil {
		return
	}
	if s := j.epochs.Renewed(j.cfg.Source, *j.cfg.since); s != nil {
		j.cfg.Logger.Warn("the log has a newer model than this process's file: continuing with the log's; the next "+
			"start needs the newer file here, too", "version", s.Version, "file", j.cfg.Source.Version)
		*j.cfg.Source = *s
	}
}

// claims are what deciders and their snapshots say of epochs. The feedback log may have lost the
// records of the last of them.
type claims struct {
	epoch int64      // the newest
	acted int64      // the newest of which the mode is known, as a decider was in it; 0: none
	mode  codec.Mode // of that one
}

// see notes what a decision or a mark says. A live epoch has rounds that the baseline answers, and say shadow.
func (c *claims) see(epoch int64, mode codec.Mode) {
	held := epoch == c.acted && c.mode == codec.Live && mode == codec.Shadow
	if c.epoch = max(c.epoch, epoch); epoch >= c.acted && !held {
		c.acted, c.mode = epoch, mode
	}
}

// modeBehind returns the mode of an epoch behind another one, if deciders told of it.
func (c *claims) modeBehind(epoch int64) (codec.Mode, bool) { return c.mode, c.acted > epoch }

// readClaims finds out what the last decisions, and all snapshots, had learned ([join.Config]).
func (j *Joiner) readClaims(ctx context.Context, claim func(era, n, epoch int64)) error {
	for p := range j.cfg.Partitions {
		if err := j.readDecisionClaims(ctx, p, claim); err != nil {
			return err
		}
	}
	_, end, err := j.cfg.Log.Bounds(ctx, j.topics.Snapshots, 0)
	if err != nil {
		return err
	}
	return stream.Scan(ctx, j.cfg.Log, j.topics.Snapshots, 0, stream.Earliest, end, func(r *stream.Record) error {
		c, err := codec.ParseSnapshot(r.Value)
		if r.Type != "" || err != nil {
			return nil // it is no use to anyone
		}
		claim(c.Era, c.LearnedThrough, c.Epoch)
		j.lost.epoch = max(j.lost.epoch, c.Epoch)
		return nil
	})
}

// mostClaims is how many of the last decisions are looked at for one that tells of its epoch's mode: those of another
// system do not, and those that say shadow may be of a live one. What a feedback log has lost is of its last moments.
const mostClaims = 100_000

func (j *Joiner) readDecisionClaims(ctx context.Context, p int, claim func(era, n, epoch int64)) error {
	found, looked, newest := false, 0, int64(0)
	var d codec.Decision
	return stream.ScanBack(ctx, j.cfg.Log, j.topics.Decisions, p, math.MaxInt64, 512, func(r *stream.Record) error {
		switch r.Type {
		case "":
			if err := codec.ParseDecision(&d, r.Value); err != nil || d.Partition != p {
				return nil // said when it is read
			}
			claim(d.Era, d.LearnedThrough, d.Epoch)
			looked++
			newest = max(newest, d.Epoch)
			found = found || d.Epoch < newest // all of the newest are behind it
			if d.Mode == codec.External {
				j.lost.epoch = max(j.lost.epoch, d.Epoch)
				return nil
			}
			found = found || d.Mode != codec.Shadow
			j.lost.see(d.Epoch, d.Mode)
		case codec.TypeMark:
			m, err := codec.ParseDecisionMark(r.Value)
			if err != nil {
				return codec.UnlessForeign(err)
			}
			claim(m.Era, m.LearnedThrough, m.Epoch)
			if mode, err := codec.ParseMode(m.Mode); err == nil && m.Epoch > 0 {
				j.lost.see(m.Epoch, mode)
				found = found || looked > 0
			}
		}
		return nil
	}, func() bool { return found || looked >= mostClaims })
}
