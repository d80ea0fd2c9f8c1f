package follow

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// past is what a feedback log keeps before an offset.
type past struct {
	first  int64 // N of the first feedback; 0: none
	epochs []codec.Epoch
}

func readPast(ctx context.Context, log stream.Log, topic string, end int64, pause func() error) (p past, err error) {
	var f codec.Feedback
	err = ScanAll(ctx, log, topic, end, pause, func(r *stream.Record) error {
		switch {
		case r.Type == "" && p.first == 0:
			if err := codec.ParseFeedback(&f, r.Value); err != nil {
				return codec.UnlessForeign(err)
			}
			p.first = f.N
		case r.Type == codec.TypeEpoch:
			rec, err := codec.ParseEpoch(r.Value)
			if err != nil {
				return codec.UnlessForeign(err)
			}
			if p.epoch(rec.Epoch) == nil {
				p.epochs = append(p.epochs, rec)
			}
		}
		return nil
	})
	return p, err
}

// last returns the last epoch with a property, nil if there is no record of one.
func (p *past) last(has func(*codec.Epoch) bool) (rec *codec.Epoch) {
	for i := range p.epochs {
		if has(&p.epochs[i]) {
			rec = &p.epochs[i]
		}
	}
	return rec
}

func (p *past) epoch(n int64) *codec.Epoch {
	return p.last(func(e *codec.Epoch) bool { return e.Epoch == n })
}

// before returns the last epoch before another, nil if its record is gone.
func (p *past) before(n int64) *codec.Epoch {
	return p.last(func(e *codec.Epoch) bool { return e.Epoch < n })
}

// at returns the epoch that learned feedback n, nil if its record is gone.
func (p *past) at(n int64) *codec.Epoch {
	return p.last(func(e *codec.Epoch) bool { return e.Through < n })
}

// segment is a range of feedback: of the epochs since…epoch, or of all if epoch is 0.
type segment struct {
	since, epoch, from, to int64
	paused                 bool // nothing was learned
}

// own returns what was learned while an epoch was at work, through feedback to.
func own(rec *codec.Epoch, to int64) segment {
	return segment{since: lineage(rec), epoch: rec.Epoch, from: rec.Through + 1, to: to,
		paused: rec.Mode == codec.Paused}
}

// segments returns the feedback that an epoch's learner starts from, ascending: for a rollback what the earlier epoch
// itself had started from, and then its own; likewise for one that goes on with the learner of the epoch before it.
func (p *past) segments(rec *codec.Epoch) ([]segment, error) {
	switch {
	case rec.Continues > 0:
		e := p.before(rec.Epoch)
		if e == nil || rec.Continues != lineage(e) {
			return nil, fmt.Errorf("the record of the epoch before epoch %d: %w", rec.Epoch, stream.ErrTruncated)
		}
		s, err := p.segments(e)
		if o := own(e, rec.Through); o.from <= o.to {
			s = append(s, o)
		}
		return s, err
	case rec.WarmTo == 0:
		return nil, nil
	case rec.WarmEpoch == 0:
		return []segment{{from: rec.WarmFrom, to: rec.WarmTo}}, nil
	case rec.WarmEpoch >= rec.Epoch:
		return nil, fmt.Errorf("epoch %d cannot start from epoch %d: %w", rec.Epoch, rec.WarmEpoch, codec.ErrCorrupt)
	}
	e := p.epoch(rec.WarmEpoch)
	if e == nil {
		return nil, fmt.Errorf("the record of epoch %d: %w", rec.WarmEpoch, stream.ErrTruncated)
	}
	s, err := p.segments(e)
	return append(s, own(e, rec.WarmTo)), err
}

// warmed says what a learner was taught before its epoch.
type warmed struct {
	learned, passed int64
	epochs          map[int64]bool // whose rounds were among them
}

