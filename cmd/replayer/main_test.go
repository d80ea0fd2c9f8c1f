package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hindsight/internal/daemon"
	"hindsight/internal/verify"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
)

// result is a command that ended.
type result struct {
	code           int
	stdout, stderr string
}

// execute runs the command in process.
func execute(ctx context.Context, args ...string) result {
	var out, log bytes.Buffer
	env := &daemon.Env{Args: args, Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""),
		Stdout: &out, Stderr: &log}
	code := daemon.Run(ctx, env, command(env))
	return result{code, out.String(), log.String()}
}

// object runs a command that prints one JSON object and nothing else, and returns
// it.
func object(t *testing.T, args ...string) map[string]any {
	t.Helper()
	got := execute(t.Context(), args...)
	if got.code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, got.code, got.stderr)
	}
	var o map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &o); err != nil {
		t.Fatalf("%v: %v: %s", args, err, got.stdout)
	}
	return o
}

func TestList(t *testing.T) {
	got := execute(t.Context(), "list")
	for _, want := range []string{"\n  dafa ", "\n  egreedy:EPSILON ", "\n  sigmoid ", "\n  lognormal:median,sigma ",
		"\n  linear "} {
		if got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("exit code %d, no line %q in:\n%s", got.code, want, got.stdout)
		}
	}
	o := object(t, "list", "--json")
	for _, part := range []string{"learners", "oracles", "environments", "delays"} {
		entries, _ := o[part].([]any)
		if len(entries) < 2 {
			t.Errorf("%s: %v", part, o[part])
		}
	}
}

// need reports a key that is not there, and returns its value.
func need(t *testing.T, o map[string]any, path string) any {
	t.Helper()
	var v any = o
	for _, key := range strings.Split(path, ".") {
		m, _ := v.(map[string]any)
		var ok bool
		if v, ok = m[key]; !ok {
			t.Errorf("no %s in %v", path, o)
			return nil
		}
	}
	return v
}

func number(t *testing.T, o map[string]any, path string) float64 {
	t.Helper()
	x, ok := need(t, o, path).(float64)
	if !ok {
		t.Errorf("%s is no number", path)
	}
	return x
}

// checkRun holds a run against its shape. The last rounds of a live one may wait
// for ever.
func checkRun(t *testing.T, r map[string]any, rounds float64) {
	t.Helper()
	sum := 0.
	for _, fate := range []string{"observed", "imputed", "skipped", "withdrawn"} {
		sum += number(t, r, "fates."+fate)
	}
	if pending := number(t, r, "pending"); sum != number(t, r, "rounds") || sum+pending != rounds {
		t.Errorf("%v fates of %v rounds, %v wait; want %v in all", sum, r["rounds"], pending, rounds)
	}
	for _, fate := range []string{"late", "duplicate", "orphan", "mismatch", "malformed"} {
		number(t, r, "fates."+fate)
	}
	for _, path := range []string{"delays.raw.D", "delays.raw.d_max", "delays.released.D", "delays.released.d_max",
		"order", "seed", "rounds_per_second"} {
		number(t, r, path)
	}
	for _, path := range []string{"learner", "delays.spec", "window", "environment", "regret", "certificate"} {
		need(t, r, path)
	}
	for _, path := range []string{"certificate.measured_drift", "certificate.a_priori"} {
		if strings.HasPrefix(r["learner"].(string), "dafa") {
			need(t, r, path+".value")
			if _, ok := need(t, r, path+".vacuous").(bool); !ok {
				t.Errorf("%s.vacuous is no bool", path)
			}
		}
	}
	if mean, uniform, best := number(t, r, "mean_loss"), number(t, r, "uniform_loss"),
		number(t, r, "best_loss"); mean < 0 || mean > 1 || best >= uniform {
		t.Errorf("mean loss %v, uniform %v, best %v", mean, uniform, best)
	}
}

