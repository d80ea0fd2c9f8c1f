package watch

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"hindsight/internal/words"
	"hindsight/pkg/codec"
)

// keptRejects is how many of the last rejects are kept, some of each reason.
const keptRejects = 20

// keptReject is a record that was rejected, without its bytes.
type keptReject struct {
	Topic     string
	Partition int
	Offset    int64
	Time      int64 // log time of the record, ns
	Reason    string
	Detail    string // its beginning ([codec.Reject.Short])
	ID        string // of the round; "": it could not be read
}

// lineHead is the round that all others of its line wait for.
type lineHead struct {
	Partition int
	N         int64
	Time      int64 // log time of its decision, ns
	ID        string
}

// Scope is what a process sees of its loop. Deciders and joiners of one process share it: what several of them tell
// counts once. It is safe for concurrent use, and takes a record without allocating. A nil *Scope takes no feedback.
type Scope struct {
	mu        sync.Mutex
	rounds    []int64 // by partition: the last decision taken
	decisions decisionWindow
	draws     drawCheck
	assigned  Assigned

	liveEpoch int64 // the last in which the learner decided

	last     int64 // feedback taken
	fates    [codec.WithdrawnRound + 1]int64
	feedback feedbackWindow
	matches  matchWindow
	losses   series
	live     worthSums // rounds that the learner decided
	delays   Histogram // seconds from decision to outcome
	released Histogram // feedbacks that were released and not learned at the decision (σ)

	spends       []spendWindow // by budget
	spentThrough int64         // feedback learned when they were looked at

	epoch   int64
	rewards *words.Rewards // of it

	rejects []keptReject // oldest first

	headID  []byte
	head    lineHead // without ID
	waiting bool     // head is meaningful
}

// NewScope returns one that has seen nothing.
func NewScope() *Scope {
	return &Scope{delays: Histogram{Unit: 1e-3}, released: Histogram{Unit: 1}}
}

// Decision takes a decision, of each partition in order; one that was taken before counts no
// more. It retains nothing of it.
func (s *Scope) Decision(d *codec.Decision) {
	if d == nil || d.Partition < 0 || d.Action < 0 || d.Action >= len(d.Actions) ||
		d.Action >= len(d.Propensities) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for d.Partition >= len(s.rounds) {
		s.rounds = append(s.rounds, 0)
	}
	if d.N <= s.rounds[d.Partition] {
		return
	}
	s.rounds[d.Partition] = d.N
	if d.Mode == codec.External {
		s.assigned.add(d)
		return
	}
	s.decisions.add(d.Propensities, d.Actions[d.Action], s.besides(d.Mode, d.Epoch, d.Would, d.Propensities, d.Action))
	s.draws.add(d.Propensities, d.Action)
}

// Feedback takes a feedback, in the order of their log; one that was taken before counts no
// more. It retains nothing of it.
func (s *Scope) Feedback(f *codec.Feedback) {
	if s == nil || f.Fate < codec.Observed || f.Fate > codec.WithdrawnRound || f.Action < 0 ||
		f.Action >= min(len(f.Propensities), len(f.Actions)) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.N <= s.last {
		return
	}
	s.last = f.N
	s.fates[f.Fate]++
	s.released.add(float64(max(0, f.N-1-f.LearnedThrough)))
	if f.Fate == codec.Observed {
		s.delays.add(max(0, time.Duration(f.ClosedAt-f.Time).Seconds()))
	}
	if f.Mode == codec.External {
		return
	}
	r := released{fate: f.Fate, loss: f.Loss, shadow: s.besides(f.Mode, f.Epoch, f.Would, f.Propensities,
		f.Action)}
	if p := f.Propensities[f.Action]; p > 0 {
		r.weight = 1 / (float64(len(f.Propensities)) * p)
	}
	s.feedback.add(r, f.Actions[f.Action])
	if f.Fate == codec.Observed || f.Fate == codec.Imputed {
		s.losses.add(f.Time, f.Loss, r.weight)
		if f.Mode == codec.Live {
			s.live.add(f.Loss, r.weight)
		}
	}
}

// Assigned counts decisions that another system made. What a scope says of play, draws and losses leaves them out.
type Assigned struct {
	Rounds  int64
	Unknown int64 // of them, those without a propensity: no estimate takes them
}

