package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// armsLog tells what three models would have cost and been worth on each prompt: each next one is better and dearer.
func armsLog(rows int) string {
	var b strings.Builder
	for i := range rows {
		x := uint32(i+1) * 2654435761
		hard := x>>20&1 == 1
		good := func(of uint32) float64 { return float64(x>>of&15) / 15 }
		q := []float64{.2 * good(4), .5 + .2*good(8), .8 + .2*good(12)}
		if !hard {
			q[0] = .7 + .3*good(4)
		}
		fmt.Fprintf(&b,
			`{"prompt":"%s question no %d","hard":%v,"best":1,"arms":{"s":{"q":%v,"c":%v,"ok":true},"m":{"q":%v,"c":%v},`+`"l":{"q":%v,"c":%v}}}`+"\n", []string{"easy", "hard"}[x>>20&1], i, hard, q[0], .1+.1*good(16), q[1], 1+good(16), q[2],
			6+2*good(24))
	}
	return b.String()
}

const armsModel = `name: route
actions: [s, m, l]
features: {prompt: {text: ngrams}, hard: bool}
outcomes: {q: {window: 200r}, c: {max: 10, window: 20r}}
reward: q
budget: {spent: {of: c, mean_at_most: 2, about: {s: 0.2, m: 1.5, l: 7}}}
`

// TestNamedBacktest: formulas and budgets are compared on one log of arms, whose outcomes are late each by itself; the
// report has what a budget buys, what was spent and its price.
func TestNamedBacktest(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector sees backtests in TestBacktest")
	}
	data := writeFile(t, "arms.jsonl", armsLog(1500))
	of := func(run any, key string, i int, figure string) float64 {
		return run.(map[string]any)[key].([]any)[i].(map[string]any)[figure].(float64)
	}
	all := runs(t, "--data", data, "--features", "prompt:ngrams,hard", "--reward", "q", "--reward", "q - 0.1*c",
		"--delays", "constant:50,c=none", "--delays", "none", "--window", "100")
	if len(all) != 4 || need(t, all[0].(map[string]any), "reward") != "q" || need(t, all[2].(map[string]any),
		"learner") !=
		"dafa, q - 0.1*c" {
		t.Fatalf("%d runs: %v", len(all), all[0])
	}
	// By quality alone the dear model is played; one that costs is not.
	if dear, cheap := of(all[0], "outcomes", 1, "mean"), of(all[2], "outcomes", 1, "mean"); dear < cheap+.05 ||
		of(all[2], "outcomes", 0, "mean") > 2 || of(all[0], "outcomes", 0, "mean") < 4 {
		t.Errorf("q %v, and with costs %v", dear, cheap)
	}
	model, page := writeFile(t, "m.yaml", armsModel), filepath.Join(t.TempDir(), "out.html")
	all = runs(t, "--data", data, "--model", model, "--delays", "constant:50,c=none", "--budget", "spent=1,3",
		"--report", page, "--sweep", "none")
	if len(all) != 4 { // a report compares with none
		t.Fatalf("%d runs", len(all))
	}
	low, high := all[0], all[2]
	for i, run := range []any{low, high} {
		if share := of(run, "budgets", 0, "share"); share < .8 || share > 1.1 {
			t.Errorf("budget %d: %v of it was spent", i, share)
		}
		if late := of(run, "outcomes", 0, "late"); late != 0 || of(run, "outcomes", 1, "observed") != 1500 {
			t.Errorf("%v costs are late", late)
		}
	}
	if a, b := of(low, "outcomes", 1, "mean"), of(high, "outcomes", 1, "mean"); a >= b {
		t.Errorf("quality %v for 1 and %v for 3", a, b)
	}
	if a, b := of(low, "budgets", 0, "price"), of(high, "budgets", 0, "price")/3; a <= b { // λ is of one budget
		t.Errorf("prices %v and %v", a, b)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"Outcomes, budgets and prices", `"id":"curve"`, `"at":[1,3]`, `"id":"spent"`,
		`"id":"prices"`, "spent / budget"} {
		if !strings.Contains(string(html), part) {
			t.Errorf("the report has no %s", part)
		}
	}
	text := execute(t.Context(), "backtest", "--data", data, "--model", model, "--delays", "none")
	if !strings.Contains(text.stdout, "Named outcomes and budgets") || !strings.Contains(text.stdout, "λ spent") {
		t.Errorf("%+v", text)
	}
}

