package verify

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"hindsight/internal/latelosses"
	"hindsight/pkg/stream"
)

// Exit codes of `replayer verify`, which ends with 2 after wrong usage.
const (
	Identical   = 0
	Different   = 1
	TooOld      = 3
	CouldNotRun = 4
)

// Difference is one field of one record that is not what it should be.
type Difference struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Offset    int64  `json:"offset"`
	Time      int64  `json:"time"`  // log time of the record, ns
	Round     int64  `json:"round"` // N of the decision or feedback, 0 where there is none
	ID        string `json:"id,omitempty"`
	Field     string `json:"field"`
	Want      string `json:"want"`
	Got       string `json:"got"`

	foreign bool // the service did not write the record, or it is damaged
}

// Tally counts records of one kind.
type Tally struct {
	Records int64 `json:"records"`
	Checked int64 `json:"checked"` // recomputed and compared, whatever came of it
	TooOld  int64 `json:"too_old"` // what they follow from is no longer kept, or may have been lost
}

// OldDecisions counts what was checked of decisions whose learner's state is gone, whatever came of it.
type OldDecisions struct {
	Drawn int64 `json:"drawn"` // that their law is one, and the draw from it by the seed
	Ruled int64 `json:"ruled"` // and all else but the learner's own law, by the rules of their model
}

// Report says what Run found.
type Report struct {
	Name       string                `json:"name"`
	Start      string                `json:"start"` // where recomputing began
	Contexts   Tally                 `json:"contexts"`
	Decisions  Tally                 `json:"decisions"`
	Old        OldDecisions          `json:"old_decisions"` // those too old to be recomputed
	Feedback   Tally                 `json:"feedback"`
	Snapshots  Tally                 `json:"snapshots"`
	Epochs     Tally                 `json:"epochs"`
	Marks      Tally                 `json:"marks"`
	Cuts       Tally                 `json:"cuts"`
	Outcomes   Tally                 `json:"outcomes"`
	Rejects    Tally                 `json:"rejects"`
	Pending    int64                 `json:"pending"`     // rounds that wait for their feedback
	LateLosses latelosses.Comparison `json:"late_losses"` // of the feedback kept, as the logs have it
	// of named outcomes, each as losses in [0,1] of its range
	LateOutcomes map[string]latelosses.Comparison `json:"late_outcomes,omitempty"`
	// all of them; after the first many may only be its consequences
	Differences int64       `json:"differences"`
	First       *Difference `json:"first"`   // by log time, null if there is none
	Foreign     int64       `json:"foreign"` // differences that are records of others, or damaged ones
	Beside      *Difference `json:"beside"`  // the first that is none of those, null if there is none
	Seconds     float64     `json:"seconds"`
	PerSecond   float64     `json:"decisions_per_second"`

	expired bool // feedback held records, and keeps none
}

// rows are the kinds of records in the order of the report.
func (r *Report) rows() []row {
	rows := []row{{"contexts", r.Contexts}, {"decisions", r.Decisions}, {"feedback", r.Feedback}, {"outcomes",
		r.Outcomes},
		{"rejects", r.Rejects},
		{"snapshots", r.Snapshots}, {"epochs", r.Epochs}, {"marks", r.Marks}}
	if r.Cuts.Records > 0 {
		rows = append(rows, row{"cuts", r.Cuts})
	}
	return rows
}

type row struct {
	name string
	Tally
}

// TooOld reports whether something could not be checked because what it follows from is no longer kept.
func (r *Report) TooOld() bool {
	return r.expired || slices.ContainsFunc(r.rows(), func(t row) bool { return t.Tally.TooOld > 0 })
}

// ExitCode is the exit code of the command.
func (r *Report) ExitCode() int {
	switch {
	case r.Differences > 0:
		return Different
	case r.TooOld():
		return TooOld
	}
	return Identical
}

// add counts a difference.
func (r *Report) add(d *Difference) {
	r.Differences++
	if f := r.First; f == nil || d.before(f) {
		r.First = d
	}
	if d.foreign {
		r.Foreign++
	} else if f := r.Beside; f == nil || d.before(f) {
		r.Beside = d
	}
}