func (a *Assigned) add(d *codec.Decision) {
	a.Rounds++
	if d.Unknown == codec.UnknownLaw {
		a.Unknown++
	}
}

// Reject takes a reject.
func (s *Scope) Reject(r *codec.Reject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rejects) == keptRejects {
		s.rejects = slices.Delete(s.rejects, s.commonest(), s.commonest()+1)
	}
	s.rejects = append(s.rejects, keptReject{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Time,
		Reason: r.Reason, Detail: r.Short(), ID: strings.Clone(r.ID)})
}

// Worth says that rounds of an epoch have rewards, or nil. Of several who tell of one epoch, those
// who know of rewards are believed.
func (s *Scope) Worth(epoch int64, rewards *words.Rewards) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch > s.epoch || epoch == s.epoch && rewards != nil {
		s.epoch, s.rewards = epoch, rewards
	}
}

// commonest returns the place of the oldest reject of the reason that most rejects have, so that
// many of one reason do not push out the few of another.
func (s *Scope) commonest() (at int) {
	of := map[[2]string]int{}
	for _, r := range s.rejects {
		of[[2]string{r.Topic, r.Reason}]++
	}
	for i, r := range s.rejects {
		if of[[2]string{r.Topic, r.Reason}] > of[[2]string{s.rejects[at].Topic, s.rejects[at].Reason}] {
			at = i
		}
	}
	return at
}

// wait takes the round at the head of the line; partition -1: no round waits.
func (s *Scope) wait(h lineHead) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headID = append(s.headID[:0], h.ID...)
	s.head, s.waiting = h, h.Partition >= 0
	s.head.ID = "" // its memory is the joiner's
}

// leastDelays is how many delays a median is of.
const leastDelays = 30

// usual returns the share of all rounds released whose outcome came in time, and the median of
// those outcomes' delays in seconds; NaN of no rounds, and of fewer than 30 delays.
func (s *Scope) usual() (share, delay float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all int64
	for _, n := range s.fates {
		all += n
	}
	share, delay = float64(s.fates[codec.Observed])/float64(all), math.NaN()
	if s.delays.N >= leastDelays {
		delay = s.delays.Quantile(.5)
	}
	return share, delay
}

// View is all that a scope has seen.
type View struct {
	Actions     []playedAction         // of the last decisions, the most frequent first
	Worths      map[string]actionWorth // of the last rounds released, by action
	Match       matchRate              // of the last rounds of an apprentice
	Exploration exploration
	Assigned    Assigned
	Draws       int64
	Evidence    float64 // that draws do not follow their laws
	Refuted     bool
	Shadow      shadowWorth // of the last rounds in mode shadow

	Fates     map[codec.Fate]int64
	Recent    Recent
	Live      Worth          // of all rounds that the learner decided
	Rewards   *words.Rewards // what losses are shown as; nil: as they are
	LossStart int64          // log time at which Losses begins, ns
	LossWidth int64          // of a bucket, ns
	Losses    []lossBucket
	Delays    Histogram // seconds from decision to outcome
	Released  Histogram // rounds: feedbacks not yet learned at the decision

	Spends []Spend // of budgets

	Rejects []keptReject // the last ones, some of each reason, newest first
	Head    *lineHead    // nil: no round waits, or no joiner is here
}

// View returns a copy of all.
func (s *Scope) View() View {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := View{Actions: s.decisions.actions(), Worths: s.feedback.worths(), Match: s.match(),
		Exploration: s.decisions.exploration(), Assigned: s.assigned, Draws: s.draws.count(),
		Evidence: s.draws.evidence(),
		Refuted:  s.draws.refuted(), Shadow: s.shadow(), Fates: map[codec.Fate]int64{},
		Recent: s.feedback.recent(), Live: s.live.worth(), Rewards: s.rewards,
		LossStart: s.losses.start, LossWidth: s.losses.width,
		Losses: append([]lossBucket{}, s.losses.buckets[:s.losses.used]...), Delays: s.delays, Released: s.released}
	for f := codec.Observed; f <= codec.WithdrawnRound; f++ {
		v.Fates[f] = s.fates[f]
	}
	v.Spends = s.spending()
	v.Rejects = slices.Clone(s.rejects)
	slices.Reverse(v.Rejects)
	if s.waiting {
		h := s.head
		h.ID = string(s.headID)
		v.Head = &h
	}
	return v
}
