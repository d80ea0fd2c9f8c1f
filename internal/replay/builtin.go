package replay

import (
	"errors"
	"fmt"
	"strings"
)

// builtin is one built-in environment.
type builtin struct {
	Entry
	args []argument
	make func(seed uint64, rounds int, args []float64) *World
}

func builtins() []builtin {
	mean := func(name string) argument { return argument{name, 0, 1, false} }
	return []builtin{
		{Entry{"sigmoid", "", "contexts uniform in [-1,1]^5, 5 actions, 100 logistic functions one of which is " +
			"true; losses 0 or 1"}, nil,
			func(seed uint64, rounds int, _ []float64) *World {
				return NewSigmoid(seed, rounds, SigmoidOptions{})
			}},
		{Entry{"close", "r", "the same, but the functions are near each other: coefficients of one centre and r " +
			"times normal ones"}, []argument{{"r", 0, 1000, false}},
			func(seed uint64, rounds int, a []float64) *World { return NewClose(seed, rounds, a[0]) }},
		{Entry{"needle", "s,n,o", "no context, 10 actions: mean loss s of the first, n of one hidden among the " +
			"others, o of the rest; needle:.4,.2,.6 traps greed"}, []argument{mean("s"), mean("n"), mean("o")},
			func(seed uint64, rounds int, a []float64) *World {
				return NewNeedle(seed, rounds, a[0], a[1], a[2])
			}},
		{Entry{"unstable", "", "the lower bound: an oracle without regret and without stability (no delay: regret " +
			"0 with greedy, delay 1: half of all rounds)"}, nil,
			func(seed uint64, rounds int, _ []float64) *World { return NewUnstable(seed, rounds, false) }},
		{Entry{"unstable-hedge", "", "the same rounds with Hedge-Vovk over the class"}, nil,
			func(seed uint64, rounds int, _ []float64) *World { return NewUnstable(seed, rounds, true) }},
		{Entry{"hypercube", "n,eps",
			"n contexts, 2 actions, all 2^n functions: one action is better by eps in each context; eps 0: the " +
				"paper's, sqrt(n/(100 T))"},
			[]argument{{"n", 1, 1e6, true}, {"eps", 0, 0.5, false}},
			func(seed uint64, rounds int, a []float64) *World {
				return NewHypercube(seed, rounds, int(a[0]), a[1])
			}},
		{Entry{"blocks", "d,N", "N policies that advise at random, losses constant in blocks of d+1 rounds whose " +
			"outcomes come at the end; regret is against the best policy"},
			[]argument{{"d", 0, 1e6, true}, {"N", 1, 1000, true}},
			func(seed uint64, rounds int, a []float64) *World {
				return NewBlocks(seed, rounds, int(a[0]), int(a[1]))
			}},
		{Entry{"trap", "K,m0,m,r", "K actions, the first is right before round m, the second from then on; " +
			"outcomes of rounds m0 to m all come at round r; meant for --order arrival"},
			[]argument{{"K", 2, 1000, true}, countArg("m0"), countArg("m"), countArg("r")},
			func(_ uint64, rounds int, a []float64) *World {
				return NewTrap(rounds, int(a[0]), int(a[1]), int(a[2]), int(a[3]))
			}},
		{Entry{"cyc", "h,d", "4 actions, another is right every h rounds; outcomes come after d later decisions"},
			[]argument{sizeArg("h"), countArg("d")},
			func(_ uint64, rounds int, a []float64) *World { return NewCyc(rounds, int(a[0]), int(a[1])) }},
		{Entry{"linear", "d,K", "contexts uniform in [-1,1]^d, K actions whose mean losses are linear in the " +
			"context; losses 0 or 1"}, []argument{{"d", 1, 1000, true}, {"K", 1, 1000, true}},
			func(seed uint64, rounds int, a []float64) *World {
				return NewLinearWorld(seed, rounds, int(a[0]), int(a[1]))
			}},
		{Entry{"bandit", "K,m,o", "no context, K actions: mean loss m of one, o of the others"}, []argument{{"K", 1,
			1000, true}, mean("m"), mean("o")},
			func(seed uint64, rounds int, a []float64) *World {
				return NewBandit(seed, rounds, int(a[0]), a[1], a[2])
			}},
	}
}

var errEnvironment = errors.New("expected NAME or NAME:NUMBER,…; for example: sigmoid, close:0.3, " +
	"needle:.4,.2,.6; `replayer list` names them all")

// Environments lists the environments.
func Environments() []Entry {
	var out []Entry
	for _, b := range builtins() {
		out = append(out, b.Entry)
	}
	return append(out,
		Entry{"multiclass", "FILE", "a labelled CSV as a bandit: loss 0 for the label, 1 for the rest (--data; " +
			"label first, n_ numbers, c_ categories)"},
		Entry{"log", "LOG", "a log of decisions in any format, or the topics of a live system (--data; for CSV " +
			"--action-column and others, or --mapping)"})
}

// NewEnvironment returns the rounds of the built-in environment that a specification names.
func NewEnvironment(spec string, seed uint64, rounds int) (*Rounds, error) {
	name, rest, has := strings.Cut(spec, ":")
	for _, b := range builtins() {
		if b.Name != name {
			continue
		}
		args, err := b.parseArguments(b.args, rest, has)
		if err != nil {
			return nil, fmt.Errorf("environment %w: %w", err, errEnvironment)
		}
		return OfWorld(b.make(seed, rounds, args)), nil
	}
	return nil, fmt.Errorf("unknown environment %q: %w", spec, errEnvironment)
}
