package loop

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"hindsight/internal/ledger"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// CandidateKind says what a candidate plays.
type CandidateKind uint8

// The kinds of candidates.
const (
	BaselineCandidate CandidateKind = iota // what the baseline would answer
	UniformCandidate                       // all eligible actions alike
	AlwaysCandidate                        // one action; all alike where it is not eligible
	LearnerCandidate                       // what the learner plays, or would play in shadow mode
	PolicyCandidate                        // what a policy of a file plays
)

// CandidateKinds returns the names of the kinds in the model file, in their order.
func CandidateKinds() []string {
	return []string{"baseline", "uniform", "always", "learner", "policies"}
}

// Candidate is a policy that is judged on what was played.
type Candidate struct {
	Kind   CandidateKind
	Action string // of AlwaysCandidate; of PolicyCandidate its file, and #NUMBER where that has several
}

// String returns the name by which a candidate is shown.
func (c Candidate) String() string {
	if c.Action != "" {
		return CandidateKinds()[c.Kind] + ":" + c.Action
	}
	return CandidateKinds()[c.Kind]
}

// FilePolicies are the policies of a file that are candidates, one after the other.
type FilePolicies struct {
	learner.Policies
	From int      // the place of the first among the candidates
	Sum  [32]byte // SHA-256 of the file
}

// same reports whether both are what the same file says.
func (p FilePolicies) same(q FilePolicies) bool { return p.Sum == q.Sum }

// Promotion says when a candidate should take over.
type Promotion struct {
	Of       Candidate
	BetterBy float64 // what its mean loss is to be below that of what is played, in [0,1)
	Alpha    float64 // chance that it is ever promoted although it is not; 0: there is no rule
	Switch   bool    // the mode is switched when it holds
	Share    float64 // of ids that the learner answers after that switch, in [0.5,1]; the baseline answers the others
}

// To returns the mode in which a candidate takes over from the one at work; ok is false if no switch of mode does that.
func (p Promotion) To(at codec.Mode) (to codec.Mode, ok bool) {
	switch {
	case p.Of.Kind == BaselineCandidate && at == codec.Live:
		return codec.Shadow, true
	case p.Of.Kind == LearnerCandidate && at == codec.Shadow:
		return codec.Live, true
	}
	return at, false
}

// On reports whether there is a rule.
func (p Promotion) On() bool { return p.Alpha > 0 }

// Judge judges the candidates of a model on final rounds ([ledger.Ledger] says how, and what it proves). The joiner
// gives it each feedback in the order of the log, so its state is a function of the log: a mark keeps it.
//
// Rounds that were withdrawn, those of an id that an earlier round used, those that repeat the draw of a unit, and
// those that another system decided, are no rounds of it. Its evidence is of one learner in one mode, of one baseline,
// and of one list of candidates: where one of them changes it starts anew.
type Judge struct {
	epoch  int64 // the last that began
	since  int64 // the first whose rounds it counts
	rules  *Rules
	reader *reader
	ledger *ledger.Ledger // nil: there are no candidates
	asks   bool           // contexts are needed: for the baseline's law, or by policies of files

	laws    [][]float64 // of candidates; nil: not known of this round
	advice  []int32     // what those of files play
	scratch [][]float64
	base    []float64 // the baseline's law, where it is asked
	mix     []float64
}

// Begin tells the judge of an epoch, in the order of the log.
func (j *Judge) Begin(number int64, continues bool, rules *Rules) {
	if number <= j.epoch || rules == nil {
		return
	}
	was := j.rules
	j.epoch, j.rules, j.reader = number, rules, newReader(rules)
	j.reader.ruled, j.reader.wide = nil, nil // policies of files read features that the model does not list, too
	if continues && was != nil && was.Mode == rules.Mode && was.Baseline == rules.Baseline &&
		was.Promote == rules.Promote && was.HoldOut == rules.HoldOut &&
		slices.Equal(was.Candidates, rules.Candidates) &&
		slices.EqualFunc(was.Policies, rules.Policies, FilePolicies.same) {
		return
	}
	j.since = number
	j.asks = rules.HoldOut > 0 || len(rules.Policies) > 0 ||
		slices.Contains(rules.Candidates, Candidate{Kind: BaselineCandidate})
	j.ledger = newLedger(rules)
	n := len(rules.Candidates)
	j.laws, j.scratch, j.advice = make([][]float64, n), make([][]float64, n), make([]int32, n)
}

func newLedger(r *Rules) *ledger.Ledger {
	if len(r.Candidates) == 0 {
		return nil
	}
	rule := ledger.Rule{BetterBy: r.Promote.BetterBy, Alpha: r.Promote.Alpha}
	rule.Candidate = max(0, slices.Index(r.Candidates, r.Promote.Of))
	return ledger.New(len(r.Candidates), rule)
}

// Rules returns the rules at work; nil before the first epoch.
func (j *Judge) Rules() *Rules { return j.rules }

// Fired returns the feedback at which the rule of promotion held first; 0: it has not.
func (j *Judge) Fired() int64 {
	if j.ledger == nil {
		return 0
	}
	return j.ledger.Fired()
}

