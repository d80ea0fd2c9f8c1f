package check

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"hindsight/pkg/codec"
)

// Soon says as what rounds are learned before their feedback.
type Soon struct {
	AfterRounds int64   `json:",omitempty"` // of waiting; if both are 0 the median delay of outcomes, in the
	AfterNanos  int64   `json:",omitempty"` // unit of the window
	Silence     float64 // what no outcome till then counts as
}

// soon reports whether a round may tell something provisional.
func (w *waiting) soon() bool {
	return w.rules != nil && w.rules.Soon != nil && (w.fate == nil || w.fate.Fate == codec.Observed)
}

// patience is the last log time at which nothing provisional is told of a round without an outcome.
func (t *twin) patience(w *waiting) (end int64, known bool) {
	x, rounds := w.rules.Soon, w.rules.WindowRounds > 0
	switch {
	case x.AfterRounds > 0:
		end, known = t.parts[w.Partition].times[w.N+x.AfterRounds]
		return end, known
	case x.AfterNanos > 0:
		return w.time + x.AfterNanos, true
	case len(t.delays[rounds]) < 10:
		return 0, false
	}
	slices.Sort(t.delays[rounds])
	d := t.delays[rounds][(len(t.delays[rounds])-1)/2]
	if k := bits.Len64(uint64(d)); k > 3 { // known to a quarter of an octave
		d |= 1<<(k-3) - 1
	}
	if rounds {
		end, known = t.parts[w.Partition].times[w.N+d]
		return end, known
	}
	return w.time + d, true
}

// noteDelay notes how long the outcome of a round took: as the shortest window in which it came.
func (t *twin) noteDelay(w *waiting) {
	if t.past != nil || !w.soon() || w.fate == nil {
		return
	}
	d, rounds := max(0, w.fate.ClosedAt-w.time), w.rules.WindowRounds > 0
	if rounds {
		for d = 1; ; d++ {
			if end, known := t.parts[w.Partition].times[w.N+d]; !known || end >= w.fate.ClosedAt {
				break
			}
		}
	}
	t.delays[rounds] = append(t.delays[rounds], d)
}

// delaysOf returns the delays that a mark counts, of log time and of rounds, each as the longest of its quarter of an
// octave. A number says which that is, and another one how many there are.
func delaysOf(m *codec.FeedbackMark) map[bool][]int64 {
	all := map[bool][]int64{}
	for b := m.Delays; len(b) > 1; {
		at, l := binary.Uvarint(b)
		n, k := binary.Uvarint(b[max(l, 0):])
		if l <= 0 || k <= 0 || n > 1<<20 {
			return nil
		}
		i, rounds := int64(at%248), at >= 248
		if i > 3 {
			i = (i%4+5)<<(i/4-1) - 1
		}
		all[rounds], b = append(all[rounds], slices.Repeat([]int64{i}, int(n))...), b[l+k:]
	}
	return all
}

// settleSoon tells, of rounds that wait, outcomes which came behind something provisional; and then, in the order of
// the line, of those that have an outcome or waited long enough.
func (t *twin) settleSoon() {
	if t.past != nil {
		return
	}
	for _, w := range t.line {
		if w.soon() && w.told > 0 && w.fate != nil && w.fate.Loss != w.guess {
			t.tellSoon(w, codec.Observed, w.fate.Loss, w.fate.OutcomePartition, w.fate.OutcomeOffset, w.fate.ClosedAt)
		}
	}
	for _, w := range t.line {
		if !w.soon() || w.told > 0 {
			continue
		}
		if w.fate != nil {
			t.tellSoon(w, codec.Observed, w.fate.Loss, w.fate.OutcomePartition, w.fate.OutcomeOffset, w.fate.ClosedAt)
			continue
		}
		end, known := t.patience(w)
		if !known || t.now <= end {
			return
		}
		t.tellSoon(w, codec.Imputed, w.rules.Soon.Silence, -1, -1, end)
	}
}

func (t *twin) tellSoon(w *waiting, fate codec.Fate, loss float64, partition int, offset, at int64) {
	w.told++
	w.guess = loss
	t.n++
	f := codec.Feedback{N: t.n, Time: w.time, Stage: w.told, OutcomePartition: -1, OutcomeOffset: -1, ClosedAt: at,
		Outcomes: []codec.Closed{{Name: "loss", Fate: fate, Value: loss, Partition: partition, Offset: offset,
			ClosedAt: at}}}
	w.fill(&f)
	t.due = append(t.due, f)
}
