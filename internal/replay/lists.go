package replay

import (
	"hindsight/internal/grammar"
)

// Learners lists the learners.
func Learners() []grammar.Entry {
	return []grammar.Entry{
		grammar.Word("dafa", "", "DA-FA: plays against an oracle's predictions as far as exploring demands; explore: "+
			"balanced"),
		grammar.Word("dafa", "EXPLORE", "the same with another exploration: cautious, guaranteed, balanced, theory, "+
			"a number, or paper (the paper's constants, for a finite class)"),
		grammar.Word("elimination", "", "DA-FA that plays only what a function that survives thinks best: explores "+
			"far less, gives propensity 0 to the rest, and loses everything if the truth falls; for a finite class"),
		grammar.Word("egreedy", "EPSILON", "the best prediction, or with probability EPSILON any action"),
		grammar.Word("greedy", "", "the best prediction always"),
		grammar.Word("exp4dale", "", "EXP4-DALE over finite policies: those of the environment or of a model file, "+
			"or the best actions by the functions of a class; its rate adapts to delays"),
		grammar.Word("exp4dale", "D", "the same with the rate for a known sum of delays D; exp4dale:plain and "+
			"exp4dale:plain,D weight by plain importance"),
		grammar.Word("uniform", "", "every action alike"),
		grammar.Word("fixed", "ACTION", "one action always"),
	}
}

// Oracles lists the regression oracles.
func Oracles() []grammar.Entry {
	return []grammar.Entry{
		grammar.Word("auto", "", "the default: Hedge over three regressions an action: ridge, ridge that forgets, "+
			"and ridge on random Fourier features that forgets (those only while K·(d+128)² ≤ 1e6, of the actions "+
			"and columns seen); beta, columns, fourier, seed, share (steered: on long stationary streams the "+
			"regression that forgets loses its part)"),
		grammar.Word("linear", "", "online ridge regression an action, optimistic (beta), features standardised as "+
			"they come; beta (0 is plain ridge, 1 Vovk-Azoury-Warmuth), lambda, forget (the past counts that much "+
			"after each example, for worlds that move), fourier (so many random Fourier features beside the columns, "+
			"for losses that are not linear in them; bandwidth, columns, seed)"),
		grammar.Word("fourier", "", "linear with fourier: 128, as --oracle names it"),
		grammar.Word("shared", "", "one ridge regression for all actions over their features and the products with "+
			"the context's, hashed: for actions that come and go; beta, lambda, hashed"),
		grammar.Word("hybrid", "", "the same, and the context's features for each action's name; beta, lambda, hashed"),
		grammar.Word("ridge", "", "ridge regression with a theorem, certified: true, for losses that are linear in "+
			"the features: these and the actions are listed in the model file, numbers with their bounds; lambda"),
		grammar.Word("hedge", "", "Hedge-Vovk over a finite class of functions from a class file; eta, class; eta: "+
			"outstanding lowers it with the rounds outstanding, for a bound under any delays; substitution: vovk "+
			"with unproved: true predicts by Vovk's substitution at eta 2"),
	}
}
