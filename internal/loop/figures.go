package loop

import "hindsight/pkg/codec"

// What a joiner says of itself, to its caller and to people. Nothing here changes it.

// Guard returns the guard, which has seen all feedback. The caller tells it of an epoch between the
// cut before the epoch's record and the cut behind it.
func (j *Joiner) Guard() *Guard { return &j.guard }

// Judge returns what judges the candidates, which the caller tells of epochs as it tells the guard.
func (j *Joiner) Judge() *Judge { return &j.judge }

// Pending returns the number of rounds that wait for their fate or their turn.
func (j *Joiner) Pending() int { return j.waiting }

// PendingBytes returns what these take.
func (j *Joiner) PendingBytes() int { return j.bytes }

// LastN returns the N of the last feedback.
func (j *Joiner) LastN() int64 { return j.n }

// LastCut returns the number of the last cut taken.
func (j *Joiner) LastCut() int64 { return j.cut }

// Era returns the era of the feedback log.
func (j *Joiner) Era() int64 { return j.era }

// Now returns the log time reached.
func (j *Joiner) Now() int64 { return j.now }

// Next returns the offsets from which a partition is to be read next.
func (j *Joiner) Next(partition int) (decisions, outcomes int64) {
	return j.parts[partition].decisions.next, j.parts[partition].outcomes.next
}

// Reached returns the last round of a partition that was taken, and the log time that its decisions
// have reached.
func (j *Joiner) Reached(partition int) (round, time int64) {
	return j.parts[partition].next - 1, j.parts[partition].time
}

// Rewards reports whether the last outcome with a value told a reward.
func (j *Joiner) Rewards() bool { return j.rewards }

// Held returns the number of rounds that have their fate and wait for the rounds before them, and
// for how long those released since the start had waited, in ns of log time.
func (j *Joiner) Held() (rounds int, wait int64) { return j.held, j.wait }

// Head returns the decision that waits longest, with its log time, nil if none waits. It is valid
// until the next call of Take.
func (j *Joiner) Head() (time int64, d *codec.Decision) {
	if p := j.head(); p != nil {
		return p.time, &p.d
	}
	return 0, nil
}

// Waiting yields the rounds that have no feedback yet, in the order of their decisions.
func (j *Joiner) Waiting(yield func(partition int, n int64) bool) {
	for i := range j.queue.len() {
		if x := j.queue.at(i); x.p != nil && !yield(int(x.partition), x.n) {
			return
		}
	}
}

// Room returns how many more rounds may wait.
func (j *Joiner) Room() int { return int(j.limits.Pending) - j.waiting }

// Missing returns how many decisions of a partition must be taken before it is known when the oldest
// waiting round is due: its window is of rounds. 0: it is known, or none waits.
func (j *Joiner) Missing() (partition int, decisions int64) {
	for h := range j.heads {
		if h.ready {
			return 0, 0
		}
		if h.window.Rounds == 0 {
			continue // of two lines one may wait for a time, the other for decisions
		}
		d := &h.p.d
		missing := max(0, addTime(d.N, h.window.Rounds)-j.parts[d.Partition].next+1)
		if decisions == 0 || missing < decisions {
			partition, decisions = d.Partition, missing
		}
		if missing == 0 {
			break
		}
	}
	return partition, decisions
}
