package report

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"hindsight/internal/fit"
	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// Fitted is what fitting a class found, as the JSON of fit.
type Fitted struct {
	File  string `json:"file"`
	Bytes int    `json:"bytes"`
	*fit.Class
	Columns    int      `json:"columns"`
	Actions    int      `json:"actions"` // 0: any, by their features
	OfActions  int      `json:"action_columns"`
	Share      float64  `json:"surviving_share"`
	Played     []Played `json:"played,omitempty"`
	PlayedRows int      `json:"played_rows,omitempty"`
}

// Played is what a learner lost on the rows that nothing was fitted to.
type Played struct {
	Name     string   `json:"name"`
	MeanLoss *float64 `json:"mean_loss"`         // null where it is not known; by propensities where there are some
	Matched  *int64   `json:"matched,omitempty"` // rounds of a log that it is the mean of

	rewards *words.Rewards // what the mean is shown as
}

// NewPlayed returns what a run says of the learner of that name.
func NewPlayed(name string, r *replay.Result) Played {
	p := Played{Name: name, MeanLoss: r.MeanLoss, Matched: r.Matched, rewards: r.Rewards}
	if r.Replay != nil && r.MeanLoss != nil {
		snips := float64(r.Replay.SNIPS.Value)
		p.MeanLoss = &snips
	}
	return p
}

// Page makes the page of a class for a terminal.
func (r *Fitted) Page() *Page {
	actions := fmt.Sprintf("%d actions", r.Actions)
	if r.OfActions > 0 {
		actions = fmt.Sprintf("%d of any action", r.OfActions)
	}
	head := fmt.Sprintf("%s: %d functions (%d tried, %d too like another), %d columns, %s, %.1f MB\nfitted to %d "+
		"rows, judged on %d held out: square loss of the best constants %.4f", r.File, len(r.Functions),
		r.Tried, r.Alike, r.Columns, actions, float64(r.Bytes)/1e6, r.Rows, r.HeldOut, r.Constant)
	says := fmt.Sprintf("%d of %d functions (%.1f%%) are not refuted by the rows held out, at level %v.", r.Surviving,
		len(r.Functions), 100*r.Share, r.Alpha)
	if r.Share > .5 {
		says += "\n! Most survive: the rows held out are too few to tell the functions apart."
	}
	best := slices.MinFunc(r.Functions, func(a, b fit.Fitted) int { return cmp.Compare(a.HeldOut, b.HeldOut) })
	if best.HeldOut >= r.Constant {
		says += "\n! No function is better than constants: the columns say nothing of the losses, or the rows are " +
			"too few."
	}
	return brief(note(head), r.kinds(), note(says), r.learners(),
		note(fmt.Sprintf("In a model file: oracle: {kind: hedge, class: %s}", filepath.Base(r.File))))
}

// kinds says how good the functions of each kind are.
func (r *Fitted) kinds() *table {
	t := headed(1, "kind", "number", "best", "median", "worst", "surviving")
	for _, kind := range fit.Kinds() {
		var losses []float64
		survive := 0
		for i := range r.Functions {
			if f := &r.Functions[i]; f.Kind == kind {
				losses = append(losses, f.HeldOut)
				if f.Survives {
					survive++
				}
			}
		}
		if n := len(losses); n > 0 {
			loss := func(i int) string { return fmt.Sprintf("%.4f", losses[i]) }
			t.row(kind, fmt.Sprint(n), loss(0), loss(n/2), loss(n-1), fmt.Sprint(survive))
		}
	}
	return t
}

// learners says what was lost on the rows behind those that were fitted to.
func (r *Fitted) learners() *table {
	t := headed(2, "", "")
	t.Inset = true
	for _, p := range r.Played {
		t.Caption = fmt.Sprintf("mean %s on the %d rows behind them, without delay", r.Played[0].rewards.Of(),
			r.PlayedRows)
		loss := "not known"
		if p.MeanLoss != nil {
			loss = fmt.Sprintf("%.4f", p.rewards.Shown(*p.MeanLoss))
		}
		if p.Matched != nil {
			loss += fmt.Sprintf("  over %d rows that drew the action of the log", *p.Matched)
		}
		t.row(p.Name, loss)
	}
	return t
}
