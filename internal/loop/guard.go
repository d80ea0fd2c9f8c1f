package loop

import (
	"fmt"
	"math"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// GuardRules say when the learner is too much worse than the baseline.
type GuardRules struct {
	Margin float64    // mean loss over the baseline's that is put up with, in [0,1)
	Alpha  float64    // chance that it ever alarms though the margin is kept, in (0,1); 0: there is no guard
	Then   codec.Mode // what an alarm switches to; Live: it only alarms

	// LoseAtMost is the share of the baseline's gain that a round decided live may lose, in (0,1), but with a chance of
	// Alpha that any round ever loses more; 0: any. See [Decider.holdBack].
	LoseAtMost float64
}

// On reports whether there is a guard.
func (g GuardRules) On() bool { return g.Alpha > 0 }

// holdBack keeps the expected gain of a round decided live, 1 less the loss, at 1 − LoseAtMost of what the baseline
// would gain: of the learner's law as large a share ε is mixed into the baseline's as all that the learner holds
// possible allows. Nothing is carried over from other rounds, of this partition or of another: what is outstanding is
// no evidence, so that the promise holds for whatever it turns out to be, and the law is a function of what every
// decision is.
//
// A round with ε < 1 is one in shadow: the law that was drawn from is logged, and the learner's beside it.
func (d *Decider) holdBack(dst *codec.Decision, in *oracle.Input) {
	r := d.replica
	if r.epoch.Rules.Guard.LoseAtMost == 0 {
		return
	}
	d.base = r.reader.baseline(d.base[:0])
	share := 0.0
	if l, ok := r.epoch.Learner.(learner.Conservative); ok {
		share = l.Share(d.law, d.base, in)
	}
	if share < 1 {
		dst.Mode, dst.Would = codec.Shadow, append(dst.Would, d.law...)
		d.law = learner.Blend(d.law[:0], dst.Would, d.base, share)
	}
}

// conserve tells the learner of an epoch what the guard asks of it.
func (e *Epoch) conserve() {
	if l, ok := e.Learner.(learner.Conservative); ok {
		l.Conserve(e.Rules.Guard.LoseAtMost, e.Rules.Guard.Alpha)
	}
}

// guardRates is how many rates the guard bets at: λ_j = 2^{-j}/(1+margin), j = 1, 2, ….
const guardRates = 14

// Guard tests, after each feedback of a round decided live, whether the learner loses more than the baseline would, by
// more than a margin m a round. Of round s with loss ℓ_s, drawn from p_s, where the baseline's law is b_s,
//
//	W_s = b_s(a_s)/p_s(a_s),   Y_s = (W_s − 1)·(1 − ℓ_s),   δ_s = E[Y_s | past]
//
// δ_s is what the learner loses in that round over the baseline, as far as p_s covers
// b_s; what it does not cover counts as a loss of 1 of the baseline's, which makes δ_s
// less. The guard bets on Y_s being over m, with a fixed rate λ:
//
//	K_t(λ) = Π_{s≤t} (1 + λ(Y_s − m)),   E_t = mean_j K_t(λ_j),   alarm when E_t ≥ 1/α.
//
// Y_s ≥ −1 however small p_s is, for 1 − ℓ is not negative: so no factor is below 1/2
// and nothing need be cut off. Since 1 + x ≤ e^x,
//
//	M_t(λ) = K_t(λ)·exp(−λ Σ_{s≤t} (δ_s − m))
//
// is a non-negative supermartingale from 1, and so is its mean over j; at a t where the learner has kept the margin on
// average, Σ_{s≤t}(δ_s − m) ≤ 0, K_t(λ_j) ≤ M_t(λ_j) for all j at once. By Ville's inequality the chance that the guard
// ever alarms at such a t is at most α: at any number of looks, for any delays that do not look at the losses, for a
// learner and a world that change. (The bets are those of Waudby-Smith and Ramdas, "Estimating means of bounded random
// variables by betting", 2024; for importance weights, Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro,
// "Anytime-valid off-policy inference for contextual bandits", 2024. That the rates are fixed is what makes it a
// statement on averages rather than on every round.)
//
// Rounds without a loss are left out, as if they were missing at random; the default
// loss of an imputed one is taken at its word.
type Guard struct {
	epoch  int64
	rules  *Rules // nil: no epoch has begun
	reader *reader
	law    []float64
	sums   GuardSums
}

// GuardSums are what a guard has seen since its first epoch.
type GuardSums struct {
	Epoch    int64               // the first whose rounds it counts
	Rounds   int64               // decided live, with a loss
	Learner  float64             // Σ ℓ
	Baseline float64             // Σ W·ℓ, an unbiased estimate where p covers b
	Weight   float64             // Σ W, about Rounds where p covers b
	Excess   float64             // Σ Y
	Log      [guardRates]float64 // log K(λ_j)
	Peak     float64             // largest log E
	Raised   int64               // the feedback at which it alarmed; 0: it has not

	Held int64 // rounds held back
	// Σ of what the learner's own law would have gained more there, by importance weights, where a loss is known
	Forgone float64
}

// Begin tells the guard of an epoch, in the order of the log. Its evidence is of one learner, one baseline and one
// margin: where one of them changes, or the mode does, it starts anew.
func (g *Guard) Begin(number int64, continues bool, rules *Rules) {
	if number <= g.epoch || rules == nil {
		return // a repeat, or one whose record is gone
	}
	was := g.rules
	g.epoch, g.rules, g.reader = number, rules, newReader(rules)
	if continues && was != nil && was.Mode == rules.Mode && was.Baseline == rules.Baseline && was.Guard == rules.Guard {
		return
	}
	g.sums = GuardSums{Epoch: number}
}

// Sums returns what the guard has seen.
func (g *Guard) Sums() GuardSums { return g.sums }

// Rules returns the rules at work; nil before the first epoch.
func (g *Guard) Rules() *Rules { return g.rules }

// Add takes the next feedback of the log, and reports whether it raised the alarm.
func (g *Guard) Add(f *codec.Feedback) bool {
	s := &g.sums
	if g.rules == nil || !g.rules.Guard.On() || f.Epoch < s.Epoch || f.First.N > 0 {
		return false
	}
	known := f.Fate == codec.Observed || f.Fate == codec.Imputed
	if f.Mode == codec.Shadow && g.rules.Mode == codec.Live && len(f.Would) == len(f.Propensities) && f.Stage == 0 {
		if s.Held++; known {
			s.Forgone += float64((f.Would[f.Action]/f.Propensities[f.Action] - 1) * (1 - f.Loss))
		}
	}
	if f.Mode != codec.Live || !known {
		return false
	}
	if g.reader.parseAgain(f.Context) != nil {
		return false // it was decided once: only a damaged record comes here
	}
	if _, err := g.reader.played(f.Actions); err != nil {
		return false
	}
	g.law = g.reader.baseline(g.law[:0])
	s.add(g.law[f.Action]/f.Propensities[f.Action], f.Loss, g.rules.Guard.Margin)
	e := s.Evidence()
	s.Peak = math.Max(s.Peak, e)
	if s.Raised > 0 || e < -oracle.Log(g.rules.Guard.Alpha) {
		return false
	}
	s.Raised = f.N
	return true
}

// add adds a round of weight w.
func (s *GuardSums) add(w, loss, margin float64) {
	y := float64((w - 1) * (1 - loss))
	s.Rounds++
	s.Learner += loss
	s.Baseline += float64(w * loss)
	s.Weight += w
	s.Excess += y
	rate := 1 / (1 + margin)
	for j := range s.Log {
		rate /= 2
		s.Log[j] += oracle.Log(1 + float64(rate*(y-margin)))
	}
}

// Evidence returns log E: what the learner has lost over the margin as a bet's gain.
func (s *GuardSums) Evidence() float64 {
	top, sum := math.Inf(-1), 0.0
	for _, l := range s.Log {
		top = math.Max(top, l)
	}
	for _, l := range s.Log {
		if l-top > -40 {
			sum += oracle.Exp(l - top)
		}
	}
	return top + oracle.Log(sum/guardRates)
}

// Versions of a guard's bytes: the second has what rounds that are held back have cost.
const (
	guardAlarms byte = iota + 1
	guardHolds
)

// code writes the sums, or reads them.
func (s *GuardSums) code(c *oracle.Coder, version byte) {
	c.Ints(&s.Epoch, &s.Rounds, &s.Raised)
	if version == guardHolds {
		c.Ints(&s.Held)
	}
	c.Float(math.Inf(-1), &s.Learner, &s.Baseline, &s.Weight, &s.Excess, &s.Peak)
	c.Floats(s.Log[:])
	if version == guardHolds {
		c.Float(math.Inf(-1), &s.Forgone)
	}
}

// Append appends the sums for a mark; nothing without a guard.
func (g *Guard) Append(b []byte) []byte {
	if g.rules == nil || !g.rules.Guard.On() {
		return b
	}
	version := guardAlarms
	if g.rules.Guard.LoseAtMost > 0 {
		version = guardHolds
	}
	c := oracle.NewWriter(append(b, version))
	g.sums.code(&c, version)
	return c.Bytes()
}

// Restore makes a guard the one that appended b for a mark, in an epoch with these rules.
func (g *Guard) Restore(b []byte, epoch int64, rules *Rules) error {
	*g = Guard{law: g.law}
	g.Begin(epoch, false, rules)
	if len(b) == 0 {
		return nil
	}
	var s GuardSums
	version := b[0]
	if version > guardHolds {
		return fmt.Errorf("guard: %w", codec.ErrVersion)
	}
	c := oracle.NewReader(b[1:], "guard: ", codec.ErrCorrupt)
	s.code(&c, version)
	if err := c.Err(); err != nil {
		return err
	}
	g.sums = s
	return nil
}
