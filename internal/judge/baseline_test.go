package judge

import (
	"slices"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/logs"
	"hindsight/internal/replay"
)

// TestBaseline: each event's own baseline action is played, the best of several, its first
// action where it names none; rows that are dropped or sorted take theirs along.
func TestBaseline(t *testing.T) {
	line := func(id, at, baseline, rest string) string {
		return `{"EventId":"` + id + `","Timestamp":"2020-01-01T00:00:0` + at +
			`Z","_label_cost":-1,"_label_probability":0.5,"_label_Action":1,"a":[1,2],"p":[0.5,0.5]` + baseline +
			rest + "}\n"
	}
	const same, other = `,"c":{"_multi":[{"_tag":"x"},{"_tag":"y"}]}`, `,"c":{"_multi":[{"_tag":"y"},{"_tag":"z"}]}`
	text := line("late", "9", `,"_ba":[2,1]`, other) + line("asleep", "1", `,"_ba":[2]`, `,"_skipLearn":true`+same) +
		line("none", "3", ``, same) + line("woken", "2", `,"_ba":[1]`, `,"_skipLearn":true`+other) +
		`{"EventId":"woken","RewardValue":1,"Observations":[{"ActionTaken":true}]}` + "\n"
	log := readEvents(t, text, dataset.Options{}, logs.Options{})
	if log.Intake.Baselines != 2 || log.Len() != 3 || !log.HasBaseline() || targetLog(t).HasBaseline() {
		t.Fatalf("%+v", log.Intake)
	}
	for env, want := range map[*replay.Rounds][]string{log: {"y", "x", "z"}, replay.Order(log, 0, 1): {"y", "x", "z"},
		log.Pick([]int32{2, 0, 1}): {"z", "y", "x"}, replay.Tail(log, 1): {"x", "z"}} {
		o := judged(t, env)
		b, err := o.target("baseline")
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range want {
			dst := make([]float64, len(log.Actions))
			if b.law(dst, i); dst[slices.Index(log.Actions, name)] != 1 {
				t.Errorf("row %d plays %v of %v, want %s", i, dst, log.Actions, name)
			}
		}
	}
	o := judged(t, log)
	for _, spec := range []string{"baseline", "eps:0.5,baseline"} {
		e, err := o.Evaluate(spec, o.Options())
		if err != nil || !strings.Contains(strings.Join(e.Flags, "\n"), "1 of 3 rows name no baseline action") {
			t.Errorf("%v: %+v", err, e)
		}
	}
	all := judged(t, log.Pick([]int32{0, 2}))
	if e, err := all.Evaluate("baseline", all.Options()); err != nil || strings.Contains(strings.Join(e.Flags, "\n"),
		"baseline") {
		t.Errorf("all rows name one: %v: %+v", err, e)
	}
	if err := judged(t, targetLog(t)).Check("baseline"); err == nil || !strings.Contains(err.Error(),
		"no event of this log names a baseline") {
		t.Errorf("a log without baselines: %v", err)
	}
}
