package latelosses

import (
	"strings"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// Follow counts losses in time and late ones from what a joiner emits, or from its log: feedback and
// rejects in the order of the cuts that they follow from. Of a round that was skipped or imputed the
// first loss that came late counts, whether its reject comes before or after the feedback. What a
// follower has seen before it began it does not know. Named outcomes count each by itself.
type Follow struct {
	Losses ByOutcome

	rules  func(epoch int64) *loop.Rules
	dedup  int64
	rounds map[string]*silence // by round and outcome
	order  []*silence          // by n
	n      int64               // of the last feedback
}

// silence is a round without a loss so far, or without a named outcome.
type silence struct {
	key      string
	n        int64 // of its feedback; before that of the feedback before its first late loss
	epoch    int64
	released bool
	late     []value  // before its feedback
	also     []string // other keys: of the unit of the draw, of its repeats
}

// mostLate is how many late losses are kept of a round that has no feedback yet: the first one counts
// unless it is out of range.
const mostLate = 8

// NewFollow returns a follower that remembers rounds for so many feedbacks.
func NewFollow(dedup int64, rules func(epoch int64) *loop.Rules) *Follow {
	return &Follow{Losses: ByOutcome{}, rules: rules, dedup: dedup, rounds: map[string]*silence{}}
}

// AddFeedback takes the next feedback.
func (w *Follow) AddFeedback(f *codec.Feedback) {
	w.n = f.N
	w.forget()
	if f.Stage > 0 {
		return
	}
	rules := w.rules(f.Epoch)
	w.Losses.AddInTime(f, rules)
	if f.Fate == codec.Observed {
		delete(w.rounds, f.ID)
	}
	for name := range silences(f) {
		s := w.round(keyOf(f.ID, name))
		s.released, s.epoch = true, f.Epoch
		for _, v := range s.late {
			w.count(s, v)
		}
		s.late = nil
	}
	if f.Unit != "" && f.Mode != codec.External {
		w.tie(f, rules)
	}
}

// tie makes the unit of a draw a name of its silences, and the id of a repeat one of those of its draw.
func (w *Follow) tie(f *codec.Feedback, rules *loop.Rules) {
	from, to := f.ID, unitMark+f.Unit
	if f.First.N > 0 {
		from, to = to, from
	}
	w.alias(keyOf(from, ""), keyOf(to, ""))
	for k := 0; rules != nil && k < len(rules.Named); k++ {
		w.alias(keyOf(from, rules.Named[k].Name), keyOf(to, rules.Named[k].Name))
	}
}

// alias makes another key one of a silence, which has what came late for the key before. Without a silence the key is
// of nothing.
func (w *Follow) alias(key, other string) {
	s, had := w.rounds[key], w.rounds[other]
	if delete(w.rounds, other); s == nil {
		return
	}
	other = strings.Clone(other)
	w.rounds[other], s.also = s, append(s.also, other)
	for i := 0; had != nil && !had.released && i < len(had.late); i++ {
		w.count(s, had.late[i])
	}
}

// AddReject takes the reject of an outcome that was not rejected before.
func (w *Follow) AddReject(r *codec.Reject) {
	of, values := lateValues(r)
	for _, v := range values {
		s := w.round(keyOf(of, v.name))
		if s.released {
			w.count(s, v)
		} else if len(s.late) < mostLate {
			s.late = append(s.late, v)
		}
	}
}

func (w *Follow) round(key string) *silence {
	s := w.rounds[key]
	if s == nil {
		s = &silence{key: strings.Clone(key), n: w.n}
		w.rounds[s.key] = s
		w.order = append(w.order, s)
	}
	return s
}

// count counts a late loss, the first of its round.
func (w *Follow) count(s *silence, v value) {
	if w.rounds[s.key] == s && w.Losses.addLate(s.epoch, w.rules(s.epoch), &v) {
		delete(w.rounds, s.key)
	}
}

// forget drops rounds of which the joiner does not know any more, too.
func (w *Follow) forget() {
	for len(w.order) > 0 && w.order[0].n <= w.n-w.dedup {
		if s := w.order[0]; w.rounds[s.key] == s {
			delete(w.rounds, s.key)
		}
		for _, other := range w.order[0].also {
			if w.rounds[other] == w.order[0] {
				delete(w.rounds, other)
			}
		}
		w.order = w.order[1:]
	}
}
