package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const banditText = `id,at,who,paid,back,x
q,2020-01-01T00:00:00Z,b,1,2020-01-01T00:00:25Z,1
r,2020-01-01T00:00:10Z,a,0,2020-01-01T00:00:11Z,2
s,2020-01-01T00:00:20Z,b,,,3
t,2020-01-01T00:00:30Z,a,0.25,2020-01-01T00:00:40Z,4
`

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runs returns the runs of a backtest without what depends on the clock.
func runs(t *testing.T, args ...string) []any {
	t.Helper()
	all, _ := object(t, append([]string{"backtest", "--json"}, args...)...)["runs"].([]any)
	for _, r := range all {
		delete(r.(map[string]any), "rounds_per_second")
	}
	return all
}

// TestBanditLogByFlagsAndMapping plays a bandit log whose columns are named by flags, by a
// file, and by both.
func TestBanditLogByFlagsAndMapping(t *testing.T) {
	data := writeFile(t, "log.csv", banditText)
	mapping := writeFile(t, "m.yaml", "time-column: at\noutcome-time-column: back\naction-column: who\nreward-column: "+
		"paid\nid-column: id\nfeatures: [x]\n")
	partly := writeFile(t, "m.yaml", "time_column: at\noutcome_time_column: back\naction_column: who\nloss_column: x\n")
	columns := []string{"--reward-column", "paid", "--id-column", "id", "--features", "x"}
	learner := []string{"--data", data, "--learner", "fixed:a"}
	want := runs(
		t, append(append([]string{"--time-column", "at", "--outcome-time-column", "back", "--action-column", "who"},
			columns...), learner...)...)
	for _, args := range [][]string{{"--mapping", mapping}, append([]string{"--mapping", partly}, columns...)} {
		if got := runs(t, append(args, learner...)...); !reflect.DeepEqual(got, want) {
			t.Errorf("%v:\ngot  %v\nwant %v", args, got, want)
		}
	}
	r := want[0].(map[string]any)
	for path, x := range map[string]float64{"rounds": 4, "matched": 2, "pending": 0, "mean_loss": 0.875,
		"fates.observed": 2, "fates.withdrawn": 2, "delays.recorded.D": 7, "delays.recorded.overtaken": 2} {
		if got := number(t, r, path); got != x {
			t.Errorf("%s is %v, want %v", path, got, x)
		}
	}
	if spec := need(t, r, "delays.spec"); spec != "recorded" {
		t.Errorf("the delays of a log with outcome times are %v", spec)
	}
	live := object(t, "inject", "--json", "--log", "mem:", "--data", data, "--mapping", mapping, "--learner", "fixed:a",
		"--window", "1h")
	if number(t, live, "matched") != 2 || number(t, live, "mean_loss") != 0.875 ||
		number(t, live, "fates.withdrawn") != 2 {
		t.Errorf("live: %v", live)
	}
	if got := execute(t.Context(), "backtest", "--data", data, "--mapping", mapping); !strings.Contains(got.stdout,
		"biased estimate") || !strings.Contains(got.stdout, "matched") {
		t.Errorf("nothing says how far to trust it:\n%s", got.stdout)
	}
}

// TestWindowOfDataWithoutTimes: a model file without a window gets 200 rounds where the data has no
// times, and the summary says so; one that gives a duration is refused.
func TestWindowOfDataWithoutTimes(t *testing.T) {
	data := writeFile(t, "log.csv", banditText)
	for text, want := range map[string]string{
		"": "window 200 rounds (default: none is given, and the data has no times)", "window: 9r\n": "window 9 rounds",
		"window: 10m\n": "this data has no times",
	} {
		model := writeFile(t, "model.yaml", "name: m\nversion: 1\nreward: {min: 0, max: 1}\n"+text)
		got := execute(t.Context(), "backtest", "--data", data, "--action-column", "who", "--reward-column", "paid",
			"--model", model)
		if said := strings.Join(strings.Fields(got.stdout+got.stderr), " "); !strings.Contains(said, want) ||
			(got.code == 0) == (text == "window: 10m\n") {
			t.Errorf("%q: exit code %d, %s", text, got.code, said)
		}
		if text == "" && strings.Contains(execute(t.Context(), "backtest", "--data", data, "--action-column", "who",
			"--reward-column", "paid", "--time-column", "at", "--model", model).stdout, "200 rounds") {
			t.Error("data with times got a window in rounds")
		}
	}
}