// TestNamedUsage: what does not fit the data or the model is named at once.
func TestNamedUsage(t *testing.T) {
	data, model := writeFile(t, "arms.jsonl", armsLog(20)), writeFile(t, "m.yaml", armsModel)
	arms := []string{"--data", data, "--features", "prompt:ngrams,hard"}
	ours := []string{"--data", data, "--model", model}
	for _, c := range []struct {
		args []string
		says string
	}{
		{arms, "has the outcomes c, q, and the model has one loss"},
		{append(arms, "--reward", "q - price"), `no outcome or constant is called "price"`},
		{append(arms, "--reward", "q", "--budget", "spent=1"), `the model has no budget "spent"`},
		{append(ours, "--budget", "spent"), "expected NAME=X,Y"},
		{append(ours, "--budget", "spent=2..1"), "expected 0 < LOW < HIGH"},
		{append(ours, "--budget", "spent=11"), "the bound 11 is not inside (0, 10)"},
		{append(ours, "--delays", "none,price=none"), "no outcome is called"},
		{append(ours, "--window", "price=5"), `no outcome of the model is called "price"`},
		{[]string{"--reward", "q"}, "the model names no outcomes"},
		{[]string{"--model", writeFile(t, "any.yaml", "outcomes: {q: {window: 9r}}\nreward: q\n")}, "has one loss, " +
			"and the model has named outcomes"},
	} {
		if got := execute(t.Context(), append([]string{"backtest"}, c.args...)...); got.code == 0 ||
			!strings.Contains(got.stderr, c.says) {
			t.Errorf("%v: %d %s, want %s", c.args, got.code, got.stderr, c.says)
		}
	}
}

