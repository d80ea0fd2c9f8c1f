package service

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"hindsight/internal/intake"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// refusedWithin is how long before the last record of decisions a reject may have been stored that no such
// record tells of: what is on its way, and what clocks differ by.
const refusedWithin = int64(time.Minute)

// tail is what the last records of decisions tell of the other logs.
type tail struct {
	learned int64                // feedback learned by the last decision
	era     int64                // of the feedback log at the last decision or mark
	epoch   int64                // of the last decision
	time    int64                // log time that contexts have reached
	first   int64                // log time of the first record that was read
	last    int64                // log time of the last record
	marked  bool                 // there is a mark
	begun   codec.DecisionMark   // the last that tells of the beginning of an epoch
	refused []codec.DecisionMark // that tell of rejects
}

// carried returns a context as the log has it.
func (d *Decider) carried(raw []byte) []byte {
	d.carry = codec.CarriedContext(d.carry[:0], raw)
	return d.carry
}

// readTail reads the last decisions.
func (d *Decider) readTail(ctx context.Context, t stream.Tail) error {
	for back := int64(d.cfg.Dedup) + int64(d.cfg.Dedup)/64 + 64; ; back *= 4 { // not all offsets are decisions
		from := max(t.First, t.Open-back)
		d.heart = loop.NewDecider(d.follower.Replica(), d.cfg.Seed, d.cfg.Name, d.cfg.Partition, d.cfg.Dedup)
		if d.cfg.Encoding == codec.JSON {
			d.heart.Carried = d.carried
		}
		d.heart.Partitions = d.cfg.Partitions
		d.heart.Expect(int(t.Open - from))
		d.seen = tail{}
		n, err := d.readFrom(ctx, from, t.Open)
		d.reached = d.seen.last
		if err != nil || n >= d.cfg.Dedup && d.knowsDraws() {
			return err
		}
		if from == t.First {
			return d.checkTail(t, n > 0 || d.seen.marked)
		}
	}
}

// knowsDraws reports whether the last decisions that were read begin before all draws of units that may hold.
func (d *Decider) knowsDraws() bool {
	s, ep := &d.seen, d.follower.Replica().Epoch()
	if ep == nil || ep.Rules.Sticky == 0 {
		return true
	}
	from := s.last
	if s.time > 0 {
		from = min(from, s.time) // contexts may wait that are older than the last decision
	}
	return s.first < from-ep.Rules.Sticky-join.ClockSkew
}

// readFrom reads decisions from an offset to before end, and returns how many there are.
func (d *Decider) readFrom(ctx context.Context, from, end int64) (n int, err error) {
	s := &d.seen
	err = stream.Scan(ctx, d.cfg.Log, d.topics.Decisions, d.cfg.Partition, from, end, func(r *stream.Record) error {
		if s.last = r.Time; s.first == 0 {
			s.first = r.Time
		}
		switch r.Type {
		case "":
			if err := codec.ParseDecision(&d.dec, r.Value); err != nil || d.dec.Partition != d.cfg.Partition {
				return codec.UnlessForeign(err)
			}
			d.heart.Remember(&d.dec)
			d.recent.put(d.dec.N, r.Value)
			d.recent.stored(d.dec.N, r.Offset)
			s.learned, s.epoch = d.dec.LearnedThrough, d.dec.Epoch
			if d.dec.Source != loop.RequestSource {
				s.time = max(s.time, d.dec.Time)
			}
			s.era = max(s.era, d.dec.Era)
			n++
		case codec.TypeMark:
			m, err := codec.ParseDecisionMark(r.Value)
			if err != nil {
				return codec.UnlessForeign(err)
			}
			s.marked = true
			if m.Epoch > 0 {
				s.begun = m
			}
			if m.Rejects+m.RejectsTo+m.ContextsLost > 0 {
				s.refused = append(s.refused, m)
			}
			d.heart.Resume(max(m.N, m.GapTo)+1, m.ContextsThrough)
			s.learned, s.time = max(s.learned, m.LearnedThrough), max(s.time, m.Time)
			if m.LearnedLost > 0 || m.Era > s.era {
				s.learned = m.LearnedThrough
			}
			s.era = max(s.era, m.Era)
			if m.ContextsLost > 0 {
				d.heart.Pass(m.ContextsThrough)
			}
		}
		return nil
	})
	return n, err
}

