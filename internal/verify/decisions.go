package verify

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// decisionCheck recomputes the decisions of all partitions, and the snapshots, with one replica of the learner that
// follows the feedback log. They are taken in the order of what they had learned.
type decisionCheck struct {
	v        *verification
	lanes    []*decisionLane
	feedback *logCursor
	audit    *follow.Follower
	from     place // what had learned less is too old
	anyEra   bool  // no mark has told yet in which era the replica is
	dead     error // the feedback log cannot be followed beyond here
	state    []byte
	since    int64              // log time of the last feedback
	eras     codec.FeedbackMark // the last that was read
}

// openDecisions fetches the ends of decisions, then that of the learner's feedback.
func (v *verification) openDecisions(ctx context.Context) (*decisionCheck, error) {
	d := &decisionCheck{v: v}
	for p := range v.partitions {
		l, err := v.openLane(ctx, d, p)
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
	slices.SortStableFunc(d.v.snapshots, func(a, b *snapshotInfo) int { return a.compare(b.place) })
	snapshots := d.v.snapshots
	for {
		l, err := d.least(ctx)
		if err != nil {
			return err
		}
		if len(snapshots) > 0 && (l == nil || snapshots[0].before(l.place())) {
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
	if err := d.rest(ctx); err != nil {
		return err
	}
	for _, l := range d.lanes {
		if err := d.waiting(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// least returns the lane whose next decision had learned least, nil at the end.
func (d *decisionCheck) least(ctx context.Context) (best *decisionLane, err error) {
	for _, l := range d.lanes {
		ok, err := l.advance(ctx)
		if err != nil {
			return nil, err
		}
		if ok && (best == nil || l.place().before(best.place())) {
			best = l
		}
	}
	return best, nil
}

// decision checks the decision at the head of a lane.
func (d *decisionCheck) decision(ctx context.Context, l *decisionLane) error {
	v, got, p := d.v, &l.head, l.place()
	if l.next > 0 && !due(l.next, l.unread, got.N) {
		l.wrong("n", l.next, got.N)
	}
	if string(l.rec.Key) != got.ID {
		l.wrong("key", got.ID, string(l.rec.Key))
	}
	if n, used := l.used(got.ID); used && n < got.N {
		l.wrong("id", "a new id", "that of round "+i64(n))
	}
	monotone := l.follows(p)
	tooOld, lost := d.dead == errNoStart || p.before(d.from) || d.hungry(p), false
	if monotone && !tooOld {
		var err error
		if lost, err = d.follow(ctx, p); err != nil {
			return err
		}
	}
	src, id, err := d.source(ctx, l)
	switch {
	case err != nil:
		return err
	case !monotone, d.dead != nil && !tooOld: // reported once
		return nil
	case tooOld, lost, l.relearns(d.audit.Replica().LearnedThrough()):
		return d.old(l, src, id, lost)
	case v.models.epochs[got.Epoch] == nil:
		l.wrong("epoch", "an epoch of the log", got.Epoch)
		return nil
	case !d.reached(p):
		l.wrong("learned_through", "a place in the feedback log", p)
		return nil
	}
	return d.decide(l, src, id)
}

// hungry reports whether what was learned up to a place is gone: the log keeps no feedback, and began before it.
func (d *decisionCheck) hungry(p place) bool {
	return d.feedback.cut() && d.v.models.firstN == 0 && p.through > d.from.through
}

// decide lets the heart decide again and compares.
func (d *decisionCheck) decide(l *decisionLane, src loop.Source, id string) error {
	v, got := d.v, &l.head
	v.count(&v.report.Decisions, Tally{Checked: 1})
	if l.heart == nil || l.heart.Next() != got.N {
		l.heart = l.newHeart(d.audit.Replica())
	}
	ok, err := d.again(l, l.heart, src, id)
	if ok {
		l.compare()
	}
	return err
}

// newHeart returns a decider that has decided what lies before the decision at the head.
func (l *decisionLane) newHeart(r *loop.Replica) *loop.Decider {
	h := loop.NewDecider(r, l.v.Seed, l.v.Name, l.partition, 1)
	h.Partitions, h.Units, h.Judges = l.v.partitions, l.units, true // a context may be another than was decided
	h.Resume(l.head.N, 0)
	return h
}

// takeAtItsWord has a repeat, of which alone First.N is above 0, tell its draw, if that is not kept or cannot be read.
func (l *decisionLane) takeAtItsWord() {
	if got := &l.head; (got.First.N < l.firstN || l.holes) && l.units.Last(got.Unit) < got.First.N {
		draw := *got
		draw.N, draw.First = got.First.N, codec.RoundRef{}
		l.units.Remember(&draw)
	}
}

// again lets a heart decide again, into l.want. It reports false if it would not.
func (d *decisionCheck) again(l *decisionLane, heart *loop.Decider, src loop.Source, id string) (bool, error) {
	if src.Offset == loop.RequestSource {
		heart.Pass(src.Through)
	}
	l.takeAtItsWord()
	res := heart.Decide(&l.want, l.raw, id, src)
	if res.Verdict == loop.Decided {
		return true, nil
	}
	what := fmt.Sprint("a repeat of round ", res.N)
	if res.Err != nil {
		what = res.Err.Error()
	}
	if follow.Newer(res.Err) {
		return false, l.decisions.failed(l.rec.Offset, res.Err)
	}
	l.wrong("context", "one that can be decided", what)
	return false, nil
}

// compare compares the decision at a lane's head with l.want.
func (l *decisionLane) compare() {
	l.buf = codec.Like(l.rec.Value, codec.AppendDecision(l.buf[:0], &l.want))
	if bytes.Equal(l.buf, l.rec.Value) {
		return
	}
	if codec.SameContext(l.want.Context, l.head.Context) {
		l.want.Context = l.head.Context
	}
	l.wrong(differs(&l.want, &l.head, l.buf, l.rec.Value))
}

// source finds the context of the decision at a lane's head, sets l.raw, and returns
// where it came from and the id that its headers give it.
func (d *decisionCheck) source(ctx context.Context, l *decisionLane) (src loop.Source, id string, err error) {
	got := &l.head
	l.raw = got.Context
	if got.Source == loop.RequestSource {
		// Headers are not kept: any id of theirs must be taken at its word.
		return loop.Source{Offset: got.Source, Through: got.ContextsThrough, Reached: got.Time}, got.ID,
			l.passRequest(ctx)
	}
	src = loop.Source{Offset: got.Source, Through: got.Source + 1, Time: got.Time}
	if l.known && got.Source < l.through {
		l.wrong("source", "at least "+i64(l.through), got.Source)
		return src, got.ID, nil
	}
	if err := l.pass(ctx, got.Source, l.epoch()); err != nil {
		return src, "", err
	}
	r, err := l.contexts.head(ctx)
	if err != nil || got.Source < l.contexts.first {
		return src, got.ID, err // the context is gone, perhaps while the log was read; its copy must do
	}
	if r == nil || r.Offset != got.Source || r.Type != "" {
		l.wrong("source", "the offset of a context", got.Source)
		return src, got.ID, nil
	}
	l.notRejected(r)
	src.Time = l.contexts.logTime(r)
	switch {
	case l.contexts.cut() && src.Time < got.Time:
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

// waiting sees to what follows the last decision of a lane: contexts that wait, and rejects of
// contexts that no decision has passed yet.
func (d *decisionCheck) waiting(ctx context.Context, l *decisionLane) error {
	for _, c := range []*logCursor{l.decisions, d.feedback} {
		_, end, err := c.log.Bounds(ctx, c.topic, c.partition)
		if err != nil {
			return err
		}
		l.grown = l.grown || end > c.end
	}
	for {
		r, err := l.contexts.head(ctx)
		if err != nil || r == nil {
			return err
		}
		var t Tally
		if r.Type == "" {
			if t, err = l.refused(r, func() int64 { return d.v.models.begun(loop.End) }, loop.End); err != nil {
				return err
			}
		}
		l.takeContext(r, t)
	}
}
