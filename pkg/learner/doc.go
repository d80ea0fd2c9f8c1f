// Package learner holds the contextual-bandit algorithms: DA-FA of the paper
// (Levy, Erez, Cohen, Mansour, NeurIPS 2025), the baselines it is measured
// against, and the sampler that turns predictions into the law that is drawn
// from and logged.
//
// A learner is pure: Propensities never changes it, Learn is the only writer,
// and both are functions of their arguments and the state alone.
//
//	x ─▶ oracle.Predict ─▶ f̂ ─▶ Solve ─▶ p ─▶ Law ─▶ widths ─▶ Draw ─▶ action
//	                                  γ: Schedule        u: Uniform(seed, …)
//
// # Index convention
//
// f̂_t is the oracle after rounds 1..t−1. The decision of round t used f̂_{τ+1},
// τ = LearnedThrough(t) < t: delay 0 means "known to the next decision". The
// paper's algorithm box labels the same object one lower than its analysis.
//
// # DA-FA's inequality
//
// With γ and p those that were played in round t, f̂ = f̂_{τ+1} the predictions
// they came from, g = f̂_t − f̂_{τ+1}, e = f̂_t − f⋆, all at x_t, and a⋆ = argmin f⋆:
//
//	reg_t = p·f⋆ − f⋆(a⋆) ≤ (K−1)/γ + (γ/4)·Σ_a p(a)·e(a)² + [p·g − min_a g(a)]
//
// Proof. f⋆ = f̂ + g − e, so reg_t = [p·f̂ − f̂(a⋆)] + [p·g − g(a⋆)] + [e(a⋆) − p·e].
// The first is (K − 1/p(a⋆))/γ, since 1/p(a) = μ + γ(f̂(a) − min f̂) and Σp = 1. The
// third less (γ/4)Σp·e² is largest at e(a) = (2/γ)(1[a=a⋆]/p(a) − 1), where it is
// (1/p(a⋆) − 1)/γ; the two add to (K−1)/γ. ∎
//
// It holds on every path, for any delay, order and oracle. Summed, with
// E Σ_t p_t·e_t² ≤ R_T for an oracle fed in the order of the rounds,
//
//	E Reg ≤ Σ (K_t−1)/γ_t + (max γ_t)·R_T/4 + drift,  drift = Σ (p_t·g_t − min g_t),
//
// where a round counts at most 1, and the drift is measured, [Certificate.MeasuredDrift],
// or bounded through the oracle's stability, [Certificate.APriori]: p·g − min g ≤
// 2‖g_t‖_∞ ≤ 2 Σ_{τ(t)<s<t} ‖f̂_s − f̂_{s+1}‖_∞, where s occurs for the d_s rounds that
// were decided without knowing it, so by Cauchy–Schwarz drift ≤ 2√(Σd_s²·β). And
// Σd_s² = Σσ_t² where τ never falls: both count the triples a ≤ b < c with τ(c) < a.
// The paper's form has two more terms and twice the constants (thm:DAFA-REGRET). [Anytime] inserts
// γ_t = C√((K−1)t/R). With several partitions it needs contexts that do not react
// to draws of rounds still ahead in the order.
//
// # Sampler
//
// [Solve] has the proof of its Newton iteration, [Law] and [Draw] what is exact.
package learner