func TestBacktest(t *testing.T) {
	args := []string{"backtest", "--rounds", "500", "--learner", "dafa", "--learner", "egreedy:0.1", "--delays", "none",
		"--delays", "exp:30", "--orders", "2", "--json"}
	runs := func() []any {
		runs, _ := need(t, object(t, args...), "runs").([]any)
		return runs
	}
	all := runs()
	for _, r := range all {
		if number(t, r.(map[string]any), "pending") != 0 {
			t.Error("a backtest left rounds waiting")
		}
	}
	if len(all) != 8 {
		t.Fatalf("%d runs, want 2 learners × 2 delays × 2 orders", len(all))
	}
	seen := map[string]bool{}
	for _, r := range all {
		r := r.(map[string]any)
		checkRun(t, r, 500)
		seen[fmt.Sprint(r["learner"], need(t, r, "delays.spec"), r["order"])] = true
		if need(t, r, "delays.spec") == "none" && number(t, r, "delays.raw.D") != 0 {
			t.Errorf("delays none: D = %v", need(t, r, "delays.raw.D"))
		}
	}
	if len(seen) != 8 {
		t.Errorf("runs: %v", seen)
	}
	again := runs()
	for _, both := range [][]any{all, again} {
		for _, r := range both {
			delete(r.(map[string]any), "rounds_per_second")
		}
	}
	if a, b := fmt.Sprint(all), fmt.Sprint(again); a != b {
		t.Errorf("the same flags gave\n%s\nand\n%s", a, b)
	}
	args = append(args, "--seed", "2")
	if other := runs(); fmt.Sprint(need(t, other[0].(map[string]any), "mean_loss")) == fmt.Sprint(need(t,
		all[0].(map[string]any), "mean_loss")) {
		t.Error("another seed gave the same loss")
	}
}

// TestBacktestForPeople holds that a table comes without --json.
func TestBacktestForPeople(t *testing.T) {
	got := execute(t.Context(), "backtest", "--rounds", "100")
	if got.code != 0 || !strings.Contains(got.stdout, "mean loss") || strings.Contains(got.stdout, "{") {
		t.Errorf("exit code %d: %s", got.code, got.stdout)
	}
}

func TestInjectInMemory(t *testing.T) {
	checkRun(t, object(t, "inject", "--rounds", "300", "--json", "--log", "mem:"), 300)
}