// warmUp teaches an epoch's fresh learner the feedback that its record, which is at offset end, says. The log decides
// all of it, so it comes to the same everywhere. pause is called as by [ScanAll].
func warmUp(ctx context.Context, log stream.Log, topic string, end int64, rec *codec.Epoch, ep loop.Epoch,
	pause func() error,
) (warmed, error) {
	done := warmed{epochs: map[int64]bool{}}
	p, err := readPast(ctx, log, topic, end, pause)
	if err != nil {
		return done, err
	}
	todo, err := p.segments(rec)
	if err != nil {
		return done, fmt.Errorf("epoch %d starts from feedback %d: %w", rec.Epoch, rec.WarmTo, err)
	}
	w := loop.NewWarm(ep)
	next := todo[0].from
	var f codec.Feedback
	err = ScanAll(ctx, log, topic, end, pause, func(r *stream.Record) error {
		if r.Type != "" {
			return nil
		}
		if err := codec.ParseFeedback(&f, r.Value); err != nil {
			return codec.UnlessForeign(err)
		}
		switch {
		case f.N < next:
			return nil
		case f.N > next:
			return fmt.Errorf("epoch %d starts from feedback %d…%d and %d is gone: %w",
				rec.Epoch, rec.WarmFrom, rec.WarmTo, next, stream.ErrTruncated)
		}
		s := &todo[0]
		if s.epoch == 0 {
			w.Refit(&f)
		} else if f.Epoch >= s.since && f.Epoch <= s.epoch {
			if err := w.Again(&f, s.paused); err != nil {
				return err
			}
		}
		done.epochs[f.Epoch] = true
		if next++; next <= s.to {
			return nil
		}
		if todo = todo[1:]; len(todo) == 0 {
			return stream.ErrStop
		}
		next = todo[0].from
		return nil
	})
	if err == nil && len(todo) > 0 {
		err = fmt.Errorf("epoch %d starts from feedback %d…%d and %d is not before it: %w",
			rec.Epoch, rec.WarmFrom, rec.WarmTo, next, codec.ErrCorrupt)
	}
	done.learned, done.passed = w.Learned, w.Passed
	return done, err
}

// Plan makes the model of s the epoch rec, of which it fills in what the learner starts from, and tries
// that, so that nothing is announced that cannot be followed. pause is called as by [ScanAll]. After an
// error [Epochs.Undo] forgets the epoch.
func (e *LoggedEpochs) Plan(ctx context.Context, s *Source, rec *codec.Epoch, pause func() error) error {
	_, end, err := e.log.Bounds(ctx, e.topics.Feedback, 0)
	if err != nil {
		return err
	}
	if err := e.planKeep(s, rec); err != nil {
		return err
	}
	if err := e.planWarm(ctx, s, rec, end, pause); err != nil {
		return err
	}
	rec.SHA256 = hexSum(rec.LoggedModel())
	ep, err := e.define(rec, s.Files)
	if err != nil {
		return err
	}
	if err := e.tryWarm(ctx, s, rec, ep, end, pause); err != nil {
		return err
	}
	return e.tryKeep(rec, ep)
}

// Continue makes an epoch that goes on with the learner and the model at work, in another mode, after feedback through.
func (e *LoggedEpochs) Continue(number, through int64, mode codec.Mode, cause string) error {
	rec := e.Last.Rec
	rec.Epoch, rec.Through = number, through
	rec.WarmFrom, rec.WarmTo, rec.WarmEpoch = 0, 0, 0
	rec.Mode, rec.Cause, rec.Continues = mode, cause, e.Last.Lineage()
	rec.SHA256 = hexSum(rec.LoggedModel())
	if _, err := e.define(&rec, e.Last.Files); err != nil {
		return fmt.Errorf("%w: %w", ErrModel, err)
	}
	return nil
}

// planWarm fills in what the learner of a new epoch starts from, whose records begin at end.
func (e *LoggedEpochs) planWarm(ctx context.Context, s *Source, rec *codec.Epoch, end int64, pause func() error) error {
	warm := s.Warm
	if !warm.Refit && warm.Through == 0 {
		return nil
	}
	p, err := readPast(ctx, e.log, e.topics.Feedback, end, pause)
	if err != nil {
		return err
	}
	if warm.Refit {
		if p.first > 0 {
			rec.WarmFrom, rec.WarmTo = p.first, rec.Through
		}
		return nil
	}
	n := warm.Through
	if n > rec.Through {
		return refuse("warm: %d: the feedback log ends at %d; give one of its numbers, or warm: none", n, rec.Through)
	}
	was := p.at(n)
	if p.first == 0 || p.first > n || was == nil {
		return goneError(n, p.first)
	}
	if s.Earlier != nil && !differ(s.Earlier, was.Model, "oracle") { // a state from before oracles had versions
		rec.Model = s.Earlier
	}
	state := fmt.Sprintf("warm: %d is a state of version %d (epoch %d), ", n, was.Version, was.Epoch)
	if k, _ := model.Differing(rec.Model, was.Model, "actions", "features", "max_features", "loss", "reward", "learner",
		"explore", "oracle"); k != "" {
		return refuse("%sof which %s: differs; make it equal, or use warm: refit", state, k)
	}
	if classFile(rec) != classFile(was) {
		return refuse("%swhich had another class file; put it back, or use warm: refit", state)
	}
	rec.WarmTo, rec.WarmEpoch = n, was.Epoch
	todo, err := p.segments(rec)
	if err != nil || todo[0].from < p.first {
		return goneError(n, p.first)
	}
	rec.WarmFrom = todo[0].from
	return nil
}

