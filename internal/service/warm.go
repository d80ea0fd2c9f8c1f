package service

import (
	"bytes"
	"context"
	"errors"
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
	err = scanAll(ctx, log, topic, end, pause, func(r *stream.Record) error {
		switch {
		case r.Type == "" && p.first == 0:
			if err := codec.ParseFeedback(&f, r.Value); err != nil {
				return unlessForeign(err)
			}
			p.first = f.N
		case r.Type == codec.TypeEpoch:
			rec, err := codec.ParseEpoch(r.Value)
			if err != nil {
				return unlessForeign(err)
			}
			if p.epoch(rec.Epoch) == nil {
				p.epochs = append(p.epochs, rec)
			}
		}
		return nil
	})
	return p, err
}

func (p *past) epoch(n int64) *codec.Epoch {
	for i := range p.epochs {
		if p.epochs[i].Epoch == n {
			return &p.epochs[i]
		}
	}
	return nil
}

// before returns the last epoch before another, nil if its record is gone.
func (p *past) before(n int64) (rec *codec.Epoch) {
	for i := range p.epochs {
		if p.epochs[i].Epoch < n {
			rec = &p.epochs[i]
		}
	}
	return rec
}

// at returns the epoch that learned feedback n, nil if its record is gone.
func (p *past) at(n int64) (rec *codec.Epoch) {
	for i := range p.epochs {
		if p.epochs[i].Through < n {
			rec = &p.epochs[i]
		}
	}
	return rec
}

// segment is a range of feedback: of the epochs since…epoch, or of all if epoch is 0.
type segment struct {
	since, epoch, from, to int64
	paused                 bool // nothing was learned
}

// own returns what was learned while an epoch was at work, through feedback to.
func own(rec *codec.Epoch, to int64) segment {
	return segment{since: lineage(rec), epoch: rec.Epoch, from: rec.Through + 1, to: to, paused: rec.Mode == codec.Paused}
}

// segments returns the feedback that an epoch's learner starts from, ascending: for a
// rollback what the earlier epoch itself had started from, and then its own; likewise for
// one that goes on with the learner of the epoch before it.
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

// warmUp teaches an epoch's fresh learner the feedback that its record, which is at
// offset end, says. The log decides all of it, so it comes to the same everywhere. pause is
// called as by [scanAll].
func warmUp(ctx context.Context, log stream.Log, topic string, end int64, rec *codec.Epoch, ep loop.Epoch, pause func() error) (warmed, error) {
	done := warmed{epochs: map[int64]bool{}}
	if rec.WarmTo == 0 {
		return done, nil
	}
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
	err = scanAll(ctx, log, topic, end, pause, func(r *stream.Record) error {
		if r.Type != "" {
			return nil
		}
		if err := codec.ParseFeedback(&f, r.Value); err != nil {
			return unlessForeign(err)
		}
		switch {
		case f.N < next:
			return nil
		case f.N > next:
			return fmt.Errorf("epoch %d starts from feedback %d…%d and %d is gone: %w", rec.Epoch, rec.WarmFrom, rec.WarmTo, next, stream.ErrTruncated)
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
			return errStop
		}
		next = todo[0].from
		return nil
	})
	if err == nil && len(todo) > 0 {
		err = fmt.Errorf("epoch %d starts from feedback %d…%d and %d is not before it: %w", rec.Epoch, rec.WarmFrom, rec.WarmTo, next, codec.ErrCorrupt)
	}
	done.learned, done.passed = w.Learned, w.Passed
	return done, err
}

// planWarm fills in what the learner of a new epoch starts from, and teaches it, so
// that nothing is announced that cannot be followed. end is where its records begin.
func (j *Joiner) planWarm(ctx context.Context, rec *codec.Epoch, end int64) error {
	warm := j.cfg.Source.Warm
	if !warm.Refit && warm.Through == 0 {
		return nil
	}
	p, err := readPast(ctx, j.cfg.Log, j.topics.Feedback, end, j.pause)
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
		return fmt.Errorf("%w: warm: %d: the feedback log ends at %d; give one of its numbers, or warm: none", ErrModel, n, rec.Through)
	}
	e := p.at(n)
	if p.first == 0 || p.first > n || e == nil {
		return goneError(n, p.first)
	}
	if s := j.cfg.Source; s.Earlier != nil && !differ(s.Earlier, e.Model, "oracle") { // a state from before oracles had versions
		rec.Model = s.Earlier
	}
	k, _ := model.Differing(rec.Model, e.Model, "actions", "features", "max_features", "loss", "reward", "learner", "explore", "oracle")
	if k != "" {
		return fmt.Errorf("%w: warm: %d is a state of version %d (epoch %d), of which %s: differs; make it equal, or use warm: refit", ErrModel, n, e.Version, e.Epoch, k)
	}
	if !slices.Equal(rec.Files, e.Files) {
		return fmt.Errorf("%w: warm: %d is a state of version %d (epoch %d), which had another class file; put it back, or use warm: refit", ErrModel, n, e.Version, e.Epoch)
	}
	rec.WarmTo, rec.WarmEpoch = n, e.Epoch
	s, err := p.segments(rec)
	if err != nil || s[0].from < p.first {
		return goneError(n, p.first)
	}
	rec.WarmFrom = s[0].from
	return nil
}