// TestNamedPolicies: policies are judged by quality and by cost, and formats carry both there and back.
func TestNamedPolicies(t *testing.T) {
	var log strings.Builder
	for i := range 400 {
		x := uint32(i+1) * 2654435761
		a := x >> 30 % 2
		q, c := float64(a), 1+6*float64(a)
		outcomes := fmt.Sprintf(`{"q":%v,"c":%v}`, q, c)
		if x>>8%10 == 0 {
			outcomes = fmt.Sprintf(`{"c":%v}`, c)
		}
		fmt.Fprintf(&log,
			`{"id":"e%d","features":{"h":%d},"actions":["s","l"],"action":"%s","propensity":0.5,"outcomes":%s}`+"\n",
			i, x>>16%3, []string{"s", "l"}[a], outcomes)
	}
	data := writeFile(t, "log.jsonl", log.String())
	model := writeFile(t, "m.yaml", "name: route\nactions: [s, l]\noutcomes: {q: {window: 20r}, c: {max: 10, "+
		"window: 20r}}\nreward: q - c/20\nbudget: {spent: {of: 2*c, mean_at_most: 8, about: 8}}\n")
	args := func(data string) []string {
		return []string{"backtest", "--data", data, "--model", model, "--policy", "always:l", "--policy", "uniform",
			"--policy", "model:" + model, "--json"}
	}
	first := object(t, args(data)...)
	for i, want := range [][3]float64{{7, 1, 14}, {4, .5, 8}} {
		outcomes := need(t, first, "policies").([]any)[i].(map[string]any)["outcomes"].([]any)
		for k, name := range []string{"c", "q", "budget spent"} {
			o := outcomes[k].(map[string]any)
			snips := o["estimates"].(map[string]any)["snips"].(map[string]any)
			if o["name"] != name || math.Abs(snips["value"].(float64)-want[k]) > .5*float64(k%2)*.2+.6*float64(1-k%2)+
				1e-9 || snips["low"].(float64) > snips["value"].(float64) {
				t.Errorf("%v, want %s of %v", o, name, want[k])
			}
		}
	}
	// By quality the dear action is the best, by what is left of it after costs the cheap one.
	page := filepath.Join(t.TempDir(), "out.html")
	two := object(t, append(args(data), "--reward", "q", "--reward", "q - c", "--policy", "logging", "--report",
		page)...)
	values, lifts := map[string]float64{}, map[string]float64{}
	for i, x := range need(t, two, "policies").([]any) {
		p, s := x.(map[string]any), need(t, two, "standings").([]any)[i].(map[string]any)
		values[p["policy"].(string)] = p["estimates"].(map[string]any)["dr"].(map[string]any)["value"].(float64)
		lifts[p["policy"].(string)], _ = s["dr_above_logging"].(float64)
	}
	for name, want := range map[string][2]float64{"always:l, q": {1, .5}, "always:l, q - c": {-6, -2.5},
		"logging, q - c": {-3.5, 0}, "uniform, q": {.5, 0}} {
		if v, lift := values[name], lifts[name]; math.Abs(v-want[0]) > .3 || math.Abs(lift-want[1]) > .3 {
			t.Errorf("%s: %v, %v above logging; want %v", name, v, lift, want)
		}
	}
	if html, err := os.ReadFile(page); err != nil || len(values) != 8 ||
		!strings.Contains(string(html), "always:l, q - c") ||
		!strings.Contains(string(html), "Best policy: always:l, q") {
		t.Errorf("%v: %d policies: %v", err, len(values), values)
	}
	for _, format := range []string{"parquet", "msgpack"} {
		there, back := filepath.Join(t.TempDir(), "there"), filepath.Join(t.TempDir(), "back")
		for _, step := range [][]string{{data, "--to", format, "--out", there}, {there, "--to", "jsonl",
			"--out", back}} {
			if got := execute(t.Context(), append([]string{"convert"}, step...)...); got.code != 0 {
				t.Fatal(got)
			}
		}
		a, err := os.ReadFile(data)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(back)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Count(string(b), `"outcomes":{`), strings.Count(string(a),
			`"outcomes":{`); got != want {
			t.Errorf("%s: %d of %d", format, got, want)
		}
		again := object(t, args(back)...)
		if got, want := fmt.Sprint(need(t, again, "policies")), fmt.Sprint(need(t, first, "policies")); got != want {
			t.Errorf("by way of %s policies are\n%s\nwere\n%s", format, got, want)
		}
	}
}