// classFile returns the file of an epoch that its learner is made from; those of candidates are no part of a state.
func classFile(rec *codec.Epoch) (ref codec.FileRef) {
	if m, err := model.ParseLogged("", rec.Model); err == nil && m.ClassFile() != "" && len(rec.Files) > 0 {
		ref = rec.Files[0]
	}
	return ref
}

// keeps returns the first of the keys that make a learner in which an epoch differs from the last, and what the last
// has there; "" if it may go on with its learner. That knows actions by name, and may begin to learn early.
func keeps(rec, last *codec.Epoch) (key, has string) {
	key, has = model.Differing(rec.Model, last.Model, "features", "max_features", "loss", "reward", "learner",
		"explore", "oracle", "certificate", "early", "unit")
	if key == "early" && has == "" {
		return "", ""
	}
	return key, has
}

// planKeep has a new epoch go on with the learner at work, if its model says so and may.
func (e *LoggedEpochs) planKeep(s *Source, rec *codec.Epoch) error {
	if !s.Warm.Keep || e.Last == nil {
		return nil
	}
	last := &e.Last.Rec
	learner := fmt.Sprintf("warm: keep goes on with the learner of version %d (epoch %d), ", last.Version, last.Epoch)
	if k, has := keeps(rec, last); k != "" {
		return refuse("%sof which %s differs: it has %q; make it equal, or use warm: refit", learner, k, has)
	}
	if classFile(rec) != classFile(last) {
		return refuse("%swhich has another class file; put it back, or use warm: refit", learner)
	}
	rec.Continues = lineage(last)
	return nil
}

// tryKeep has a learner of the joiner's own take over the state of one that is like the one
// at work, so that nothing is announced that cannot be followed.
func (e *LoggedEpochs) tryKeep(rec *codec.Epoch, ep loop.Epoch) error {
	if rec.Continues == 0 {
		return nil
	}
	d := e.byNum[rec.Continues]
	if d == nil || d.Rec.Model == nil {
		return nil // its record is gone; those in between were found to fit
	}
	was, err := e.build(&d.Rec, d.Files)
	var state []byte
	if err == nil {
		state, err = was.Learner.AppendBinary(nil)
	}
	if err == nil {
		err = ep.Learner.UnmarshalBinary(state)
	}
	if err != nil {
		return refuse("warm: keep: the learner at work does not fit this model: %w; use warm: refit", err)
	}
	return nil
}

// checkContinues compares an epoch that goes on with a learner with the records before it.
func checkContinues(rec *codec.Epoch, warm model.Warm, before []codec.Epoch) (field, want, got string) {
	if field, want, got = checkCold(rec); field != "" || len(before) == 0 { // what came before is gone
		return field, want, got
	}
	last := &before[len(before)-1]
	switch {
	case rec.Continues != lineage(last):
		return "continues", fmt.Sprint(lineage(last)), fmt.Sprint(rec.Continues)
	case rec.Version == last.Version && !bytes.Equal(rec.Model, last.Model):
		return "model", "that of epoch " + fmt.Sprint(last.Epoch) + " but for its mode", "another"
	case rec.Version != last.Version && !warm.Keep:
		return "continues", "0", fmt.Sprint(rec.Continues)
	}
	if k, _ := keeps(rec, last); k != "" {
		return "model", k + " of epoch " + fmt.Sprint(last.Epoch), "another"
	}
	return "", "", ""
}

func goneError(n, first int64) error {
	return refuse("warm: %d: the feedback that led to it is no longer kept, the first that is kept is %d; use warm: "+
		"refit or warm: none", n, first)
}

