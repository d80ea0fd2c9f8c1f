package loop

import "hindsight/pkg/codec"

// AppendReady appends the feedback that can be released now, and closes the rounds
// at the head of the line that waited too long, or beyond the limit on waiting
// rounds. The feedbacks alias the joiner's memory until its next call.
func (j *Joiner) AppendReady(dst []codec.Feedback) []codec.Feedback {
	j.free = append(j.free, j.limbo...)
	j.limbo = j.limbo[:0]
	for j.nReady.len() > 0 {
		if p := j.nReady.pop(); !p.released {
			dst = j.emit(dst, p)
		}
	}
	for j.queue.len() > 0 {
		p := *j.queue.at(0)
		if !p.released {
			if !p.ready && !j.expire(p) {
				break
			}
			dst = j.emit(dst, p)
		}
		j.queue.pop()
		j.limbo = append(j.limbo, p)
	}
	return dst
}

// expire closes the head of the line if it is due, or if too many wait behind it.
func (j *Joiner) expire(p *pending) bool {
	if deadline, known := j.deadline(p); known && j.now > deadline {
		p.close(deadline, "")
	} else if j.now == End {
		p.close(End, "")
	} else if j.queue.len() > j.o.MaxPending {
		p.close(j.now, codec.ReasonOverflow)
	}
	return p.ready
}

func (j *Joiner) emit(dst []codec.Feedback, p *pending) []codec.Feedback {
	j.n++
	d := &p.d
	f := codec.Feedback{
		N: j.n, Partition: d.Partition, Round: d.N, ID: d.ID, Epoch: d.Epoch,
		LearnedThrough: d.LearnedThrough, Gamma: d.Gamma, Time: p.time,
		Actions: d.Actions, Propensities: d.Propensities, Action: d.Action,
		Fate: p.fate, Reason: p.reason, Loss: p.loss,
		OutcomePartition: p.outPart, OutcomeOffset: p.outOff, ClosedAt: p.closedAt, Context: d.Context,
	}
	p.released = true
	part := &j.parts[d.Partition]
	part.release(d.N)
	part.trim()
	if p.slot >= 0 {
		memo := j.rounds.value(p.slot)
		memo.p, memo.fate, memo.outPart, memo.outOff = nil, p.fate, int32(p.outPart), p.outOff
		j.forget(p.slot)
	}
	return append(dst, f)
}

// forget puts a released round last in the line of those that are remembered, and
// drops the first beyond the limit.
func (j *Joiner) forget(slot int32) {
	j.old.push(slot)
	if j.old.len() > j.o.Dedup {
		j.rounds.del(j.old.pop())
	}
}

// has reports whether a round has its feedback.
func (p *joinPart) has(n int64) bool {
	if n <= p.released {
		return true
	}
	_, ok := p.ahead[n]
	return ok
}

// release notes that a round has its feedback.
func (p *joinPart) release(n int64) {
	if n > p.released+1 {
		p.ahead[n] = struct{}{}
		return
	}
	p.released = max(p.released, n)
	for len(p.ahead) > 0 {
		if _, ok := p.ahead[p.released+1]; !ok {
			return
		}
		delete(p.ahead, p.released+1)
		p.released++
	}
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