// TestNamedCSV: columns of named outcomes are read as the same rounds in JSON are, from files and from standard input,
// each with a time of its own.
func TestNamedCSV(t *testing.T) {
	rows, lines := "id,at,h,arm,outcomes.q,judged,c\n", ""
	for i := range 300 {
		x := uint32(i+1) * 2654435761
		at := func(second int) string { return time.Unix(int64(second), 0).UTC().Format(time.RFC3339) }
		made, judged, arm := at(1000+10*i), at(1000+10*i+int(x>>8%90)), []string{"s", "l"}[x>>30%2]
		q, event := fmt.Sprint(float64(x>>4%16)/16), ""
		switch x >> 12 % 6 {
		case 0:
			q, judged = "", ""
		case 1:
			q = "null"
			fallthrough
		default:
			event = fmt.Sprintf(`"q":{"value":%s,"time":%q},`, q, judged)
		}
		c := 1 + 6*(x>>30%2)
		rows += fmt.Sprintf("e%d,%s,%d,%s,%s,%s,%d\n", i, made, x>>16%3, arm, q, judged, c)
		lines += fmt.Sprintf(`{"id":"e%d","time":%q,"features":{"h":%d},"action":%q,"outcomes":{%s`+
			`"c":{"value":%d,"time":%q}}}`+"\n", i, made, x>>16%3, arm, event, c, made)
	}
	events, table := writeFile(t, "log.jsonl", lines), writeFile(t, "log.csv", rows)
	model := writeFile(t, "m.yaml", "name: route\nactions: [s, l]\noutcomes: {q: {window: 1m}, c: {max: 10, "+
		"window: 5s}}\nreward: q - c/20\n")
	columns := []string{"--time-column", "at", "--action-column", "arm", "--outcome-columns", "outcomes.q:judged,c",
		"--outcome-time-column", "at", "--features",
		"h", "--id-column", "id"}
	args := []string{"--model", model, "--delays", "recorded", "--data"}
	want := runs(t, append(args, events)...)
	same := func(what string, got map[string]any) {
		t.Helper()
		for key, v := range want[0].(map[string]any) {
			if w := fmt.Sprint(got[key]); key != "rounds_per_second" && key != "environment" && w != fmt.Sprint(v) {
				t.Errorf("%s: %s %.300s, of JSON %.300s", what, key, w, fmt.Sprint(v))
			}
		}
	}
	same("CSV", runs(t, append(append(args, table), columns...)...)[0].(map[string]any))
	mapping := writeFile(t, "columns.yaml", "time-column: at\noutcome-time-column: at\n"+
		"action-column: arm\noutcome-columns: ['outcomes.q:judged', c]\n"+
		"features: h\nid-column: id\n")
	_, out, _ := given(t, rows, append([]string{"backtest", "--json", "--mapping", mapping}, append(args, "-")...)...)
	var piped struct{ Runs []map[string]any }
	if err := json.Unmarshal([]byte(out), &piped); err != nil || len(piped.Runs) != 1 {
		t.Fatal(err, out)
	}
	same("standard input", piped.Runs[0])
	for path, more := range map[string][]string{events: nil, table: columns} {
		out := filepath.Join(t.TempDir(), "out")
		convert := append([]string{"convert", path, "--to", "jsonl", "--out", out}, more...)
		if got := execute(t.Context(), convert...); got.code != 0 {
			t.Fatal(got)
		}
		same(path+" converted", runs(t, append(args, out)...)[0].(map[string]any))
	}
	for says, more := range map[string][]string{
		"in place of either": {"--action-column", "arm", "--outcome-columns", "c",
			"--loss-column", "c"},
		"outcomes: --outcome-columns": {"--action-column", "arm"},
		"the outcome q is there twice": {"--action-column", "arm", "--outcome-columns",
			"outcomes.q,outcomes.q"},
		"known after the decision only": {"--action-column", "arm", "--outcome-columns", "c",
			"--features", "c"},
		`"d": there is no such column`:           {"--action-column", "arm", "--outcome-columns", "c:d"},
		`arm: "s" is not a finite number; leave`: {"--action-column", "h", "--outcome-columns", "arm", "--strict"},
	} {
		if got := execute(t.Context(), append([]string{"backtest", "--data", table}, more...)...); got.code == 0 ||
			!strings.Contains(got.stderr, says) {
			t.Errorf("%v: %+v, want %s", more, got, says)
		}
	}
}

// TestNamedWindow: the windows of one outcome are priced while the others keep theirs.
func TestNamedWindow(t *testing.T) {
	args := []string{"window", "--data", writeFile(t, "arms.jsonl", armsLog(600)), "--model",
		writeFile(t, "m.yaml", armsModel), "--delays", "exp:40,c=exp:5", "--windows", "10,40,200", "--seeds",
		"2", "--json"}
	skipped := func(outcome string) (out []float64) {
		for _, w := range need(t, object(t, append(args, "--outcome", outcome)...), "windows").([]any) {
			out = append(out, w.(map[string]any)["skipped"].(float64))
		}
		return out
	}
	// e^(−w/mean) of the outcomes come after a window.
	for outcome, want := range map[string][]float64{"q": {.78, .37, .01}, "c": {.14, 0, 0}} {
		for i, got := range skipped(outcome) {
			if math.Abs(got-want[i]) > .04 {
				t.Errorf("window %d of %s: %v are skipped, want %v", i, outcome, got, want[i])
			}
		}
	}
	for says, more := range map[string][]string{"say whose is to be priced, for example --outcome c": nil,
		`no outcome of the model is called "price"`: {"--outcome", "price"}} {
		if got := execute(t.Context(), append(args, more...)...); got.code != 2 || !strings.Contains(got.stderr, says) {
			t.Errorf("%+v, want %s", got, says)
		}
	}
}
