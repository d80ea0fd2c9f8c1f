package delay

import "math/bits"

// Meter measures the delays of a run while it goes on. It grows with the longest delay, not with the rounds; but
// outcomes that do not come before the run ends take a bit for each of its rounds.
type Meter struct {
	rounds   int64 // of the whole run
	raw      delayCounts
	released delayCounts

	learned   int64 // rounds whose delay as released is known
	overtaken int64
	newest    int64 // round, from 1, whose outcome came after an earlier decision than last
	latest    int64 // the same up to last
	last      int64 // decision, from 0, after which the last outcome came
	lost      int64 // rounds whose outcome never comes, and so far overtaken by none
}

func NewMeter(rounds int) *Meter {
	return &Meter{rounds: int64(rounds), last: -1}
}

// Decided takes the decision of round t = 0, 1, 2, …: its delay, cut at the end of the run, or
// Never, how many outcomes came before it, and how many rounds it had learned.
func (m *Meter) Decided(t, delay, came, through int64) {
	m.raw.sigma = max(m.raw.sigma, t-came)
	m.released.sigma = max(m.released.sigma, t-through)
	if delay == Never {
		m.lost++
		m.raw.addCut(m.rounds-1-t, m.rounds)
	} else {
		m.overtaken += m.lost
		m.lost = 0
		if delay == m.rounds-1-t {
			m.raw.addCut(delay, m.rounds)
		} else {
			m.raw.add(delay)
		}
	}
	m.release(through, t)
}

// Came takes the outcome of round r, which comes after decision t, or after the last one.
func (m *Meter) Came(r, t int64) {
	if t > m.last {
		m.newest, m.last = m.latest, t
	}
	if m.newest > r+1 {
		m.overtaken++
	}
	m.latest = max(m.latest, r+1)
}

// release notes that rounds were learned before a decision, but not before earlier ones.
func (m *Meter) release(through, decision int64) {
	for ; m.learned < min(through, m.rounds); m.learned++ {
		m.released.add(max(0, decision-m.learned-1))
	}
}

// Report returns what the delays of the run were.
func (m *Meter) Report(spec string) (Report, []Bin) {
	m.release(m.rounds, m.rounds)
	r := Report{Spec: spec, Raw: m.raw.stats(), Released: m.released.stats(), Overtaken: m.overtaken}
	r.FIFOTax = r.Released.D - r.Raw.D
	var bins []Bin
	m.raw.each(func(d, n int64) { binOf(&bins, d).Raw += n })
	m.released.each(func(d, n int64) { binOf(&bins, d).Released += n })
	return r, bins
}

// delayCounts counts rounds by their delay.
type delayCounts struct {
	of     []int64  // by delay
	cut    []uint64 // bits, by delay: one more round, which waits until the run ends
	sigma  int64    // σ_max
	rounds int64
	sum    int64
	most   int64
}

// add counts a round.
func (c *delayCounts) add(delay int64) {
	if n := delay + 1 - int64(len(c.of)); n > 0 {
		c.of = append(c.of, make([]int64, n)...)
	}
	c.of[delay]++
	c.note(delay)
}

// addCut counts a round that waits until a run of n rounds ends: there is one at most for each delay.
func (c *delayCounts) addCut(delay, n int64) {
	if delay < int64(2*len(c.of)+64) {
		c.add(delay)
		return
	}
	if c.cut == nil {
		c.cut = make([]uint64, (n+63)/64)
	}
	c.cut[delay/64] |= 1 << (delay % 64)
	c.note(delay)
}

func (c *delayCounts) note(delay int64) {
	c.rounds++
	c.sum += delay
	c.most = max(c.most, delay)
}

// each calls f with every delay that there is, growing, and how many rounds have it.
func (c *delayCounts) each(f func(delay, n int64)) {
	for d := int64(0); c.rounds > 0 && d <= c.most; d++ {
		n := int64(0)
		if d < int64(len(c.of)) {
			n = c.of[d]
		}
		if c.cut != nil {
			word := c.cut[d/64] >> (d % 64)
			if word == 0 && d >= int64(len(c.of)) {
				d |= 63 // nothing in the rest of the word
				continue
			}
			n += int64(word & 1)
		}
		if n > 0 {
			f(d, n)
		}
	}
}

// stats summarises the delays.
func (c *delayCounts) stats() Stats {
	s := Stats{D: c.sum, DMax: c.most, SigmaMax: c.sigma}
	if c.rounds == 0 {
		return s
	}
	s.Mean = float64(c.sum) / float64(c.rounds)
	seen := int64(0)
	c.each(func(d, n int64) {
		for i, into := range [...]*int64{&s.P50, &s.P90, &s.P99} {
			if at := (c.rounds*[...]int64{50, 90, 99}[i] + 99) / 100; seen < at && at <= seen+n { // nearest rank
				*into = d
			}
		}
		seen += n
	})
	return s
}

// Bin is a bar of a histogram of delays: the rounds whose delay is from Low to High
// later rounds. Bars are powers of two apart: 0, 1, 2–3, 4–7, …
type Bin struct {
	Low  int64 `json:"low"`
	High int64 `json:"high"`
	// rounds, as outcomes arrived; those that never came count with the rounds that were left
	Raw      int64 `json:"raw"`
	Released int64 `json:"released"` // as feedback was released
}

// binOf returns the bar of a delay, and makes those up to it.
func binOf(bins *[]Bin, d int64) *Bin {
	i := bits.Len64(uint64(d))
	for n := len(*bins); n <= i; n++ {
		*bins = append(*bins, Bin{Low: 1 << n >> 1, High: 1<<n - 1})
	}
	return &(*bins)[i]
}
