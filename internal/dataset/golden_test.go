package dataset

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/random"
	"hindsight/internal/testkit/golden"
	"hindsight/pkg/codec"
)

var update = flag.Bool("update", false, "write what testdata/tables.golden should say")

// TestGoldenTables: the table that is made of a log. A block of the file is == name format, the log, --, and
// the table: what it says of itself, its outcomes, and its rows.
func TestGoldenTables(t *testing.T) {
	golden.Blocks(t, *update, "testdata/tables.golden", func(words []string, log string) string {
		return goldenTable(words[1], log, words[2:])
	})
}

// goldenTable describes the table of a log. Options are dedup=N, min=X, max=X, clip, reward=BOOL, long=FEATURE,
// ngrams=COLUMN, time=COLUMN, came=COLUMN and actions=A,B.
func goldenTable(format, text string, options []string) string {
	o := Options{Dedup: 10, Heap: 1}
	in := logs.Options{Stdin: strings.NewReader(text), Format: format, Dedup: 10, Inactive: true, Typed: true}
	if format == logs.Bandit {
		in.Mapping = logs.Mapping{Action: "who", Reward: "paid", ID: "id", Propensity: "p",
			Features: []string{"x", "y", "z"}}
	}
	for _, s := range options {
		name, value, _ := strings.Cut(s, "=")
		n := 0.
		_, _ = fmt.Sscan(value, &n)
		switch name {
		case "dedup":
			in.Dedup, o.Dedup = int(n), int(n)
		case "min":
			o.Range.Min = n
		case "max":
			o.Range.Max = n
		case "clip":
			o.Range.Clip = true
		case "actions":
			o.Actions = strings.Split(value, ",")
		case "reward":
			is := value == "true"
			o.Reward = &is
		case "long":
			o.Long = func(feature string) bool { return feature == value }
		case "time":
			in.Mapping.Time = value
		case "came":
			in.Mapping.OutcomeTime = value
		case "ngrams":
			in.Mapping.Features = append(in.Mapping.Features, value+":ngrams")
		}
	}
	r, err := logs.Open(logs.Stdin, in)
	if err != nil {
		return err.Error() + "\n"
	}
	b, err := Read("log", r, o)
	if err != nil {
		return err.Error() + "\n"
	}
	var out strings.Builder
	out.WriteString(golden.Fields(b.Intake) + golden.Fields(&b.Intake.Account, "Shown"))
	for _, note := range b.Intake.Notes() {
		fmt.Fprintln(&out, note)
	}
	fmt.Fprint(&out, "table", golden.Fields(b, "Intake"))
	fmt.Fprintln(&out, "features", b.Features(), b.OutcomeNames(), "fits", b.Fits(), "sets", b.Sets(), "ids",
		b.HasIDs())
	m, err := model.Parse("m.yaml", []byte("name: m\nversion: 1\n"))
	if err != nil {
		return err.Error() + "\n"
	}
	b.Fit(m)
	fmt.Fprintf(&out, "a model %v %v %v %d %d %v %s\n", m.Reward, m.Range, m.Actions, m.MaxActions, m.MaxFeatures,
		m.Features, m.Oracle.Kind)
	accepting, err := b.Accepting(0, random.New(1, "accept"))
	if err != nil {
		return err.Error() + "\n"
	}
	fmt.Fprintf(&out, "accepting %.3f, t has words: %v\n", accepting.Accept, b.Words("t"))
	if wrong := contradicted(b); wrong != "" {
		return wrong + "\n"
	}
	var c codec.Context
	for t := range b.Action {
		if fmt.Fprint(&out, t); b.HasIDs() {
			fmt.Fprint(&out, " ", b.ID(t))
		}
		b.Context(&c, t)
		fmt.Fprintf(&out, " %v %v eligible %v slot %d weight %v stands %v", c.Features, c.Actions, b.Eligible(nil, t),
			b.Slot(t), b.Weight(t), b.Stands(t))
		if b.Props != nil {
			fmt.Fprintf(&out, " kept %.3f accepted %v of weight %.3f", b.Kept(t), accepting.Played(t, b.Slot(t)),
				accepting.Weight(t))
		}
		names := b.Features()
		if b.Events() {
			names = []string{"x"}
		}
		for _, name := range names {
			fmt.Fprintf(&out, " %s %q", name, b.Text(t, name))
		}
		for a := range b.Eligible(nil, t) {
			fmt.Fprintf(&out, " %v:%v", b.Played(t, a), b.Loss(t, a))
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}

// contradicted tells where a table says the same in two ways that differ; "": nowhere.
func contradicted(b *Table) string {
	var c codec.Context
	var again []codec.Feature
	largest := 0
	truth := make([]float64, len(b.Actions))
	for t := range b.Action {
		b.Context(&c, t)
		largest = max(largest, len(c.Actions))
		if b.Events() {
			if text := string(b.Bytes(t)); !strings.Contains(text, b.ID(t)) {
				return fmt.Sprintf("row %d is %q, which lacks its id", t, text)
			}
		} else if again = b.Again(again, t); fmt.Sprint(again) != fmt.Sprint(c.Features) {
			return fmt.Sprintf("features of row %d are %v, and %v", t, c.Features, again)
		}
		if b.Labelled && !b.Arms {
			b.Truth(truth, t)
			for a, x := range truth {
				if x != b.Loss(t, a) {
					return fmt.Sprintf("row %d loses %v by action %d, and %v", t, b.Loss(t, a), a, x)
				}
			}
		} else if !b.Arms && b.Observed(t) != !math.IsNaN(b.Loss(t, b.Slot(t))) {
			return fmt.Sprintf("row %d has an outcome, and has none", t)
		}
		b.Pass(t)
	}
	b.Drop(false)
	b.Drop(true)
	if b.Events() && b.Largest() != largest {
		return fmt.Sprintf("the largest row has %d actions, and %d", largest, b.Largest())
	}
	for i := range b.Outcomes {
		if b.Outcome(b.Outcomes[i].Name) != &b.Outcomes[i] {
			return b.Outcomes[i].Name + " is another outcome"
		}
	}
	known := slices.ContainsFunc(b.Value, func(v float64) bool { return !math.IsNaN(v) })
	if own := b.Outcome(b.Kind.String()); (own != nil) != known || own != nil && &own.Value[0] != &b.Value[0] ||
		b.Outcome("none") != nil {
		return fmt.Sprintf("the outcome %s is %v", b.Kind, own)
	}
	return ""
}

// TestLossScale: losses are on [0,1], of the recorded action alone.
func TestLossScale(t *testing.T) {
	for _, c := range []struct {
		kind codec.OutcomeKind
		v, w float64
	}{{codec.Loss, 3, .75}, {codec.Reward, 3, .25}, {codec.Loss, 0, 0}, {codec.Reward, 4, 0}} {
		b := Table{Kind: c.kind, Scale: loop.Range{Max: 4}, Action: []int32{1}, Value: []float64{c.v},
			Actions: []string{"a", "b"}}
		if got := []float64{b.Loss(0, 0), b.Loss(0, 1)}; !math.IsNaN(got[0]) || !slices.Equal(got[1:], []float64{c.w}) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestFits: a table whose rounds may be too large for records does not fit, by the names of its actions alone.
func TestFits(t *testing.T) {
	for size, fits := range map[int]bool{1: true, codec.MaxRecordBytes / 3: false} {
		if b := (&Table{Actions: []string{strings.Repeat("a", size)}}); b.Fits() != fits {
			t.Errorf("an action of %d bytes: it fits: %t", size, !fits)
		}
	}
}

// TestFitMany: a model of a log lists 1,000 actions, and more only where every row has them all; it declares as many
// features as a model may have.
func TestFitMany(t *testing.T) {
	for _, c := range []struct {
		n, largest int
		lists      bool
	}{{listedActions, 7, true}, {listedActions + 1, listedActions + 1, true}, {listedActions + 1, 7, false}} {
		b := Table{Actions: make([]string, c.n), Scale: loop.Range{Max: 1}, Intake: &Intake{},
			rows: &eventRows{largest: c.largest}}
		var m model.Model
		m.Actions = b.Actions
		if b.Fit(&m); (m.Actions != nil) != c.lists || !c.lists && m.MaxActions != c.largest {
			t.Errorf("%+v: it lists %d actions, of %d at most", c, len(m.Actions), m.MaxActions)
		}
	}
	l := eventLoader{log: &Table{columns: make([]logColumn, codec.MaxFeatures-1)}}
	l.declare(&codec.Feature{Name: "last"})
	l.declare(&codec.Feature{Name: "beyond"})
	if n := len(l.log.columns); n != codec.MaxFeatures || l.log.columns[n-1].name != "last" {
		t.Errorf("%d features are declared", n)
	}
}
