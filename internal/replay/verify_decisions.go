package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"hindsight/internal/loop"
	"hindsight/internal/service"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// decisionCheck recomputes the decisions of all partitions, and the snapshots, with
// one replica of the learner that follows the feedback log. They are taken in the
// order of what they had learned.
type decisionCheck struct {
	v        *verification
	lanes    []*decisionLane
	feedback *logCursor
	audit    *service.Audit
	from     int64 // what had learned less is too old
	epoch    int64 // of that beginning
	dead     error // the feedback log cannot be followed beyond here
	state    []byte
}

// openDecisions fetches the ends of decisions, then that of the learner's feedback.
func (v *verification) openDecisions(ctx context.Context) (*decisionCheck, error) {
	d := &decisionCheck{v: v}
	for p := range v.partitions {
		l, err := v.openLane(ctx, p)
		if err != nil {
			return d, err
		}
		d.lanes = append(d.lanes, l)
	}
	var err error
	d.feedback, err = v.openCursor(ctx, v.topics.Feedback, 0)
	return d, err
}

// openContexts fetches the ends of contexts: rejects were read before.
func (d *decisionCheck) openContexts(ctx context.Context) (err error) {
	gone := make([]int64, d.v.partitions)
	for p, l := range d.lanes {
		if l.contexts, err = d.v.openCursor(ctx, d.v.topics.Contexts, p); err != nil {
			return err
		}
		gone[p] = l.contexts.first
	}
	d.v.rejects.gone[0] = gone
	return nil
}

func (d *decisionCheck) close() {
	for _, l := range d.lanes {
		l.close()
	}
	if d.feedback != nil {
		d.feedback.close()
	}
}

func (d *decisionCheck) run(ctx context.Context) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	slices.SortStableFunc(d.v.snapshots, func(a, b *snapshotInfo) int {
		switch {
		case a.before(b.through, b.epoch):
			return -1
		case b.before(a.through, a.epoch):
			return 1
		}
		return 0
	})
	snapshots := d.v.snapshots
	for {
		l, err := d.least(ctx)
		if err != nil {
			return err
		}
		if len(snapshots) > 0 && (l == nil || !(l.head.LearnedThrough < snapshots[0].through ||
			l.head.LearnedThrough == snapshots[0].through && l.head.Epoch <= snapshots[0].epoch)) {
			if err := d.snapshot(ctx, snapshots[0]); err != nil {
				return err
			}
			snapshots = snapshots[1:]
			continue
		}
		if l == nil {
			break
		}
		if err := d.decision(ctx, l); err != nil {
			return err
		}
		l.done()
	}
	return d.rest(ctx)
}

// least returns the lane whose next decision had learned least, nil at the end.
func (d *decisionCheck) least(ctx context.Context) (best *decisionLane, err error) {
	for _, l := range d.lanes {
		ok, err := l.advance(ctx)
		if err != nil {
			return nil, err
		}
		if ok && (best == nil || l.head.LearnedThrough < best.head.LearnedThrough ||
			l.head.LearnedThrough == best.head.LearnedThrough && l.head.Epoch < best.head.Epoch) {
			best = l
		}
	}
	return best, nil
}

