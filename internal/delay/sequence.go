package delay

import (
	"bufio"
	"io"
	"math/bits"
	"math/rand/v2"
	"strconv"
)

// Sequence is a delay for each of n rounds: d_t later decisions are made before the
// outcome of round t. All of a [Budget] sum to its Total, none is above its Max, and none
// reaches beyond the last decision: d_t ≤ n−1−t, so that all of Total is suffered.
type Sequence []int64

// Delays returns the sequence as delays.
func (s Sequence) Delays() *Delays {
	return &Delays{Spec: "sequence", Delay: func(p *Play) int64 { return s[p.Round] }}
}

// Write writes the delays as `recorded:FILE` takes them: one a line.
func (s Sequence) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	var line []byte
	for _, d := range s {
		line = append(strconv.AppendInt(line[:0], d, 10), '\n')
		if _, err := b.Write(line); err != nil {
			return err
		}
	}
	return b.Flush()
}

// Budget is what delay sequences of an adversary have in common.
type Budget struct {
	Rounds int   // n
	Total  int64 // D = Σ d_t
	Max    int64 // of each d_t
}

// BudgetOf returns the budget of delays that do not look at what is played, over n
// rounds: as they are suffered, so that one beyond the last decision ends there.
func BudgetOf(d *Delays, n int) Budget {
	b := Budget{Rounds: n}
	for t := range n {
		wait := d.Delay(&Play{Round: t})
		if end := int64(n - 1 - t); wait == Never || wait > end {
			wait = end
		}
		b.Total += wait
		b.Max = max(b.Max, wait)
	}
	return b
}

// room returns the most that round t may wait.
func (b Budget) room(t int) int64 { return min(b.Max, int64(b.Rounds-1-t)) }

// Most returns the largest total of so many rounds with that maximum.
func (b Budget) Most() int64 {
	most := int64(0)
	for t := range b.Rounds {
		most += b.room(t)
	}
	return most
}

// editor changes sequences of a budget.
type editor struct {
	Budget
	rng *rand.Rand
	s   Sequence
	sum int64
}

// set sets the delay of a round, or what it has room for of it.
func (e *editor) set(t int, d int64) {
	d = max(0, min(d, e.room(t)))
	e.sum += d - e.s[t]
	e.s[t] = d
}

// grain draws a size between 1 and most, all orders of magnitude alike.
func (e *editor) grain(most int64) int64 {
	if most < 2 {
		return 1
	}
	exponent := e.rng.IntN(bits.Len64(uint64(most)))
	low := int64(1) << exponent
	return min(most, low+e.rng.Int64N(low))
}

// balance gives to or takes from rounds outside [from, to), in pieces of up to grain,
// until the sum is the total again; where there is no room outside, inside.
func (e *editor) balance(from, to int, grain int64) {
	inside, outside := to-from, e.Rounds-(to-from)
	for tries := 0; e.sum != e.Total; tries++ {
		t := 0
		switch {
		case tries > 8*e.Rounds:
			e.sweep(from, to)
			return
		case outside > 0:
			if t = e.rng.IntN(outside); t >= from {
				t += inside
			}
		default:
			t = e.rng.IntN(e.Rounds)
		}
		e.toward(t, grain)
	}
}

// toward moves the sum towards the total by up to grain, in round t.
func (e *editor) toward(t int, grain int64) {
	left := e.Total - e.sum
	e.set(t, e.s[t]+max(-grain, min(left, grain)))
}

// sweep balances in the order of rounds from a random one on, first outside [from, to).
func (e *editor) sweep(from, to int) {
	start := e.rng.IntN(e.Rounds)
	for _, within := range []bool{false, true} {
		for i := range e.Rounds {
			if t := (start + i) % e.Rounds; within == (t >= from && t < to) {
				e.toward(t, e.Max)
			}
		}
	}
}

// Random draws a sequence: pieces of one size, of any order of magnitude up to Max, are
// put on random rounds, so that some sequences are even and some are few long waits.
func (b Budget) random(rng *rand.Rand) Sequence {
	e := editor{Budget: b, rng: rng, s: make(Sequence, b.Rounds)}
	e.balance(0, 0, e.grain(b.Max))
	return e.s
}

// namedSequence is a sequence by a plan that has a name.
type namedSequence struct {
	name string
	plan func(b Budget, t int) int64
}

// plans are adversaries of the book, which a search starts from. Each spends the budget
// from the first round on, and what is left then at random.
func plans() []namedSequence {
	return []namedSequence{
		{"even", func(b Budget, _ int) int64 { return (b.Total + int64(b.Rounds) - 1) / int64(b.Rounds) }},
		{"front", func(b Budget, _ int) int64 { return b.Max }},
		{"bursts", func(b Budget, t int) int64 { return b.Max - int64(t)%(b.Max+1) }},
		{"heads", func(b Budget, t int) int64 { // as many rounds as the total is worth, evenly spread
			long := max(1, b.Total/b.Max)
			if every := max(1, int64(b.Rounds)/long); int64(t)%every == 0 {
				return b.Max
			}
			return 0
		}},
	}
}

func (p *namedSequence) sequence(b Budget, rng *rand.Rand) Sequence {
	e := editor{Budget: b, rng: rng, s: make(Sequence, b.Rounds)}
	for t := range e.s {
		e.set(t, min(p.plan(b, t), b.Total-e.sum))
	}
	e.balance(0, 0, e.grain(b.Max))
	return e.s
}

// Mutate returns a changed copy of s, of the same budget.
func (b Budget) mutate(s Sequence, rng *rand.Rand) Sequence {
	e := editor{Budget: b, rng: rng, s: append(Sequence(nil), s...), sum: b.Total}
	length := int(e.grain(int64(b.Rounds)))
	from := rng.IntN(b.Rounds - length + 1)
	to := from + length
	switch rng.IntN(5) {
	case 0: // a block waits as long as it may
		for t := from; t < to; t++ {
			e.set(t, b.Max)
		}
	case 1: // a block comes at once
		for t := from; t < to; t++ {
			e.set(t, 0)
		}
	case 2: // a block comes all together, at its end
		for t := from; t < to; t++ {
			e.set(t, int64(to-1-t))
		}
	case 3: // two blocks change places
		other := rng.IntN(b.Rounds - length + 1)
		for i := range length {
			d, o := e.s[from+i], e.s[other+i]
			e.set(from+i, o)
			e.set(other+i, d)
		}
		from, to = 0, 0
	case 4: // single rounds of a block change
		for range e.grain(int64(length)) {
			e.set(from+rng.IntN(length), e.grain(b.Max+1)-1)
		}
	}
	e.balance(from, to, e.grain(b.Max))
	return e.s
}
