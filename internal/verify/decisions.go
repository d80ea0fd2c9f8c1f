package verify

import (
	"bytes"
	"context"
	"fmt"
	"hindsight/internal/join"
	"slices"

	"hindsight/internal/loop"
	"hindsight/internal/service"
	"hindsight/pkg/codec"
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
	for p, l := range d.lanes {
		if l.contexts, err = d.v.openCursor(ctx, d.v.topics.Contexts, p); err != nil {
			return err
		}
		l.contexts.watch(&d.v.losses)
	}
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
	v := d.v
	for _, l := range d.lanes {
		ok, err := l.advance(ctx)
		if err != nil {
			return nil, err
		}
		if ok && v.losses.learned(l.partition, l.head.LearnedThrough, l.rec.Time) {
			return l, nil // it is not recomputed, and what follows it may have learned less
		}
		if ok && (best == nil || l.head.LearnedThrough < best.head.LearnedThrough ||
			l.head.LearnedThrough == best.head.LearnedThrough && l.head.Epoch < best.head.Epoch) {
			best = l
		}
	}
	return best, nil
}

// decision checks the decision at the head of a lane.
func (d *decisionCheck) decision(ctx context.Context, l *decisionLane) error {
	v, got, r := d.v, &l.head, l.rec
	wrong := func(field string, want, have any) {
		v.differ(at(l.decisions, r, field, want, have).in(got.N, got.ID))
	}
	if l.next > 0 && !due(l.next, l.unread, got.N) {
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
	if err := d.look(ctx, got.LearnedThrough, got.Epoch); err != nil {
		return err
	}
	src, id, err := d.source(ctx, l)
	if err != nil {
		return err
	}
	tooOld := v.losses.learned(l.partition, got.LearnedThrough, r.Time) || d.dead == errNoStart || got.LearnedThrough < d.from || got.Epoch < d.epoch
	switch {
	case tooOld && monotone:
		return d.old(l, src, id)
	case !monotone:
		return nil
	case got.LearnedThrough > max(v.survey.now().lastN, d.audit.Replica().LearnedThrough()):
		wrong("learned_through", "at most "+i64(v.survey.now().lastN)+", the last feedback", got.LearnedThrough)
		return nil
	case v.epochs.get(got.Epoch) == nil:
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
	return d.decide(l, src, id)
}

// decide lets the heart decide again and compares.
func (d *decisionCheck) decide(l *decisionLane, src loop.Source, id string) error {
	v, got := d.v, &l.head
	v.count(&v.report.Decisions, Tally{Checked: 1})
	if l.heart == nil || l.heart.Next() != got.N {
		l.heart = loop.NewDecider(d.audit.Replica(), v.Seed, v.Name, l.partition, 1)
		l.heart.Resume(got.N, 0)
	}
	ok, err := d.again(l, l.heart, src, id)
	if ok {
		d.compare(l)
	}
	return err
}

// again lets a heart decide again, into l.want. It reports false if it would not.
func (d *decisionCheck) again(l *decisionLane, heart *loop.Decider, src loop.Source, id string) (bool, error) {
	if src.Offset == loop.RequestSource {
		heart.Pass(src.Through)
	}
	res := heart.Decide(&l.want, l.raw, id, src)
	if res.Verdict == loop.Decided {
		return true, nil
	}
	what := fmt.Sprint("a repeat of round ", res.N)
	if res.Err != nil {
		what = res.Err.Error()
	}
	if newer(res.Err) {
		return false, l.decisions.failed(l.rec.Offset, res.Err)
	}
	d.v.differ(at(l.decisions, l.rec, "context", "one that can be decided", what).in(l.head.N, l.head.ID))
	return false, nil
}

// compare compares the decision at a lane's head with l.want.
func (d *decisionCheck) compare(l *decisionLane) {
	got, r := &l.head, l.rec
	l.buf = codec.AppendDecision(l.buf[:0], &l.want)
	if bytes.Equal(l.buf, r.Value) {
		return
	}
	field, want, have := decisionField(&l.want, got)
	if field == "" {
		field, want, have = bytesField(l.buf, r.Value)
	}
	d.v.differ(at(l.decisions, r, field, want, have).in(got.N, got.ID))
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
		} else if got.ContextsThrough > l.lost() {
			err = l.pass(ctx, l.lost(), got.Epoch)
		} else if !l.known || got.ContextsThrough > l.through {
			if err = l.pass(ctx, got.ContextsThrough, got.Epoch); err == nil && got.ContextsThrough != l.last && got.ContextsThrough > l.contexts.first {
				wrong("contexts_through", "the offset behind a context, such as "+i64(l.last), got.ContextsThrough)
			}
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
	if err := l.pass(ctx, min(got.Source, l.lost()), got.Epoch); err != nil {
		return src, "", err
	}
	if got.Source >= l.lost() {
		src.Through = got.Source + 1
		return src, got.ID, nil // likewise
	}
	r, err := l.contexts.head(ctx)
	if err != nil {
		return src, "", err
	}
	if got.Source < l.contexts.first {
		src.Through = got.Source + 1
		return src, got.ID, nil // it went while the log was read
	}
	if r == nil || r.Offset != got.Source || r.Type != "" {
		wrong("source", "the offset of a context", got.Source)
		return src, got.ID, nil
	}
	if rej := d.v.rejects.reject(rejectKey{false, l.partition, r.Offset}, r.Time); rej != nil && d.v.losses.parts(rej.time, l.rec.Time) {
		d.v.count(&d.v.report.Rejects, Tally{TooOld: 1}) // for the sake of a round that is gone
	} else if rej != nil {
		wrong("source", "a context that was not rejected", got.Source)
	}
	src.Through, src.Time = r.Offset+1, l.contexts.logTime(r)
	switch {
	case l.contexts.cut() && src.Time < got.Time && r.Time <= got.Time:
		src.Time = got.Time // the running maximum may have begun with a record that is gone
	case src.Time > got.Time && got.Time >= max(r.Time, l.time):
		src.Time = got.Time // or anew, at what the last decisions told of, when the decider was opened
	}
	l.time = max(l.time, got.Time)
	l.raw = r.Value // valid until the next head
	if id = join.CloudEventID(r); id == "" {
		id = l.minted(r.Offset)
	}
	l.takeContext(r, Tally{Checked: 1})
	return src, id, nil
}

// rest sees to what follows the last decision: contexts that wait, and rejects of
// contexts that no decision has passed yet.
func (d *decisionCheck) rest(ctx context.Context) error {
	if d.v.once { // what no decision had learned has not been looked over
		for {
			if r, err := d.feedback.head(ctx); err != nil {
				return err
			} else if r == nil {
				break
			}
			d.feedback.take()
		}
	}
	last := d.v.survey.now().last
	for _, l := range d.lanes {
		var err error
		if l.grown, err = d.grown(ctx, l.decisions, d.feedback); err != nil {
			return err
		}
		for {
			r, err := l.contexts.head(ctx)
			if err != nil {
				return err
			}
			if r == nil {
				break
			}
			var t Tally
			if r.Type == "" {
				if t, err = l.refused(r, last, loop.End); err != nil {
					return err
				}
			}
			l.takeContext(r, t)
		}
	}
	return nil
}

// grown reports whether a log has more records than it had when the ends were fetched.
func (d *decisionCheck) grown(ctx context.Context, logs ...*logCursor) (bool, error) {
	for _, c := range logs {
		if _, end, err := c.log.Bounds(ctx, c.topic, c.partition); err != nil || end > c.end {
			return err == nil, err
		}
	}
	return false, nil
}
