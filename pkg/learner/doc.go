// Package learner holds the contextual-bandit algorithms: DA-FA and EXP4-DALE of the paper (Levy, Erez, Cohen, Mansour,
// NeurIPS 2025), the baselines they are measured against, and the sampler that turns predictions into the law that is
// drawn from and logged.
//
// A learner is pure: Propensities never changes it, Learn is the only writer,
// and both are functions of their arguments and the state alone.
//
//	x ─▶ oracle.Predict ─▶ f̂ ─▶ Solve ─▶ p ─▶ Law ─▶ widths ─▶ Draw ─▶ action
//	                                  γ: Schedule        u: Uniform(seed, …)
//
// # Index convention
//
// f̂_t is the oracle after rounds 1..t−1. The decision of round t used f̂_{τ+1}, τ = LearnedThrough(t) < t: delay 0
// means "known to the next decision". The paper's algorithm box labels the same object one lower than its analysis.
//
// # DA-FA's inequality
//
// With γ and p those that were played in round t, f̂ = f̂_{τ+1} the predictions
// they came from, g = f̂_t − f̂_{τ+1}, e = f̂_t − f⋆, all at x_t, and a⋆ = argmin f⋆:
//
//	reg_t = p·f⋆ − f⋆(a⋆) ≤ (K−1)/γ + (γ/4)·Σ_a p(a)·e(a)² + [p·g − min_a g(a)]
//
// Proof. f⋆ = f̂ + g − e, so reg_t = [p·f̂ − f̂(a⋆)] + [p·g − g(a⋆)] + [e(a⋆) − p·e]. The first is (K − 1/p(a⋆))/γ,
// since 1/p(a) = μ + γ(f̂(a) − min f̂) and Σp = 1. The third less (γ/4)Σp·e² is largest at e(a) = (2/γ)(1[a=a⋆]/p(a) −
// 1), where it is (1/p(a⋆) − 1)/γ; the two add to (K−1)/γ. ∎
//
// It holds on every path, for any delay, order and oracle. Summed, with
// E Σ_t p_t·e_t² ≤ R_T for an oracle fed in the order of the rounds,
//
//	E Reg ≤ Σ (K_t−1)/γ_t + (max γ_t)·R_T/4 + drift,  drift = Σ (p_t·g_t − min g_t),
//
// where a round counts at most 1, and the drift is measured, [Certificate.MeasuredDrift], or bounded through the
// oracle's stability, [Certificate.APriori]: p·g − min g ≤ 2‖g_t‖_∞ ≤ 2 Σ_{τ(t)<s<t} ‖f̂_s − f̂_{s+1}‖_∞, where s
// occurs for the d_s rounds that were decided without knowing it, so by Cauchy–Schwarz drift ≤ 2√(Σd_s²·β). And Σd_s² ≤
// Σσ_t² whatever τ(t) < t is: d_s² is d_s and twice the pairs u < t of rounds that did not know s; for each t these
// are, over s, at most Σ_{τ(t)<u<t} (u−1−τ(t)) = σ_t(σ_t−1)/2, and just as many where τ never falls. The paper's form
// has two more terms and twice the constants (thm:DAFA-REGRET). [Anytime] inserts γ_t = C√((K−1)t/R). With several
// partitions it needs contexts that do not react to draws of rounds still ahead in the order.
//
// # DA-FA in the order of arrival
//
// Number rounds as they are learned, 1 … T. The inequality holds as it stands, with f̂_n the oracle after n−1 arrivals
// and g_n = f̂_n − f̂_{τ(n)+1}, and [Certificate] measures it so. One thing changes: E Σ p_n·e_n² ≤ R_T asks that a
// loss, given what arrived before it, still has the mean f⋆. So delays must not depend on losses or draws, nor contexts
// on them; FIFO order asks for none of that. The a-priori bound holds as it stands.
//
// # Budgets
//
// With [Budget] the law is that of f̂ + Σ λ_i·ĉ_i/B_i, whose values are not bounded by 1: the inequality above holds
// as it stands for loss + Σ λ_i·cost_i/B_i at the prices of each round, and its terms say nothing of the loss alone.
// That a budget is kept is no theorem. What holds on every path is how λ is found: over the last rounds learned the
// predicted spend at λ is B′, unless λ is 0 or the largest there is; so spend misses B′ by what predictions miss, and
// by what contexts have changed since. I counts both, and B′ pays back I/H a round: a constant bias b of what is
// predicted leaves I at b·H, and a mean cost within b·H/n of B after n rounds. Where no price meets a budget, because
// the cheapest action is dearer, λ is the largest and all actions keep a probability.
//
// # Keeping most of a baseline's gain
//
// [DAFA.Share] says how much of a law p may be played in place of a baseline's b. Gain is g = 1 − f⋆ in [0,1]. Played
// is b + ε(p − b), which gains
//
//	b·g + ε(p − b)·g ≥ (1−α)·b·g   if   ε·(b − p)·g ≤ α·b·g,
//
// and ε is the largest in [0,1] for which that holds with every f that is possible in place of f⋆: those of C_t(δ)
// below, or for [oracle.Frozen] all that lie in its intervals, [oracle.Frozen.Interval]. ε = 0 always does, gains being
// at least 0. With probability at least 1−δ f⋆ is possible at all times at once, and then no round gains less in
// expectation than 1−α of what the baseline would have; so Σ gain ≥ (1−α)·Σ gain of the baseline at all times at once,
// over the rounds of all partitions. ∎ It is the condition of a conservative learner (Deb, Ghavamzadeh and Banerjee
// 2024, arXiv 2412.06165) asked of each round by itself, rather than of the sum: a sum would have to charge what is
// outstanding at its worst, and would have to be known by every partition. Rounds that have no loss yet take nothing
// from the set of what is possible: with feedback in the order of decisions it is what it is for any outcomes that they
// may have, and however late.
//
// It stands on what C_t stands on, or on a linear f⋆ with values in [0,1] and losses that are observed.
//
// # EXP4-DALE
//
// [EXP4] takes feedback one at a time, in any order. Its n-th step learns round s = s(n), decided with the weights v =
// w_τ, τ = LearnedThrough(s) < n, and learned with w = w_{n−1}; Q and Q̃ are the laws of v and w over the actions at
// x_s, c = L(x_s, ·), M = max(Q, Q̃) + ε, ĉ(a) = c(a)·1[a = a_s]/M(a), which policy i meets at π_i(x_s). η is the rate
// of the step; rates never rise. e = n−1−τ is the number of steps between.
//
// Intermediate iterates. Φ_n(η) = −(1/η)·log Σ_i w_1i·exp(−η·Ĉ_n,i) grows in a step, at
// that step's η, by −(1/η)·log Σ w_i·exp(−ηĉ_i) ≥ w·ĉ − (η/2)·w·ĉ², for ĉ ≥ 0 of any size;
// and it does not fall when η does. Summed, on every path and for each policy i,
//
//	Σ w·ĉ − Ĉ_i ≤ log(1/w_1i)/η_T + Σ (η/2)·w·ĉ².
//
// The paper takes all feedback of a round with the weights before it and cites this for that form, where it is false:
// two policies, 1,000 arrivals at once, each with ĉ = (1, 0), η = 0.1: 1000·½ = 500 on the left, 31.9 on the right (a
// test has it). One at a time it is 7.2 ≤ 7.3.
//
// Variance and drift. Let w, η and e be fixed before a_s is drawn; then
//
//	E w·ĉ² = Σ_a c²·Q·Q̃/M² ≤ K,   E ĉ_i ≤ c_i,
//	v·c − E w·ĉ = Σ_a c·Q·(1 − Q̃/M) ≤ Σ_a (Q − Q̃)⁺ + Kε ≤ TV(v, w) + Kε.
//
// The last joins the paper's Bias₁ and Drift, which it bounds apart by ‖v−w‖₁ = 2·TV each; so η·D stands below where it
// has 2ηD. And w' ∝ w·exp(−ηĉ) has w'_i ≥ w_i(1 − ηĉ_i), hence on every path
//
//	TV(w, w') ≤ η·Σ w_i·ĉ_i = η·L·Q̃/M ≤ η,   TV(v, w) ≤ η·e.
//
// This replaces the paper's drift lemma, which puts c for c̃ under an expectation with
// p_{t+1} although p_{t+1} depends on c̃. Σe = Σσ = D. For a fixed η and ε = 0, together,
//
//	E Reg ≤ log N/η + (η/2)·K·T + η·D,
//
// at most 2√((KT + D)·log N) at [EXP4Eta]. (The paper's log N/η + ηKT + 2ηD is implied; its
// own proof gives η(K/2 + 2)T + 2ηD, which is that for K ≥ 4 only.) ∎
//
// "Fixed before a_s is drawn": in FIFO order w and η are functions of rounds before s, so delays may look at losses and
// draws; with several partitions, if contexts do not react to draws of rounds still ahead. In the order of arrival they
// are that only if when an outcome comes does not depend on what was drawn or lost: say "delays oblivious". Losses may
// be any function of the past but not of the draw of their round; the regret is that against each fixed policy. Skipped
// rounds are charged 1 each, and silence must not depend on the loss.
//
// Adaptive. The rate is a transfer from Zimmert & Seldin 2020, ε = η/2 from Neu 2015; no theorem of theirs is about
// this algorithm, and no closed form √(KT log N) + √(D log N) is proved here. What is proved holds with measured sums:
// the two lines on iterates and variance hold as they stand, η and ε changing with the step, and a falling rate alone
// moves weights by TV ≤ log N·log(η/η'), since with X = log w_i, η·dw_i/dη = w_i(X − E_w X) and ½E_w|X − EX| is at most
// the entropy of w. (With a prior, log N + 1.) Thus
//
//	E Reg ≤ log N/η_T + E Σ [(η/2)·Σ_a QQ̃/M² + Σ_a Q·(1 − Q̃/M)⁺],
//
// where a round's first term counts at most 1 and its second, too, because w·ĉ ≥ 0 and E w·ĉ ≤ 1: [PolicyCertificate]
// MeasuredDrift, for any η and any M ≥ Q, that is also for plain importance weighting, M = Q, where nothing bounds
// Q̃/Q. Its Measured needs less: E ĉ_i ≤ c_i alone gives E Reg ≤ E[ΣL − min_i Ĉ_i].
//
// # Surviving models
//
// [Models] takes rounds in the order of decisions. Let F_s hold all before the loss of round s is seen: contexts, laws,
// draws and losses of rounds before s, and x_s, p_s, a_s. f⋆ is the truth if E[y_s|F_s] = f⋆(z_s), z = (x, a), y in
// [0,1]. For a prediction g of F_s, with δ = g − f⋆(z_s) and ε = y_s − f⋆(z_s),
//
//	(f⋆−y)² − (g−y)² = 2δε − δ²,   E[e^{2(2δε − δ²)}|F_s] ≤ e^{−2δ²}·e^{(4δ)²/8} = 1
//
// by Hoeffding's lemma, ε having mean 0 and range 1. So exp(2(L_f⋆ − L_g)) is a supermartingale that starts at 1 and is
// never negative, and so is its mean M_f⋆ over g in the class; that functions dropped leave it only lowers it. By
// Ville's inequality P(sup_t M_f⋆ ≥ 1/α) ≤ α. M_f < 1/α says softmax(−2L)(f) > α/|F|. Hence
//
//	C_t(α) = {f : max_{s≤t} M_f < 1/α} contains f⋆ at all t at once with probability ≥ 1−α,
//
// whatever rate and prior the learner itself uses; the looks may be as rare as one likes. ∎
//
// In the order of arrival the oracle learns rounds as they come, and the models take them in the order of decisions all
// the same: a round that is there before its turn waits, and is charged 1 until then. Nothing in the proof changes: p_s
// is a function of what was decided before s, of those of its losses that had come, and of when they came; y_s is seen
// after p_s was fixed, so that E[y_s|F_s] = f⋆(z_s) whatever delays look at. What must not depend on losses is the
// order of the sums, and that is the order of decisions.
//
// The plausible-set certificate. R_f⋆ is the regret of the rounds in the sums, and no other round's is more than 1.
// Where f⋆ is in C_t, R_f⋆ ≤ max_{f∈C_t} R_f: that bound, too, holds at all t at once with probability ≥ 1−α. It needs
// no stability, no γ, no rate. ∎ A round without a loss has a law, too: S_f sums its regret under f, and R_f⋆ + S_f⋆ is
// the regret of all rounds, which the sharper bound takes in place of 1 for each.
//
// Rounds whose turn has not come have a law, too: [DAFA.Decided] adds their regret under f in place of 1. Losses
// of some of them may be there. Let n be the last that is, S the rounds up to n with their losses, M those without.
// On the event that f⋆ is never refuted, L_f⋆ − L_g ≤ ½·log(|F|/α) at n for every g, whatever the losses of M; so
// L_S(f⋆) − L_S(g) ≤ ½·log(|F|/α) + Σ_M max_y [(g−y)² − (f⋆−y)²], and f that breaks this is not the truth. ∎
//
// What it stands on: losses in [0,1]; a truth in the class; that silence does not depend on the loss, so that
// E[y_s|F_s, s is observed] = f⋆(z_s); that the order does not look at losses: a loss that is there before its turn
// says something of itself, and fed on arrival M_f⋆ is no supermartingale; and with several partitions that contexts do
// not react to draws or losses of rounds still ahead in the order. Imputed losses are no evidence.
//
// # The realizability alarm
//
// With rivals g_j that F_s knows, E1_f⋆ = mean_j exp(2(L_f⋆ − L_{g_j})) is a supermartingale from 1 by the same line.
// E[e^{λε − λ²/8}|F_s] ≤ 1 by Hoeffding's lemma, so for an action a, with λ added up over the rounds that played it,
// exp(λZ_{f⋆,a} − λ²n_a/8) is one, too, and E2_f⋆ is their mean. Therefore E_f⋆ = (1−ε)·½(E1 + E2) + ε·M is one. The
// alarm is raised when every f of the class had E_f ≥ 1/α at some look, f⋆ among them if it is there: by Ville a false
// alarm has probability ≤ α, for ever. ∎ A function with M_f ≥ 1/(εα) has had E_f ≥ 1/α, and is dropped. Certificate
// and alarm fail with probability α each. A class with an alarm is called refuted by the alarm alone: that C_t(α) is
// empty is another event, and either of two would be one of 2α.
//
// # What a linear oracle can promise
//
// The bound of DA-FA needs E Σ(f̂−f⋆)² ≤ R_T, which no theorem gives for clipping, optimism and
// running statistics, or for the aggregate. [Certificate.Realised] needs no oracle at all. Given F_s
// without the draw, E[L_s] = m_s = p_s·f⋆(x_s,·), and e^{−λL} ≤ 1 − (1−e^{−λ})L on [0,1], so
// E e^{−λL_s + (1−e^{−λ})m_s} ≤ 1: products are supermartingales from 1, and by Ville's inequality
// for 16 rates at α/16 each, Σm_s ≤ (λΣL + log(16/α))/(1−e^{−λ}) for each of them, at all times at
// once. Regret is at most Σm_s, losses being at least 0. ∎ Any order without a look at losses will do, and any
// truth; it says more than T as soon as the mean loss is below 1, and never less than what was lost.
//
// A sharper one would subtract what the best policy loses. Confidence ellipsoids (Abbasi-Yadkori, Pál, Szepesvári 2011,
// theorem 2: |f̂ − f⋆|(z) ≤ (½√(log det(λP)⁻¹ + 2 log(K/α)) + √λ‖θ⋆‖)·√(zᵀPz) for β = 0, frozen features and a linear
// truth) bound it from below by Σ min_a (f̂ − width)⁺. But the least over actions is that of an action that is hardly
// ever played, and whose width is large for that: with d = 6, K = 5, λ = 1, ‖θ⋆‖ = 1 and an action played 1,000 times,
// (½√(6·log 167 + 9.2) + 1)·√(6/1000) = 0.32 of losses near ½; at 100 plays it is 0.87, and nothing is left. It would
// stand on three assumptions that nothing here can test, and gain little: it is left out.
//
// # Sampler
//
// [Solve] has the proof of its Newton iteration, [Law] and [Draw] what is exact.
package learner
