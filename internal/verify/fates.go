package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// fateCheck recomputes a feedback log from its cuts, with the heart that wrote it: each record is
// what follows from those before it. It begins at the first mark that can be restored. Where a cut
// took records that the log does not hold as they were, it goes on at the next such mark.
type fateCheck struct {
	v        *verification
	history  join.History
	models   *follow.Epochs
	rules    func(epoch int64) *loop.Rules
	log      *pipe // that spans and copies are read from
	feedback *logCursor
	heart    *loop.Joiner // nil: it cannot be known how it stands
	spans    *join.Spans
	copies   copyCheck // before begun
	legal    legality
	rejects  *outcomeRejects
	tails    []codec.LostTail // of all eras
	begun    bool             // a mark was restored
	lost     bool             // a cut took what is gone, and no mark was restored since
	unread   bool             // a cut may be missing since the last one
	ruleless bool             // the heart met a round whose rules are no longer kept

	due     []codec.Feedback // what follows from the last cut and was not met
	ready   loop.Ready
	next    codec.Cut
	n       int64 // of the last feedback in the log; -1: none was read
	first   int64 // of the first; 0: none was read
	cut     int64 // of the last cut in the log; 0: none was read
	met     int64 // the last that the heart took
	mark    codec.FeedbackMark
	marks   map[int64]markPlace // by offset
	epoch   int64               // of the last epoch record; 0: none was read
	oldest  int64               // of the first
	epochs  map[int64]bool      // offsets of class and epoch records
	losses  latelosses.ByOutcome
	checked Tally

	got codec.Feedback
	buf []byte
}

// markPlace is what is kept of a mark, to which later ones may refer.
type markPlace struct{ cut, n, remembers int64 }

// knownEpochs are the models that the check of fates has read.
type knownEpochs struct{ f *fateCheck }

// Rules returns the rules of an epoch. If retention has dropped them, what follows is too old.
func (k knownEpochs) Rules(epoch int64) *loop.Rules {
	f := k.f
	rules := f.rules(epoch)
	if rules == nil && f.feedback.cut() && (f.oldest == 0 || epoch < f.oldest) {
		f.ruleless = true
	}
	return rules
}

func (knownEpochs) Read(*stream.Record) error                    { return nil }
func (knownEpochs) Refs() []codec.EpochRef                       { return nil }
func (knownEpochs) Find(context.Context, []codec.EpochRef) error { return nil }

// openFates fetches the end of the feedback log, and then that of the rejects.
func (v *verification) openFates(ctx context.Context) (*fateCheck, error) {
	c, err := v.openCursor(ctx, v.topics.Feedback, 0)
	if err != nil {
		return nil, err
	}
	c.read = v.step
	for p := range v.partitions { // what they keep now
		if _, err := v.openCursor(ctx, v.topics.Outcomes, p); err != nil {
			return nil, err
		}
	}
	rejects, err := v.openCursor(ctx, v.topics.Rejects, 0)
	if err != nil {
		return nil, err
	}
	return v.newFates(c, rejects), nil
}

func (v *verification) newFates(feedback, rejects *logCursor) *fateCheck {
	f := &fateCheck{v: v, feedback: feedback, n: -1, models: follow.NewEpochs(v.Build), marks: map[int64]markPlace{},
		epochs: map[int64]bool{}, rejects: newOutcomeRejects(v, rejects), losses: latelosses.ByOutcome{}}
	f.rules = f.models.Rules
	f.history = join.History{Log: v.Log, Partitions: v.partitions, Seed: 1, Epochs: knownEpochs{f}, Topics: v.topics}
	f.legal = newLegality(v, 2*v.partitions)
	return f
}

func (f *fateCheck) wrong(r *stream.Record, field string, want, got any) {
	f.v.differ(at(f.feedback, r, field, want, got))
}

func (f *fateCheck) close() {
	f.feedback.close()
	f.rejects.c.close()
	f.copies.close()
	if f.spans != nil {
		f.spans.Close()
		f.spans = nil
	}
}

func (f *fateCheck) run(ctx context.Context) error {
	f.feedback.log = f.log
	if err := f.copies.open(ctx, f); err != nil {
		return err
	}
	err := f.feedback.walk(ctx, func(r *stream.Record) error {
		if err := f.take(ctx, r); err != nil {
			return err
		}
		f.legal.pass(2*f.v.partitions, r.Offset, r.Time)
		return nil
	})
	if err != nil {
		return err
	}
	f.v.report.LateLosses, f.v.report.LateOutcomes = latelosses.Compare(f.losses.Of("")), f.losses.Named()
	f.v.count(&f.v.report.Feedback, f.checked)
	if err := f.rejects.finish(ctx, f.cut, f.feedback); err != nil {
		return err
	}
	return f.legal.finish(ctx, &f.history, f.heart)
}

