package oracle

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// sparsely draws an example that lacks some features.
func sparsely(rng *rand.Rand) *Input {
	some := func(n int) (out []Feature) {
		for i := range n {
			name := fmt.Sprint("x", i)
			switch rng.IntN(5) {
			case 0:
			case 1:
				out = append(out, num(name, 1))
			case 2:
				out = append(out, num(name, float64(rng.IntN(3))))
			case 3:
				out = append(out, flagged(name, float64(rng.IntN(2))))
			default:
				out = append(out, text(name, string(rune('a'+rng.IntN(3)))))
			}
		}
		return out
	}
	x := &Input{Features: some(6), Actions: []Action{{Name: "a"}, {Name: "b"}}}
	for i := range x.Actions {
		x.Actions[i].Features = some(3)
	}
	if rng.IntN(4) == 0 {
		x.Vector = make([]float64, rng.IntN(4))
	}
	return x
}

// TestColumnsWereAlwaysThere: whenever a column that tells what is there is added, it reads in
// earlier examples what it was learned as: 0 before it was added. So what was learned of them
// stays right.
func TestColumnsWereAlwaysThere(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		l := newLinear(LinearOptions{Version: 2})
		var xs []*Input
		var played []int
		var zs [][]float64
		for range 40 {
			x, a := sparsely(rng), rng.IntN(2)
			l.learn(x, a)
			xs, played, zs = append(xs, x), append(played, a), append(zs, append([]float64(nil), l.z...))
		}
		for i, x := range xs {
			l.fill(x)
			l.fillAction(0, &x.Actions[played[i]])
			for c := range l.cols {
				was := 0.0
				if c < len(zs[i]) {
					was = zs[i][c]
				}
				if k := l.cols[c].kind; k != Number && l.z[c] != was {
					t.Fatalf("seed %d: column %d of kind %d reads %v in example %d, which was learned with %v",
						seed, c, k, l.z[c], i, was)
				}
			}
		}
	}
}

// TestAbsentIsNotZero: since version 2 an absent number, 0, and the only value that ever came
// are told apart, of contexts and of actions; an action that lacks one is not the next one's.
func TestAbsentIsNotZero(t *testing.T) {
	with := func(v ...float64) *Input {
		x := &Input{Features: []Feature{text("t", "t")}, Actions: []Action{{Name: "a",
			Features: []Feature{text("t", "t")}}, {Name: "b"}}}
		for _, v := range v {
			x.Features = append(x.Features, num("x", v))
			x.Actions[0].Features = append(x.Actions[0].Features, num("y", v))
		}
		return x
	}
	for name, stream := range map[string][]*Input{
		"there at first":  {with(1), with(), with(1)},
		"there later":     {with(), with(1), with()},
		"0 and others":    {with(), with(0), with(2), with()},
		"it comes to be":  {with(3), with(3), with(3), with()},
		"other values":    {with(1), with(5), with(), with(0)},
		"of one value, 0": {with(), with(0), with()},
	} {
		for version := 1; version <= 2; version++ {
			l := newLinear(LinearOptions{Version: version})
			for range 5 {
				for _, x := range stream {
					l.learn(x, 0)
				}
			}
			read := func(x *Input) string {
				l.fill(x)
				l.fillAction(2, &x.Actions[0])
				defer l.unfillAction()
				return fmt.Sprint(l.z)
			}
			there := stream[0]
			if len(there.Features) == 1 {
				there = stream[1]
			}
			if told := read(there) != read(with()); told != (version == 2 || name == "0 and others" ||
				name == "other values") {
				t.Errorf("%s: version %d tells an absent number from %v: %v", name, version, there.Features[1].Value,
					told)
			}
			read(with(2))
			for c, v := range l.z[1:] {
				if v != 0 && l.slots[l.cols[1+c].slot].scope == ofAction {
					t.Errorf("%s: column %d of actions still reads %v", name, 1+c, v)
				}
			}
		}
	}
}

// TestSparseCostsOneColumn: features that are there or not, as {"Tom": 1}, cost a column each,
// as categories do.
func TestSparseCostsOneColumn(t *testing.T) {
	l := newLinear(LinearOptions{Version: 2, MaxFeatures: 100})
	l.learn(&Input{Features: []Feature{num("always", 1)}, Actions: []Action{{Name: "a"}}}, 0)
	for i := range 99 {
		l.learn(&Input{Features: []Feature{num("always", float64(i)), num(fmt.Sprint("s", i), 1)},
			Actions: []Action{{Name: "a"}}}, 0)
	}
	if l.dim() != 101 || l.dropped != 0 {
		t.Errorf("%d columns, %d dropped", l.dim(), l.dropped)
	}
}
