package replay

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// twist makes another environment of one that knows its truth.
type twist struct {
	Entry
	args []argument
	make func(env Environment, seed uint64, args []float64) Environment
}

func twists() []twist {
	return []twist{
		{Entry{"permute", "share", "from that share of the rounds on the losses of actions are dealt anew: each " +
			"action has those of another"},
			[]argument{{"share", 0, 1, false}},
			func(env Environment, seed uint64, a []float64) Environment { return newPermuted(env, seed, a[0]) }},
		{Entry{"rewards", "high,low",
			"losses are drawn, 0 or 1: a mean loss of 0 becomes a mean reward of high, one of 1 a mean reward of low"},
			[]argument{{"high", 0, 1, false}, {"low", 0, 1, false}},
			func(env Environment, seed uint64, a []float64) Environment { return newNoisy(env, seed, a[0], a[1]) }},
	}
}

// Twists lists what [Twist] reads.
func Twists() (out []Entry) {
	for _, t := range twists() {
		out = append(out, t.Entry)
	}
	return out
}

var errTwist = errors.New("expected NAME:NUMBER,…; for example: permute:0.5, rewards:.6,.3; `replayer list` names " +
	"them all")

// Twist returns env as a specification changes it. What it does belongs to the places
// of rounds: [Order] reorders what is beneath.
func Twist(env Environment, spec string, seed uint64) (Environment, error) {
	name, rest, has := strings.Cut(spec, ":")
	for _, t := range twists() {
		if t.Name != name {
			continue
		}
		args, err := t.parseArguments(t.args, rest, has)
		if err != nil {
			return nil, fmt.Errorf("twist %w: %w", err, errTwist)
		}
		if !env.Truth(make([]float64, len(env.Actions())), 0) {
			return nil, fmt.Errorf("twist %s: this data does not tell the losses of all actions; twist an "+
				"environment or a labelled CSV", spec)
		}
		return t.make(env, seed, args), nil
	}
	return nil, fmt.Errorf("unknown twist %q: %w", spec, errTwist)
}

// permuted deals the losses of actions anew from a round on.
type permuted struct {
	Environment
	share float64
	of    []int32 // action → whose losses it has
}

// newPermuted draws the permutation: one cycle through all actions, so that none keeps
// its losses.
func newPermuted(env Environment, seed uint64, share float64) *permuted {
	cycle := NewStream(seed, "permute").shuffle(len(env.Actions()))
	p := &permuted{env, share, make([]int32, len(cycle))}
	for i, a := range cycle {
		p.of[a] = cycle[(i+1)%len(cycle)]
	}
	return p
}

// Name implements [Environment].
func (p *permuted) Name() string {
	return p.Environment.Name() + " " + specification("permute", p.share)
}

// late reports whether round t has the new losses.
func (p *permuted) late(t int) bool {
	return float64(t) >= math.Floor(p.share*float64(p.Len()))
}

// Truth implements [Environment].
func (p *permuted) Truth(dst []float64, t int) bool {
	if !p.late(t) {
		return p.Environment.Truth(dst, t)
	}
	old := make([]float64, len(dst))
	known := p.Environment.Truth(old, t)
	for a := range dst {
		dst[a] = old[p.of[a]]
	}
	return known
}

// Loss implements [Environment].
func (p *permuted) Loss(t, a int) float64 {
	if p.late(t) {
		a = int(p.of[a])
	}
	return p.Environment.Loss(t, a)
}

// noisy draws losses whose means are those of another environment, moved.
type noisy struct {
	Environment
	high, low float64
	losses    Stream
}

func newNoisy(env Environment, seed uint64, high, low float64) *noisy {
	return &noisy{env, high, low, NewStream(seed, "rewards")}
}

// Name implements [Environment].
func (n *noisy) Name() string {
	return n.Environment.Name() + " " + specification("rewards", n.high, n.low)
}

// Truth implements [Environment].
func (n *noisy) Truth(dst []float64, t int) bool {
	known := n.Environment.Truth(dst, t)
	for a, v := range dst {
		dst[a] = 1 - n.high + float64((n.high-n.low)*v)
	}
	return known
}

// Loss implements [Environment].
func (n *noisy) Loss(t, a int) float64 {
	f := make([]float64, len(n.Actions()))
	n.Truth(f, t)
	if n.losses.Uniform(uint64(t), uint64(a)) < f[a] {
		return 1
	}
	return 0
}
