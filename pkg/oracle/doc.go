// Package oracle holds online least-squares regression oracles and the function classes they compete with.
//
// An oracle predicts the loss of every eligible action of a round and is then
// fed one (input, action, loss) at a time, in the order of the feedback log:
//
//	f̂_t is the oracle after rounds 1..t−1;  R_T = Σ_t E(f̂_t(z_t) − f⋆(z_t))²,  z = (x, a)
//
// f⋆(z) = E[y|z] is the true loss. [Hedge] is the paper's oracle over a finite [Class], with bounds; [Linear] and
// [Aggregate] are for users who have features and no class, measured and without bounds on R_T.
//
// Everything here is pure: no clock, no I/O, no goroutine, no global, no random source. Elementary functions are this
// package's own ([Exp], [Log], [Sigmoid]), every product that is added is written float64(a*b), sums have one fixed
// order, and no map is ranged over where it could show: the same inputs give the same bits on every machine. Oracles
// and classes have scratch space and are not safe for concurrent use.
//
// # Hedge: the regret bound
//
// Write δ = f(z) − f⋆(z), Δ = (f(z)−y)² − (f⋆(z)−y)² = δ² − 2δ(y − f⋆(z)), and q_1
// for the prior. For η ≤ 1/2, exp(−η(p−y)²) is concave in p on [0,1], so by Jensen
//
//	(f̂_t − y_t)² ≤ −(1/η)·log Σ_f q_t(f)·exp(−η(f(z_t) − y_t)²).
//
// The right sides telescope to at most Σ_t (f⋆ − y_t)² + (1/η)·log(1/q_1(f⋆)).
// Given the past, E[(f̂_t−y_t)² − (f⋆−y_t)²] = E(f̂_t−f⋆)², hence
//
//	R_T ≤ log(1/min q_1)/η:  2 log|F| at η = 1/2.
//
// The paper (thm:Vovk-regret-and-stability) has 2 log|F|/η for η ≤ 1/18.
//
// # Hedge: the stability bound
//
// By Hoeffding's lemma E_y e^{−ηΔ} ≤ e^{−cδ²}, c = η(1−η/2), because the mean-zero part 2ηδ(y−f⋆) has range 2η|δ|. With
// W_t = Σ q_1(f)·e^{−η Σ_{s<t} Δ_s}, which never falls below q_1(f⋆), and 1 − e^{−cx} ≥ x(1−e^{−c}) on [0,1],
//
//	Σ_t E Σ_f q_t(f)δ² ≤ log(1/q_1(f⋆)) / (1 − e^{−c}).
//
// KL(q_t‖q_{t+1}) = η·E_q Δ + log E_q e^{−ηΔ} ≤ E_q[e^{−ηΔ} − 1 + ηΔ] ≤ (e^η−1−η)·E_q Δ²,
// since |Δ| ≤ 1 and (e^x−1−x)/x² grows; and E_y Δ² = δ²(δ² + 4·Var y) ≤ 2δ² (with
// Var y ≤ f⋆(1−f⋆) and |δ| ≤ max(f⋆, 1−f⋆) even 4/3·δ²). Together
//
//	Σ_t E KL(q_t‖q_{t+1}) ≤ 2(e^η−1−η)·log(1/min q_1) / (1 − e^{−η(1−η/2)})
//
// which is [HedgeKL] times the logarithm: 0.951 log|F| at η = 1/2. As f has values
// in [0,1], ‖f̂_t − f̂_{t+1}‖_∞ is at most the total variation of q_t and q_{t+1},
// and its square at most KL/2 by Pinsker: β = half of the above, [Hedge.Beta].
//
// # Linear: why optimism
//
// Dividing the prediction by 1 + βu, u = zᵀPz, is ridge regression with one more example (z, loss 0) of weight β: β = 1
// is the Vovk–Azoury–Warmuth forecaster, β = 0 plain ridge, where Σe²u/(1+u) is exactly the regret against the
// λ-regularised comparator, Σe²/(1+u) being its loss. β in (0,1), clipping and running statistics lie outside that
// theorem. A little optimism makes actions that are rarely tried look better and was the best choice in measurements;
// it costs one quadratic form an action ([AutoBeta]).
//
// # Linear: random features
//
// cos(w·z + b) with w ~ N(0, I/(h²d)) and b uniform has E 2·cos(w·z+b)·cos(w·z'+b) = exp(−|z−z'|²/(2h²d)) (Rahimi and
// Recht 2007): ridge on m of them and z is kernel ridge with the linear kernel and m times the Gaussian one, as far as
// m draws stand for their mean. The draws are hashes of a seed and the column, fixed before anything is seen; what is
// said of [Linear] holds of the class of functions linear in (1, cosines, z), and for that class β = 0 still measures
// its regret exactly. No theorem here says how near such a function is to the truth. More columns cost: on losses that
// are linear in z, or mostly noise, the error is larger. [Aggregate] asks the data.
//
// # Aggregate: what mixing costs
//
// For y and predictions in [0,1], exp(−½(p−y)²) is concave in p, so with the weights
// q_t of round t and the mix loss m_t = −2·log Σ_i q_{t,i}·exp(−½(f_{t,i}−y_t)²)
//
//	(f̂_t − y_t)² ≤ m_t.
//
// After the round v_i = q_{t,i}·exp(−½(f_{t,i}−y_t)²)·exp(½m_t) sums to 1, and the share gives q_{t+1,i} = (1−α)v_i +
// α/N ≥ (1−α+α/N)·v_i, since v_i ≤ 1. Take logarithms and sum over n rounds, with q_{1,i} = 1/N and q_{n+1,i} ≤ 1:
//
//	Σ_t (f̂_t−y_t)² ≤ Σ_t m_t ≤ Σ_t (f_{t,i}−y_t)² + 2·log N + 2n·log(1/(1−α+α/N))   for every i,
//
// [Aggregate.Overhead]. Nothing is assumed of losses or members: these may forget, be optimistic, be steered by a duel,
// or start anew. Against a sequence of members with m switches each switch pays at most 2·log(N/α) more, as q_{t+1,i} ≥
// α/N always (Herbster and Warmuth 1998). A share that changes, α_t ≤ α, as a steered one does, costs
// 2·log(1/(1−α_t+α_t/N)) a round, which is no more, and a switch after round t 2·log(N/α_t). Here f̂_t is what the
// oracle says of the example as it learns it, after the running statistics have moved. It is a bound on square loss
// along the actions that were played, not on R_T: no member has a theorem here, so the mixture has none.
//
// # Forgetting: what it does to the guarantee
//
// With ρ < 1 the identity Σe²u/(1+u) = regret is lost: w minimises squares that are discounted by ρ a step, and the sum
// measures a discounted comparator's. On a world that stands still the weights keep a noise of about d·(1−ρ)/(1+ρ)
// times the noise of losses, for ever, where plain ridge has d/n: the regret of one regression grows linearly, at a
// small rate. (On the one-hot columns of a text beside the constant, which depend on each other, less was seen:
// together they reach the cap, where nothing is forgotten.) What is bought is a memory of 1/(1−ρ) examples of an
// action. [Aggregate] pays it in two members only, and in core 3 only while the duel says that the world moves.
//
// # Starting anew
//
// From version 2 on [Linear], [Aggregate] and [Shared] start regressions anew when what is played loses more than they
// predict (change.go, which proves the rate of false alarms). A regret Σe²u/(1+u) then sums over lives: each is against
// the regularised best of its own stretch. Overhead holds as it is, for q goes on.
package oracle
