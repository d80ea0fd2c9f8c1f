package loop

import (
	"slices"

	"hindsight/pkg/codec"
)

// Mark returns the joiner's positions after all that AppendReady and AppendRejects
// returned: once that is stored, and the mark behind it, a restart needs nothing
// before it. Rejects that wait are told as such, and are final. The caller adds the epochs.
func (j *Joiner) Mark() codec.FeedbackMark {
	j.needed = make([]start, len(j.parts))
	for i := range j.needed {
		part, out := &j.parts[i], &j.outs[i]
		j.needed[i] = start{part.offset, part.time, out.through, out.time}
	}
	for i := range j.done.len() {
		j.need(*j.done.at(i))
	}
	for i := range j.queue.len() {
		if p := *j.queue.at(i); p != nil {
			j.need(p)
		}
	}
	for s := j.parked.first; s >= 0; s = j.parked.all[s].next {
		k := &j.parked.all[s]
		j.needOutcome(k.Partition, k.Offset, k.time)
	}
	for i := range j.rejects {
		r := &j.rejects[i]
		j.needOutcome(r.Partition, r.Offset, r.Time)
	}
	return j.mark()
}

// MarkRejects returns a mark that tells of the rejects that wait. It does not look at each
// waiting round, of which there may be a million: a restart reads from where the last Mark of
// this joiner said, which is never too late, since what rounds need only moves on.
func (j *Joiner) MarkRejects() codec.FeedbackMark {
	if j.needed == nil {
		return j.Mark()
	}
	return j.mark()
}

// mark returns a mark from which a restart reads what is needed.
func (j *Joiner) mark() codec.FeedbackMark {
	m := codec.FeedbackMark{V: codec.Version, N: j.n, Time: j.Now(), Positions: make([]codec.Position, len(j.parts))}
	done := make([][]int64, len(j.parts)) // have no feedback yet
	for i := range j.done.len() {
		p := *j.done.at(i)
		done[p.d.Partition] = append(done[p.d.Partition], p.d.N)
	}
	for i := range j.parts {
		part, out, from := &j.parts[i], &j.outs[i], &j.needed[i]
		m.Positions[i] = codec.Position{
			Partition: i, DecisionsFrom: from.decisions, DecisionsTime: from.decisionsTime,
			DecisionsThrough: max(part.offset, part.before),
			OutcomesThrough:  max(out.through, out.handled), OutcomesFrom: from.outcomes, OutcomesTime: from.outcomesTime,
		}
		pos := &m.Positions[i]
		slices.Sort(done[i])
		pos.Released, pos.Ahead = part.emitted(done[i])
		for _, offset := range out.parked { // not read again yet
			if offset >= out.through {
				pos.Parked = append(pos.Parked, offset)
			}
		}
		out.refusals(pos)
	}
	for s := j.parked.first; s >= 0; s = j.parked.all[s].next {
		if k := &j.parked.all[s]; !k.handled {
			m.Positions[k.Partition].Parked = append(m.Positions[k.Partition].Parked, k.Offset)
		}
	}
	j.waitingRejects(&m)
	m.Guard = j.guard.Append(nil)
	return m
}

// start is where a restart begins to read a partition of decisions and of outcomes, and the
// log times there.
type start struct {
	decisions, decisionsTime int64
	outcomes, outcomesTime   int64
}

// need moves the start of a restart back to what a round without feedback needs.
func (j *Joiner) need(p *pending) {
	if from := &j.needed[p.d.Partition]; p.offset < from.decisions {
		from.decisions, from.decisionsTime = p.offset, p.time
	}
	for _, o := range p.outs {
		j.needOutcome(o.partition, o.offset, o.time)
	}
}

// need notes that a restart must read this outcome again while the round waits.
func (p *pending) need(at outPos) {
	for i := range p.outs {
		if p.outs[i].partition == at.partition {
			return
		}
	}
	p.outs = append(p.outs, at)
}