// TestInjectAndVerify plays into a folder, verifies it, and then after what must
// not go unnoticed.
func TestInjectAndVerify(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "log")
	log := "embedded:" + dir
	inject := []string{"inject", "--rounds", "300", "--window", "50", "--delays", "exp:20+never:0.1", "--json", "--log",
		log, "--listen", "127.0.0.1:0"}
	r := object(t, inject...)
	checkRun(t, r, 300)
	if number(t, r, "fates.skipped") == 0 {
		t.Error("a tenth of the outcomes never came, and no round was skipped")
	}
	v := object(t, "verify", "--log", log, "--json")
	for path, want := range map[string]float64{"decisions.records": 300, "decisions.checked": 300,
		"pending":          number(t, r, "pending"),
		"feedback.records": number(t, r, "rounds"), "feedback.checked": number(t, r, "rounds")} {
		if number(t, v, path) != want {
			t.Errorf("%s: %v, want %v", path, need(t, v, path), want)
		}
	}
	if number(t, v, "differences") != 0 || need(t, v, "first") != nil {
		t.Errorf("differences: %v", v)
	}
	if got := execute(t.Context(), "verify", "--log", log); got.code != 0 || !strings.Contains(got.stdout,
		"identical") {
		t.Errorf("verify: %+v", got)
	}
	if got := execute(t.Context(), inject...); got.code != 1 || !strings.Contains(got.stderr, "holds a log already") {
		t.Errorf("a second time into the same folder: %+v", got)
	}
	t.Run("wrong seed", func(t *testing.T) { wrongSeed(t, log) })
	t.Run("wrong name", func(t *testing.T) {
		if got := execute(t.Context(), "verify", "--log", log, "--name", "shop"); got.code != verify.CouldNotRun ||
			!strings.Contains(got.stderr, `does not hold the model "shop", but: replay`) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("beside its owner", func(t *testing.T) { verifyBeside(t, dir) })
	t.Run("cancelled", func(t *testing.T) {
		if got := execute(cancelled(t), "verify", "--log", log); got.code != daemon.Interrupted {
			t.Errorf("%+v", got)
		}
	})
	t.Run("cut", func(t *testing.T) { cut(t, dir) })
	t.Run("tampered", func(t *testing.T) { tamper(t, dir) })
}

func wrongSeed(t *testing.T, log string) {
	seed := filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(seed, []byte(strings.Repeat("5e", daemon.SeedBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	got := execute(t.Context(), "verify", "--log", log, "--seed-file", seed)
	if got.code != verify.CouldNotRun || !strings.Contains(got.stderr, "not the seed that the log was created with") {
		t.Errorf("%+v", got)
	}
	got = execute(t.Context(), "verify", "--log", log, "--seed-file", seed+"2")
	if _, err := os.Stat(seed + "2"); got.code != verify.CouldNotRun || err == nil {
		t.Errorf("a seed that is not there: %+v, %v", got, err)
	}
}

// verifyBeside verifies a log that another part of the process serves.
func verifyBeside(t *testing.T, dir string) {
	e, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, Port: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if got := execute(t.Context(), "verify", "--log", "embedded:"+dir); got.code != 0 {
		t.Errorf("%+v", got)
	}
}

// cut reads copies of a log without the last records of one topic, whose index knows them.
func cut(t *testing.T, dir string) {
	for topic, args := range map[string][]string{
		"outcomes": {"verify", "--log"}, "decisions": {"backtest", "--policy", "uniform", "--data"}} {
		damaged := filepath.Join(t.TempDir(), "log")
		if err := os.CopyFS(damaged, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(damaged, "seed"), 0o600); err != nil {
			t.Fatal(err)
		}
		block := filepath.Join(damaged, "jetstream", "$G", "streams", "replay_"+topic+"_0", "msgs", "1.blk")
		info, err := os.Stat(block)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(block, info.Size()-2000); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		got := execute(ctx, append(args, "embedded:"+damaged)...)
		if text := got.stdout + got.stderr; got.code != 1 || !strings.Contains(text, "read replay."+topic+"[0]@") ||
			!strings.Contains(text, "records are missing inside the log") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// tamper appends what nobody decided.
func tamper(t *testing.T, dir string) {
	e, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	var last stream.Record
	err = stream.Scan(t.Context(), e.Log(), "replay.feedback", 0, stream.Earliest, 1<<62, func(r *stream.Record) error {
		if r.Type == "" {
			last = stream.Record{Key: slices.Clone(r.Key), Value: slices.Clone(r.Value)}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w, err := e.Log().Writer(t.Context(), "replay.feedback", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(t.Context(), &last); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	got := execute(t.Context(), "verify", "--log", "embedded:"+dir)
	if got.code != 1 || !strings.Contains(got.stdout, "DIFFERENT") || !strings.Contains(got.stdout,
		"replay.feedback[0]@") {
		t.Errorf("%+v", got)
	}
}

// cancelled returns the context of a command after Ctrl-C.
func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// interrupt cancels a command when it writes something: its bar has begun.
type interrupt struct{ cancel func() }

func (i interrupt) Write(p []byte) (int, error) {
	i.cancel()
	return len(p), nil
}

// TestInterrupted holds that Ctrl-C ends what is under way with its own exit code
// and without a result.
func TestInterrupted(t *testing.T) {
	for _, args := range [][]string{
		{"backtest", "--rounds", "2000000"},
		{"inject", "--rounds", "1000000", "--log", "mem:"},
		{"inject", "--rounds", "1000000", "--log", "embedded:" + filepath.Join(t.TempDir(), "log"), "--listen",
			"127.0.0.1:0"},
	} {
		if got := execute(cancelled(t), args...); got.code != daemon.Interrupted || got.stdout != "" {
			t.Errorf("%v, told before it began: exit code %d, %q, %q", args, got.code, got.stdout, got.stderr)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	env := &daemon.Env{Args: []string{"backtest", "--rounds", "2000000"},
		Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: &out,
		Stderr: interrupt{cancel}}
	if code := daemon.Run(ctx, env, command(env)); code != daemon.Interrupted || out.Len() > 0 {
		t.Errorf("in the middle: exit code %d, %s", code, out.String())
	}
}

func TestUsage(t *testing.T) {
	for args, says := range map[string]string{
		"":                             "which command?",
		"bogus":                        `unknown command "bogus"`,
		"list extra":                   "extra",
		"backtest --bogus":             "unknown flag: --bogus",
		"backtest pendigits.csv":       "replayer backtest --data pendigits.csv",
		"backtest --json false":        "--json=false",
		"verify x":                     `unknown command "x"`,
		"explain":                      "which id of a round? For example: replayer explain r-0-17",
		"explain a b":                  `replayer explain takes one id of a round, and found 2 arguments, the second "b"`,
		"convert":                      "which log? For example: replayer convert log.json",
		"backtest --rounds -1":         "--rounds -1: ",
		"backtest --rounds many":       "--rounds",
		"backtest --orders 0":          "--orders 0: ",
		"backtest --seed -1":           "--seed",
		"backtest --learner magic":     `unknown learner "magic"`,
		"backtest --delays sometimes":  `unknown delay "sometimes"`,
		"backtest --env moon":          `"moon"`,
		"backtest --window forever":    `"forever" is no window`,
		"backtest --window 10m":        "give the window in rounds",
		"inject --lead 0":              "--lead 0: ",
		"inject --log cassandra:x":     "expected embedded:DIR",
		"inject --rounds 9 --listen x": "expected HOST:PORT",
		"inject --rounds 9 --listen 1.1.1.1:66666": "not a port",
		"inject --rounds 9 --sync often":           "expected always or interval",
		"inject --log mem: --sync always":          "one in memory survives nothing",
		"inject --rounds 9 --speed fast":           `--speed "fast": expected max`,
		"inject --rounds 9 --speed 2x":             "has no times of its own",
		"tail --every 0s":                          "--every 0s: ",
		"tail --log mem:":                          "nothing to verify, to tell or to follow",
		"verify --log mem:":                        "nothing to verify",
		"verify --log embedded:":                   "which folder?",
		"verify --bogus":                           "unknown flag: --bogus",
	} {
		got := execute(t.Context(), strings.Fields(args)...)
		if got.code != daemon.WrongUsage || !strings.Contains(got.stderr, says) || !strings.Contains(got.stderr,
			"Try: replayer") || got.stdout != "" {
			t.Errorf("%q: exit code %d, %q, %q; want %q", args, got.code, got.stdout, got.stderr, says)
		}
	}
	if got := execute(t.Context(), "verify", "--log", "embedded:"+t.TempDir()); got.code != verify.CouldNotRun ||
		!strings.Contains(got.stderr, "holds no log: name the folder") {
		t.Errorf("verify of an empty folder: %+v", got)
	}
}

// TestLabelledFile plays a labelled CSV, and is told where one is wrong: with --strict that
// ends it, otherwise the row is left out, counted and told, if others are left.
func TestLabelledFile(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := "label,n_x,c_y\n" + strings.Repeat("a,1,u\nb,2.5,v\na,,u\n", 20)
	runs := need(t, object(t, "backtest", "--data", file("good.csv", good), "--delays", "none", "--json"),
		"runs").([]any)
	checkRun(t, runs[0].(map[string]any), 60)
	for name, c := range map[string]struct{ text, says string }{
		"nolabel.csv": {"label,n_x,c_y\na,1,u\n,2,v\n", "nolabel.csv:3: column label: "},
		"ragged.csv":  {"label,n_x,c_y\na,1,u\nb,2\n", "ragged.csv:3: 2 cells, but the header has 3 columns"},
		"long.csv":    {"label,n_x,c_y\na,1,u,9\n", "long.csv:2: 4 cells, but the header has 3 columns"},
		"number.csv":  {"label,n_x,c_y\na,1,u\nb,two,v\n", `number.csv:3: column n_x: "two" is not a finite number`},
		"quote.csv":   {"label,n_x,c_y\na,1,\"u\nb,2,v\n", "quote.csv:3: "},
		"header.csv":  {"n_x,c_y\n1,u\n", "header.csv:1: column n_x: "},
		"twice.csv":   {"label,n_x,n_x\na,1,2\n", "twice.csv:1: column n_x: "},
		"empty.csv":   {"", "empty.csv: the log is empty"},
		"rows.csv":    {"label,n_x\n", "rows.csv:2: "},
	} {
		for _, verb := range []string{"backtest", "inject"} {
			args := []string{verb, "--data", file(name, c.text), "--log", "mem:"}
			if verb == "backtest" {
				args = args[:3]
			}
			if got := execute(t.Context(), append(args, "--strict")...); got.code != daemon.Failed ||
				!strings.Contains(got.stderr, c.says) || got.stdout != "" {
				t.Errorf("%s %s: exit code %d, %q; want %q", verb, name, got.code, got.stderr, c.says)
			}
			got := execute(t.Context(), args...)
			if counted := strings.Contains(got.stderr, " 1 malformed;"); !strings.Contains(got.stderr, c.says) ||
				(got.code == daemon.Done) != counted {
				t.Errorf("%s %s, what is wrong left out: exit code %d, %q; want %q", verb, name, got.code,
					got.stderr, c.says)
			}
		}
	}
	if got := execute(t.Context(), "backtest", "--data", filepath.Join(dir, "none.csv")); got.code != daemon.Failed ||
		!strings.Contains(got.stderr, "none.csv: no such file") {
		t.Errorf("no file: %+v", got)
	}
}
