package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"hindsight/internal/words"
	"hindsight/pkg/codec"
)

// Write writes the explanation for people.
func (e *Explanation) Write(w io.Writer) error {
	out := &printer{w: w}
	out.line("round %s of model %s", e.ID, e.Model)
	e.writeContext(out)
	e.writeDecision(out)
	e.writeOutcomes(out)
	e.writeFeedback(out)
	e.writeNamed(out)
	e.writeTaught(out)
	out.line("recomputed   %s", e.Check)
	for _, n := range e.Notes {
		out.line("note         %s", n)
	}
	return out.err
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// table writes rows, the first of which is the heading.
func (p *printer) table(rows [][]string) {
	if p.err == nil {
		p.err = (&words.Table{Indent: "               ", Rows: rows}).Write(p.w, words.NoLimit)
	}
}

func (e *Explanation) writeContext(p *printer) {
	c := &e.Context
	if c.Source == "request" {
		p.line("context      came by request, %d bytes", c.Bytes)
	} else {
		kept := ""
		if !c.Kept {
			kept = "; retention has dropped the record, or it is another"
		}
		p.line("context      came by topic: contexts[%d]@%d, %d bytes, at %s%s", c.Partition, c.Offset, c.Bytes,
			c.LogTime, kept)
	}
	if c.Text != "" {
		p.line("             %s", c.Text)
	}
	if c.NotRead != "" {
		p.line("             not read: %s", c.NotRead)
	}
}

func (e *Explanation) writeDecision(p *printer) {
	d, h := &e.Decision, &e.Had
	p.line("decision     round %d of partition %d, decisions[%d]@%d, at %s", d.N, d.Partition, d.Partition,
		d.Offset, d.LogTime)
	last := ""
	if h.LastAt != 0 {
		last = fmt.Sprintf(" (of %s)", h.LastAt)
	}
	p.line("the model    epoch %d, after feedback %d%s; rounds learned in this epoch: %d", d.Epoch, h.LearnedThrough,
		last, h.Learned)
	if h.OwnThrough != nil {
		had := "no round"
		if *h.OwnThrough > 0 {
			had = fmt.Sprintf("rounds 1 to %d", *h.OwnThrough)
		}
		p.line("             feedback of this partition: %s known, %d outstanding", had, *h.Outstanding)
	}
	law := fmt.Sprintf("drew %s, with probability %s", d.Action, optional(d.Propensity))
	if d.Mode == codec.External.String() {
		law = fmt.Sprintf("none: %s was assigned, with probability %s", d.Action, optional(d.Propensity))
		if d.By != "" {
			law += ", by " + d.By
		}
	}
	if d.Draw != nil {
		law += fmt.Sprintf(" (the draw was %.6f)", *d.Draw)
	}
	p.line("the draw     %s", law)
	if d.Mode != codec.Live.String() {
		p.line("why          mode %s: %s", d.Mode, d.Why)
	} else if d.Gamma > 0 {
		text := "γ " + short(d.Gamma)
		if d.Mu != nil {
			text += ", μ " + short(*d.Mu)
		}
		p.line("why          %s", text)
		p.line("             %s", d.Why)
	} else if d.Why != "" {
		p.line("why          %s", d.Why)
	}
	if len(d.Prices) > 0 {
		p.line("prices      %s", values(d.Prices))
	}
	heading, shadow := []string{"", "action", "propensity", "expected loss"}, d.Mode == codec.Shadow.String()
	if shadow {
		heading = append(heading, "learner's own")
	}
	rows := [][]string{heading}
	for _, a := range d.Actions {
		mark := ""
		if a.Drawn {
			mark = "→"
		}
		cells := []string{mark, a.Action, optional(a.Propensity), optional(a.Predicted)}
		if shadow {
			cells = append(cells, optional(a.Would))
		}
		rows = append(rows, cells)
	}
	p.table(rows)
}

func (e *Explanation) writeOutcomes(p *printer) {
	if len(e.Outcomes) == 0 {
		p.line("outcome      none found")
	}
	for i := range e.Outcomes {
		o := &e.Outcomes[i]
		text := o.Kind
		if o.Value != nil {
			text += " " + short(*o.Value)
		}
		text += values(o.Values)
		if text == "" {
			text = "unreadable"
		}
		if o.Action != "" {
			text += " for " + o.Action
		}
		became := o.Became
		if o.Detail != "" {
			became += " (" + o.Detail + ")"
		}
		p.line("outcome      %s, outcomes[%d]@%d, at %s: %s", text, o.Partition, o.Offset, o.LogTime, became)
	}
}

// values shows named numbers.
func values(all []value) string {
	var text []string
	for _, v := range all {
		x := "null"
		if v.Value != nil {
			x = short(*v.Value)
		}
		text = append(text, v.Name+" "+x)
	}
	if text == nil {
		return ""
	}
	return " " + strings.Join(text, ", ")
}

func (e *Explanation) writeNamed(p *printer) {
	for _, n := range e.Named {
		text := n.Name + " " + n.Fate
		if n.Value != nil {
			text += ", " + short(*n.Value)
		}
		if n.Offset >= 0 {
			text += fmt.Sprintf(", by outcomes[%d]@%d", n.Partition, n.Offset)
		}
		if n.Stage > 0 {
			text += fmt.Sprintf("; learned in stage %d, before the round had its fate", n.Stage)
		}
		p.line("             %s", text)
	}
}

func (e *Explanation) writeFeedback(p *printer) {
	f := e.Feedback
	if f == nil {
		p.line("fate         none yet: the round waits for its outcome, or for earlier rounds")
		return
	}
	text := f.Fate
	if f.Reason != "" {
		text += " (" + f.Reason + ")"
	}
	if f.Fate == "observed" || f.Fate == "imputed" {
		text += ", loss " + short(f.Loss)
	}
	p.line("fate         %s; closed %s after the decision, at %s", text, span(f.Delay), f.ClosedAt)
	p.line("feedback     %d, feedback[0]@%d, written %s later", f.N, f.Offset, span(f.Waited))
	if f.Cut > 0 {
		p.line("             computed from what the joiner had read by cut %d", f.Cut)
	}
	p.line("             %d feedback records lie between what the decision knew and this one", f.Overtaken)
}

func (e *Explanation) writeTaught(p *printer) {
	switch {
	case e.Taught == nil:
		return
	case !e.Taught.Learned:
		p.line("learned      nothing: that takes a loss, and a model that is neither paused nor in a new epoch")
		return
	}
	p.line("learned      predictions for this context, before and after this feedback:")
	rows := [][]string{{"action", "expected loss before", "after", "propensity before", "after"}}
	for _, c := range e.Taught.Actions {
		rows = append(rows, []string{c.Action, optional(c.PredictedBefore), optional(c.PredictedAfter),
			short(c.PropensityBefore), short(c.PropensityAfter)})
	}
	p.table(rows)
}

func short(x float64) string { return fmt.Sprintf("%.6g", x) }

func optional(x *float64) string {
	if x == nil {
		return "–"
	}
	return short(*x)
}

func span(seconds float64) string {
	return time.Duration(seconds * 1e9).Round(time.Millisecond).String()
}
