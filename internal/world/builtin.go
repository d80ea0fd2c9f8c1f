package world

import (
	"errors"
	"fmt"
	"strings"

	"hindsight/internal/grammar"
)

// builtin is one built-in environment.
type builtin struct {
	grammar.Entry
	make func(seed uint64, rounds int, args []float64) *World
}

func builtins() []builtin {
	mean := func(name string) grammar.Argument { return grammar.Number(name, 0, 1) }
	return []builtin{
		{grammar.Word("sigmoid", "", "contexts uniform in [-1,1]^5, 5 actions, 100 logistic functions one of which is "+
			"true; losses 0 or 1"),
			func(seed uint64, rounds int, _ []float64) *World { return NewSigmoid(seed, rounds, SigmoidOptions{}) }},
		{grammar.Word("close", "r", "the same, but the functions are near each other: coefficients of one centre and "+
			"r times normal ones", grammar.Number("r", 0, 1000)), newClose},
		{grammar.Word("needle", "s,n,o", "no context, 10 actions: mean loss s of the first, n of one hidden among the "+
			"others, o of the rest; needle:.4,.2,.6 traps greed", mean("s"), mean("n"), mean("o")), newNeedle},
		{grammar.Word("unstable", "", "the lower bound: an oracle without regret and without stability (no delay: "+
			"regret 0 with greedy, delay 1: half of all rounds)"), newUnstable},
		{grammar.Word("unstable-hedge", "", "the same rounds with Hedge-Vovk over the class"), newUnstableHedge},
		{grammar.Word("hypercube", "n,eps", "n contexts, 2 actions, all 2^n functions: one action is better by eps in "+
			"each context; eps 0: the paper's, sqrt(n/(100 T))", grammar.Whole("n", 1, 1e6),
			grammar.Number("eps", 0, 0.5)),
			newHypercube},
		{grammar.Word("blocks", "d,N", "N policies that advise at random, losses constant in blocks of d+1 rounds "+
			"whose outcomes come at the end; regret is against the best policy", grammar.Whole("d", 0, 1e6),
			grammar.Whole("N", 1, 1000)),
			newBlocks},
		{grammar.Word("trap", "K,m0,m,r", "K actions, the first is right before round m, the second from then on; "+
			"outcomes of rounds m0 to m all come at round r; meant for --order arrival", grammar.Whole("K", 2, 1000),
			grammar.Count("m0"), grammar.Count("m"), grammar.Count("r")), newTrap},
		{grammar.Word("cyc", "h,d", "4 actions, another is right every h rounds; outcomes come after d later decisions",
			grammar.Size("h"), grammar.Count("d")), newCyc},
		{grammar.Word("linear", "d,K", "contexts uniform in [-1,1]^d, K actions whose mean losses are linear in the "+
			"context; losses 0 or 1", grammar.Whole("d", 1, 1000), grammar.Whole("K", 1, 1000)), newLinear},
		{grammar.Word("bandit", "K,m,o", "no context, K actions: mean loss m of one, o of the others",
			grammar.Whole("K", 1, 1000), mean("m"), mean("o")), newBandit},
	}
}

var errEnvironment = errors.New("expected NAME or NAME:NUMBER,…; for example: sigmoid, close:0.3, needle:.4,.2,.6; " +
	"`replayer list` names them all")

// List lists the environments.
func List() []grammar.Entry {
	var out []grammar.Entry
	for _, b := range builtins() {
		out = append(out, b.Entry)
	}
	return append(out,
		grammar.Word("multiclass", "FILE", "a labelled CSV as a bandit: loss 0 for the label, 1 for the rest (--data; "+
			"label first, n_ numbers, c_ categories)"),
		grammar.Word("log", "LOG", "a log of decisions in any format, or the topics of a live system (--data; for CSV "+
			"--action-column and others, or --mapping)"))
}

// New returns the built-in environment that a specification names.
func New(spec string, seed uint64, rounds int) (*World, error) {
	name, rest, has := strings.Cut(spec, ":")
	for _, b := range builtins() {
		if b.Name != name {
			continue
		}
		args, err := b.Parse(rest, has)
		if err != nil {
			return nil, fmt.Errorf("environment %w: %w", err, errEnvironment)
		}
		return b.make(seed, rounds, args), nil
	}
	return nil, fmt.Errorf("unknown environment %q: %w", spec, errEnvironment)
}
