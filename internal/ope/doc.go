// Package ope says what a policy would have earned on a log that another policy made:
// off-policy estimators, how sure they are, and what speaks against believing them.
//
// A row t of the log has the action a that was played, the propensity p with which it was, and its reward r; the policy
// to be judged would have played it with probability π(a|x). With the weight w = π(a|x)/p, a reward model q̂(x,a), the
// model's value dm = Σ_a π(a|x)·q̂(x,a) and its error e = r − q̂(x,a):
//
//	IPS        mean w·r
//	SNIPS      Σw·r / Σw
//	DM         mean dm
//	DR         mean dm + w·e
//	SNDR       mean dm + Σw·e / Σw
//	cIPSλ      mean min(w,λ)·r
//	Switch-DRλ mean dm + 1[w ≤ λ]·w·e
//	DRosλ      mean dm + λw/(w²+λ)·e
//
// A row may stand for c ≥ 1 events, since others were dropped by chance with probability 1 − 1/c: every mean above is
// then Σ c·…/Σ c, and w stands for c·w in the ratios, so that the estimate is that of the whole log in expectation. The
// number of events is itself estimated, by Σ c, so that every estimator is a ratio; its standard error is that of the
// linearised terms c·(x − mean) (Hájek; Särndal, Swensson, Wretman 1992, section 5.7), not that of Σ c rows, which
// there are not.
//
// Rows may be of units, whose rows depend on each other: the terms of a unit are added up, and standard errors and the
// bootstrap are those of units, with units for rows (Cameron and Miller 2015, A Practitioner's Guide to Cluster-Robust
// Inference, section II). Values are the same. The interval at any time needs no units: its terms are those of a
// martingale, whatever rows before have to do with a row.
//
// IPS is unbiased where propensities are right and positive wherever π is; DR then, too, with a q̂ of other rows
// (cross-fitting), and up to O(1/n) with one of the same rows. DM is as wrong as q̂, and the last three give bias for
// variance where λ cuts a weight. Such estimates have no standard error and no interval: the spread of their terms
// contains neither the bias nor the error of q̂. [Bias] is their measured distance from DR, or IPS. The reward model is
// the shrunk mean of each action, or a ridge regression, [RewardModel].
//
// Sources: Dudík, Erhan, Langford, Li (2014), Doubly Robust Policy Evaluation and Optimization; Swaminathan and
// Joachims (2015), The Self-Normalized Estimator for Counterfactual Learning (SNIPS); Wang, Agarwal, Dudík (2017),
// Optimal and Adaptive Off-policy Evaluation in Contextual Bandits (Switch); Su, Dimakopoulou, Krishnamurthy, Dudík
// (2020), Doubly Robust Off-policy Evaluation with Shrinkage (DRos); Maurer and Pontil (2009), Empirical Bernstein
// Bounds, theorem 4.
//
// Everything is a pure function of its arguments: random choices come from a seed.
package ope
