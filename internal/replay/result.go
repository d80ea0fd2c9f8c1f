package replay

import (
	"math"
	"slices"
	"strings"

	"hindsight/internal/certify"
	"hindsight/internal/delay"
	"hindsight/internal/latelosses"
	"hindsight/internal/ledger"
	"hindsight/internal/words"
	"hindsight/pkg/codec"
)

// Result holds the figures of one run; its JSON is that of `inject --json` and of
// each of the runs of `backtest --json`. A nil figure is not known and is null.
type Result struct {
	Environment   string `json:"environment"`
	Learner       string `json:"learner"`
	Order         int    `json:"order"`
	Seed          uint64 `json:"seed"`
	Window        string `json:"window"`
	DefaultWindow bool   `json:"-"` // neither flags nor the model file give one
	Rounds        int64  `json:"rounds"`
	// of a log that has some: tables and reports show losses as these
	Rewards *words.Rewards `json:"rewards,omitempty"`
	Pending int64          `json:"pending"` // decided, but still without feedback at the end
	// realised, of the actions played: all rounds, or those of a log that drew the recorded action
	MeanLoss *float64 `json:"mean_loss"`
	// rounds of a log that drew the recorded action, and were accepted
	Matched *int64 `json:"matched,omitempty"`
	// of a log with propensities: its mean loss without bias
	Replay          *Replay               `json:"replay,omitempty"`
	Regret          *float64              `json:"regret"` // Σ p·f⋆ − min f⋆
	UniformLoss     *float64              `json:"uniform_loss"`
	BestLoss        *float64              `json:"best_loss"`
	Fates           Fates                 `json:"fates"`
	LateLosses      latelosses.Comparison `json:"late_losses"`
	Delays          delay.Report          `json:"delays"`
	Certificate     certify.Certificate   `json:"certificate"`
	RoundsPerSecond float64               `json:"rounds_per_second"`

	// of a model with named outcomes; Formula is the reward
	Formula  string         `json:"reward,omitempty" csv:"-"`
	Outcomes []NamedOutcome `json:"outcomes,omitempty"`
	Budgets  []Spend        `json:"budgets,omitempty"`

	// of a model that names candidates, where all losses are known: what they are worth on what was played
	Candidates []ledger.Estimate `json:"candidates,omitempty" csv:"-"`

	Course   *Course        `json:"course,omitempty"`   // how it went
	Contexts *WorstContexts `json:"contexts,omitempty"` // where it went worst; of some runs of a report
}

// Waited returns how many rounds waited for an outcome: of a log those that drew its action, since the others
// come back at once.
func (r *Result) Waited() int64 {
	if r.Matched != nil {
		return *r.Matched
	}
	return r.Rounds
}

// Value returns what a learner lost a round: of a log with propensities the weighted mean (SNIPS), else the mean of
// what was played; NaN if nothing is known. se is the standard error of a weighted mean, else NaN.
func (r *Result) Value() (loss, se float64) {
	switch {
	case r.Replay != nil:
		return float64(r.Replay.SNIPS.Value), float64(r.Replay.SNIPS.SE)
	case r.MeanLoss != nil:
		return *r.MeanLoss, math.NaN()
	}
	return math.NaN(), math.NaN()
}

// Fates counts what became of rounds and of outcomes.
type Fates struct {
	Observed  int64 `json:"observed"`
	Imputed   int64 `json:"imputed"`
	Skipped   int64 `json:"skipped"`
	Withdrawn int64 `json:"withdrawn"`

	Late      int64 `json:"late"`
	Duplicate int64 `json:"duplicate"`
	Orphan    int64 `json:"orphan"`
	Mismatch  int64 `json:"mismatch"`
	Malformed int64 `json:"malformed"`
}

// addFate counts the fate of a round.
func (f *Fates) addFate(fate codec.Fate) {
	count(fate, [...]*int64{&f.Observed, &f.Imputed, &f.Skipped, &f.Withdrawn})
}

// count adds to the counter of a fate; they are in the order of the fates.
func count(fate codec.Fate, counters [4]*int64) {
	if fate >= codec.Observed && fate <= codec.WithdrawnRound {
		*counters[fate-codec.Observed]++
	}
}

// addReject counts the reason for which an outcome was rejected, and reports
// whether it is one of the fates of outcomes.
func (f *Fates) addReject(reason string) bool {
	switch reason {
	case codec.ReasonLate:
		f.Late++
	case codec.ReasonDuplicate:
		f.Duplicate++
	case codec.ReasonOrphan:
		f.Orphan++
	case codec.ReasonMismatch:
		f.Mismatch++
	case codec.ReasonMalformed:
		f.Malformed++
	default:
		return false
	}
	return true
}

func (f *Fates) rounds() int64 { return f.Observed + f.Imputed + f.Skipped + f.Withdrawn }

// Rejected returns the number of outcomes that were not used.
func (f *Fates) Rejected() int64 {
	return f.Late + f.Duplicate + f.Orphan + f.Mismatch + f.Malformed
}

// Harm is what a run cost its learner: the regret, or where the truth is not known the loss or the missed
// reward of its policies over all rounds, 0 if none of them met a row; what says which.
func (r *Result) Harm() (value float64, what string) {
	if r.Regret != nil {
		return *r.Regret, "regret"
	}
	if what = r.Rewards.Missed(); r.Replay != nil {
		what += " by propensities"
	}
	if value, _ = r.Value(); math.IsNaN(value) {
		return 0, what
	}
	return r.Rewards.Length(value) * float64(r.Rounds+r.Pending), what
}

// InventedDelays says which of the delays that were played on data are none of its own; "" if all are.
func InventedDelays(runs []Result) string {
	var specs []string
	for i := range runs {
		if d := &runs[i].Delays; d.Invented && !slices.Contains(specs, d.Spec) {
			specs = append(specs, d.Spec)
		}
	}
	if specs == nil {
		return ""
	}
	return "Artificial delays, not those of the data: " + strings.Join(specs, ", ")
}
