package loop

import (
	"slices"

	"hindsight/pkg/codec"
)

// Mark returns the joiner's positions after all that it emitted and rejected: once
// those are stored, and the mark behind them, a restart needs nothing before it. The
// epochs are those of waiting rounds, ascending; the caller adds their offsets.
func (j *Joiner) Mark() codec.FeedbackMark {
	m := codec.FeedbackMark{V: codec.Version, N: j.n, Time: j.now, Positions: make([]codec.Position, len(j.parts))}
	for i := range j.parts {
		part, out := &j.parts[i], &j.outs[i]
		m.Positions[i] = codec.Position{
			Partition: i, Released: part.released, DecisionsFrom: part.offset, DecisionsTime: part.time,
			OutcomesThrough: out.through, OutcomesFrom: out.through, OutcomesTime: out.time,
		}
		for n := range part.ahead {
			m.Positions[i].Ahead = append(m.Positions[i].Ahead, n)
		}
		slices.Sort(m.Positions[i].Ahead)
	}
	seen := make([]bool, len(j.parts))
	for i := range j.queue.len() {
		if p := *j.queue.at(i); !p.released {
			j.needs(&m, p, seen)
		}
	}
	for i := range j.parked.len() {
		k := j.parked.at(i)
		needOutcome(&m.Positions[k.place.Partition], k.place.Offset, k.time)
	}
	return m
}

// needs moves the positions of a mark back to what a waiting round needs.
func (j *Joiner) needs(m *codec.FeedbackMark, p *pending, seen []bool) {
	if i := p.d.Partition; !seen[i] {
		seen[i] = true
		m.Positions[i].DecisionsFrom, m.Positions[i].DecisionsTime = p.offset, p.time
	}
	for _, o := range p.outs {
		needOutcome(&m.Positions[o.partition], o.offset, o.time)
	}
	if k, found := slices.BinarySearchFunc(m.Epochs, p.d.Epoch, func(e codec.EpochRef, n int64) int { return int(e.Epoch - n) }); !found {
		m.Epochs = slices.Insert(m.Epochs, k, codec.EpochRef{Epoch: p.d.Epoch})
	}
}

func needOutcome(pos *codec.Position, offset, time int64) {
	if offset < pos.OutcomesFrom {
		pos.OutcomesFrom, pos.OutcomesTime = offset, time
	}
}

// Recall tells a new joiner of a feedback before the last mark of its log, in order,
// so that later outcomes of that round are known as duplicate or late.
func (j *Joiner) Recall(f *codec.Feedback) {
	if j.rounds.get(f.ID) >= 0 {
		return
	}
	j.forget(j.rounds.put(f.ID, roundMemo{partition: int32(f.Partition), fate: f.Fate, n: f.Round,
		outPart: int32(f.OutcomePartition), outOff: f.OutcomeOffset}))
}

// Restore puts a new joiner where the last mark of its log says. The caller then
// gives it the feedback behind the mark with Resume, and reads each partition from
// [Joiner.From].
func (j *Joiner) Restore(m *codec.FeedbackMark) {
	j.n, j.now = m.N, m.Time
	for i := range m.Positions {
		pos := &m.Positions[i]
		part, out := &j.parts[pos.Partition], &j.outs[pos.Partition]
		part.released, part.next = pos.Released, pos.Released+1
		part.offset, part.time = pos.DecisionsFrom, pos.DecisionsTime
		for _, n := range pos.Ahead {
			part.ahead[n] = struct{}{}
		}
		out.through, out.time, out.rejected = pos.OutcomesFrom, pos.OutcomesTime, pos.OutcomesThrough
	}
}

// Resume tells a new joiner of a feedback behind the last mark, in order. Rejects
// that were decided before it are stored.
func (j *Joiner) Resume(f *codec.Feedback) {
	j.Recall(f)
	j.n = f.N
	part := &j.parts[f.Partition]
	part.release(f.Round)
	part.next = max(part.next, part.released+1)
	if f.OutcomePartition >= 0 {
		out := &j.outs[f.OutcomePartition]
		out.rejected = max(out.rejected, f.OutcomeOffset+1)
	}
}

// From returns the offsets from which a partition's decisions and outcomes are to be
// read next.
func (j *Joiner) From(partition int) (decisions, outcomes int64) {
	return j.parts[partition].offset, j.outs[partition].through
}

// Reached returns the log time that a partition of decisions, or of outcomes, has
// reached.
func (j *Joiner) Reached(outcomes bool, partition int) int64 {
	if outcomes {
		return j.outs[partition].time
	}
	return j.parts[partition].time
}

// Released returns the N through which all rounds of a partition have their
// feedback.
func (j *Joiner) Released(partition int) int64 { return j.parts[partition].released }