// tryWarm teaches a learner of the joiner's own what an epoch's will be taught.
func (e *LoggedEpochs) tryWarm(ctx context.Context, s *Source, rec *codec.Epoch, ep loop.Epoch, end int64,
	pause func() error,
) error {
	if rec.WarmTo == 0 {
		return nil
	}
	var stopped error
	w, err := warmUp(ctx, e.log, e.topics.Feedback, end, rec, ep, func() error {
		if pause != nil {
			stopped = pause()
		}
		return stopped
	})
	if stopped != nil {
		return stopped
	}
	if err != nil {
		return refuse("warm: %w", err)
	}
	for _, n := range slices.Sorted(maps.Keys(w.epochs)) {
		d := e.byNum[n]
		if d == nil {
			continue
		}
		if k, _ := model.Differing(rec.Model, d.Rec.Model, "loss", "reward"); k != "" {
			return refuse("warm: %s: losses of version %d (epoch %d) are on another scale: %s: differs; use warm: none",
				s.Warm, d.Rec.Version, n, k)
		}
	}
	e.logger.Info("the learner starts from earlier feedback", "from", rec.WarmFrom, "through", rec.WarmTo,
		"learned", w.learned, "passed_over", w.passed)
	return nil
}

// CheckWarm compares what an epoch record says its learner starts from with its model
// and the epoch records before it. field is "" if they agree.
func CheckWarm(rec *codec.Epoch, before []codec.Epoch) (field, want, got string) {
	m, err := model.ParseLogged("", rec.Model)
	if err != nil {
		return "", "", "" // reported where it is built
	}
	warm := m.Warm
	switch {
	case rec.Version != m.Version:
		return "version", fmt.Sprint(m.Version), fmt.Sprint(rec.Version)
	case rec.Continues > 0:
		return checkContinues(rec, warm, before)
	case warm.Keep && len(before) > 0:
		return "continues", fmt.Sprint(lineage(&before[len(before)-1])), "0"
	case warm.Keep || warm == model.Warm{}:
		return checkCold(rec)
	case warm.Refit:
		if rec.WarmTo != 0 && rec.WarmTo != rec.Through {
			return "warm_to", fmt.Sprint(rec.Through), fmt.Sprint(rec.WarmTo)
		}
		if rec.WarmEpoch != 0 {
			return "warm_epoch", "0", fmt.Sprint(rec.WarmEpoch)
		}
	case warm.Through != rec.WarmTo:
		return "warm_to", warm.String(), fmt.Sprint(rec.WarmTo)
	default:
		p := past{epochs: before}
		if e := p.at(rec.WarmTo); e != nil && e.Epoch != rec.WarmEpoch {
			return "warm_epoch", fmt.Sprint(e.Epoch), fmt.Sprint(rec.WarmEpoch)
		}
		if s, err := p.segments(rec); err == nil && s[0].from != rec.WarmFrom {
			return "warm_from", fmt.Sprint(s[0].from), fmt.Sprint(rec.WarmFrom)
		}
	}
	return "", "", ""
}

// checkCold names the field by which an epoch that learns no earlier feedback says that it does.
func checkCold(rec *codec.Epoch) (field, want, got string) {
	for i, n := range [...]int64{rec.WarmTo, rec.WarmFrom, rec.WarmEpoch} {
		if n != 0 {
			return [...]string{"warm_to", "warm_from", "warm_epoch"}[i], "0", fmt.Sprint(n)
		}
	}
	return "", "", ""
}

// differ reports whether two models differ in any of some keys.
func differ(a, b []byte, keys ...string) bool {
	key, _ := model.Differing(a, b, keys...)
	return key != ""
}

// pauseEvery is how many records lie between two calls of pause.
const pauseEvery = 64

// ScanAll is [stream.Scan] of the first partition of a topic, from what is kept of it to before end,
// which may take minutes. Now and then it calls pause, whose error ends it; nil: disabled.
func ScanAll(ctx context.Context, log stream.Log, topic string, end int64, pause func() error,
	f func(*stream.Record) error) error {
	n := 0
	return stream.Scan(ctx, log, topic, 0, stream.Earliest, end, func(r *stream.Record) error {
		if n%pauseEvery == 0 && pause != nil {
			if err := pause(); err != nil {
				return err
			}
		}
		n++
		return f(r)
	})
}
