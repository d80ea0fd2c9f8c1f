package loop

import (
	"slices"

	"hindsight/pkg/codec"
)

// AppendReady appends the feedback that is released. It aliases the joiner's memory
// until the next call of AppendReady.
func (j *Joiner) AppendReady(dst []codec.Feedback) []codec.Feedback {
	for _, p := range j.limbo {
		j.pool.recycle(p)
	}
	clear(j.limbo)
	j.limbo = j.limbo[:0]
	for j.done.len() > 0 {
		p := j.done.pop()
		dst = j.emit(dst, p)
		j.limbo = append(j.limbo, p)
	}
	return dst
}

// settle closes the rounds at the head of the line that waited too long, and takes
// those that have a fate out of it.
func (j *Joiner) settle() {
	for j.queue.len() > 0 {
		if p := *j.queue.at(0); p != nil {
			if !p.ready {
				deadline, known := j.deadline(p)
				p.expire(deadline, known, j.now)
			}
			if !p.ready {
				return
			}
			j.leave(p)
		}
		j.queue.pop()
		j.front++
	}
}

// leave takes a round with a fate out of the line: it is the next to be released.
func (j *Joiner) leave(p *pending) {
	*j.queue.at(int(p.seq - j.front)) = nil
	j.waiting--
	j.bytes -= p.size
	part := &j.parts[p.d.Partition]
	part.release(p.d.N)
	j.spread(part)
	part.trim()
	j.unhold(p)
	j.done.push(p)
	if p.slot >= 0 {
		*j.rounds.value(p.slot) = roundMemo{fate: p.fate, reason: p.reason, epoch: p.d.Epoch, late: p.late,
			closedAt: p.closedAt, outPart: int32(p.outPart), outOff: p.outOff}
		j.forget(p.slot)
	}
}

func (j *Joiner) emit(dst []codec.Feedback, p *pending) []codec.Feedback {
	j.n++
	d := &p.d
	if p.fate == codec.Observed {
		j.losses.AddObserved(d.Epoch, p.loss)
	}
	dst = append(dst, codec.Feedback{
		N: j.n, Partition: d.Partition, Round: d.N, ID: d.ID, Epoch: d.Epoch,
		LearnedThrough: d.LearnedThrough, Gamma: d.Gamma, Time: p.time,
		Actions: d.Actions, Propensities: d.Propensities, Action: d.Action,
		Fate: p.fate, Reason: p.reason, Loss: p.loss,
		OutcomePartition: p.outPart, OutcomeOffset: p.outOff, ClosedAt: p.closedAt, Context: d.Context,
		Mode: d.Mode, Would: d.Would,
	})
	j.guard.Add(&dst[len(dst)-1])
	return dst
}

// forget puts a round with a fate last in the line of those that are remembered, and
// drops the first beyond the limit; but none after a restart until all outcomes are
// read again that were given before it, for a round that is not known to have had
// its part of them would make them orphans.
func (j *Joiner) forget(slot int32) {
	j.old.push(slot)
	for j.old.len() > j.o.Dedup && j.now > j.told {
		j.rounds.del(j.old.pop())
	}
}

// has reports whether a round has its fate.
func (p *joinPart) has(n int64) bool { return n <= p.released || p.ahead.has(n) }

// release notes that a round has its fate.
func (p *joinPart) release(n int64) {
	if n > p.released+1 {
		p.ahead.add(n, p.released)
		return
	}
	p.released = p.ahead.join(max(p.released, n))
}

// emitted returns the rounds that have their feedback, as a mark has them: all up to
// released, and those ahead. done are those that have their fate and no feedback, ascending.
func (p *joinPart) emitted(done []int64) (released int64, ahead []int64) {
	if len(done) == 0 {
		return p.released, p.ahead.appendTo(nil)
	}
	for n := done[0]; n <= p.released; n++ {
		ahead = append(ahead, n)
	}
	ahead = slices.DeleteFunc(p.ahead.appendTo(ahead), func(n int64) bool {
		_, waits := slices.BinarySearch(done, n)
		return waits
	})
	return min(p.released, done[0]-1), ahead
}

// spread notes what a partition adds to the span of all.
func (j *Joiner) spread(p *joinPart) {
	j.span -= p.span
	p.span = int(max(0, p.next-1-p.released))
	j.span += p.span
}

// read notes a record and returns its log time made monotone.
func (p *joinPart) read(offset, logTime int64) int64 {
	p.offset = offset + 1
	p.time = max(p.time, logTime)
	return p.time
}

// add notes the log time of the next decision.
func (p *joinPart) add(logTime int64) {
	if p.times.len() == 0 {
		p.first = p.next
	}
	p.times.push(logTime)
	p.next++
}

// timeOf returns the log time of decision n ≥ first, if it was read.
func (p *joinPart) timeOf(n int64) (int64, bool) {
	i := n - p.first
	if i < 0 || i >= int64(p.times.len()) {
		return 0, false
	}
	return *p.times.at(int(i)), true
}

// trim drops the times that no waiting round can ask for.
func (p *joinPart) trim() {
	for p.times.len() > 0 && p.first <= p.released {
		p.times.pop()
		p.first++
	}
}
