package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// losses is what a joiner knows, when it opens, of tails that other logs have lost in
// a power failure.
type losses struct {
	// The offsets that its own log says were passed, and the log time reached then:
	// what lies before them with a later time has taken the place of lost records.
	decisions, outcomes []int64
	time                int64

	gone    []int64                      // of outcomes: the offsets that were passed, 0 if none is lost
	learned int64                        // the last feedback that a decision or a snapshot had learned
	epoch   int64                        // the last that one was made in
	begun   map[int64]codec.DecisionMark // by epoch: what deciders say of its beginning
	void    bool                         // a snapshot had, and was not known to
	rewound []bool                       // the partitions of decisions that were read again from the start
}

func newLosses(partitions int) losses {
	return losses{decisions: make([]int64, partitions), outcomes: make([]int64, partitions), gone: make([]int64, partitions), rewound: make([]bool, partitions), begun: map[int64]codec.DecisionMark{}}
}

// mark notes what a mark of the feedback log's tail says.
func (l *losses) mark(m *codec.FeedbackMark) {
	l.time = max(l.time, m.Time)
	for i := range m.Positions {
		if pos := &m.Positions[i]; pos.Partition < len(l.outcomes) {
			l.decisions[pos.Partition], l.outcomes[pos.Partition] = max(pos.DecisionsFrom, pos.DecisionsThrough), pos.OutcomesThrough
		}
	}
}

// feedback notes what a feedback says.
func (l *losses) feedback(f *codec.Feedback) {
	if p := f.OutcomePartition; p >= 0 && p < len(l.outcomes) && f.ClosedAt != loop.End {
		l.outcomes[p], l.time = max(l.outcomes[p], f.OutcomeOffset+1), max(l.time, f.ClosedAt)
	}
}

// findLosses compares the feedback log's tail with the other logs, and sets the heart
// back where they have lost theirs.
func (j *Joiner) findLosses(ctx context.Context) error {
	lost := false
	for p := range j.cfg.Partitions {
		if err := j.findLostDecisions(ctx, p); err != nil {
			return err
		}
		lost = lost || j.lost.rewound[p]
	}
	for p := range j.cfg.Partitions {
		if err := j.findLostOutcomes(ctx, p, lost); err != nil {
			return err
		}
	}
	return j.findVoid(ctx)
}

func (j *Joiner) findLostDecisions(ctx context.Context, p int) error {
	l := &j.lost
	at, err := lostFrom(ctx, j.cfg.Log, j.topics.Decisions, p, l.decisions[p], l.time)
	if err != nil {
		return err
	}
	if at < l.decisions[p] {
		j.cfg.Logger.Error("decisions have lost their tail: reading them from the start", "partition", p, "from", at, "to", l.decisions[p])
		j.heart.Rewind(p)
		l.rewound[p] = true
	}
	return l.readDecisions(ctx, j, p)
}

// findLostOutcomes looks for outcomes that were passed and are gone. If decisions are,
// an outcome that counted may have no round any more: all that would be read again
// are new.
func (j *Joiner) findLostOutcomes(ctx context.Context, p int, decisions bool) error {
	l := &j.lost
	at, err := lostFrom(ctx, j.cfg.Log, j.topics.Outcomes, p, l.outcomes[p], l.time)
	if err != nil {
		return err
	}
	if at < l.outcomes[p] {
		j.cfg.Logger.Error("outcomes have lost their tail", "partition", p, "from", at, "to", l.outcomes[p])
	}
	if _, from := j.heart.From(p); decisions {
		at = min(at, from)
	}
	if at < l.outcomes[p] {
		j.heart.LoseOutcomes(p, at)
		l.gone[p] = l.outcomes[p]
	}
	return nil
}

// readDecisions finds out what the last decisions of a partition had learned. Those
// before a mark that says that it is lost count too: that mark may be lost next.
func (l *losses) readDecisions(ctx context.Context, j *Joiner, p int) error {
	first, end, err := j.cfg.Log.Bounds(ctx, j.topics.Decisions, p)
	for back := int64(512); err == nil; back *= 8 {
		var learned, epoch int64
		found, from := false, max(first, end-back)
		err = scan(ctx, j.cfg.Log, j.topics.Decisions, p, from, end, func(r *stream.Record) error {
			switch r.Type {
			case "":
				var d codec.Decision
				if err := codec.ParseDecision(&d, r.Value); err != nil || d.Partition != p {
					return nil // said when it is read
				}
				found, learned, epoch = true, max(learned, d.LearnedThrough), max(epoch, d.Epoch)
			case codec.TypeMark:
				m, err := codec.ParseDecisionMark(r.Value)
				if err != nil {
					return unlessForeign(err)
				}
				learned = max(learned, m.LearnedThrough)
				if m.Epoch > 0 {
					l.begun[m.Epoch] = m
				}
			}
			return nil
		})
		if found && l.explains(j.epochs.last, epoch) || from == first {
			l.learned, l.epoch = max(l.learned, learned), max(l.epoch, epoch)
			break
		}
	}
	return err
}

