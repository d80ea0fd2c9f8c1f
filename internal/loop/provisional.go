package loop

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"hindsight/pkg/codec"
)

// Provisional says as what a round is learned before it has its feedback. Rounds have a line of their own, in the
// order of their decisions, in which one waits for After and no longer: then a record of a stage tells its outcome, or
// what silence counts as. An outcome that comes behind that record has one more, at once. A round whose feedback comes
// first tells nothing provisional.
type Provisional struct {
	After   Window  // no window: the median delay of the outcomes that came so far, in the unit of the model's window
	Silence float64 // the loss of a round whose outcome has not come, in [0,1]
}

// after returns how long a round waits in the line of provisional records; not ok: that is not known yet.
func (j *Joiner) after(r *Rules) (w Window, ok bool) {
	if w = r.Provisional.After; w != (Window{}) {
		return w, true
	}
	median, ok := j.delays.median(r.unit())
	if r.unit() == inRounds {
		return Window{Rounds: median}, ok
	}
	return Window{Nanos: median}, ok
}

// arrived notes the outcome that gave a round its fate.
func (j *Joiner) arrived(p *pending) {
	if p.rules.Provisional == nil || p.fate != codec.Observed {
		return
	}
	if j.past == nil {
		delay := p.closedAt - p.time
		if p.rules.unit() == inRounds {
			delay = j.parts[p.d.Partition].roundsUntil(p.d.N, p.closedAt)
		}
		j.delays.add(p.rules.unit(), delay)
	}
	if p.told > 0 && p.loss != p.guess {
		j.late = append(j.late, stageEntry{p, p.seq})
	}
}

// firstSoon returns the first round that tells something provisional, nil if there is none.
func (j *Joiner) firstSoon() *pending {
	for ; j.soon.len() > 0; j.soon.pop() {
		if x := j.soon.at(0); x.p.seq == x.seq && x.p.told == 0 && (!x.p.ready || x.p.fate == codec.Observed) {
			return x.p
		}
	}
	return nil
}

// settleSoon tells of rounds that wait for their feedback and have an outcome, or have waited for one long enough.
func (j *Joiner) settleSoon() {
	for _, x := range j.late {
		if x.p.seq == x.seq {
			j.tellSoon(x.p, codec.Observed, x.p.loss, outPos{x.p.outPart, x.p.outOff, x.p.closedAt})
		}
	}
	j.late = j.late[:0]
	for p := j.firstSoon(); p != nil; p = j.firstSoon() {
		if p.ready {
			j.tellSoon(p, codec.Observed, p.loss, outPos{p.outPart, p.outOff, p.closedAt})
			continue
		}
		w, ok := j.after(p.rules)
		if !ok {
			return
		}
		deadline, known := j.endOf(p, w)
		if !known || j.now <= deadline {
			return
		}
		j.tellSoon(p, codec.Imputed, p.rules.Provisional.Silence, outPos{-1, -1, deadline})
	}
}

// tellSoon makes a provisional record: a stage whose one outcome is the loss.
func (j *Joiner) tellSoon(p *pending, fate codec.Fate, loss float64, at outPos) {
	p.told++
	p.guess = loss
	n := len(j.closed)
	j.closed = append(j.closed, codec.Closed{Name: codec.Loss.String(), Fate: fate, Value: loss,
		Partition: at.partition, Offset: at.offset, ClosedAt: at.time})
	f := j.recordEarly(p)
	f.ClosedAt, f.Outcomes = at.time, j.closed[n:len(j.closed):len(j.closed)]
}

// retellSoon sets what provisional records told of a round that is taken again.
func (j *Joiner) retellSoon(p *pending) {
	told := j.told[Place{p.d.Partition, p.d.N}]
	if p.told = len(told); p.told > 0 {
		p.guess = told[p.told-1].Value
	}
	if p.ready && p.fate == codec.Observed && p.told > 0 && p.loss != p.guess {
		j.late = append(j.late, stageEntry{p, p.seq})
	}
}

// delays counts how long outcomes took, in steps of a quarter of an octave: apart for models whose windows are of log
// time and of rounds.
type delays struct {
	n  [units]int64
	in [units][steps]int64
}

const (
	inNanos, inRounds, units = 0, 1, 2

	steps     = 4 * 62
	fewDelays = 10 // are too few for a median
)

// unit returns the one of a model's window, in which delays of its outcomes are measured.
func (r *Rules) unit() int {
	if r.Window.Rounds > 0 {
		return inRounds
	}
	return inNanos
}

// roundsUntil returns the smallest window of rounds of a decision that waits in which an outcome at a log time is.
func (q *joinPart) roundsUntil(n, time int64) int64 {
	next := int(n + 1 - q.first)
	low, high := next, q.times.len()
	for low < high {
		if mid := (low + high) / 2; *q.times.at(mid) < time {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return int64(low-next) + 1
}

func (d *delays) add(unit int, delay int64) {
	d.n[unit]++
	d.in[unit][stepOf(uint64(max(0, delay)))]++
}

// stepOf returns the place of the highest bit and the two bits behind it.
func stepOf(x uint64) int {
	k := bits.Len64(x)
	if k < 3 {
		return int(x)
	}
	return 4*(k-2) + int(x>>(k-3))&3
}

// endOfStep returns the largest number of a step.
func endOfStep(i int) int64 {
	if i < 4 {
		return int64(i)
	}
	return int64((uint64(i%4)+5)<<(i/4-1) - 1)
}

// median returns the end of the step in which the median lies; not ok: there are too few.
func (d *delays) median(unit int) (delay int64, ok bool) {
	if d.n[unit] < fewDelays {
		return 0, false
	}
	sum := int64(0)
	for i, n := range d.in[unit] {
		if sum += n; 2*sum >= d.n[unit] {
			return endOfStep(i), true
		}
	}
	return 0, false
}

// append appends the counts, each behind its place; nothing if there are none.
func (d *delays) append(b []byte) []byte {
	for unit := range d.in {
		for i, n := range d.in[unit] {
			if n > 0 {
				b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(unit*steps+i)), uint64(n))
			}
		}
	}
	return b
}

// read sets the counts to what append wrote.
func (d *delays) read(b []byte) error {
	*d = delays{}
	for next := uint64(0); len(b) > 0; {
		at, k := binary.Uvarint(b)
		n, l := binary.Uvarint(b[max(0, k):])
		if k <= 0 || l <= 0 || at < next || at >= units*steps || n == 0 || n > 1<<53 {
			return fmt.Errorf("delays of outcomes: %w", codec.ErrCorrupt)
		}
		next, b = at+1, b[k+l:]
		d.in[at/steps][at%steps] = int64(n)
		d.n[at/steps] += int64(n)
	}
	return nil
}
