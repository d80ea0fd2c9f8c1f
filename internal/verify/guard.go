package verify

import (
	"bytes"
	"fmt"
	"strings"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// guardCheck follows the guard of the learner against the baseline, which is a function of
// the feedback log, and compares it with what marks and switches say.
type guardCheck struct {
	guard loop.Guard
	known bool // all that it has seen was read
}

// begin takes an epoch record.
func (g *guardCheck) begin(f *fateCheck, r *stream.Record, rec *codec.Epoch) {
	rules := f.v.rules(rec.Epoch)
	if rules == nil {
		g.known = false
		return
	}
	if byGuard(rec) && g.known && g.guard.Sums().Raised == 0 {
		f.v.differ(at(f.feedback, r, "cause", "not the guard, which has not alarmed", rec.Cause))
	}
	if rec.Continues == 0 {
		g.known = true
	}
	g.guard.Begin(rec.Epoch, rec.Continues > 0, rules)
}

// mark compares what a mark says of the guard.
func (g *guardCheck) mark(f *fateCheck, r *stream.Record, m *codec.FeedbackMark) {
	if !g.known {
		if n := len(m.Epochs); n > 0 && f.v.rules(m.Epochs[n-1].Epoch) != nil {
			last := m.Epochs[n-1].Epoch
			g.known = g.guard.Restore(m.Guard, last, f.v.rules(last)) == nil
		}
		return
	}
	if want := g.guard.Append(nil); !bytes.Equal(want, m.Guard) {
		f.v.differ(at(f.feedback, r, "guard", fmt.Sprintf("%x", want), fmt.Sprintf("%x", m.Guard)))
		g.known = false // told once
	}
}

// byGuard reports whether the guard began an epoch.
func byGuard(rec *codec.Epoch) bool {
	by, _, _ := strings.Cut(rec.Cause, ":")
	return by == "guard"
}
