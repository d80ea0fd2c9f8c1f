package judge

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/delay"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/replay"
)

// unitRows are 60 rows, each so many times with one unit, if they name units.
func unitRows(times int, named bool) string {
	var b strings.Builder
	for i := range 60 {
		for range times {
			unit := ""
			if named && i%10 > 0 {
				unit = fmt.Sprintf(`,"unit":"u%d"`, i)
			}
			fmt.Fprintf(&b, `{"actions":["x","y"],"action":"%s","propensity":0.5,"outcomes":{"q":%v}%s}`+"\n",
				string("xy"[i/2%2]), float64(i%7)/7, unit)
			if unit == "" && named {
				break
			}
		}
	}
	return b.String()
}

// TestRepeatedRowsOfAUnit: rows that are there four times, each time of one unit, tell no more than once. Rows without
// a unit are for themselves. Every estimate has this error: of the reward, of named outcomes, and over time.
func TestRepeatedRowsOfAUnit(t *testing.T) {
	m, err := model.Parse("m", []byte("actions: [x, y]\nreward: q\noutcomes: {q: {window: 5r}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	evaluate := func(times int, named bool) (o *OffPolicy, ips, q float64) {
		env := readEvents(t, unitRows(times, named), dataset.Options{}, logs.Options{})
		if named && env.Intake.Units != 54 {
			t.Fatalf("%d units", env.Intake.Units)
		}
		o = judged(t, env.For(m))
		e, err := o.Evaluate("always:x", o.Options())
		if err != nil {
			t.Fatal(err)
		}
		return o, float64(e.Estimates.Get("ips").SE), float64(e.Outcomes[0].Estimates.Get("ips").SE)
	}
	o, ips, q := evaluate(4, true)
	rows, few, fewQ := evaluate(4, false)
	if math.Abs(ips-2*few) > .1*ips || math.Abs(q-2*fewQ) > .1*q || math.Abs(ips-q) > 1e-9 {
		t.Errorf("by unit ± %v and %v, by row ± %v and %v", ips, q, few, fewQ)
	}
	s := o.Settings(o.Options())
	if s.Units != 60 || !strings.Contains(s.Interval.Why, "each of 60 units counts as one") {
		t.Errorf("%+v", s)
	}
	if s := rows.Settings(o.Options()); s.Units != 0 || strings.Contains(s.Interval.Why, "unit") {
		t.Errorf("%+v", s)
	}
}

// TestReplayByUnit: so has what a learner had that was replayed.
func TestReplayByUnit(t *testing.T) {
	run := func(named bool) *replay.Replay {
		text := strings.NewReplacer(`"outcomes":{"q":`, `"loss":`, "}", "").Replace(unitRows(4, named))
		env := readEvents(t, strings.ReplaceAll(text, "\n", "}\n"), dataset.Options{}, logs.Options{})
		l, err := model.ParseLearner("fixed:x")
		if err != nil {
			t.Fatal(err)
		}
		m, files := replay.ModelFor(env, "m", l, loop.Window{Rounds: 10})
		trial := &replay.Trial{Rounds: env, Delays: noDelays(t, env), Model: m, Files: files, Label: "x", Seed: 1}
		r, err := trial.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.Replay
	}
	unit, row := run(true), run(false)
	for name, se := range map[string][2]float64{"IPS": {float64(unit.IPS.SE), float64(row.IPS.SE)},
		"SNIPS": {float64(unit.SNIPS.SE), float64(row.SNIPS.SE)}} {
		if math.Abs(se[0]-2*se[1]) > .1*se[0] {
			t.Errorf("%s: by unit ± %v, by row ± %v", name, se[0], se[1])
		}
	}
}

func noDelays(t *testing.T, env *replay.Rounds) *delay.Delays {
	t.Helper()
	d, err := delay.Parse("none", env.DelayOptions(1))
	if err != nil {
		t.Fatal(err)
	}
	return d
}