func (j *Joiner) needOutcome(partition int, offset, time int64) {
	if from := &j.needed[partition]; offset < from.outcomes {
		from.outcomes, from.outcomesTime = offset, time
	}
}

// Expect makes room for so many feedbacks that Recall and Resume are about to tell of.
func (j *Joiner) Expect(n int) { j.rounds.reserve(min(n, j.o.Dedup)) }

// Recall tells a new joiner of a feedback before the last mark of its log, in order,
// so that later outcomes of that round are known as duplicate or late. It wants the
// last JoinerOptions.Dedup of them.
func (j *Joiner) Recall(f *codec.Feedback) {
	if f.Reason == codec.ReasonDuplicateID || j.rounds.get(f.ID) >= 0 {
		return // the id is the earlier round's, as long as that is remembered
	}
	j.told = max(j.told, f.ClosedAt)
	reason := "" // f's aliases the caller's bytes
	switch f.Reason {
	case codec.ReasonOverflow:
		reason = codec.ReasonOverflow
	case codec.ReasonInactive:
		reason = codec.ReasonInactive
	}
	j.forget(j.rounds.put(f.ID, roundMemo{fate: f.Fate, reason: reason, epoch: f.Epoch, told: true,
		closedAt: f.ClosedAt, outPart: int32(f.OutcomePartition), outOff: f.OutcomeOffset}))
}

// Restore puts a new joiner where the last mark of its log says. The caller then
// gives it the feedback behind the mark with Resume, and reads each partition from
// [Joiner.From]. A later mark may be restored over an earlier one.
//
// Log time starts anew with the records that are read again: a round whose turn
// comes early, since those before it have their feedback, must not be closed before
// its outcomes are given.
func (j *Joiner) Restore(m *codec.FeedbackMark) {
	j.n, j.now, j.reached, j.losses = m.N, 0, m.Time, LateLosses{}
	for i := range m.Positions {
		pos := &m.Positions[i]
		part, out := &j.parts[pos.Partition], &j.outs[pos.Partition]
		part.released, part.next = pos.Released, pos.Released+1
		part.offset, part.time, part.before = pos.DecisionsFrom, pos.DecisionsTime, pos.DecisionsThrough
		part.ahead = aheadSet{}
		for _, n := range pos.Ahead {
			part.release(n)
		}
		out.through, out.time = pos.OutcomesFrom, pos.OutcomesTime
		out.handled, out.parked = pos.OutcomesThrough, slices.Clone(pos.Parked)
		out.restore(pos, m.Time)
	}
}

// Rewind has a partition of decisions read again from the first record kept: its log
// has lost the tail that a mark knew, and offsets mean other records now. Rounds that
// are known are passed over.
func (j *Joiner) Rewind(partition int) {
	part := &j.parts[partition]
	part.offset, part.time, part.before, j.needed = 0, 0, 0, nil
}

// LoseOutcomes says that outcomes of a partition have no fate yet from an offset on:
// its log, or that of their decisions, has lost its tail.
func (j *Joiner) LoseOutcomes(partition int, from int64) {
	out := &j.outs[partition]
	out.through, out.handled = min(out.through, from), min(out.handled, from)
	k, _ := slices.BinarySearch(out.parked, from)
	out.parked = out.parked[:k]
	out.refused = slices.DeleteFunc(out.refused, func(r refusal) bool { return r.offset >= from })
}

// Resume tells a new joiner of a feedback behind the last mark, in order. The rejects
// of all that was read before it are stored.
func (j *Joiner) Resume(f *codec.Feedback) {
	j.Recall(f)
	j.n = f.N
	j.parts[f.Partition].release(f.Round)
	if f.Fate == codec.Observed {
		j.losses.AddObserved(f.Epoch, f.Loss)
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
func (j *Joiner) Released(partition int) int64 {
	released := j.parts[partition].released
	for i := range j.done.len() {
		if p := *j.done.at(i); p.d.Partition == partition {
			released = min(released, p.d.N-1)
		}
	}
	return released
}
