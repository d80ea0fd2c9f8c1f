package verify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"hindsight/internal/loop"
	"hindsight/internal/service"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

var errNoStart = errors.New("neither an epoch nor a snapshot is kept")

// begin brings the replica to where recomputing starts.
func (d *decisionCheck) begin(ctx context.Context) error {
	v := d.v
	d.audit = service.NewAudit(v.Log, v.Name, v.Build, v.partitions)
	from, snap := v.start(d.feedback.cut())
	switch {
	case v.once || from != nil && (!d.feedback.cut() || from.through == 0):
		v.report.Start = "the beginning"
		return nil
	case from != nil:
		v.report.Start = fmt.Sprintf("epoch %d, after feedback %d", from.epoch, from.through)
		d.from, d.epoch = from.through, from.epoch
		return d.beginEpoch(ctx, from)
	case snap != nil:
		v.report.Start = fmt.Sprintf("the snapshot of epoch %d after feedback %d", snap.epoch, snap.through)
		d.from, d.epoch = snap.through, snap.epoch
		return d.beginSnapshot(ctx, snap)
	}
	v.report.Start = "nowhere: neither an epoch nor a snapshot is kept"
	d.dead = errNoStart
	return nil
}

// beginEpoch starts at an epoch record with a fresh learner.
func (d *decisionCheck) beginEpoch(ctx context.Context, s *startPoint) error {
	d.feedback.seek(s.offset)
	for {
		r, err := d.feedback.head(ctx)
		if err != nil || r == nil {
			return err
		}
		if r.Type == codec.TypeEpoch {
			err := d.audit.TakeFrom(ctx, r, s.through)
			d.feedback.take()
			return err
		}
		if err := d.audit.Take(ctx, r); err != nil {
			return err
		}
		d.feedback.take()
	}
}

// beginSnapshot starts at a snapshot and passes over the feedback that it learned.
func (d *decisionCheck) beginSnapshot(ctx context.Context, s *snapshotInfo) error {
	if err := d.restore(ctx, s); err != nil {
		return err
	}
	s.checked = true
	var f codec.Feedback
	for last := int64(-1); ; d.feedback.take() {
		r, err := d.feedback.head(ctx)
		if err != nil || r == nil {
			return err
		}
		switch r.Type {
		case "":
			if err := codec.ParseFeedback(&f, r.Value); err == nil && f.N > s.through {
				return nil
			}
			last = f.N
		case codec.TypeEpoch:
			rec, err := codec.ParseEpoch(r.Value)
			if err == nil && rec.Epoch > s.epoch && (last < 0 || last >= s.through) {
				return nil
			}
		case codec.TypeClass:
			if err := d.audit.Take(ctx, r); err != nil {
				return nil // reported where models are read
			}
		}
	}
}

// restore brings the replica to a snapshot.
func (d *decisionCheck) restore(ctx context.Context, s *snapshotInfo) error {
	if s.stored != nil {
		return d.audit.Restore(s.stored)
	}
	found := false
	err := service.ReadSnapshots(ctx, d.v.Log, d.v.Name, func(b *service.StoredSnapshot, err error) error {
		if err == nil && b.Offset == s.offset {
			found = true
			return d.audit.Restore(b)
		}
		return nil
	})
	if err == nil && !found {
		err = &stream.Error{Op: "restore", Topic: d.v.topics.Snapshots, Offset: s.offset, Err: stream.ErrTruncated}
	}
	return err
}

// look reads the feedback log as far as a place if it was not looked over before, so that
// what it says of that place is known.
func (d *decisionCheck) look(ctx context.Context, through, epoch int64) error {
	if !d.v.once {
		return nil
	}
	return d.follow(ctx, through, epoch)
}

// follow brings the replica to feedback through, in an epoch.
func (d *decisionCheck) follow(ctx context.Context, through, epoch int64) error {
	for d.dead == nil {
		r, err := d.feedback.head(ctx)
		if err != nil {
			return err
		}
		rep := d.audit.Replica()
		begun := rep.Epoch() != nil && rep.Epoch().Number >= epoch
		if r == nil || rep.LearnedThrough() >= through && (begun || r.Type == "") {
			return nil
		}
		if err := d.audit.Take(ctx, r); err != nil {
			if !damaged(err) && !errors.Is(err, loop.ErrGap) && !errors.Is(err, loop.ErrNoEpoch) {
				return &stream.Error{Op: "learn", Topic: d.feedback.topic, Offset: r.Offset, Err: err}
			}
			d.dead = err
			d.v.differ(at(d.feedback, r, "bytes", "a record that can be learned from", err))
			return nil
		}
		d.feedback.take()
	}
	return nil
}

// reached reports whether the replica is at a place exactly.
func (d *decisionCheck) reached(through, epoch int64) bool {
	rep := d.audit.Replica()
	return d.dead == nil && rep.LearnedThrough() == through && rep.Epoch() != nil && rep.Epoch().Number == epoch
}

// snapshot checks a snapshot against the replica's state.
func (d *decisionCheck) snapshot(ctx context.Context, s *snapshotInfo) error {
	v := d.v
	if s.checked { // it is where recomputing began
		return nil
	}
	if d.dead == errNoStart || s.before(d.from, d.epoch) {
		v.count(&v.report.Snapshots, Tally{TooOld: 1})
		return nil
	}
	where := Difference{Topic: v.topics.Snapshots, Offset: s.offset, Time: s.time, Field: "learned_through"}
	if err := d.look(ctx, s.through, s.epoch); err != nil {
		return err
	}
	if last := v.survey.now().lastN; s.through > max(last, d.audit.Replica().LearnedThrough()) {
		where.Want, where.Got = "at most "+i64(last)+", the last feedback", i64(s.through)
		v.differ(where)
		return nil
	}
	if err := d.follow(ctx, s.through, s.epoch); err != nil || d.dead != nil {
		return err
	}
	if !d.reached(s.through, s.epoch) {
		where.Want, where.Got = "a place in the feedback log", fmt.Sprintf("feedback %d in epoch %d", s.through, s.epoch)
		v.differ(where)
		return nil
	}
	if d.from > 0 {
		d.audit.AdoptRounds(s.rounds)
	}
	var err error
	if d.state, err = d.audit.AppendState(d.state[:0]); err != nil {
		return err
	}
	v.count(&v.report.Snapshots, Tally{Checked: 1})
	sum := sha256.Sum256(d.state)
	if sum == s.sum {
		return nil
	}
	earlier, err := d.audit.AppendEarlierState(nil)
	if err != nil {
		return err
	}
	if sha256.Sum256(earlier) != s.sum {
		where.Field, where.Want, where.Got = "bytes", fmt.Sprintf("SHA-256 %x", sum), fmt.Sprintf("SHA-256 %x", s.sum)
		v.differ(where)
	}
	return nil
}
