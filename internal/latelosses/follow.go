package latelosses

import (
	"strings"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// Follow counts losses in time and late ones from what a joiner emits, or from its log: feedback and
// rejects in the order of the cuts that they follow from. Of a round that was skipped or imputed the
// first loss that came late counts, whether its reject comes before or after the feedback. What a
// follower has seen before it began it does not know.
type Follow struct {
	Losses Losses

	rules  func(epoch int64) *loop.Rules
	dedup  int64
	rounds map[string]*silence
	order  []*silence // by n
	n      int64      // of the last feedback
}

// silence is a round without a loss so far.
type silence struct {
	id       string
	n        int64 // of its feedback; before that of the feedback before its first late loss
	epoch    int64
	released bool
	late     []value // before its feedback
}

// mostLate is how many late losses are kept of a round that has no feedback yet: the first one counts
// unless it is out of range.
const mostLate = 8

// NewFollow returns a follower that remembers rounds for so many feedbacks.
func NewFollow(dedup int64, rules func(epoch int64) *loop.Rules) *Follow {
	return &Follow{rules: rules, dedup: dedup, rounds: map[string]*silence{}}
}

// AddFeedback takes the next feedback.
func (w *Follow) AddFeedback(f *codec.Feedback) {
	w.n = f.N
	w.forget()
	switch {
	case f.Fate == codec.Observed:
		w.Losses.AddObserved(f.Epoch, f.Loss)
		delete(w.rounds, f.ID)
	case f.Fate != codec.Skipped && f.Fate != codec.Imputed || f.Reason == codec.ReasonDuplicateID:
	default:
		s := w.round(f.ID)
		s.released, s.epoch = true, f.Epoch
		for _, v := range s.late {
			w.count(s, v)
		}
		s.late = nil
	}
}

// AddReject takes the next reject.
func (w *Follow) AddReject(r *codec.Reject) {
	var o codec.Outcome
	if r.Reason != codec.ReasonLate || codec.ParseOutcome(&o, r.Bytes) != nil {
		return // or its bytes were cut
	}
	if o.Kind != codec.Loss && o.Kind != codec.Reward {
		return
	}
	s := w.round(r.ID)
	if v := (value{o.Kind, o.Value}); s.released {
		w.count(s, v)
	} else if len(s.late) < mostLate {
		s.late = append(s.late, v)
	}
}

// round returns what is known of a round.
func (w *Follow) round(id string) *silence {
	s := w.rounds[id]
	if s == nil {
		s = &silence{id: strings.Clone(id), n: w.n}
		w.rounds[s.id] = s
		w.order = append(w.order, s)
	}
	return s
}

// count counts the first loss of a round that was released without one.
func (w *Follow) count(s *silence, v value) {
	if w.rounds[s.id] == s && w.Losses.AddLate(s.epoch, w.rules(s.epoch), v.kind, v.value) {
		delete(w.rounds, s.id)
	}
}

// forget drops rounds of which the joiner does not know any more, too.
func (w *Follow) forget() {
	for len(w.order) > 0 && w.order[0].n <= w.n-w.dedup {
		if s := w.order[0]; w.rounds[s.id] == s {
			delete(w.rounds, s.id)
		}
		w.order = w.order[1:]
	}
}