func (f *fateCheck) take(ctx context.Context, r *stream.Record) error {
	if r.Type != "" {
		f.feedback.keyless(f.v, r)
	}
	switch r.Type {
	case "":
		return f.round(ctx, r)
	case codec.TypeCut:
		return f.takeCut(ctx, r)
	case codec.TypeMark:
		return f.takeMark(ctx, r)
	case codec.TypeEpoch:
		f.begin(r)
	case codec.TypeClass:
		f.epochs[r.Offset] = true
		_ = f.models.AddClass(r.Value) // reported where models are read
	case codec.TypeOpen:
	default:
		f.v.stray(at(f.feedback, r, "type", "none, cut, open, epoch, class or mark", r.Type))
	}
	return nil
}

// round compares a feedback with the next that follows from the last cut. One that is equal is not parsed.
func (f *fateCheck) round(ctx context.Context, r *stream.Record) error {
	f.checked.Records++
	if len(f.due) == 0 {
		return f.odd(ctx, r, nil)
	}
	want := &f.due[0]
	f.buf = codec.Like(r.Value, codec.AppendFeedback(f.buf[:0], want))
	if !bytes.Equal(f.buf, r.Value) || string(r.Key) != want.ID {
		return f.odd(ctx, r, want)
	}
	f.checked.Checked++
	f.v.late.AddFeedback(f.losses, want, f.rules(want.Epoch))
	f.n, f.due = want.N, f.due[1:]
	return nil
}

// odd takes a feedback that is not the next expected, which f.buf has if there is one.
func (f *fateCheck) odd(ctx context.Context, r *stream.Record, want *codec.Feedback) error {
	v, got := f.v, &f.got
	if err := codec.ParseFeedback(got, r.Value); err != nil { // somebody else's, or damaged: what is due may follow
		return v.unread(f.feedback, r, "bytes", "a feedback", err, max(f.n, 0))
	}
	v.late.AddFeedback(f.losses, got, f.rules(got.Epoch))
	wrong := func(field string, want, have any) {
		v.differ(at(f.feedback, r, field, want, have).in(got.N, got.ID))
	}
	switch {
	case f.heart == nil, want == nil && f.unread:
		if f.n >= 0 && got.N != f.n+1 {
			wrong("n", f.n+1, got.N)
		}
		if f.n = got.N; f.first == 0 {
			f.first = got.N
		}
		f.checked.TooOld++
		if !f.begun {
			return f.copies.check(ctx, r, got, wrong)
		}
		return nil
	case want == nil:
		wrong("round", "no feedback: the cuts before it have theirs", got.Round)
	case !bytes.Equal(f.buf, r.Value):
		field, w, have := differs(want, got, f.buf, r.Value)
		wrong(field, w, have)
	default:
		wrong("key", got.ID, string(r.Key))
	}
	f.checked.Checked++
	for last := got.N; want != nil && len(f.due) > 0 && f.due[0].N <= max(want.N, last); f.due = f.due[1:] {
		f.n = f.due[0].N
	}
	return nil
}

// complete checks that all feedback of the last cut was met.
func (f *fateCheck) complete(r *stream.Record) {
	if len(f.due) > 0 {
		f.wrong(r, "feedback", "feedback "+i64(f.due[0].N)+" before it", "none")
		f.n += int64(len(f.due))
		f.due = nil
	}
}

func (f *fateCheck) takeCut(ctx context.Context, r *stream.Record) error {
	v, c := f.v, &f.next
	v.report.Cuts.Records++
	if err := codec.ParseCut(c, r.Value); err != nil {
		f.unread = true
		return v.unread(f.feedback, r, "bytes", "a cut", err, 0)
	}
	f.complete(r)
	if f.cut > 0 && c.Cut != f.cut+1 {
		f.wrong(r, "cut", f.cut+1, c.Cut)
		f.lose()
	}
	f.cut, f.unread = max(f.cut, c.Cut), false
	if f.heart == nil {
		v.report.Cuts.TooOld++
		return nil
	}
	v.report.Cuts.Checked++
	if !f.forward(r, "decisions", 0, c.Decisions) || !f.forward(r, "outcomes", v.partitions, c.Outcomes) {
		f.lose()
		return nil
	}
	batches, err := f.spans.Take(c, nil)
	if err == nil {
		f.legal.check(f.feedback, r, c, batches, f.heart)
		err = f.heart.Take(c, batches)
	}
	if err != nil {
		return f.fail(ctx, r, err)
	}
	if f.ruleless {
		v.report.Cuts.Checked, v.report.Cuts.TooOld = v.report.Cuts.Checked-1, v.report.Cuts.TooOld+1
		f.lose()
		return nil
	}
	for i := range c.Outcomes {
		n := int64(len(batches[len(c.Decisions)+i].Outcomes))
		v.report.Outcomes.Records, v.report.Outcomes.Checked = v.report.Outcomes.Records+n, v.report.Outcomes.Checked+n
	}
	f.heart.Ready(&f.ready)
	f.due, f.met = f.ready.Feedback, c.Cut
	f.rejects.expect(f.ready.Rejects)
	return nil
}

