package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"hindsight/internal/join"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// replayCheck recomputes a feedback log from its cuts, with the heart that wrote it: each record is
// what follows from those before it. It begins at the first mark that can be restored. Where a cut
// took records that the log does not hold as they were, it goes on at the next such mark.
type replayCheck struct {
	v        *verification
	history  join.History
	feedback *logCursor
	heart    *loop.CutJoiner // nil: it cannot be known how it stands
	spans    *join.Spans
	legal    legality
	rejects  *rejectReplay
	held     []heldDifference
	begun    bool // a mark was restored

	due     []codec.Feedback // what follows from the last cut and was not met
	ready   loop.Ready
	next    codec.Cut
	n       int64 // of the last feedback in the log; -1: none was read
	first   int64 // of the first; 0: none was read
	cut     int64 // of the last cut in the log; 0: none was read
	mark    codec.FeedbackMark
	marks   map[int64]markPlace // by offset
	epoch   int64               // of the last epoch record
	epochs  map[int64]bool      // offsets of class and epoch records
	losses  loop.LateLosses
	checked Tally

	got codec.Feedback
	buf []byte
}

// markPlace is what is kept of a mark, to which later ones may refer.
type markPlace struct{ cut, n, remembers int64 }

// heldDifference is one that no difference is if the mark of a later era says that the log has lost
// what lies there.
type heldDifference struct {
	Difference
	input  int
	offset int64 // behind the last record that a cut took
}

// knownEpochs are the epochs that the verification has read.
type knownEpochs struct{ v *verification }

func (k knownEpochs) Rules(epoch int64) *loop.Rules { return k.v.rules(epoch) }
func (knownEpochs) Read(*stream.Record) error       { return nil }
func (knownEpochs) Refs() []codec.EpochRef          { return nil }

func (knownEpochs) Find(context.Context, []codec.EpochRef) error { return nil }

// fates recomputes a feedback log.
type fates interface {
	cursor() *logCursor         // of feedback
	decisions(p int) *logCursor // of a partition of decisions, nil: it reads them by itself
	outcomes(p int) *logCursor  // likewise
	openInputs(ctx context.Context) error
	run(ctx context.Context) error
	close()
}

// openFeedback opens the feedback log with what recomputes it: a joiner that logged its cuts is
// replayed. Of one that did not fates are judged by their definition.
func (v *verification) openFeedback(ctx context.Context) (fates, error) {
	old, err := v.openFates(ctx)
	if err != nil {
		return nil, err
	}
	if v.replays, err = v.hasCuts(ctx, old.feedback); err != nil || !v.replays {
		return old, err
	}
	return v.newReplay(old.feedback), nil
}

// hasCuts reports whether the last joiner logged its cuts.
func (v *verification) hasCuts(ctx context.Context, c *logCursor) (cuts bool, err error) {
	for back := int64(1024); ; back *= 8 {
		from, known := max(c.first, c.end-back), false
		err := stream.Scan(ctx, v.Log, c.topic, c.partition, from, c.end, func(r *stream.Record) error {
			switch r.Type {
			case codec.TypeCut:
				cuts, known = true, true
			case codec.TypeMark:
				if m, err := codec.ParseFeedbackMark(r.Value); err == nil {
					cuts, known = m.Limits.Heart > 0, true
				}
			}
			return nil
		})
		if broken(err) {
			return cuts, nil // told of where it is read
		}
		if err != nil || known || from == c.first {
			return cuts, err
		}
	}
}

func (v *verification) newReplay(feedback *logCursor) *replayCheck {
	t := join.Topics{Decisions: v.topics.Decisions, Outcomes: v.topics.Outcomes, Feedback: v.topics.Feedback,
		Rejects: v.topics.Rejects}
	r := &replayCheck{v: v, feedback: feedback, n: -1, marks: map[int64]markPlace{}, epochs: map[int64]bool{}}
	r.history = join.History{Log: v.Log, Topics: t, Partitions: v.partitions, Seed: 1, Epochs: knownEpochs{v}}
	r.legal = newLegality(v, 2*v.partitions)
	return r
}

