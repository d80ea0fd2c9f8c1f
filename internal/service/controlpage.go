package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// ModePage is the JSON of /mode.
type ModePage struct {
	Mode    string `json:"mode"`
	Epoch   int64  `json:"epoch"`
	Version int64  `json:"version"` // of the model file
	Learner int64  `json:"learner"` // the epoch in which the learner at work began
	Cause   string `json:"cause"`   // of this epoch: admin or guard, and the reason; taught; "": the model file
	// Of a POST: the least epoch of the deciders of this process when the answer was
	// written. Deciders elsewhere follow the log by themselves.
	Deciders int64 `json:"deciders,omitempty"`
	// of a POST of candidates: the model file that the next start needs
	Model string `json:"model,omitempty"`
}

// GuardPage is the JSON of /guard.
type GuardPage struct {
	On       bool    `json:"on"`
	WorseBy  float64 `json:"worse_by"`
	Alpha    float64 `json:"alpha"`
	Then     string  `json:"then"` // alarm, or the mode that an alarm switches to
	Epoch    int64   `json:"epoch"`
	Rounds   int64   `json:"rounds"`   // decided live since that epoch began, with a loss
	Learner  float64 `json:"learner"`  // mean loss
	Baseline float64 `json:"baseline"` // what the baseline would have lost, by importance weights
	Excess   float64 `json:"excess"`   // what the learner loses over it, as the guard counts
	// mean importance weight: about 1 where the learner plays all that the baseline would
	Coverage float64 `json:"coverage"`
	EValue   float64 `json:"e_value"` // the largest so far: evidence that it is worse by more than worse_by
	PValue   float64 `json:"p_value"` // 1/e_value, at most 1: valid at any time
	Alarm    bool    `json:"alarm"`   // raised since that epoch began, or what has switched the mode to the one at work
	Raised   int64   `json:"raised"`  // the feedback at which it alarmed; 0: it has not

	LoseAtMost float64 `json:"lose_at_most,omitempty"` // of the baseline's gain, which no round may lose more of
	Held       int64   `json:"held,omitempty"`         // rounds in which that held the learner back
	// loss that the learner would have saved there, by importance weights
	Forgone float64 `json:"forgone,omitempty"`
}

// guardPage returns what the guard says in an epoch that it began itself when it alarmed at feedback raised;
// 0: it did not. Such an alarm goes on until somebody else begins an epoch: the guard has begun anew with its own.
func guardPage(g *loop.Guard, raised int64) GuardPage {
	s, rules := g.Sums(), g.Rules()
	if rules == nil || !rules.Guard.On() {
		return GuardPage{Then: "alarm", PValue: 1}
	}
	n := float64(max(s.Rounds, 1))
	p := GuardPage{On: true, WorseBy: rules.Guard.Margin, Alpha: rules.Guard.Alpha, Then: "alarm", Epoch: s.Epoch,
		Rounds: s.Rounds, Learner: s.Learner / n, Baseline: s.Baseline / n, Excess: s.Excess / n,
		Coverage: s.Weight / n,
		EValue:   oracle.Exp(math.Min(s.Peak, 600)), LoseAtMost: rules.Guard.LoseAtMost, Held: s.Held,
		Forgone: s.Forgone}
	p.Raised = cmp.Or(s.Raised, raised)
	p.Alarm = p.Raised > 0
	p.PValue = math.Min(1, 1/p.EValue)
	if rules.Guard.Then != codec.Live {
		p.Then = rules.Guard.Then.String()
	}
	return p
}

// Mode answers GET /mode.
func (c *Control) Mode(w http.ResponseWriter, _ *http.Request) { answerSeen(c, w, &c.mode) }

// Guard answers GET /guard.
func (c *Control) Guard(w http.ResponseWriter, _ *http.Request) { answerSeen(c, w, &c.guard) }

// answerSeen answers with one of the pages that the joiner at work here keeps up to date.
func answerSeen[T any](c *Control, w http.ResponseWriter, seen *T) {
	c.mu.Lock()
	page, there := *seen, c.joiner != nil
	c.mu.Unlock()
	if !there {
		answer(w, http.StatusServiceUnavailable, errElsewhere, nil)
		return
	}
	answer(w, http.StatusOK, nil, &page)
}

