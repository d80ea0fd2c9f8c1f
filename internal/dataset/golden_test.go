package dataset

import (
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

var update = flag.Bool("update", false, "write what testdata/tables.golden should say")

// TestGoldenTables: the table that is made of a log. A block of the file is == name format, the log, --, and
// the table: what it says of itself, its outcomes, and its rows.
func TestGoldenTables(t *testing.T) {
	const file = "testdata/tables.golden"
	all, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, block := range strings.Split(string(all), "== ")[1:] {
		head, rest, _ := strings.Cut(block, "\n")
		text, want, ok := strings.Cut(rest, "\n--\n")
		words := strings.Fields(head)
		if !ok || len(words) < 2 {
			t.Fatalf("%s: no block: %q", file, block)
		}
		got := goldenTable(words[1], text+"\n", words[2:])
		if got != want && !*update {
			t.Errorf("%s:\n%s\nwant\n%s", head, got, want)
		}
		fmt.Fprintf(&out, "== %s\n%s\n--\n%s", head, text, got)
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// goldenTable describes the table of a log. Options are dedup=N, min=X, max=X and actions=A,B.
func goldenTable(format, text string, options []string) string {
	o := Options{Dedup: 10}
	in := logs.Options{Stdin: strings.NewReader(text), Format: format, Dedup: 10, Inactive: true, Typed: true}
	if format == logs.Bandit {
		in.Mapping = logs.Mapping{Action: "who", Reward: "paid", ID: "id", Propensity: "p", Features: []string{"x", "y", "z"}}
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
	describe(&out, "", b.Intake)
	describe(&out, "", &b.Intake.Account)
	for _, note := range b.Intake.Notes() {
		fmt.Fprintln(&out, note)
	}
	describe(&out, "table", b)
	fmt.Fprintln(&out, "features", b.Features(), b.OutcomeNames(), "fits", b.Fits(), "sets", b.Sets(), "ids", b.HasIDs())
	var c codec.Context
	for t := range b.Action {
		if fmt.Fprint(&out, t); b.HasIDs() {
			fmt.Fprint(&out, " ", b.ID(t))
		}
		b.Context(&c, t)
		fmt.Fprintf(&out, " %v %v eligible %v slot %d weight %v stands %v", c.Features, c.Actions, b.Eligible(nil, t),
			b.Slot(t), b.Weight(t), b.Stands(t))
		if b.Props != nil {
			fmt.Fprintf(&out, " kept %.3f", b.Kept(t))
		}
		for a := range b.Eligible(nil, t) {
			fmt.Fprintf(&out, " %v:%v", b.Played(t, a), b.Loss(t, a))
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}

// describe says the fields of a struct that say something.
func describe(out *strings.Builder, name string, of any) {
	out.WriteString(name)
	x := reflect.ValueOf(of).Elem()
	for i := range x.NumField() {
		f := x.Type().Field(i)
		if v := x.Field(i); f.IsExported() && !f.Anonymous && f.Name != "Intake" && f.Name != "Shown" && !v.IsZero() {
			fmt.Fprintf(out, " %s:%v", f.Name, v)
		}
	}
	out.WriteString("\n")
}

// TestLossScale: losses are on [0,1], of the recorded action alone.
func TestLossScale(t *testing.T) {
	for _, c := range []struct {
		kind codec.OutcomeKind
		v, w float64
	}{{codec.Loss, 3, .75}, {codec.Reward, 3, .25}, {codec.Loss, 0, 0}, {codec.Reward, 4, 0}} {
		b := Table{Kind: c.kind, Scale: loop.Range{Max: 4}, Action: []int32{1}, Value: []float64{c.v}, Actions: []string{"a", "b"}}
		if got := []float64{b.Loss(0, 0), b.Loss(0, 1)}; !math.IsNaN(got[0]) || !slices.Equal(got[1:], []float64{c.w}) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