// before orders differences by log time: what went wrong first is the likely
// cause. Of one time, decisions come before what follows from them. Two checks, which run side by side, may
// differ on one record: a field is named before bytes that cannot be used. Of one field the order of what was
// expected decides, so that a log has one report.
func (d *Difference) before(o *Difference) bool {
	c := cmp.Or(cmp.Compare(d.Time, o.Time), cmp.Compare(d.Topic, o.Topic), cmp.Compare(d.Partition, o.Partition),
		cmp.Compare(d.Offset, o.Offset))
	return c < 0 || c == 0 && (d.Field != "bytes" && o.Field == "bytes" || d.Field == o.Field && d.Want < o.Want)
}

// at returns a difference in a record.
func at(c *logCursor, r *stream.Record, field string, want, got any) Difference {
	return Difference{Topic: c.topic, Partition: c.partition, Offset: r.Offset, Time: r.Time, Field: field,
		Want: fmt.Sprint(want), Got: fmt.Sprint(got)}
}

// in says of which round a difference is.
func (d Difference) in(round int64, id string) Difference {
	d.Round, d.ID = round, string([]byte(id))
	return d
}

// Write writes the report for people.
func (r *Report) Write(w io.Writer) error {
	verdict := "identical"
	switch r.ExitCode() {
	case Different:
		verdict = fmt.Sprintf("DIFFERENT: %d differences", r.Differences)
	case TooOld:
		verdict = "identical as far as what they follow from is kept"
	}
	if _, err := fmt.Fprintf(w, "verify %s: %s\n", r.Name, verdict); err != nil {
		return err
	}
	if d := r.First; d != nil {
		fmt.Fprintf(w, "  first  %s[%d]@%d", d.Topic, d.Partition, d.Offset)
		if d.Round > 0 {
			fmt.Fprintf(w, " round %d %q", d.Round, d.ID)
		}
		fmt.Fprintf(w, " %s\n    want %s\n    got  %s\n", d.Field, shorten(d.Want), shorten(d.Got))
	}
	if r.Foreign > 0 {
		beside := "nothing else differs"
		if d := r.Beside; d != nil {
			beside = fmt.Sprintf("the first beside them: %s[%d]@%d %s\n    want %s\n    got  %s",
				d.Topic, d.Partition, d.Offset, d.Field, shorten(d.Want), shorten(d.Got))
		}
		fmt.Fprintf(w, "  foreign %d: records that the service did not write, or that are damaged; %s\n", r.Foreign,
			beside)
	}
	for _, row := range r.rows() {
		fmt.Fprintf(w, "  %-10s %10d  checked %10d", row.name, row.Records, row.Checked)
		if row.TooOld > 0 {
			fmt.Fprintf(w, "  too old %d", row.TooOld)
		}
		fmt.Fprintln(w)
	}
	if o := r.Old; o.Drawn > 0 {
		fmt.Fprintf(w, "  of %d decisions too old to be recomputed the draw from their law was checked, of %d all "+
			"but the "+
			"learner's law\n", o.Drawn, o.Ruled)
	}
	fmt.Fprintf(w, "  %d rounds wait for their feedback\n", r.Pending)
	writeLate(w, "", &r.LateLosses)
	for _, name := range slices.Sorted(maps.Keys(r.LateOutcomes)) {
		l := r.LateOutcomes[name]
		writeLate(w, " of "+name, &l)
	}
	_, err := fmt.Fprintf(w, "  from %s; %.1f s, %.0f decisions a second\n", r.Start, r.Seconds, r.PerSecond)
	return err
}

func writeLate(w io.Writer, of string, l *latelosses.Comparison) {
	if text := l.Warning(nil); text != "" {
		fmt.Fprintf(w, "  warning%s: %s\n", of, text)
	} else if text := l.Line(nil); text != "" {
		fmt.Fprintf(w, "  late losses%s %s\n", of, text)
	}
}

// shorten cuts a value that is too long for a line.
func shorten(s string) string {
	const most = 400
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