var errNotJSON = errors.New("send a JSON object with the header Content-Type: application/json")

// SwitchMode answers POST /mode with {"mode": "paused", "reason": "…"}. i tells how far the
// deciders of this process are; it may be nil.
func (c *Control) SwitchMode(i *Insight) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var ask struct {
			Mode   string `json:"mode"`
			Reason string `json:"reason"`
		}
		if !readOrder(w, r, &ask) {
			return
		}
		mode, err := codec.ParseMode(ask.Mode)
		if err != nil {
			answer(w, http.StatusBadRequest, err, nil)
			return
		}
		epoch, err := c.Switch(r.Context(), mode, ask.Reason)
		c.answer(w, r, i, epoch, "", err)
	}
}

// RenewModel answers POST /model: the model file is read again.
func (c *Control) RenewModel(i *Insight) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !readOrder(w, r, &struct{}{}) {
			return
		}
		answerLate(w)
		epoch, err := c.Renew(r.Context())
		c.answer(w, r, i, epoch, "", err)
	}
}

// JudgeOthers answers POST /candidates with {"candidates": […], "promote": {…}}, keys of the model file: the next
// version of the model judges those. Without promote the rule stays.
func (c *Control) JudgeOthers(i *Insight) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Candidates, Promote any }
		if !readOrder(w, r, &ask) {
			return
		}
		candidates, _ := json.Marshal(ask.Candidates) // what was read is written
		promote, _ := json.Marshal(ask.Promote)
		epoch, model, err := c.judgeOthers(r.Context(), candidates, promote)
		c.answer(w, r, i, epoch, model, err)
	}
}

// answerLate lets an answer take as long as it takes: a new model may first be taught all that the log keeps.
func answerLate(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a writer that cannot has no deadline
}

// readOrder reads the body of a POST. The admin port authenticates its client; a page of another site cannot send
// this content type from a browser.
func readOrder(w http.ResponseWriter, r *http.Request, dst any) bool {
	if r.Header.Get("Content-Type") != "application/json" {
		answer(w, http.StatusUnsupportedMediaType, errNotJSON, nil)
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096))
	d.DisallowUnknownFields()
	if err := d.Decode(dst); err != nil {
		answer(w, http.StatusBadRequest, fmt.Errorf("%w: %w", errNotJSON, err), nil)
		return false
	}
	if _, err := d.Token(); err != io.EOF {
		answer(w, http.StatusBadRequest, errNotJSON, nil)
		return false
	}
	return true
}

// answer tells what became of an order, when the deciders of this process follow it or soon after.
func (c *Control) answer(w http.ResponseWriter, r *http.Request, i *Insight, epoch int64, model string, err error) {
	switch {
	case errors.Is(err, errElsewhere), errors.Is(err, errOvertaken), errors.Is(err, context.DeadlineExceeded):
		answer(w, http.StatusServiceUnavailable, err, nil)
		return
	case errors.Is(err, follow.ErrModel), errors.Is(err, errNoFile):
		answer(w, http.StatusConflict, err, nil)
		return
	case err != nil:
		answer(w, http.StatusInternalServerError, err, nil)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), switchWait)
	defer cancel()
	deciders := i.awaitEpoch(ctx, epoch)
	c.mu.Lock()
	page := c.mode
	c.mu.Unlock()
	page.Deciders, page.Model = cmp.Or(deciders, page.Deciders), model
	answer(w, http.StatusOK, nil, &page)
}

// awaitEpoch waits until the deciders of this process work in an epoch, and returns the
// least in which one does; 0 if there is none.
func (i *Insight) awaitEpoch(ctx context.Context, epoch int64) int64 {
	for {
		least := i.leastEpoch()
		if least == 0 || least >= epoch {
			return least
		}
		select {
		case <-ctx.Done():
			return least
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (i *Insight) leastEpoch() (least int64) {
	if i == nil {
		return 0
	}
	for _, d := range i.atWork() {
		if m := d.at.definition.Load(); m != nil && (least == 0 || m.Rec.Epoch < least) {
			least = m.Rec.Epoch
		}
	}
	return least
}