// forward checks that a cut moves the inputs on that it has ranges of.
func (f *fateCheck) forward(r *stream.Record, topic string, first int, ranges []codec.Range) bool {
	for i, x := range ranges {
		if x.Partition >= f.v.partitions {
			f.wrong(r, fmt.Sprintf("%s[%d].partition", topic, i), "less than "+i64(int64(f.v.partitions)), x.Partition)
			return false
		}
		if from := f.history.Position(f.heart, first+x.Partition); x.Next <= from {
			f.wrong(r, fmt.Sprintf("%s[%d].next", topic, i), "more than "+i64(from), x.Next)
			return false
		}
	}
	return true
}

// fail notes why a cut cannot be taken, or a mark be restored.
func (f *fateCheck) fail(ctx context.Context, r *stream.Record, err error) error {
	place := (*stream.Error)(nil)
	switch {
	case follow.Newer(err):
		return f.feedback.failed(r.Offset, err)
	case broken(err):
		return err
	case errors.Is(err, join.ErrLost), errors.As(err, &place) && damaged(err):
		field, input, offset := "sum", -1, int64(0)
		if errors.As(err, &place) {
			offset = place.Offset
			for i, t := range []string{f.v.topics.Decisions, f.v.topics.Outcomes} {
				if t == place.Topic {
					field = fmt.Sprintf("%s[%d].sum", [...]string{"decisions", "outcomes"}[i], place.Partition)
					input = i*f.v.partitions + place.Partition
				}
			}
		}
		if input >= 0 && f.heart != nil && f.dropped(ctx, input, f.history.Position(f.heart, input)) {
			break
		}
		f.lost = true
		behind := len(f.tails)
		f.v.suspect(at(f.feedback, r, field, "the records that the log holds", err), nil, func() bool {
			return input >= 0 && slices.ContainsFunc(f.tails[behind:], func(x codec.LostTail) bool {
				return f.history.Input(x.Topic, x.Partition) == input && x.Offset < offset
			})
		})
	case errors.Is(err, loop.ErrGap), errors.Is(err, loop.ErrNoEpoch), errors.Is(err, loop.ErrCut),
		errors.Is(err, loop.ErrHistory),
		errors.Is(err, join.ErrHistory), damaged(err):
		f.wrong(r, "cut", "one that can be taken", err)
	case errors.Is(err, stream.ErrNotFound):
		f.wrong(r, "from", "the offset of a mark", err)
	default:
		return err
	}
	f.lose()
	return nil
}

// dropped reports whether retention has dropped records of an input from an offset on.
func (f *fateCheck) dropped(ctx context.Context, input int, offset int64) bool {
	first, _, err := f.v.Log.Bounds(ctx, f.history.Topic(input), input%f.v.partitions)
	return err == nil && first > join.LogStart && first > offset
}

// lose ends the replay until a mark can be restored.
func (f *fateCheck) lose() {
	if f.heart != nil {
		f.rejects.gap(f.met)
	}
	f.heart, f.due, f.ruleless = nil, nil, false
}

// begin takes an epoch record.
func (f *fateCheck) begin(r *stream.Record) {
	f.complete(r)
	f.epochs[r.Offset] = true
	rec, err := codec.ParseEpoch(r.Value)
	if err != nil {
		return // reported where models are read
	}
	_, _ = f.models.AddEpoch(r.Value)
	if f.n >= 0 && rec.Through != f.n {
		f.wrong(r, "through", f.n, rec.Through)
	}
	rules := f.rules(rec.Epoch)
	if f.epoch = max(f.epoch, rec.Epoch); f.oldest == 0 && rules != nil { // else its class records are gone
		f.oldest = rec.Epoch
	}
	if f.heart == nil || rules == nil {
		return
	}
	guard, judge := f.heart.Guard(), f.heart.Judge()
	switch raised, held := guard.Sums().Raised, judge.Fired(); {
	case rec.ByGuard() && raised == 0:
		f.wrong(r, "cause", "not the guard, which has not alarmed", rec.Cause)
	case rec.ByGuard() && rec.Alarm() != raised:
		f.wrong(r, "cause", codec.AlarmCause(raised), rec.Cause)
	case rec.ByRule() && held == 0:
		f.wrong(r, "cause", "not the rule of promotion, which has not held", rec.Cause)
	case rec.ByRule() && rec.Cause != codec.PromotionCause(held):
		f.wrong(r, "cause", codec.PromotionCause(held), rec.Cause)
	}
	guard.Begin(rec.Epoch, rec.Continues > 0, rules)
	judge.Begin(rec.Epoch, rec.Continues > 0, rules)
}