// begin brings the replica to where recomputing starts.
func (d *decisionCheck) begin(ctx context.Context) error {
	v := d.v
	d.audit = service.NewAudit(v.Build, v.partitions)
	from, snap := v.start(d.feedback.cut())
	switch {
	case from != nil && (!d.feedback.cut() || from.through == 0):
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

var errNoStart = errors.New("neither an epoch nor a snapshot is kept")

// beginEpoch starts at an epoch record with a fresh learner.
func (d *decisionCheck) beginEpoch(ctx context.Context, s *startPoint) error {
	if err := d.feedback.seek(ctx, s.offset); err != nil {
		return err
	}
	for {
		r, err := d.feedback.head(ctx)
		if err != nil || r == nil {
			return err
		}
		if r.Type == codec.TypeEpoch {
			err := d.audit.TakeFrom(r, s.through)
			d.feedback.take()
			return err
		}
		if err := d.audit.Take(r); err != nil {
			return err
		}
		d.feedback.take()
	}
}

// beginSnapshot starts at a snapshot and passes over the feedback that it learned.
func (d *decisionCheck) beginSnapshot(ctx context.Context, s *snapshotInfo) error {
	err := service.ReadSnapshots(ctx, d.v.Log, d.v.Name, func(b *service.StoredSnapshot, err error) error {
		if err == nil && b.Offset == s.offset {
			return d.audit.Restore(b)
		}
		return nil
	})
	if err != nil {
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
			if err := d.audit.Take(r); err != nil {
				return nil // reported where models are read
			}
		}
	}
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
		if err := d.audit.Take(r); err != nil {
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

// decision checks the decision at the head of a lane.
func (d *decisionCheck) decision(ctx context.Context, l *decisionLane) error {
	v, got, r := d.v, &l.head, l.rec
	wrong := func(field string, want, have any) {
		v.differ(at(l.decisions, r, field, want, have).in(got.N, got.ID))
	}
	if l.next > 0 && got.N != l.next {
		wrong("n", l.next, got.N)
	}
	if string(r.Key) != got.ID {
		wrong("key", got.ID, string(r.Key))
	}
	if n, used := l.ids.round(got.ID); used && n < got.N && n >= got.N-int64(v.Dedup)/2 {
		wrong("id", "a new id", "that of round "+i64(n))
	}
	monotone := true
	if got.LearnedThrough < l.tau {
		wrong("learned_through", "at least "+i64(l.tau), got.LearnedThrough)
		monotone = false
	}
	if got.Epoch < l.epoch {
		wrong("epoch", "at least "+i64(l.epoch), got.Epoch)
		monotone = false
	}
	src, id, err := d.source(ctx, l)
	if err != nil {
		return err
	}
	tooOld := d.dead == errNoStart || got.LearnedThrough < d.from || got.Epoch < d.epoch
	switch {
	case tooOld && monotone:
		v.count(&v.report.Decisions, Tally{TooOld: 1})
		if !bytes.Equal(l.raw, got.Context) {
			_, want, have := bytesField(l.raw, got.Context)
			wrong("context", want, have)
		}
		return nil
	case !monotone:
		return nil
	case got.LearnedThrough > max(v.survey.lastN, d.audit.Replica().LearnedThrough()):
		wrong("learned_through", "at most "+i64(v.survey.lastN)+", the last feedback", got.LearnedThrough)
		return nil
	case v.epochs[got.Epoch] == nil:
		wrong("epoch", "an epoch of the log", got.Epoch)
		return nil
	}
	if err := d.follow(ctx, got.LearnedThrough, got.Epoch); err != nil {
		return err
	}
	if d.dead != nil {
		return nil // reported once
	}
	if !d.reached(got.LearnedThrough, got.Epoch) {
		wrong("learned_through", "a place in the feedback log", fmt.Sprintf("feedback %d in epoch %d", got.LearnedThrough, got.Epoch))
		return nil
	}
	d.decide(l, src, id)
	return nil
}

// decide lets the heart decide again and compares.
func (d *decisionCheck) decide(l *decisionLane, src loop.Source, id string) {
	v, got, r := d.v, &l.head, l.rec
	v.count(&v.report.Decisions, Tally{Checked: 1})
	if l.heart == nil || l.heart.Next() != got.N {
		l.heart = loop.NewDecider(d.audit.Replica(), v.Seed, v.Name, l.partition, 1)
		l.heart.Resume(got.N, 0)
	}
	if src.Offset == loop.RequestSource {
		l.heart.Pass(src.Through)
	}
	res := l.heart.Decide(&l.want, l.raw, id, src)
	if res.Verdict != loop.Decided {
		what := fmt.Sprint("a repeat of round ", res.N)
		if res.Err != nil {
			what = res.Err.Error()
		}
		v.differ(at(l.decisions, r, "context", "one that can be decided", what).in(got.N, got.ID))
		return
	}
	l.buf = codec.AppendDecision(l.buf[:0], &l.want)
	if bytes.Equal(l.buf, r.Value) {
		return
	}
	field, want, have := decisionField(&l.want, got)
	if field == "" {
		field, want, have = bytesField(l.buf, r.Value)
	}
	v.differ(at(l.decisions, r, field, want, have).in(got.N, got.ID))
}

// source finds the context of the decision at a lane's head, sets l.raw, and returns
// where it came from and the id that its headers give it.
func (d *decisionCheck) source(ctx context.Context, l *decisionLane) (src loop.Source, id string, err error) {
	got := &l.head
	l.raw = got.Context
	src = loop.Source{Offset: got.Source, Through: got.ContextsThrough, Time: got.Time}
	wrong := func(field string, want, have any) {
		d.v.differ(at(l.decisions, l.rec, field, want, have).in(got.N, got.ID))
	}
	if got.Source == loop.RequestSource {
		if l.known && got.ContextsThrough < l.through {
			wrong("contexts_through", "at least "+i64(l.through), got.ContextsThrough)
		} else if !l.known || got.ContextsThrough > l.through {
			err = l.pass(ctx, got.ContextsThrough, got.Epoch)
		}
		src.Time = 0
		return src, got.ID, err // headers are not kept: any id of theirs must be taken at its word
	}
	if l.known && got.Source < l.through {
		wrong("source", "at least "+i64(l.through), got.Source)
		return src, got.ID, nil
	}
	if got.Source < l.contexts.first {
		src.Through = got.Source + 1
		return src, got.ID, nil // the context is gone; its copy must do
	}
	if err := l.pass(ctx, got.Source, got.Epoch); err != nil {
		return src, "", err
	}
	r, err := l.contexts.head(ctx)
	if err != nil {
		return src, "", err
	}
	if r == nil || r.Offset != got.Source || r.Type != "" {
		wrong("source", "the offset of a context", got.Source)
		return src, got.ID, nil
	}
	if d.v.rejects.reject(rejectKey{false, l.partition, r.Offset}) != nil && !l.gap {
		wrong("source", "a context that was not rejected", got.Source)
	}
	src.Through, src.Time = r.Offset+1, l.contexts.logTime(r)
	if l.contexts.cut() && src.Time < got.Time && r.Time <= got.Time {
		src.Time = got.Time // the running maximum may have begun with a record that is gone
	}
	l.raw = r.Value // valid until the next head
	id = service.CloudEventID(r)
	l.contexts.take()
	return src, id, nil
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
	if s.through > max(v.survey.lastN, d.audit.Replica().LearnedThrough()) {
		where.Want, where.Got = "at most "+i64(v.survey.lastN)+", the last feedback", i64(s.through)
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
	if sum := sha256.Sum256(d.state); sum != s.sum {
		where.Field, where.Want, where.Got = "bytes", fmt.Sprintf("SHA-256 %x", sum), fmt.Sprintf("SHA-256 %x", s.sum)
		v.differ(where)
	}
	return nil
}

// rest sees to what follows the last decision: contexts that wait, and rejects of
// contexts that no decision has passed yet.
func (d *decisionCheck) rest(ctx context.Context) error {
	for _, l := range d.lanes {
		for {
			r, err := l.contexts.head(ctx)
			if err != nil {
				return err
			}
			if r == nil {
				break
			}
			if r.Type == "" {
				l.refused(r, d.v.survey.last, true)
			}
			l.contexts.take()
		}
	}
	return nil
}
