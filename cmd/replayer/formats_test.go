package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"hindsight/internal/daemon"
)

// rankLog is a small log of decision-service JSON: actions with features that come and go,
// times, a dangling observation, a repeat, a line that is cut, one that was never shown.
func rankLog() string {
	var text strings.Builder
	for i := range 60 {
		k, played := 2+i%2, i%2
		actions := []string{`{"_tag":"x","f":{"good":1}}`, `{"_tag":"y","f":{"good":0}}`,
			`{"_tag":"z","f":{"good":0.5}}`}[:k]
		fmt.Fprintf(&text,
			`{"_label_cost":%d,"_label_probability":0.5,"_label_Action":%d,"_labelIndex":%d,"o":[{"v":1,`+
				`"EnqueuedTimeUtc":"2021-02-04T16:%02d:30Z"}],"Timestamp":"2021-02-04T16:%02d:00Z","EventId":"e%d","a":[%d],`+
				`"p":[0.5],"c":{"u":{"hour":%d},"_multi":[%s]}}`+"\n",
			played-1, played+1, played, i%59, i%59, i, played+1, i%24, strings.Join(actions, ","))
	}
	text.WriteString(`{"_label_cost":0,"_label_probability":0.5,"_label_Action":1,"Timestamp":"2021-02-04T17:00:00Z",` +
		`"EventId":"late","a":[1],"p":[0.5],"c":{"u":{"hour":1},"_multi":[{"_tag":"x"}]}}
{"RewardValue":1,"EnqueuedTimeUtc":"2021-02-04T17:30:00Z","EventId":"late"}
{"RewardValue":1,"EnqueuedTimeUtc":"2021-02-04T17:30:00Z","EventId":"late"}
{"_label_cost":
{"_label_cost":0,"_skipLearn":true,"_label_Action":1,"EventId":"asleep","a":[1],"p":[1],"c":{"_multi":[{}]}}
`)
	return text.String()
}

// replayed returns what a backtest says of a log, but for its name and what the clock said.
func replayed(t *testing.T, args ...string) map[string]any {
	t.Helper()
	o := object(t, append([]string{"backtest", "--json", "--bootstrap", "0", "--delays", "recorded",
		"--oracle", "hybrid", "--rounds", "50"}, args...)...)
	for _, r := range o["runs"].([]any) {
		delete(r.(map[string]any), "rounds_per_second")
		delete(r.(map[string]any), "environment")
	}
	return map[string]any{"runs": o["runs"], "policies": o["policies"]}
}

// TestEveryFormatAsData: one log in every form that can hold it is the same log.
func TestEveryFormatAsData(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, b []byte) string {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	text := []byte(rankLog())
	data := write("log.json", text)
	want := replayed(t, "--data", data)
	if runs := want["runs"].([]any); len(runs) != 1 || number(t, runs[0].(map[string]any), "rounds") != 50 ||
		need(t, runs[0].(map[string]any), "delays.spec") != "recorded" {
		t.Fatal(want)
	}
	in := object(t, "backtest", "--data", data, "--json", "--policy", "uniform", "--rejects",
		at("rejects"))["intake"].(map[string]any)
	for key, x := range map[string]float64{"read": 65, "events": 61, "duplicates": 1, "dangling": 1, "skipped": 1,
		"malformed": 1, "rows": 61, "joined": 1, "actions": 3} {
		if number(t, in, key) != x {
			t.Errorf("intake: %s is %v, want %v", key, in[key], x)
		}
	}
	if b, _ := os.ReadFile(at("rejects")); bytes.Count(b, []byte("\n")) != 3 {
		t.Errorf("rejects: %s", b)
	}
	var zipped bytes.Buffer
	g := gzip.NewWriter(&zipped)
	_, _ = g.Write(text)
	g.Close()
	z, _ := zstd.NewWriter(nil)
	half := bytes.Index(text, []byte("\n{\"_label_cost\":0,")) + 1
	write("folder/1.zst", z.EncodeAll(text[:half], nil))
	write("folder/sub/2", text[half:])
	forms := [][]string{{"--data", write("log.gz", zipped.Bytes())}, {"--data", at("folder")}, {"--data", data,
		"--format", "dsjson"}}
	for _, to := range []string{"jsonl", "msgpack", "parquet", "dsjson"} {
		if r := execute(t.Context(), "convert", data, "--to", to, "--out", at("as."+to)); r.code != 0 {
			t.Fatal(r)
		}
		forms = append(forms, []string{"--data", at("as." + to)})
	}
	for _, form := range forms {
		if got := replayed(t, form...); !reflect.DeepEqual(got, want) {
			t.Errorf("%v:\ngot  %v\nwant %v", form, got, want)
		}
	}
	if r := execute(t.Context(), "backtest", "--data", data, "--strict"); r.code != 1 || !strings.Contains(r.stderr,
		"log.json:64:16: ") {
		t.Errorf("strict: %+v", r)
	}
	live := object(t, "inject", "--json", "--log", "mem:", "--data", data, "--delays", "recorded", "--oracle", "hybrid",
		"--window", "1h")
	if number(t, live, "rounds")+number(t, live, "pending") != 61 {
		t.Errorf("live: %v", live)
	}
}