// announceLosses compares the tail of decisions with the other logs. A power failure may have taken the tail of each.
// What is gone is written down in a mark before anything new is decided: rounds that another log tells of, whose
// numbers are not used again; feedback that the last decision had learned; contexts that were passed, and rejects of
// those.
func (d *Decider) announceLosses(ctx context.Context) error {
	var m codec.DecisionMark
	void, err := d.lostFeedback(ctx)
	if err != nil {
		return err
	}
	if err := d.lostContexts(ctx, &m); err != nil {
		return err
	}
	if err := d.lostRejects(ctx, &m); err != nil {
		return err
	}
	d.lostRounds(&m)
	if !void && m == (codec.DecisionMark{}) {
		return nil
	}
	d.cfg.Logger.Error("logs have lost their tails: what is gone is noted in decisions", "rounds_from", m.GapFrom,
		"rounds_to", m.GapTo, "contexts_from", d.heart.ContextsThrough(), "contexts_to", m.ContextsLost,
		"feedback_from", d.follower.Replica().LearnedThrough()+1, "feedback_to", d.seen.learned,
		"rejects_from", m.RejectsFrom, "rejects_to", m.RejectsTo)
	d.cfg.Metrics.LostTails.Inc()
	return d.mark(ctx, m)
}

// markEpoch writes down that an epoch has begun that goes on with a learner, before anything is decided in it: its
// record may be lost with the feedback log's tail, and the mode that somebody asked for with it.
func (d *Decider) markEpoch(ctx context.Context) error {
	ep := d.follower.Replica().Epoch()
	if ep == nil || ep.Since == 0 {
		return nil
	}
	m := codec.DecisionMark{Epoch: ep.Number, Version: d.follower.Epoch(ep.Number).Rec.Version,
		Mode: ep.Rules.Mode.String()}
	if was := &d.seen.begun; was.Epoch == m.Epoch && was.Version == m.Version && was.Mode == m.Mode {
		return nil
	}
	d.seen.begun = m
	return d.mark(ctx, m)
}

// lostRounds finds rounds that feedback, a mark, a snapshot or this process's memory tells of and decisions do not.
func (d *Decider) lostRounds(m *codec.DecisionMark) {
	p := d.cfg.Partition
	last := max(d.follower.Rounds()[p], d.follower.Told(p), d.cfg.wrote.n.Load())
	if next := d.heart.Next(); last >= next {
		m.GapFrom, m.GapTo = next, last
		d.heart.Resume(last+1, 0)
	}
}

// lostFeedback finds out whether the last decision had learned feedback that is gone. One may go on with less only when
// the joiner has written down that it is gone: else it may just not be there yet.
func (d *Decider) lostFeedback(ctx context.Context) (void bool, err error) {
	f := d.follower
	got, number := f.Replica().LearnedThrough(), int64(0)
	if ep := f.Replica().Epoch(); ep != nil {
		number = ep.Number
	}
	if got < d.seen.learned {
		if void, err = f.Announced(ctx, d.seen.era, d.seen.learned); err != nil {
			return false, err
		}
	}
	if (void || got >= d.seen.learned) && number >= d.seen.epoch && f.Replica().Era() >= d.seen.era {
		return void, nil
	}
	return false, fmt.Errorf("recover %s[%d]: the last decision was made in epoch %d after feedback %d, but the "+
		"feedback log ends in epoch %d after feedback %d, and no joiner has said that the rest is lost: %w",
		d.topics.Decisions, d.cfg.Partition, d.seen.epoch, d.seen.learned, number, got, stream.ErrUnavailable)
}

// lostContexts finds contexts that were passed and are gone.
func (d *Decider) lostContexts(ctx context.Context, m *codec.DecisionMark) error {
	through := d.heart.ContextsThrough()
	from, err := lostFrom(ctx, d.cfg.Log, d.topics.Contexts, d.cfg.Partition, through, d.seen.time)
	if err == nil && from < through {
		m.ContextsLost = through
		d.heart.Pass(from)
	}
	if err == nil {
		err = d.lostRefused(ctx, m)
	}
	return err
}

// ofContext parses a reject of a context of this partition.
func (d *Decider) ofContext(r *stream.Record) (x codec.Reject, ok bool) {
	if r.Type != "" {
		return x, false
	}
	x, err := codec.ParseReject(r.Value)
	return x, err == nil && x.Topic == "contexts" && x.Partition == d.cfg.Partition
}

