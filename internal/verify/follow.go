package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"hindsight/internal/follow"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

var errNoStart = errors.New("neither an epoch nor a snapshot is kept")

// place is a place in the feedback log: what was learned there, in which era and epoch.
type place struct{ era, through, epoch int64 }

// compare orders places as they follow each other in the feedback log.
func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.era, o.era), cmp.Compare(p.through, o.through), cmp.Compare(p.epoch, o.epoch))
}

func (p place) before(o place) bool { return p.compare(o) < 0 }

func (p place) String() string {
	return fmt.Sprintf("feedback %d in epoch %d of era %d", p.through, p.epoch, p.era)
}

// begin brings the replica to where recomputing starts.
func (d *decisionCheck) begin(ctx context.Context) error {
	v := d.v
	d.audit = follow.New(v.Log, v.Name, v.Build, v.partitions)
	if !d.feedback.cut() {
		v.report.Start = "the beginning"
		return nil
	}
	switch from, snap := v.models.start(); {
	case from != nil && from.epoch == 1:
		v.report.Start = "the beginning"
	case from != nil:
		v.report.Start = fmt.Sprintf("epoch %d, after feedback %d", from.epoch, from.through)
		d.from, d.anyEra = place{0, from.through, from.epoch}, true
		return d.beginEpoch(ctx, from)
	case snap != nil:
		v.report.Start = fmt.Sprintf("the snapshot of epoch %d after feedback %d", snap.epoch, snap.through)
		d.from = snap.place
		return d.beginSnapshot(ctx, snap)
	default:
		v.report.Start = "nowhere: neither an epoch nor a snapshot is kept"
		d.dead = errNoStart
	}
	return nil
}

// beginEpoch starts at an epoch record with a fresh learner.
func (d *decisionCheck) beginEpoch(ctx context.Context, s *startPoint) error {
	for ; ; d.feedback.take() {
		r, err := d.feedback.head(ctx)
		switch {
		case err != nil || r == nil:
			return err
		case r.Offset < s.offset:
		case r.Type == codec.TypeEpoch:
			err := d.audit.TakeFrom(ctx, r, s.through)
			d.feedback.take()
			return err
		default:
			if err := d.audit.Take(ctx, r); err != nil {
				return err
			}
		}
	}
}

// beginSnapshot starts at a snapshot and passes over the feedback that it learned.
func (d *decisionCheck) beginSnapshot(ctx context.Context, s *snapshotInfo) error {
	if err := d.restore(ctx, s); err != nil {
		return err
	}
	s.checked = true
	var f codec.Feedback
	for ; ; d.feedback.take() {
		r, err := d.feedback.head(ctx)
		if err != nil || r == nil {
			return err
		}
		switch r.Type {
		case "":
			if err := codec.ParseFeedback(&f, r.Value); err == nil && f.N > s.through {
				d.from.era = d.v.models.eraBefore(d.audit.Replica(), f.N) // its mark was passed over, or is gone
				return nil
			}
		case codec.TypeEpoch:
			if rec, err := codec.ParseEpoch(r.Value); err == nil && rec.Epoch > s.epoch {
				return nil
			}
		case codec.TypeClass:
			if err := d.audit.Take(ctx, r); err != nil {
				return nil // reported where models are read
			}
		}
	}
}

// follow brings the replica to a place. It reports whether the era of that place ends before it:
// then it was in a part of the log that is lost.
func (d *decisionCheck) follow(ctx context.Context, to place) (lost bool, err error) {
	rep := d.audit.Replica()
	if d.anyEra {
		rep.BeginEra(to.era)
	}
	for d.dead == nil {
		r, err := d.feedback.head(ctx)
		if err != nil {
			return false, err
		}
		if d.reached(to) || r == nil || rep.LearnedThrough() >= to.through && r.Type == "" {
			return false, nil
		}
		if r.Type == codec.TypeMark {
			if m, err := codec.ParseFeedbackMark(r.Value); err == nil {
				if m.Era > to.era {
					return true, nil
				}
				d.mark(r, &m)
			}
		}
		if err := d.learn(ctx, r); err != nil || d.dead != nil {
			return false, err
		}
	}
	return false, nil
}

// learn takes the record at the head of the feedback log.
func (d *decisionCheck) learn(ctx context.Context, r *stream.Record) error {
	models := &d.v.models
	if r.Type != "" {
		if err := models.take(d.feedback, r); err != nil {
			return err
		}
	}
	err := d.audit.Take(ctx, r)
	if r.Type == "" && err != nil { // of what was learned the replica tells
		_ = models.take(d.feedback, r)
	}
	if err != nil {
		if !damaged(err) && !errors.Is(err, loop.ErrGap) && !errors.Is(err, loop.ErrNoEpoch) {
			return &stream.Error{Op: "learn", Topic: d.feedback.topic, Offset: r.Offset, Err: err}
		}
		d.dead = err
		d.v.differ(at(d.feedback, r, "bytes", "a record that can be learned from", err))
	}
	if r.Type == "" {
		d.since = r.Time
	}
	d.feedback.take()
	return nil
}

// mark takes note of what a mark says of eras.
func (d *decisionCheck) mark(r *stream.Record, m *codec.FeedbackMark) {
	since := d.since
	if d.eras.Limits.Heart == 0 && d.feedback.cut() { // nobody knows when the era began
		since = 0
	}
	if d.anyEra = false; m.Lost > 0 || m.Era > d.eras.Era {
		d.v.losses.add(since, r.Time)
	}
	d.eras = *m
}

// reached reports whether the replica is at a place exactly.
func (d *decisionCheck) reached(p place) bool {
	rep := d.audit.Replica()
	return d.dead == nil && rep.Era() == p.era && rep.LearnedThrough() == p.through && rep.Epoch() != nil &&
		rep.Epoch().Number == p.epoch
}

// rest reads what no decision had learned.
func (d *decisionCheck) rest(ctx context.Context) error {
	return d.feedback.walk(ctx, func(r *stream.Record) error {
		if m, err := codec.ParseFeedbackMark(r.Value); r.Type == codec.TypeMark && err == nil {
			d.mark(r, &m)
		}
		return d.v.models.take(d.feedback, r)
	})
}
