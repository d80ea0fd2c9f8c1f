package loop

import "hindsight/pkg/codec"

// Outcomes of equal windows form a stage. Each stage but a round's last has a line of its own, in the order of the
// decisions, and a record of its own in the feedback log: so what is known early is learned early. A round's stages are
// told in their order, each once, and all of them before its feedback, unless the round was withdrawn.

// stageEntry is the place of a round in the line of a stage. A round that has left stays in line until it is first.
type stageEntry struct {
	p   *pending
	seq int64
}

// line puts a round in the lines of its stages but the last.
func (j *Joiner) line(p *pending) {
	n := p.stages() - 1
	if n < 1 {
		return
	}
	if j.past != nil {
		p.retell(p.rules, j.past.told[Place{p.d.Partition, p.d.N}])
	}
	for len(j.lines) < n {
		j.lines = append(j.lines, ring[stageEntry]{})
	}
	for s := range n {
		j.lines[s].push(stageEntry{p, p.seq})
	}
}

// firstOf returns the first round of a line whose stage is still to be told, nil if there is none.
func (j *Joiner) firstOf(stage int) *pending {
	for line := &j.lines[stage-1]; line.len() > 0; line.pop() {
		if x := line.at(0); x.p.seq == x.seq && x.p.told < stage && x.p.tells() {
			return x.p
		}
	}
	return nil
}

// settleStages tells of the stages of the rounds that are first in line, and all of whose outcomes have their fate
// or waited too long.
func (j *Joiner) settleStages() {
	for s := range j.lines {
		for p := j.firstOf(s + 1); p != nil; p = j.firstOf(s + 1) {
			if deadline, known := j.endOf(p, p.window(s+1)); known && j.now > deadline {
				p.closeStage(p.rules, s+1, deadline)
			} else if j.now == End {
				p.closeStage(p.rules, s+1, End)
			}
			if p.told < s || !p.isReady(s+1) {
				break
			}
			j.tellStage(p)
		}
	}
}

// tellStage makes the record of the next stage of a round.
func (j *Joiner) tellStage(p *pending) {
	p.tell()
	j.bytes -= p.size
	p.size = p.weigh()
	j.bytes += p.size
	j.n++
	j.early = append(j.early, j.n)
	f := j.record(p)
	f.Stage, f.Outcomes = p.told, j.closedOf(p, p.told)
	for i := range f.Outcomes {
		f.ClosedAt = max(f.ClosedAt, f.Outcomes[i].ClosedAt)
	}
}

// tellRest makes the records of stages that were not told, before the feedback of a round that leaves out of turn.
func (j *Joiner) tellRest(p *pending) {
	for n := p.stages(); p.told < n-1 && p.tells(); {
		j.tellStage(p)
	}
}

// tells reports whether the stages of a round are told that were not: it was not withdrawn, and it has outcomes.
func (p *pending) tells() bool {
	return p.fate != codec.WithdrawnRound && p.reason != codec.ReasonDuplicateID && p.reason != codec.ReasonLost
}

// closedOf returns what became of the outcomes of a stage, 0: of all, nil if the model names none.
func (j *Joiner) closedOf(p *pending, stage int) []codec.Closed {
	if len(p.named) == 0 {
		return nil
	}
	n := len(j.closed)
	j.closed = p.appendClosed(j.closed, p.rules, stage)
	return j.closed[n:len(j.closed):len(j.closed)]
}

// head is a round that is first in a line, and the window that it waits for there.
type head struct {
	p      *pending
	window Window
	ready  bool
}

// heads yields the first round of each line. Where an era has just begun one may have its fate already.
func (j *Joiner) heads(yield func(head) bool) {
	for s := range j.lines {
		if p := j.firstOf(s + 1); p != nil && !yield(head{p, p.window(s + 1), p.told == s && p.isReady(s+1)}) {
			return
		}
	}
	if p := j.head(); p != nil && p.ready {
		yield(head{p: p, ready: true})
	} else if p != nil {
		yield(head{p: p, window: p.rules.Window})
	}
}

// window returns that of a stage.
func (p *pending) window(stage int) Window {
	for k := range p.named {
		if p.named[k].stage == stage {
			return p.rules.Named[k].Window
		}
	}
	return Window{}
}

// applyNamed gives a round that is not ready the named outcomes of a record.
func (j *Joiner) applyNamed(p *pending, partition int, e *OutcomeEvent) {
	size := p.size
	counted, reason, err := p.takeNamed(p.rules, p.d.Actions[p.d.Action], &e.O, outPos{partition, e.Offset, j.now},
		func(stage int) bool {
			deadline, known := j.endOf(p, p.window(stage))
			return known && j.now > deadline
		}, &j.scratch)
	p.size = p.weigh()
	j.bytes += p.size - size
	if reason != "" {
		j.reject(partition, e, reason, err, e.O.ID)
	}
	if !counted {
		return
	}
	for s := 1; s <= p.stages(); s++ {
		if !p.isReady(s) {
			return
		}
		if !p.rules.Waits(p.d.N, p.d.LearnedThrough) && j.past == nil && s < p.stages() && p.told < s {
			j.tellStage(p)
		}
	}
	p.conclude(p.rules, p.d.Actions[p.d.Action], "", &j.scratch)
	j.finish(p)
}