// A log on standard input, plain or as CSV.
func TestDataOnStandardInput(t *testing.T) {
	for _, c := range []struct {
		text string
		args []string
		want string
	}{
		{rankLog(), nil, `"format":"dsjson"`},
		{banditText, []string{"--action-column", "who", "--reward-column", "paid"}, `"format":"bandit"`},
		{"label,n_a\nx,1\ny,2\nx\n", nil,
			`"format":"multiclass","files":1,"bytes":20,"read":3,"events":2,"duplicates":0,"dangling":0,"skipped":0,` +
				`"malformed":1`},
		{",timestamp,item_id,position,click,propensity_score\n0,2019-11-24 00:00:01+00:00,1,3,1,0.5\n",
			[]string{"--min-events", "0"}, `"format":"obd"`},
	} {
		var out, log bytes.Buffer
		env := &daemon.Env{Args: append([]string{"backtest", "--data", "-", "--json", "--bootstrap", "0"}, c.args...),
			Getenv: func(string) string { return "" },
			Stdin:  strings.NewReader(c.text), Stdout: &out, Stderr: &log}
		if code := daemon.Run(t.Context(), env, command(env)); code != 0 || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: exit code %d: %s%s", c.want, code, out.String(), log.String())
		}
	}
}

// TestTopicsAsData: what a live system decided is a log like another, to replay, to judge
// policies on, and to convert.
func TestTopicsAsData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	log := "embedded:" + dir
	r := object(t, "inject", "--rounds", "200", "--window", "50", "--delays", "constant:3", "--json", "--log", log,
		"--listen", "127.0.0.1:0")
	if number(t, r, "rounds") == 0 {
		t.Fatal(r)
	}
	out := filepath.Join(t.TempDir(), "log.jsonl")
	a := object(t, "convert", log, "--to", "jsonl", "--out", out, "--json")
	if number(t, a, "events") != 200 || number(t, a, "dangling") != 200 || need(t, a, "format") != "topics" {
		t.Errorf("convert: %v", a)
	}
	args := []string{"--json", "--bootstrap", "0", "--policy", "uniform", "--policy", "logging"}
	topics := object(t, append([]string{"backtest", "--data", log}, args...)...)
	file := object(t, append([]string{"backtest", "--data", out}, args...)...)
	if in := topics["intake"].(map[string]any); number(t, in, "joined") != 200 || number(t, in, "rows") != 200 ||
		in["action_sets"] != false {
		t.Errorf("intake: %v", in)
	}
	if !reflect.DeepEqual(topics["policies"], file["policies"]) {
		t.Errorf("topics: %v\nfile: %v", topics["policies"], file["policies"])
	}
}

// TestConvertTables: CSV whose columns are named, and Open Bandit data, as events.
func TestConvertTables(t *testing.T) {
	data := writeFile(t, "log.csv", banditText+"broken\n")
	r := execute(t.Context(), "convert", data, "--id-column", "id", "--time-column", "at", "--outcome-time-column",
		"back", "--action-column", "who", "--reward-column", "paid", "--features", "x", "--to", "jsonl")
	first, _, _ := strings.Cut(r.stdout, "\n")
	if want := `{"id":"q","features":{"x":1},"time":"2020-01-01T00:00:00Z","action":"b","reward":1,` +
		`"outcome_time":"2020-01-01T00:00:25Z"}`; r.code != 0 || first != want ||
		!strings.Contains(r.stderr, "malformed   1") {
		t.Errorf("%+v", r)
	}
	labelled := writeFile(t, "l.csv", "label,n_a\nx,1\n")
	if r := execute(t.Context(), "convert", labelled, "--to", "jsonl"); r.code != 2 || !strings.Contains(r.stderr,
		"are no decisions") {
		t.Errorf("%+v", r)
	}
	if r := execute(context.Background(), "convert", data); r.code != 2 || !strings.Contains(r.stderr,
		"--action-column") {
		t.Errorf("%+v", r)
	}
	// What dsjson cannot hold is left out, and counted.
	events := writeFile(t, "e.jsonl", `{"id":"a","features":{},"action":"by name","propensity":1,"reward":1}`+"\n"+
		`{"id":"b","features":{},"actions":["p"],"action":"p","propensity":1,"reward":1}`+"\n")
	r = execute(t.Context(), "convert", events, "--to", "dsjson")
	if r.code != 0 || strings.Count(r.stdout, "\n") != 1 || !strings.Contains(r.stderr, "not written  1") {
		t.Errorf("%+v", r)
	}
	if r := execute(t.Context(), "convert", events, "--to", "dsjson", "--strict"); r.code != 1 {
		t.Errorf("%+v", r)
	}
}

// TestFormatsPage: the page names every format and every key of the account.
func TestFormatsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/log-formats.md")
	if err != nil {
		t.Fatal(err)
	}
	data := writeFile(t, "log.json", rankLog())
	keys := slices.Collect(func(yield func(string) bool) {
		for _, o := range []map[string]any{object(t, "convert", data, "--json"), object(t, "backtest", "--data", data,
			"--json", "--policy", "uniform", "--bootstrap", "0")["intake"].(map[string]any)} {
			for key := range o {
				if !yield(key) {
					return
				}
			}
		}
	})
	for _, key := range append(keys, "jsonl", "msgpack", "parquet", "dsjson", "cb_adf", "cb", "bandit", "obd",
		"multiclass") {
		if !bytes.Contains(page, []byte("`"+key+"`")) {
			t.Errorf("docs/log-formats.md does not name `%s`", key)
		}
	}
}
