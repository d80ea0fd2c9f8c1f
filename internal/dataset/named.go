package dataset

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"hindsight/internal/logs"
	"hindsight/internal/scan"
	"hindsight/internal/spill"
	"hindsight/pkg/codec"
)

// Outcome is one named outcome of a log.
type Outcome struct {
	Name  string
	Value []float64 // per row, of arms per row and action; NaN: none came; +Inf: it was withdrawn
	Came  []int64   // per row: when it was known; nil: the log does not say
}

// maxOutcomes is how many names of outcomes a log may have.
const maxOutcomes = 64

// namedColumn is a named outcome while a log is loaded. Rows behind its end have none.
type namedColumn struct {
	name  string
	value spill.Column[float64]
	came  spill.Column[int64]
}

// named returns the column of an outcome, in which n values have their place.
func (c *eventColumns) named(name string, n int) (*namedColumn, error) {
	i := slices.IndexFunc(c.outcomes, func(o *namedColumn) bool { return o.name == name })
	if i < 0 {
		if i = len(c.outcomes); i == maxOutcomes {
			return nil, fmt.Errorf("outcome %q: more than %d names of outcomes", name, maxOutcomes)
		}
		c.outcomes = append(c.outcomes, &namedColumn{strings.Clone(name), spill.Column[float64]{In: c.files},
			spill.Column[int64]{In: c.files}})
	}
	o := c.outcomes[i]
	o.fill(n)
	return o, nil
}

// fill gives the column n places.
func (o *namedColumn) fill(n int) {
	for len(o.value.All) < n {
		o.value.Add(math.NaN())
		o.came.Add(scan.NoTime)
	}
}

// values notes named outcomes of row t that came at a time unless they have their own, and returns how many it had
// already: the first counts.
func (l *eventLoader) values(t int, values []codec.TimedValue, at int64) (repeats int64, err error) {
	for _, v := range values {
		o, err := l.kept.named(v.Name, t+1)
		if err != nil {
			return 0, err
		}
		if !math.IsNaN(o.value.All[t]) {
			repeats++
			continue
		}
		if o.value.All[t] = v.X; v.Withdrawn {
			o.value.All[t] = math.Inf(1)
		}
		if o.came.All[t] = at; v.Time != scan.NoTime {
			o.came.All[t] = v.Time
		}
	}
	return repeats, nil
}

// arms adds a row that tells what every action would have brought.
func (l *eventLoader) arms(r *logs.Record) error {
	b, t := l.log, len(l.kept.action.All)
	if t > 0 && !b.Arms {
		return fmt.Errorf("%s:%d: arms in a log of decisions: it must have one of both", r.File, r.Line)
	}
	b.Arms, b.Labelled, l.bare = true, true, true
	bring := slices.ContainsFunc(r.Actions, func(a codec.Action) bool { return len(a.Features) > 0 })
	for i := range r.Actions {
		l.actionIndex(r.Actions[i].Name)
	}
	k := len(b.Actions)
	if t == 0 {
		l.armCount = k
	}
	if k != l.armCount || len(r.Arms) != k {
		return fmt.Errorf("%s:%d: arms of %d actions: every line must have those of the first, or of the model: %s",
			r.File, r.Line, len(r.Arms), strings.Join(b.Actions[:l.armCount], ", "))
	}
	actions := make([]codec.Action, k)
	for i, arm := range r.Arms {
		a := l.rows.index[arm.Action]
		actions[a] = r.Actions[i]
		for _, v := range arm.Values {
			o, err := l.kept.named(v.Name, (t+1)*k)
			if err != nil {
				return err
			}
			o.value.All[t*k+int(a)] = v.X
		}
	}
	id := r.ID
	if id == "" {
		id = RoundID(t)
	}
	if r.Actions = nil; bring {
		r.Actions = actions
	}
	l.in.Featured = l.in.Featured || bring
	l.place(id, r)
	for i := range r.Features {
		if f := &r.Features[i]; l.declare(f) {
			l.columns(r.Features[i : i+1])
		}
	}
	l.kept.action.Add(0)
	return nil
}

// declare notes a feature of a log of arms for the schema of a model, and reports whether its values are columns.
func (l *eventLoader) declare(f *codec.Feature) bool {
	b, long := l.log, l.o.Long != nil && l.o.Long(f.Name)
	if !slices.ContainsFunc(b.columns, func(c logColumn) bool { return c.name == f.Name }) && f.Kind != codec.Vector &&
		len(b.columns) < codec.MaxFeatures {
		b.columns = append(b.columns, logColumn{name: strings.Clone(f.Name), number: f.Kind == codec.Number,
			truth: f.Kind == codec.Bool, ngrams: long})
	}
	return !long
}

// finishNamed gives the log the named outcomes of n rows.
func (l *eventLoader) finishNamed(c *eventColumns, n int, timed bool) {
	if l.log.Arms {
		n *= l.armCount
	}
	for _, o := range c.outcomes {
		o.fill(n)
		known, any := int64(0), false
		for t, at := range o.came.All {
			if math.IsNaN(o.value.All[t]) {
				continue
			}
			if any = any || at != scan.NoTime; at == scan.NoTime && timed {
				known++
				o.came.All[t] = c.decided.All[t]
			}
		}
		out := Outcome{Name: o.name, Value: o.value.All}
		if any && timed {
			out.Came = o.came.All
			l.in.Timeless += known
		}
		l.log.Outcomes = append(l.log.Outcomes, out)
	}
	slices.SortFunc(l.log.Outcomes, func(a, b Outcome) int { return strings.Compare(a.Name, b.Name) })
}

// Outcome returns the named outcome of a name; nil: the log has none. The log's loss or reward is one, too.
func (b *Table) Outcome(name string) *Outcome {
	for i := range b.Outcomes {
		if b.Outcomes[i].Name == name {
			return &b.Outcomes[i]
		}
	}
	known := func(v float64) bool { return !math.IsNaN(v) }
	if name == b.Kind.String() && slices.ContainsFunc(b.Value, known) {
		return &Outcome{Name: name, Value: b.Value, Came: b.Came}
	}
	return nil
}

// OutcomeNames lists the named outcomes of the log.
func (b *Table) OutcomeNames() string {
	var names []string
	for _, o := range b.Outcomes {
		names = append(names, o.Name)
	}
	return strings.Join(names, ", ")
}
