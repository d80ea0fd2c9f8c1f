package verify

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"hindsight/internal/latelosses"
	"hindsight/internal/model"
	"hindsight/internal/testkit/daily"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

func (r *Report) text() string {
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

// seeds returns n, or few under the race detector, which sees the same goroutines with each.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return 2
	}
	return n
}

// What the real shells wrote is what Run recomputes, whatever happened on the
// way.
func TestVerifyIdentical(t *testing.T) {
	for parts := 1; parts <= 3; parts++ {
		for seed := range seeds(6) {
			if !testing.Short() && !daily.Turn(t, int(seed/2), 3) { // of both encodings
				continue
			}
			t.Run(fmt.Sprint(parts, " partitions, seed ", seed), func(t *testing.T) {
				w := encodedWorld(t, codec.Encoding(seed%2), parts, seed, 60)
				r := w.verify()
				t.Log(r.text())
				if r.ExitCode() != Identical {
					t.Fatal("not identical")
				}
			})
		}
	}
}

// The first difference is the damaged record and its field, not what follows from
// it.
func TestVerifyFirst(t *testing.T) {
	w := liveWorld(t, 2, 3, 30)
	for _, c := range []struct {
		topic string
		field string
		value string // of the key in the record
	}{
		{w.ts.Decisions, "gamma", "\xa5gamma\xcb"}, {w.ts.Decisions, "propensities.a", "\xa1a\xcb"},
		{w.ts.Feedback, "gamma", "\xa5gamma\xcb"}, {w.ts.Feedback, "loss", "\xa4loss\xcb"},
	} {
		for _, r := range w.records(c.topic, 0)[20:] {
			i := bytes.Index(r.Value, []byte(c.value))
			if r.Type != "" || i < 0 || c.field == "propensities.a" &&
				bytes.Contains(r.Value, []byte("\xa6action\xa1a")) {
				continue
			}
			restore := w.edit(c.topic, 0, r.Offset, func(r *stream.Record) { r.Value[i+len(c.value)+3] ^= 1 })
			f := w.verify().First
			restore()
			if f == nil || f.Topic != c.topic || f.Offset != r.Offset || f.Field != c.field || f.Round == 0 ||
				f.ID == "" ||
				f.Want == f.Got {
				t.Errorf("%s at offset %d: %s: the first difference is %+v", c.topic, r.Offset, c.field, f)
			}
			break
		}
	}
}

// TestVerifyDefaults holds what is verified where nothing is said of how many ids are remembered, and what a report is
// of.
func TestVerifyDefaults(t *testing.T) {
	w := liveWorld(t, 1, 3, 25)
	r, err := Run(w.ctx, Config{Log: w.log, Name: worldName, Seed: worldSeed(), Build: model.Epoch})
	if err != nil || r.ExitCode() != Identical || r.Name != worldName || r.Seconds <= 0 ||
		r.PerSecond != float64(r.Decisions.Checked)/r.Seconds {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestReportText holds what people read of three reports.
func TestReportText(t *testing.T) {
	d := Difference{Topic: "m.feedback", Partition: 2, Offset: 7, Field: "loss", Want: "0.5", Got: "0.25"}
	foreign, round := d, d
	foreign.Field, foreign.Time, foreign.foreign = "type", -1, true
	round.Round, round.ID, round.Time = 4, "a b", -2
	of := func(r Report, differences ...Difference) Report {
		r.Name, r.Start, r.Seconds, r.PerSecond = "m", "the beginning", 1.25, 1000
		for i := range differences {
			r.add(&differences[i])
		}
		return r
	}
	rows := func(decisions string) string {
		return "  contexts            0  checked          0\n" + decisions +
			`  feedback            0  checked          0
  outcomes            0  checked          0
  rejects             0  checked          0
  snapshots           0  checked          0
  epochs              0  checked          0
  marks               0  checked          0
`
	}
	const none = "  decisions           0  checked          0\n"
	const end = "  0 rounds wait for their feedback\n  from the beginning; 1.2 s, 1000 decisions a second\n"
	const values = "    want 0.5\n    got  0.25\n"
	const first = "  first  m.feedback[2]@7"
	mean := 0.25
	late := latelosses.Comparison{OnTime: latelosses.Figures{N: 9, Mean: &mean},
		Late: latelosses.Figures{N: 8, Mean: &mean}}
	differ := late
	differ.Differ = true
	for _, c := range []struct {
		report Report
		want   string
	}{
		{of(Report{}), "verify m: identical\n" + rows(none) + end},
		{of(Report{Decisions: Tally{9, 2, 7}, Cuts: Tally{3, 2, 1}, Old: OldDecisions{7, 5}}),
			"verify m: identical as far as what they follow from is kept\n" +
				rows("  decisions           9  checked          2  too old 7\n") +
				"  cuts                3  checked          2  too old 1\n  of 7 decisions too old to be recomputed " +
				"the draw from their law was checked, of 5 all but the learner's law\n" + end},
		{of(Report{}, d, round), "verify m: DIFFERENT: 2 differences\n" + first + " round 4 \"a b\" loss\n" +
			values + rows(none) + end},
		{of(Report{}, foreign), "verify m: DIFFERENT: 1 differences\n" + first + " type\n" + values +
			"  foreign 1: records that the service did not write, or that are damaged; nothing else differs\n" +
			rows(none) + end},
		{of(Report{}, d, foreign), "verify m: DIFFERENT: 2 differences\n" + first + " type\n" + values +
			"  foreign 1: records that the service did not write, or that are damaged; the first beside them: " +
			"m.feedback[2]@7 loss\n" + values + rows(none) + end},
		{of(Report{LateLosses: late}), "verify m: identical\n" + rows(none) + strings.Replace(end, "  from",
			"  late losses "+late.Line(nil)+"\n  from", 1)},
		{of(Report{LateOutcomes: map[string]latelosses.Comparison{"q": differ}}), "verify m: identical\n" +
			rows(none) + strings.Replace(end, "  from", "  warning of q: "+differ.Warning(nil)+"\n  from", 1)},
	} {
		if got := c.report.text(); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}