// openInputs fetches the end of the rejects, later than that of the feedback.
func (f *replayCheck) openInputs(ctx context.Context) error {
	c, err := f.v.openCursor(ctx, f.v.topics.Rejects, 0)
	f.rejects = newRejectReplay(f.v, c)
	return err
}

func (f *replayCheck) cursor() *logCursor       { return f.feedback }
func (f *replayCheck) decisions(int) *logCursor { return nil }
func (f *replayCheck) outcomes(int) *logCursor  { return nil }
func (f *replayCheck) wrong(r *stream.Record, field string, want, got any) {
	f.v.differ(at(f.feedback, r, field, want, got))
}

func (f *replayCheck) close() {
	f.feedback.close()
	if f.rejects != nil {
		f.rejects.c.close()
	}
	if f.spans != nil {
		f.spans.Close()
		f.spans = nil
	}
}

func (f *replayCheck) run(ctx context.Context) error {
	for {
		r, err := f.feedback.head(ctx)
		if err != nil {
			return err
		}
		if r == nil {
			break
		}
		if err := f.take(ctx, r); err != nil {
			return err
		}
		f.legal.pass(2*f.v.partitions, r.Offset, r.Time)
		f.feedback.take()
	}
	f.v.report.LateLosses = latelosses.Compare(&f.losses)
	f.v.count(&f.v.report.Feedback, f.checked)
	for i := range f.held {
		f.v.differ(f.held[i].Difference)
	}
	if err := f.rejects.finish(ctx, f.cut); err != nil {
		return err
	}
	return f.legal.finish(ctx, &f.history, f.heart)
}

func (f *replayCheck) take(ctx context.Context, r *stream.Record) error {
	if r.Type != "" {
		f.feedback.keyless(f.v, r)
	}
	switch r.Type {
	case "":
		return f.round(r)
	case codec.TypeCut:
		return f.takeCut(ctx, r)
	case codec.TypeMark:
		return f.takeMark(ctx, r)
	case codec.TypeEpoch:
		f.begin(r)
	case codec.TypeClass:
		f.epochs[r.Offset] = true
	case codec.TypeOpen:
	default:
		f.v.stray(at(f.feedback, r, "type", "none, cut, open, epoch, class or mark", r.Type))
	}
	return nil
}

// round compares a feedback with the next that follows from the last cut. One that is equal is not
// parsed.
func (f *replayCheck) round(r *stream.Record) error {
	f.checked.Records++
	if len(f.due) == 0 {
		return f.odd(r, nil)
	}
	want := &f.due[0]
	if f.buf = codec.AppendFeedback(f.buf[:0], want); !bytes.Equal(f.buf, r.Value) || string(r.Key) != want.ID {
		return f.odd(r, want)
	}
	f.checked.Checked++
	f.v.late.AddFeedback(&f.losses, want, f.v.rules(want.Epoch))
	f.n, f.due = want.N, f.due[1:]
	return nil
}