// TestWrongData holds what is said of wrong data, flags and mappings.
func TestWrongData(t *testing.T) {
	data := writeFile(t, "log.csv", banditText)
	ragged := writeFile(t, "log.csv", banditText+"u,2020-01-01T00:01:00Z,a\n")
	unknown := writeFile(t, "m.yaml", "time-column: at\naction: who\n")
	ranged := writeFile(t, "model.yaml", "name: m\nversion: 1\nloss: {min: 0, max: 5}\n")
	listed := writeFile(t, "model.yaml", "name: m\nversion: 1\nactions: [b]\n")
	order := writeFile(t, "model.yaml", "name: m\nversion: 1\nwindow: 200\nactions: [a5, a4, a3, a2, a1]\n")
	all := []string{"--action-column", "who", "--reward-column", "paid"}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--data", data}, 1, `log.csv:1: column id: the first column must be label`},
		{[]string{"--data", data, "--action-column", "who"}, 2, "--loss-column or --reward-column"},
		{[]string{"--data", data, "--reward-column", "paid"}, 2, "--action-column"},
		{append([]string{"--data", ragged, "--strict"}, all...), 1, "log.csv:6: 3 cells, but the header has 6 columns"},
		{append([]string{"--data", data, "--features", "y"}, all...), 1,
			`log.csv:1: column "y": there is no such column`},
		{append([]string{"--data", data, "--delays", "recorded"}, all...), 2, "this data has no times of outcomes"},
		{append([]string{"--data", data, "--window", "10m"}, all...), 2, "this data has no times"},
		{append([]string{"--data", data, "--delays", "starve-best:3"}, all...), 2, "the best action is not known"},
		{[]string{"--data", data, "--mapping", unknown}, 1, `m.yaml:2:1: unknown key "action"`},
		{append([]string{"--data", data, "--model", ranged}, all...), 2, "gives the range of a reward or of a " +
			"loss, and the columns name the other"},
		{append([]string{"--data", data, "--model", listed}, all...), 1,
			`log.csv:3: column who: the model does not list the action "a"`},
		{[]string{"--rounds", "5", "--model", order}, 2, "lists the actions a5, a4, a3, a2, a1, but the data has " +
			"a1, a2, a3, a4, a5"},
		{[]string{"--env", "close"}, 2, "close takes the parameters r"},
		{[]string{"--env", "needle:.4,.2,6"}, 2, `needle: o is "6"`},
		{[]string{"--rounds", "5", "--delays", "recorded:/nowhere/at/all"}, 2, "no such file"},
	} {
		got := execute(t.Context(), append([]string{"backtest"}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%v: exit code %d, want %d:\n%s\nwant %s", c.args, got.code, c.code, got.stderr, c.want)
		}
	}
}

// TestEveryDelayOfTheList plays what `replayer list` names.
func TestEveryDelayOfTheList(t *testing.T) {
	file := writeFile(t, "delays", "3\nnever\n")
	args := []string{"--rounds", "300", "--env", "needle:.4,.2,.6"}
	specs := []string{"none", "constant:5", "exp:5", "lognormal:5,1", "pareto:1.5,3", "never:0.1", "burst:10",
		"head:50,40", "starve-best:20",
		"loss:1,30", "never-bad:0.2", "reorder:9", "recorded:" + file, "burst:10+never-bad:0.1"}
	for _, s := range specs {
		args = append(args, "--delays", s)
	}
	got := runs(t, args...)
	if len(got) != len(specs) {
		t.Fatalf("%d runs of %d", len(got), len(specs))
	}
	for i, r := range got {
		r := r.(map[string]any)
		if spec := need(t, r, "delays.spec"); spec != specs[i] || (number(t, r, "delays.raw.D") > 0) != (i > 0) {
			t.Errorf("%s: %v", specs[i], r["delays"])
		}
	}
}
