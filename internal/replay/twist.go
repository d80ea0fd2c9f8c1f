package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"hindsight/internal/grammar"
	"hindsight/internal/random"
	"hindsight/internal/world"
)

// twist makes of rounds whose truth is known others: by place, their expected losses and their losses.
type twist struct {
	grammar.Entry
	make func(r *Rounds, seed uint64, args []float64) (truth func(dst []float64, t int), loss func(t, a int) float64)
}

func twists() []twist {
	return []twist{
		{grammar.Word("permute", "share", "from that share of the rounds on the losses of actions are dealt anew: "+
			"each action has those of another", grammar.Number("share", 0, 1)), permuted},
		{grammar.Word("rewards", "high,low",
			"losses are drawn, 0 or 1: a mean loss of 0 becomes a mean reward of high, one of 1 a mean reward of low",
			grammar.Number("high", 0, 1), grammar.Number("low", 0, 1)), noisy},
	}
}

// Twists lists what [Twist] reads.
func Twists() (out []grammar.Entry) {
	for _, t := range twists() {
		out = append(out, t.Entry)
	}
	return out
}

var errTwist = errors.New("expected NAME:NUMBER,…; for example: permute:0.5, rewards:.6,.3; `replayer list` names " +
	"them all")

// Twist returns rounds as a specification changes them. What it does belongs to the places of rounds:
// [Order] reorders what is beneath.
func Twist(r *Rounds, spec string, seed uint64) (*Rounds, error) {
	name, rest, has := strings.Cut(spec, ":")
	for _, t := range twists() {
		if t.Name != name {
			continue
		}
		args, err := t.Parse(rest, has)
		if err != nil {
			return nil, fmt.Errorf("twist %w: %w", err, errTwist)
		}
		if !r.Known {
			return nil, fmt.Errorf("twist %s: this data does not tell the losses of all actions; twist an "+
				"environment or a labelled CSV", spec)
		}
		return t.of(r, seed, args), nil
	}
	return nil, fmt.Errorf("unknown twist %q: %w", spec, errTwist)
}

func (t *twist) of(r *Rounds, seed uint64, args []float64) *Rounds {
	out := *r
	out.Name += " " + grammar.Write(t.Name, args...)
	out.Facts, out.under = world.Facts{}, r
	out.truth, out.loss = t.make(r, seed, args)
	out.again = func(under *Rounds) *Rounds { return t.of(under, seed, args) }
	return &out
}

// permuted deals the losses of actions anew from a round on, by one cycle through all actions, so that
// none keeps its losses.
func permuted(r *Rounds, seed uint64, args []float64) (truth func(dst []float64, t int), loss func(t, a int) float64) {
	cycle := random.New(seed, "permute").Shuffle(len(r.Actions))
	of := make([]int32, len(cycle)) // action → whose losses it has
	for i, a := range cycle {
		of[a] = cycle[(i+1)%len(cycle)]
	}
	from := math.Floor(args[0] * float64(r.n))
	truth = func(dst []float64, t int) {
		if r.Truth(dst, t); float64(t) < from {
			return
		}
		old := slices.Clone(dst)
		for a := range dst {
			dst[a] = old[of[a]]
		}
	}
	loss = func(t, a int) float64 {
		if float64(t) >= from {
			a = int(of[a])
		}
		return r.Loss(t, a)
	}
	return truth, loss
}

// noisy draws losses whose means are those of other rounds, moved.
func noisy(r *Rounds, seed uint64, args []float64) (truth func(dst []float64, t int), loss func(t, a int) float64) {
	high, low, losses := args[0], args[1], random.New(seed, "rewards")
	truth = func(dst []float64, t int) {
		r.Truth(dst, t)
		for a, v := range dst {
			dst[a] = 1 - high + float64((high-low)*v)
		}
	}
	loss = func(t, a int) float64 {
		f := make([]float64, len(r.Actions))
		truth(f, t)
		if losses.Uniform(uint64(t), uint64(a)) < f[a] {
			return 1
		}
		return 0
	}
	return truth, loss
}
