package loop

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Rounds have a line in which each waits shortly; what comes behind its record is told at once. A round whose feedback
// is due tells nothing provisional.
func TestProvisional(t *testing.T) {
	h := newCutByHand(t, unlimited, &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 100}, Impute: true,
		DefaultLoss: 1, Provisional: &Provisional{After: Window{Nanos: 10}, Silence: .75}})
	h.tells(5, []DecisionEvent{decidedAt(1, 1, "a"), decidedAt(2, 2, "b"), decidedAt(3, 3, "c")},
		[]OutcomeEvent{lossAt(5, "b", .25)}, nil, nil) // it waits for a, which may be fast as well
	if due, known := h.j.Due(); !known || due != 11 {
		t.Errorf("due at %d, %v", due, known)
	}
	h.tells(11, nil, nil, nil, nil) // its last moment
	h.tells(12, nil, nil, []string{
		"1 a stage 1, loss imputed 0.75 by -1 at 11",
		"2 b stage 1, loss observed 0.25 by 0 at 5"}, nil)
	if n := h.j.provisional(); n != 2 {
		t.Errorf("%d rounds are provisional", n)
	}
	h.tells(20, []DecisionEvent{decidedAt(19, 4, "d")}, []OutcomeEvent{lossAt(20, "c", .75), lossAt(20, "d", 0)},
		[]string{
			"3 c stage 1, loss imputed 0.75 by -1 at 13", // and then c told what was expected
			"4 d stage 1, loss observed 0 by 2 at 20"}, nil)
	h.tells(30, nil, []OutcomeEvent{lossAt(30, "a", .5), lossAt(30, "a", .25)}, []string{
		"5 a observed 0.5 by 3", "6 b observed 0.25 by 0", "7 c observed 0.75 by 1", "8 d observed 0 by 2"},
		[]string{"4 duplicate "})
	h.tells(43, []DecisionEvent{decidedAt(31, 5, "e"), decidedAt(32, 6, "f")}, nil, []string{
		"9 e stage 1, loss imputed 0.75 by -1 at 41",
		"10 f stage 1, loss imputed 0.75 by -1 at 42"}, nil)
	h.tells(60, nil, []OutcomeEvent{lossAt(43, "f", .5)}, []string{
		"11 f stage 2, loss observed 0.5 by 5 at 43"}, nil)
	h.tells(140, nil, nil, []string{"12 e imputed 1 by -1", "13 f observed 0.5 by 5"}, nil)
}

// Without a window rounds wait for the median of the delays that were seen, once there are some.
func TestMedianDelay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var d delays
	var both [units][]int64
	for k := range 4000 {
		unit := k % units
		all := both[unit]
		x := rng.Int64() >> rng.IntN(64)
		d.add(unit, x)
		all = append(all, x)
		slices.Sort(all)
		both[unit] = all
		m, ok := d.median(unit)
		if ok != (len(all) >= fewDelays) {
			t.Fatalf("after %d delays it is %v", len(all), ok)
		}
		if want := all[(len(all)-1)/2]; ok && (m < want || m/4*3 > want) {
			t.Fatalf("median %d of %d delays, want about %d", m, len(all), want)
		}
	}
	var again delays
	if err := again.read(d.append(nil)); err != nil || again != d {
		t.Errorf("the counts are not read as they were written: %v", err)
	}
	for _, b := range [][]byte{{1}, {1, 0}, {0xf0, 3, 1}, {3, 1, 3, 1}, {3, 0x80}, {0x80}} {
		if again.read(b) == nil {
			t.Errorf("%v is read", b)
		}
	}
	for _, x := range []int64{0, 1, 2, 3, 4, 5, 7, 8, 1<<62 + 1, 1<<63 - 1} {
		if end := endOfStep(stepOf(uint64(x))); end < x || end/5*4 > x {
			t.Errorf("the step of %d ends at %d", x, end)
		}
	}
}

// provisional returns the number of rounds that wait for their feedback and of which a provisional record told.
func (j *Joiner) provisional() (n int) {
	for i := range j.queue.len() {
		if p := j.queue.at(i).p; p != nil && p.rules != nil && p.rules.Provisional != nil && p.told > 0 {
			n++
		}
	}
	return n
}
