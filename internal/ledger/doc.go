// Package ledger says what policies are worth on a log that another policy made, at any time and however often it is
// read. It is pure, as the packages of the heart are.
//
// # Scores
//
// A round has a context x, a law p that its action a was drawn from, and a loss ℓ in [0,1]. A candidate is a policy that
// would have drawn from π. With predicted losses q(·), made from earlier rounds only, the doubly robust score
//
//	φ = w(a)·(ℓ − q(a)) + Σ_b π(b)·q(b),   w(b) = π(b)/p(b)
//
// has the mean Σ_b π(b)·E[ℓ|x,b], given all earlier rounds and x, whatever q is: p is known, and it is true. The gain
// over what is played, E_p[ℓ] − E_π[ℓ], has such a score with w − 1 in place of w and 1 − ℓ in place of ℓ.
//
// # Bounds of scores
//
// An interval needs a bound of what it averages. φ is at least −K if q(b) is replaced by min(q(b), K/w(b)), which changes
// no mean: so no propensity floor is assumed, and no weight is cut off. A lower bound of the mean needs no more than
// that. An upper bound is one minus the lower bound of the scores of 1 − ℓ. An action that the policy plays and the log
// never plays has w = ∞: its prediction becomes 0, and it counts as the best for a lower bound and as the worst for an
// upper one. So missing overlap makes the interval wide, not wrong. (Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro,
// "Anytime-valid off-policy inference for contextual bandits", 2024, section 2.)
//
// # Intervals
//
// [Sequence] is the predictable plug-in empirical-Bernstein confidence sequence of Waudby-Smith and Ramdas, "Estimating
// means of bounded random variables by betting", 2024, Theorem 2. With λ_t and μ_t functions of scores before t, and
// ψ(λ) = −log(1−λ) − λ, the product of exp(λ_t(x_t − E[x_t|past]) − ψ(λ_t)(x_t − μ_t)²) is a supermartingale from 1, since
// x_t − μ_t ≥ −1. By Ville's inequality the bound holds at all times at once with probability 1 − α. "Past" is all rounds
// before t with their losses: so the log may be of a policy that learns, and a delay may depend on the loss, as long as
// rounds come in the order of their decisions and none is left out for its loss. Reading stops at no special time: how
// many rounds are final when somebody reads may depend on the losses, too.
//
// What is bounded is the mean over rounds with the weights λ_t, which are fixed before each round and fall like 1/√t.
// If a policy's loss per round does not change, that is its value. If it changes, early rounds count more than late ones.
package ledger
