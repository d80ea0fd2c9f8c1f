package tail

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"hindsight/internal/watch"
	"hindsight/pkg/codec"
)

// line is how a system does: what was read since the last line, and what the last 1,000 rounds were worth. The first
// lines have what was in the log before it was followed, too. What is not known is nil.
type progressLine struct {
	Time      time.Time        `json:"time"`
	Seconds   float64          `json:"seconds"`   // since the last line
	Decisions int64            `json:"decisions"` // since the last line, as all counts
	Appended  int64            `json:"appended"`  // of them, those that were not there when [Open] looked
	Fates     map[string]int64 `json:"fates"`
	Rejects   map[string]int64 `json:"rejects"` // by topic and reason
	Waiting   *int64           `json:"waiting"` // decisions without feedback, now

	DelayP50  *float64 `json:"delay_p50_s"` // from decision to outcome, of all observed rounds that were read
	DelayP99  *float64 `json:"delay_p99_s"`
	JoinRatio *float64 `json:"join_ratio"` // of the last rounds: observed, of those not withdrawn
	Loss      *float64 `json:"loss"`       // of the last rounds that have one: mean
	Uniform   *float64 `json:"uniform"`    // what uniform play would have lost in them, estimated
}

// line returns what came since the last one.
func (t *Tail) Line() progressLine {
	view := t.scope.View()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	l := progressLine{Time: now.UTC(), Seconds: now.Sub(t.asked).Seconds(),
		Decisions: t.now.decisions - t.was.decisions,
		Appended:  t.now.appended - t.was.appended, Fates: map[string]int64{}, Rejects: map[string]int64{},
		DelayP50: watch.Known(view.Delays.Quantile(.5)), DelayP99: watch.Known(view.Delays.Quantile(.99)),
		JoinRatio: watch.Known(view.Recent.JoinRatio), Loss: watch.Known(view.Recent.Loss),
		Uniform: watch.Known(view.Recent.Uniform)}
	for f := codec.Observed; f <= codec.WithdrawnRound; f++ {
		l.Fates[f.String()] = t.now.fates[f] - t.was.fates[f]
	}
	for reason, n := range t.now.rejects {
		if n -= t.was.rejects[reason]; n > 0 {
			l.Rejects[reason] = n
		}
	}
	if n := t.waiting(); n >= 0 {
		l.Waiting = &n
	}
	t.was, t.asked = t.now.clone(), now
	return l
}

// Printer writes lines for people or, as JSON, for programs.
type Printer struct {
	W    io.Writer
	JSON bool
	n    int
}

// headEvery is how many lines are between two headings.
const headEvery = 20

// Print writes one line.
func (p *Printer) Print(l *progressLine) error {
	if p.JSON {
		return json.NewEncoder(p.W).Encode(l)
	}
	if p.n%headEvery == 0 {
		if _, err := fmt.Fprintf(p.W, "%-8s %9s %9s %9s %8s %9s %9s %8s %8s %7s %7s %7s  %s\n", "UTC", "decided/s",
			"observed", "imputed", "skipped", "withdrawn", "waiting",
			"p50", "p99", "joined", "loss", "uniform", "rejects"); err != nil {
			return err
		}
	}
	p.n++
	rate := 0.0
	if l.Seconds > 0 {
		rate = float64(l.Appended) / l.Seconds
	}
	waiting := "?"
	if l.Waiting != nil {
		waiting = fmt.Sprint(*l.Waiting)
	}
	_, err := fmt.Fprintf(p.W, "%s %9.1f %9d %9d %8d %9d %9s %8s %8s %7s %7s %7s  %s\n", l.Time.Format(time.TimeOnly),
		rate,
		l.Fates["observed"], l.Fates["imputed"], l.Fates["skipped"], l.Fates["withdrawn"], waiting, seconds(l.DelayP50),
		seconds(l.DelayP99),
		number(l.JoinRatio, "%.0f%%", 100), number(l.Loss, "%.4f", 1), number(l.Uniform, "%.4f", 1), rejects(l.Rejects))
	return err
}

func number(x *float64, format string, scale float64) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf(format, *x*scale)
}

// seconds shows a duration with about three digits.
func seconds(x *float64) string {
	if x == nil {
		return "–"
	}
	d := time.Duration(*x * float64(time.Second))
	unit := time.Microsecond
	for unit < d/100 {
		unit *= 10
	}
	return d.Round(unit / 10).String()
}

func rejects(by map[string]int64) string {
	var out []string
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		out = append(out, fmt.Sprintf("%s %d", reason, by[reason]))
	}
	if len(out) == 0 {
		return "–"
	}
	return strings.Join(out, ", ")
}
