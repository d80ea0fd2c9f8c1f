package loop

import (
	"slices"

	"hindsight/pkg/codec"
)

// knownRound is what the joiner knows of a round by its id.
type knownRound struct {
	p *pending // while it waits, else nil and the rest is set

	n        int64 // of its feedback
	fate     codec.Fate
	reason   string
	epoch    int64
	closedAt int64
	over     bool // no outcome is to come any more
}

// forgettable is a released round that is remembered.
type forgettable struct {
	n    int64
	slot int32
}

// remember keeps what outcomes and repeats of a released round ask for. An id that is remembered
// twice is the later round's.
func (j *Joiner) remember(slot int32, k knownRound) {
	*j.rounds.value(slot) = k
	j.memory.push(forgettable{k.n, slot})
}

// forget drops the released rounds that the limits no longer remember. It is done only where a cut
// begins, since a restart knows how many feedbacks lie before a cut and not which of its records
// came before which feedback. Distance is counted in rounds that have their feedback.
func (j *Joiner) forget() {
	low := j.n - j.limits.Dedup
	for stages := 0; len(j.early) > 0; { // records of stages do not count
		n := j.countEarly(j.n) - j.countEarly(low)
		if n == stages {
			break
		}
		low, stages = low-int64(n-stages), n
	}
	j.forgotten = max(j.forgotten, low)
	if k := j.countEarly(j.forgotten); 2*k > len(j.early) {
		j.early = slices.Delete(j.early, 0, k)
	}
	for j.memory.len() > 0 && j.memory.at(0).n <= j.forgotten {
		j.drop(j.memory.pop())
	}
}

// countEarly returns how many records of stages are known up to a feedback.
func (j *Joiner) countEarly(n int64) int {
	k, _ := slices.BinarySearch(j.early, n+1)
	return k
}

// drop forgets a round, unless its id has become a later round's.
func (j *Joiner) drop(f forgettable) {
	k := j.rounds.value(f.slot)
	if k.n != f.n {
		return
	}
	if k.over {
		j.over--
	}
	j.rounds.del(f.slot)
}

// Over tells a joiner whose caller knows all outcomes that are to come, as a backtest does, that there is none of this
// round any more: it is forgotten once it has its fate, whatever the limits say.
func (j *Joiner) Over(id string) {
	slot := j.rounds.get(id)
	if slot < 0 {
		return
	}
	k := j.rounds.value(slot)
	if k.p != nil {
		k.p.over = true
		return
	}
	if !k.over {
		k.over = true
		j.over++
	}
	const few = 64 // fewer are not worth a pass
	if j.over < few || 2*j.over < j.memory.len() {
		return
	}
	for range j.memory.len() {
		if f := j.memory.pop(); j.rounds.value(f.slot).over {
			j.drop(f)
		} else {
			j.memory.push(f)
		}
	}
}