// keepKeys are the keys that make a learner, but for its actions, which it knows by name.
func keepKeys() []string {
	return []string{"features", "max_features", "loss", "reward", "learner", "explore", "oracle", "certificate"}
}

// planKeep has a new epoch go on with the learner at work, if its model says so and may.
func (j *Joiner) planKeep(rec *codec.Epoch) error {
	if !j.cfg.Source.Warm.Keep || j.epochs.last == nil {
		return nil
	}
	last := &j.epochs.last.rec
	if k, has := model.Differing(rec.Model, last.Model, keepKeys()...); k != "" {
		return fmt.Errorf("%w: warm: keep goes on with the learner of version %d (epoch %d), of which %s differs: it has %q; make it equal, or use warm: refit",
			ErrModel, last.Version, last.Epoch, k, has)
	}
	if !slices.Equal(rec.Files, last.Files) {
		return fmt.Errorf("%w: warm: keep goes on with the learner of version %d (epoch %d), which has another class file; put it back, or use warm: refit", ErrModel, last.Version, last.Epoch)
	}
	rec.Continues = lineage(last)
	return nil
}

// tryKeep has a learner of the joiner's own take over the state of one that is like the one
// at work, so that nothing is announced that cannot be followed.
func (j *Joiner) tryKeep(rec *codec.Epoch, ep loop.Epoch) error {
	if rec.Continues == 0 {
		return nil
	}
	d := j.epochs.byNum[rec.Continues]
	if d == nil || d.rec.Model == nil {
		return nil // its record is gone; those in between were found to fit
	}
	was, err := j.cfg.Build(&d.rec, d.files)
	var state []byte
	if err == nil {
		state, err = was.Learner.AppendBinary(nil)
	}
	if err == nil {
		err = ep.Learner.UnmarshalBinary(state)
	}
	if err != nil {
		return fmt.Errorf("%w: warm: keep: the learner at work does not fit this model: %w; use warm: refit", ErrModel, err)
	}
	return nil
}

// checkContinues compares an epoch that goes on with a learner with the records before it.
func checkContinues(rec *codec.Epoch, warm model.Warm, before []codec.Epoch) (field, want, got string) {
	switch {
	case rec.WarmTo != 0:
		return "warm_to", "0", fmt.Sprint(rec.WarmTo)
	case len(before) == 0:
		return "", "", "" // what came before is gone
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
	if k, _ := model.Differing(rec.Model, last.Model, keepKeys()...); k != "" {
		return "model", k + " of epoch " + fmt.Sprint(last.Epoch), "another"
	}
	return "", "", ""
}

func goneError(n, first int64) error {
	return fmt.Errorf("%w: warm: %d: the feedback that led to it is no longer kept, the first that is kept is %d; use warm: refit or warm: none", ErrModel, n, first)
}

// tryWarm teaches a learner of the joiner's own what an epoch's will be taught.
func (j *Joiner) tryWarm(ctx context.Context, rec *codec.Epoch, ep loop.Epoch, end int64) error {
	if rec.WarmTo == 0 {
		return nil
	}
	w, err := warmUp(ctx, j.cfg.Log, j.topics.Feedback, end, rec, ep, j.pause)
	if errors.Is(err, errOvertaken) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: warm: %w", ErrModel, err)
	}
	for _, n := range slices.Sorted(maps.Keys(w.epochs)) {
		d := j.epochs.byNum[n]
		if d == nil {
			continue
		}
		if k, _ := model.Differing(rec.Model, d.rec.Model, "loss", "reward"); k != "" {
			return fmt.Errorf("%w: warm: %s: losses of version %d (epoch %d) are on another scale: %s: differs; use warm: none",
				ErrModel, j.cfg.Source.Warm, d.rec.Version, n, k)
		}
	}
	j.cfg.Logger.Info("the learner starts from earlier feedback", "from", rec.WarmFrom, "through", rec.WarmTo, "learned", w.learned, "passed_over", w.passed)
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
	case rec.Continues > 0:
		return checkContinues(rec, warm, before)
	case warm.Keep && len(before) > 0:
		return "continues", fmt.Sprint(lineage(&before[len(before)-1])), "0"
	case warm.Keep || warm == model.Warm{}:
		if rec.WarmTo != 0 || rec.WarmFrom != 0 || rec.WarmEpoch != 0 {
			return "warm_to", "0", fmt.Sprint(rec.WarmTo)
		}
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
