package loop

import (
	"strings"

	"hindsight/pkg/codec"
)

// Outcomes of equal windows form a stage. Each stage but a round's last has a line of its own, in the order of the
// decisions, and a record of its own in the feedback log: so what is known early is learned early. A round's stages are
// told in their order, each once, and all of them before its feedback, unless the round was withdrawn: such a model has
// the order of decisions ([Rules.Waits]), in which a round that is first in line is first in the lines of its stages.

// stageEntry is the place of a round in the line of a stage. A round that has left stays in line until it is first.
type stageEntry struct {
	p   *pending
	seq int64
}

// toldRound is what records of stages told of a round that is taken again.
type toldRound []toldOutcome

type toldOutcome struct {
	n int64 // of the record
	codec.Closed
}

// OldestTold returns the N of the first record of a stage whose round is still to be taken again, since an era has lost
// its decision; End: there is none. A restart must know it.
func (j *Joiner) OldestTold() int64 {
	oldest := int64(End)
	for at, t := range j.told {
		if at.Offset < j.parts[at.Partition].next {
			delete(j.told, at)
		} else {
			oldest = min(oldest, t[0].n)
		}
	}
	return oldest
}

// retellAll ends the quiet pass of a restart: stages that were told behind the decisions of their rounds are told only
// now, so that until then each record of outcomes is judged as it was.
func (j *Joiner) retellAll() {
	for i := range j.queue.len() {
		p := j.queue.at(i).p
		if p == nil || len(j.told) == 0 || p.rules == nil {
			continue
		}
		if p.rules.Provisional != nil {
			j.retellSoon(p)
		}
		if len(p.named) == 0 {
			continue
		}
		p.retell(p.rules, j.told[Place{p.d.Partition, p.d.N}], End)
		j.weigh(p)
		if p.ready && p.tells() { // its outcomes may be lost
			p.conclude(p.rules, p.d.Actions[p.d.Action], p.reason, &j.scratch)
		}
		j.concludeReady(p)
	}
}

// line puts a round in the lines of its stages but the last.
func (j *Joiner) line(p *pending) {
	if p.rules.Provisional != nil {
		j.soon.push(stageEntry{p, p.seq})
		j.retellSoon(p)
	}
	n := p.stages() - 1
	if n < 1 {
		return
	}
	p.retell(p.rules, j.told[Place{p.d.Partition, p.d.N}], j.n)
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
			if at, over := j.ended(p, p.window(s+1)); over {
				p.closeStage(p.rules, s+1, at)
			}
			if p.told < s || !p.isReady(s+1) {
				break
			}
			j.tellStage(p)
			j.concludeReady(p)
		}
	}
}

// tellStage makes the record of the next stage of a round.
func (j *Joiner) tellStage(p *pending) {
	p.tell()
	j.weigh(p)
	f := j.recordEarly(p)
	f.Outcomes = j.closedOf(p, p.told)
	for i := range f.Outcomes {
		f.ClosedAt = max(f.ClosedAt, f.Outcomes[i].ClosedAt)
	}
}

// tells reports whether the stages of a round are told that were not: it was not withdrawn, and it has outcomes
// of its own.
func (p *pending) tells() bool {
	return p.fate != codec.WithdrawnRound && p.reason != codec.ReasonDuplicateID && p.reason != codec.ReasonLost &&
		p.reason != codec.ReasonRepeat
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
	if p := j.firstSoon(); p != nil {
		if w, ok := j.after(p.rules); ok && !yield(head{p, w, p.ready}) {
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

// allOver reports whether no outcome of a round that is not ready is open. Log time alone says so, not whether the
// round has been first in line since: a restart does not know that.
func (j *Joiner) allOver(p *pending) bool {
	for k := range p.named {
		if x := &p.named[k]; !x.ready && !j.isOver(p, p.rules.Named[k].Window) {
			return false
		}
	}
	return len(p.named) > 0 || j.isOver(p, p.rules.Window)
}

// isOver reports whether a window of p has ended.
func (j *Joiner) isOver(p *pending, w Window) bool {
	deadline, known := j.endOf(p, w)
	return known && j.now > deadline
}

// applyNamed gives a round that is not ready the named outcomes of a record.
func (j *Joiner) applyNamed(p *pending, partition int, e *OutcomeEvent) {
	counted, reason, err := p.takeNamed(p.rules, p.d.Actions[p.d.Action], &e.O, outPos{partition, e.Offset, j.now},
		func(stage int) bool { return j.isOver(p, p.window(stage)) }, &j.scratch)
	j.weigh(p)
	if reason != "" {
		j.reject(partition, e, reason, err, e.O.ID)
	}
	if counted {
		j.concludeReady(p)
	}
}

// concludeReady gives a round its fate if all its outcomes have theirs.
func (j *Joiner) concludeReady(p *pending) {
	for k := range p.named {
		if !p.named[k].ready {
			return
		}
	}
	if !p.ready {
		p.conclude(p.rules, p.d.Actions[p.d.Action], "", &j.scratch)
		j.finish(p)
	}
}

// recallStage learns what the record of a stage told, if its round is taken again: behind the older mark, or in an era
// behind the newer one.
func (j *Joiner) recallStage(f *codec.Feedback) {
	if f.N > j.forgotten {
		j.early = append(j.early, f.N)
	}
	if f.Round < j.parts[f.Partition].next {
		return
	}
	if j.told == nil {
		j.told = map[Place]toldRound{}
	}
	at := Place{f.Partition, f.Round}
	for _, c := range f.Outcomes {
		c.Name = strings.Clone(c.Name)
		j.told[at] = append(j.told[at], toldOutcome{f.N, c})
	}
}