// odd takes a feedback that is not the next expected, which f.buf has if there is one.
func (f *replayCheck) odd(r *stream.Record, want *codec.Feedback) error {
	v, got := f.v, &f.got
	if err := codec.ParseFeedback(got, r.Value); err != nil {
		if want != nil && !codec.Foreign(err) {
			f.n, f.due = want.N, f.due[1:]
		}
		return v.unread(f.feedback, r, "bytes", "a feedback", err, f.n)
	}
	v.late.AddFeedback(&f.losses, got, v.rules(got.Epoch))
	wrong := func(field string, want, have any) {
		v.differ(at(f.feedback, r, field, want, have).in(got.N, got.ID))
	}
	switch {
	case f.heart == nil:
		if f.n >= 0 && got.N != f.n+1 {
			wrong("n", f.n+1, got.N)
		}
		if f.n = got.N; f.first == 0 {
			f.first = got.N
		}
		f.checked.TooOld++
		return nil
	case want == nil:
		wrong("round", "no feedback: the cuts before it have theirs", got.Round)
	case !bytes.Equal(f.buf, r.Value):
		field, w, have := feedbackField(want, got)
		if field == "" {
			field, w, have = bytesField(f.buf, r.Value)
		}
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
func (f *replayCheck) complete(r *stream.Record) {
	if len(f.due) > 0 {
		f.wrong(r, "feedback", "feedback "+i64(f.due[0].N)+" before it", "none")
		f.n += int64(len(f.due))
		f.due = nil
	}
}

func (f *replayCheck) takeCut(ctx context.Context, r *stream.Record) error {
	v, c := f.v, &f.next
	v.report.Cuts.Records++
	if err := codec.ParseCut(c, r.Value); err != nil {
		f.lose()
		return v.unread(f.feedback, r, "bytes", "a cut", err, 0)
	}
	f.complete(r)
	if f.cut > 0 && c.Cut != f.cut+1 {
		f.wrong(r, "cut", f.cut+1, c.Cut)
		f.lose()
	}
	f.cut = max(f.cut, c.Cut)
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
		return f.fail(r, err)
	}
	for i := range c.Outcomes {
		n := int64(len(batches[len(c.Decisions)+i].Outcomes))
		v.report.Outcomes.Records, v.report.Outcomes.Checked = v.report.Outcomes.Records+n, v.report.Outcomes.Checked+n
	}
	f.heart.Ready(&f.ready)
	f.due = f.ready.Feedback
	f.rejects.expect(f.ready.Rejects)
	return nil
}

// forward checks that a cut moves the inputs on that it has ranges of.
func (f *replayCheck) forward(r *stream.Record, topic string, first int, ranges []codec.Range) bool {
	for i, x := range ranges {
		field := fmt.Sprintf("%s[%d]", topic, i)
		if x.Partition >= f.v.partitions {
			f.wrong(r, field+".partition", "less than "+i64(int64(f.v.partitions)), x.Partition)
			return false
		}
		if from := f.history.Position(f.heart, first+x.Partition); x.Next <= from {
			f.wrong(r, field+".next", "more than "+i64(from), x.Next)
			return false
		}
	}
	return true
}

// fail notes why a cut cannot be taken, or a mark be restored.
func (f *replayCheck) fail(r *stream.Record, err error) error {
	place := (*stream.Error)(nil)
	switch {
	case newer(err):
		return f.feedback.failed(r.Offset, err)
	case errors.Is(err, join.ErrLost), errors.As(err, &place) && (damaged(err) || broken(err)):
		field, input, offset := "sum", -1, int64(0)
		if errors.As(err, &place) {
			offset = place.Offset
			for i, t := range []string{f.v.topics.Decisions, f.v.topics.Outcomes} {
				if t == place.Topic {
					field, input = []string{"decisions", "outcomes"}[i]+"["+i64(int64(place.Partition))+"].sum",
						i*f.v.partitions+place.Partition
				}
			}
		}
		d := at(f.feedback, r, field, "the records that the log holds", err)
		f.held = append(f.held, heldDifference{d, input, offset})
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

// lose ends the replay until a mark can be restored.
func (f *replayCheck) lose() {
	if f.heart != nil {
		f.rejects.gap(f.heart.LastCut())
	}
	f.heart, f.due = nil, nil
}

// begin takes an epoch record.
func (f *replayCheck) begin(r *stream.Record) {
	f.complete(r)
	f.epochs[r.Offset] = true
	rec, err := codec.ParseEpoch(r.Value)
	if err != nil {
		return // reported where models are read
	}
	if f.n >= 0 && rec.Through != f.n {
		f.wrong(r, "through", f.n, rec.Through)
	}
	f.epoch = max(f.epoch, rec.Epoch)
	rules := f.v.rules(rec.Epoch)
	if f.heart == nil || rules == nil {
		return
	}
	guard := f.heart.Guard()
	if byGuard(&rec) && guard.Sums().Raised == 0 {
		f.wrong(r, "cause", "not the guard, which has not alarmed", rec.Cause)
	}
	guard.Begin(rec.Epoch, rec.Continues > 0, rules)
}