// Since returns the first epoch whose rounds count.
func (j *Judge) Since() int64 { return j.since }

// Ledger returns what is known of the candidates, in the order of the rules; nil without any.
func (j *Judge) Ledger() *ledger.Ledger { return j.ledger }

// Estimates returns what is known of each candidate; nil without any.
func (j *Judge) Estimates() (out []ledger.Estimate) {
	if j.ledger == nil {
		return nil
	}
	out = j.ledger.Estimates(nil)
	for i := range out {
		out[i].Policy = j.rules.Candidates[i].String()
	}
	return out
}

// Add takes the next feedback of the log.
func (j *Judge) Add(f *codec.Feedback) {
	if j.ledger == nil || f.Epoch < j.since || f.Fate == codec.WithdrawnRound || f.Reason == codec.ReasonDuplicateID ||
		f.First.N > 0 || f.Mode == codec.External || !(f.Propensities[f.Action] > 0) {
		return
	}
	r := ledger.Round{N: f.N, Actions: f.Actions, Law: f.Propensities, Action: f.Action, Loss: f.Loss,
		Known: f.Fate == codec.Observed || f.Fate == codec.Imputed}
	played := f.Would
	if f.Mode == codec.Live {
		played = f.Propensities
	}
	if j.asks && !j.baseline(f) {
		return
	}
	if j.rules.HoldOut > 0 && j.rules.Mode == codec.Live {
		if r.Law = j.mixed(f.Actions, played); r.Law == nil {
			return
		}
	}
	for _, p := range j.rules.Policies {
		p.Advise(j.advice[p.From:p.From+p.Size()], &j.reader.in)
	}
	for i, c := range j.rules.Candidates {
		j.laws[i] = j.law(i, c, f.Actions, played)
	}
	j.ledger.Add(&r, j.laws)
}

// baseline works out the baseline's law in a round. It fails for a damaged record.
func (j *Judge) baseline(f *codec.Feedback) bool {
	if j.reader.parseAgain(f.Context) != nil { // of a backtest that keeps no contexts: none names a baseline
		j.reader.own = codec.Context{}
	}
	if _, err := j.reader.played(f.Actions); err != nil {
		return false
	}
	j.base = j.reader.baseline(j.base[:0])
	return true
}

// law returns the probabilities with which candidate i would have played a round; nil: the log does not tell. learner
// is the learner's law, if the log has it.
func (j *Judge) law(i int, c Candidate, actions []string, learner []float64) []float64 {
	switch {
	case c.Kind == BaselineCandidate:
		return j.base
	case c.Kind == LearnerCandidate && len(learner) == len(actions):
		return learner
	case c.Kind == LearnerCandidate:
		return nil
	}
	p := appendZeros(j.scratch[i][:0], len(actions))
	if c.Kind == PolicyCandidate {
		p[j.advice[i]] = 1
	} else if a := slices.Index(actions, c.Action); c.Kind == AlwaysCandidate && a >= 0 {
		p[a] = 1
	} else {
		normalise(p)
	}
	j.scratch[i] = p
	return p
}

// Append appends the state for a mark; nothing without candidates.
func (j *Judge) Append(b []byte) []byte {
	if j.ledger == nil {
		return b
	}
	return j.ledger.Append(binary.AppendUvarint(b, uint64(j.since)))
}

// Restore makes a judge the one that appended b for a mark, in an epoch with these rules.
func (j *Judge) Restore(b []byte, epoch int64, rules *Rules) error {
	*j = Judge{}
	j.Begin(epoch, false, rules)
	if len(b) == 0 || j.ledger == nil {
		return nil
	}
	since, n := binary.Uvarint(b)
	if n <= 0 || int64(since) < 0 {
		return fmt.Errorf("candidates: %w", codec.ErrCorrupt)
	}
	j.since = int64(since)
	if err := j.ledger.Restore(b[n:]); err != nil {
		return fmt.Errorf("candidates: %w", errors.Join(err, codec.ErrCorrupt))
	}
	return nil
}

// heldOut reports whether a round of this id, or unit, is answered by the baseline although the mode is live. It is a
// function of the id alone, so that every process and every model holds out the same ids. Such a round is one of mode
// shadow: its propensities are the baseline's, and the learner's law is logged beside them.
func (d *Decider) heldOut(id string) bool {
	share := d.replica.epoch.Rules.HoldOut
	if share == 0 {
		return false
	}
	d.hashed = append(append(d.hashed[:0], "hindsight hold out "...), id...)
	sum := sha256.Sum256(d.hashed)
	return float64(binary.BigEndian.Uint64(sum[:])>>11)*0x1p-53 < share
}

// mixed returns the law of a round before its id is hashed: the baseline's with probability HoldOut, else the
// learner's. Candidates are judged with it, as it covers what either plays. nil: the log does not tell both.
func (j *Judge) mixed(actions []string, learner []float64) []float64 {
	share := j.rules.HoldOut
	if len(learner) != len(actions) {
		return nil
	}
	j.mix = j.mix[:0]
	for a, b := range j.base {
		j.mix = append(j.mix, float64(share*b)+float64((1-share)*learner[a]))
	}
	return j.mix
}