// lostRefused finds contexts that are gone and of which only their rejects tell: those were stored, and no
// record of decisions behind them.
func (d *Decider) lostRefused(ctx context.Context, m *codec.DecisionMark) error {
	told, early := codec.Reject{Offset: d.heart.ContextsThrough() - 1}, false
	err := stream.ScanBack(ctx, d.cfg.Log, d.topics.Rejects, 0, math.MaxInt64, 64, func(r *stream.Record) error {
		if x, ok := d.ofContext(r); ok && x.Offset > told.Offset {
			told = x
		}
		early = early || r.Time < d.seen.last-refusedWithin
		return nil
	}, func() bool { return early })
	if err != nil || told.V == 0 {
		return err
	}
	there := false
	err = stream.Scan(ctx, d.cfg.Log, d.topics.Contexts, d.cfg.Partition, told.Offset, told.Offset+1,
		func(r *stream.Record) error {
			there = r.Time == told.Time // else another is in its place
			return nil
		})
	first, _, bounds := d.cfg.Log.Bounds(ctx, d.topics.Contexts, d.cfg.Partition)
	if bounds != nil || told.Offset < first { // retention has dropped it, maybe meanwhile
		return bounds
	}
	if err == nil && !there {
		m.ContextsLost = max(m.ContextsLost, told.Offset+1)
	}
	return err
}

// lostRejects finds rejects of contexts that were stored, as the last mark that knows of any says, and are
// gone. They tell people, and nothing hangs on them: they are not made again.
func (d *Decider) lostRejects(ctx context.Context, m *codec.DecisionMark) error {
	first, _, err := d.cfg.Log.Bounds(ctx, d.topics.Rejects, 0)
	marks := d.seen.refused
	if err != nil || len(marks) == 0 || marks[len(marks)-1].Rejects <= first { // retention has dropped them
		return err
	}
	was := &marks[len(marks)-1]
	limit := min(was.ContextsThrough, d.heart.ContextsThrough())
	left, whole := int64(0), false
	err = stream.ScanBack(ctx, d.cfg.Log, d.topics.Rejects, 0, was.Rejects, 16, func(r *stream.Record) error {
		x, ok := d.ofContext(r)
		if !ok || x.Offset >= was.ContextsThrough { // it may be in the place of a lost one
			return nil
		}
		if whole = whole || r.Offset+1 == was.Rejects; x.Offset < limit {
			left = r.Offset + 1
		}
		return nil
	}, func() bool { return left > 0 })
	if d.refused = left; whole || err != nil {
		return err
	}
	m.RejectsTo = was.ContextsThrough
	for _, x := range slices.Backward(marks) {
		if x.Rejects <= left {
			m.RejectsFrom = x.ContextsThrough
			break
		}
	}
	return nil
}

// lostFrom returns where the part of a partition ends that was there when its offsets before through, and log time at,
// had been reached: through, or less if the log has lost its tail since. Records in the place of lost ones are later.
func lostFrom(ctx context.Context, log stream.Log, topic string, partition int, through, at int64) (int64, error) {
	_, end, err := log.Bounds(ctx, topic, partition)
	if err != nil {
		return 0, err
	}
	lost, early := min(through, end), false
	err = stream.ScanBack(ctx, log, topic, partition, lost, 16, func(r *stream.Record) error {
		if r.Time > at {
			lost = r.Offset
			return stream.ErrStop
		}
		early = true
		return nil
	}, func() bool { return early })
	return lost, err
}

// checkTail refuses a log of decisions whose records are all gone: which contexts were decided, and under which
// numbers, is not known then. told is whether any record told of positions.
func (d *Decider) checkTail(t stream.Tail, told bool) error {
	if told || t.First <= join.LogStart {
		return nil
	}
	err := join.Dropped(d.topics.Decisions, d.cfg.Partition, 0, t.First,
		"and the last of them said which contexts are decided: going on would decide again what contexts still hold")
	if d.cfg.AcceptLoss {
		d.cfg.Logger.Error(join.GoingOn, "error", err)
		return nil
	}
	return err
}

// openContexts begins to read contexts. Those that retention dropped before they were
// read end it, or are passed, which a mark says before anything behind them is decided.
func (d *Decider) openContexts(ctx context.Context, from int64) (err error) {
	c := &d.cfg
	d.contexts, err = intake.Open(ctx, c.Log, d.topics.Contexts, c.Partition, from)
	if !errors.Is(err, stream.ErrTruncated) {
		return err
	}
	err = join.MissingFrom(ctx, c.Log, d.topics.Contexts, c.Partition, from, err, "which nobody has decided")
	if !c.AcceptLoss {
		return err
	}
	c.Logger.Error(join.GoingOn, "error", err)
	if d.contexts, err = intake.Open(ctx, c.Log, d.topics.Contexts, c.Partition, stream.Earliest); err != nil {
		return err
	}
	d.heart.Pass(d.contexts.Next)
	return d.mark(ctx, codec.DecisionMark{})
}
