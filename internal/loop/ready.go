package loop

import (
	"bytes"
	"strings"

	"hindsight/pkg/codec"
)

// Ready is what follows from the cuts taken so far. The caller does, in this order:
//
//  1. append the cut to the feedback log;
//  2. append Feedback behind it, and before the next cut. It waits for no acknowledgement: the one
//     appender of that log keeps the order, and nothing is stored behind an append that fails;
//  3. append Rejects once the cut is acknowledged: the log of rejects has no fence, that of
//     cuts has one;
//  4. append a mark ([Joiner.Mark]) only when all feedback and the rejects of all cuts before it
//     are acknowledged.
type Ready struct {
	Feedback []codec.Feedback
	Rejects  []codec.Reject
}

// Ready sets dst to what follows from the cuts that were taken since the last call. Both lists are
// the joiner's, as is what Feedback points to, until the next call of Take; what a reject points
// to is the caller's.
func (j *Joiner) Ready(dst *Ready) {
	*dst = Ready{}
	if !j.handed {
		*dst, j.handed = j.ready, true
	}
}

// reuse takes back what the last call of Ready handed out.
func (j *Joiner) reuse() {
	if !j.handed {
		return
	}
	j.handed = false
	for i, p := range j.emitted {
		j.pool.recycle(p)
		j.emitted[i] = nil
	}
	clear(j.ready.Rejects) // each may hold a large record
	j.emitted, j.ready.Feedback, j.ready.Rejects = j.emitted[:0], j.ready.Feedback[:0], j.ready.Rejects[:0]
	j.closed = j.closed[:0]
}

// leave takes a round with a fate out of the line and makes its feedback.
func (j *Joiner) leave(p *pending) {
	j.queue.at(int(p.seq - j.front)).p = nil
	p.seq = -1 // nor is it in the lines of its stages
	j.waiting--
	j.parts[p.d.Partition].waiting--
	j.bytes -= p.size
	if p.held {
		j.held--
		if j.now != End { // the end of a file is no time
			j.wait += max(0, j.now-p.closedAt)
		}
	}
	j.n++
	k := knownRound{n: j.n, fate: p.fate, reason: p.reason, epoch: p.d.Epoch, closedAt: p.closedAt}
	switch {
	case p.slot < 0:
	case p.over:
		j.rounds.del(p.slot)
	default:
		j.remember(p.slot, k)
	}
	if p.d.Unit != "" {
		j.leaveUnit(p, k)
	}
	f := j.record(p)
	f.Fate, f.Reason, f.Loss = p.fate, p.reason, p.loss
	f.OutcomePartition, f.OutcomeOffset, f.ClosedAt = p.outPart, p.outOff, p.closedAt
	f.Outcomes = j.closedOf(p, 0)
	j.emitted = append(j.emitted, p)
	j.guard.Add(f)
	j.judge.Add(f)
}

// recordEarly is record of a stage.
func (j *Joiner) recordEarly(p *pending) *codec.Feedback {
	j.n++
	j.early = append(j.early, j.n)
	f := j.record(p)
	f.Stage = p.told
	return f
}

// record appends the feedback of a round, as yet without what became of it, to those that are ready.
func (j *Joiner) record(p *pending) *codec.Feedback {
	d := &p.d
	j.ready.Feedback = append(j.ready.Feedback, codec.Feedback{
		N: j.n, Partition: d.Partition, Round: d.N, ID: d.ID, Epoch: d.Epoch,
		LearnedThrough: d.LearnedThrough, Gamma: d.Gamma, Time: p.time,
		Actions: d.Actions, Propensities: d.Propensities, Action: d.Action,
		OutcomePartition: -1, OutcomeOffset: -1, Context: d.Context,
		Mode: d.Mode, Would: d.Would, Unknown: d.Unknown, Unit: d.Unit, First: d.First,
	})
	return &j.ready.Feedback[len(j.ready.Feedback)-1]
}

// reject rejects an outcome. While a joiner is restored it does not: the reject is stored.
func (j *Joiner) reject(partition int, e *OutcomeEvent, reason string, err error, id string) {
	if j.past != nil {
		return
	}
	raw := bytes.Clone(e.Raw)
	if raw == nil {
		raw = codec.AppendOutcome(nil, &e.O)
	}
	r := codec.Reject{V: codec.Version, Topic: "outcomes", Partition: partition, Offset: e.Offset,
		Time: j.now, Reason: reason, ID: strings.Clone(id), Bytes: raw, Cut: j.cut, Era: j.era}
	if err != nil {
		r.Detail = err.Error()
	}
	j.ready.Rejects = append(j.ready.Rejects, r)
}
