package loop

import "hindsight/pkg/codec"

// The FIFO tax: what rounds with a fate wait for those before them.

func (j *Joiner) hold(p *pending) {
	p.held = true
	j.held++
}

func (j *Joiner) unhold(p *pending) {
	if !p.held {
		return
	}
	j.held--
	if j.now != End { // the end of a file is no time
		j.wait += max(0, j.now-p.closedAt)
	}
}

// Held returns the number of rounds that have their fate and wait for the rounds
// before them, and for how long those released since the start had waited, in ns of
// log time.
func (j *Joiner) Held() (rounds int, wait int64) { return j.held, j.wait }

// Head returns the decision that waits longest for its fate or its turn, with its log
// time, nil if none waits. It is valid until the next call of AppendReady.
func (j *Joiner) Head() (time int64, d *codec.Decision) {
	for i := range j.queue.len() {
		if p := *j.queue.at(i); p != nil {
			return p.time, &p.d
		}
	}
	return 0, nil
}