// explains reports whether it is known what an epoch was that decisions were made in: the
// feedback log has it, or the decisions have the mark of its beginning.
func (l *losses) explains(last *definition, epoch int64) bool {
	_, ok := l.begun[epoch]
	return ok || last == nil || epoch <= last.rec.Epoch
}

// keepMode gives an epoch that takes the place of a lost one the mode that somebody had
// asked for in that.
func (l *losses) keepMode(rec *codec.Epoch) {
	m, ok := l.begun[rec.Epoch]
	mode, err := codec.ParseMode(m.Mode)
	if !ok || err != nil || mode == modeOf(rec.Model) {
		return
	}
	rec.Model, rec.Cause = withMode(rec.Model, mode), causeLost
	rec.SHA256 = hexSum(rec.Model)
}

// regain writes the epochs anew that went on with the learner of this model and whose records
// the feedback log has lost.
func (j *Joiner) regain(ctx context.Context) error {
	for n := j.epochs.last.rec.Epoch + 1; n <= j.lost.epoch; n++ {
		m, ok := j.lost.begun[n]
		if !ok {
			continue // nothing was decided in it; if it was, the losses are refused
		}
		mode, err := codec.ParseMode(m.Mode)
		if err != nil || m.Version != j.epochs.last.rec.Version {
			return nil
		}
		j.cfg.Logger.Error("the record of an epoch was lost with the feedback log's tail; a decider had noted it, and it is written anew", "epoch", n, "mode", m.Mode)
		if err := j.goOn(ctx, n, mode, causeLost); err != nil {
			return err
		}
	}
	return nil
}

// announceLosses writes a mark that tells what is gone, so that deciders do not wait for
// feedback that may never be the same again.
func (j *Joiner) announceLosses(ctx context.Context) error {
	l := &j.lost
	if last := j.epochs.last.rec.Epoch; l.epoch > last {
		return fmt.Errorf("%w: decisions were made in epoch %d, whose record the feedback log has lost, and this is the model of epoch %d; start with the model of that epoch, or raise version: to begin another",
			ErrModel, l.epoch, last)
	}
	var lost int64
	if l.learned > j.heart.LastN() {
		lost = l.learned
		j.cfg.Logger.Error("the feedback log has lost its tail: that feedback is made again, from what the other logs hold", "from", j.heart.LastN()+1, "to", lost)
	}
	if lost == 0 && !l.void && !slices.ContainsFunc(l.gone, func(n int64) bool { return n > 0 }) {
		return nil
	}
	m := j.heart.Mark()
	m.Lost = lost
	for p, n := range l.gone {
		m.Positions[p].OutcomesLost = n
	}
	if err := j.appendMark(ctx, &m); err != nil {
		return err
	}
	return j.feedback.Flush(ctx)
}

// rewind reads a partition of decisions again from its start, once: the log may have
// lost its tail and grown again before this joiner opened, so that a gap was announced
// before its position. It reports false if it did so before.
func (j *Joiner) rewind(ctx context.Context, in *input) (bool, error) {
	if j.lost.rewound[in.partition] {
		return false, nil
	}
	j.cfg.Logger.Error("decisions are missing before the position in the feedback log: reading them from the start", "partition", in.partition, "from", in.consumed())
	j.lost.rewound[in.partition] = true
	j.heart.Rewind(in.partition)
	pumped := in.pump != nil
	in.close()
	fresh, err := openInput(ctx, j.cfg.Log, in.topic, in.partition, stream.Earliest, 0)
	if err != nil {
		return false, err
	}
	*in = *fresh
	if pumped {
		in.start(ctx, j.wake)
	}
	return true, nil
}

// missing reports whether records before the one given are missing.
func missing(err error) bool { return errors.Is(err, loop.ErrGap) }
