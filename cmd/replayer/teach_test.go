package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hindsight/internal/daemon"
	"hindsight/internal/engine"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/service"
	"hindsight/internal/testkit"
	"hindsight/internal/topics"
)

// TestTeachForms teaches a log in each form: rounds keep their ids, the log verifies, and a second
// time nothing is added.
func TestTeachForms(t *testing.T) {
	const text = "name: shop\nversion: 2\nwarm: keep\nreward: {min: 0, max: 1}\nwindow: 1h\nmissing: impute\n"
	ranked := writeFile(t, "log.json", rankLog())
	own := filepath.Join(t.TempDir(), "log.jsonl")
	if got := execute(t.Context(), "convert", ranked, "--to", "jsonl", "--out", own); got.code != 0 {
		t.Fatal(got)
	}
	for name, c := range map[string]struct {
		data          []string
		rounds, first string
		says          string
	}{
		"dsjson": {[]string{ranked}, "taught 61 rounds: ", "e0", "propensities of the log are kept"},
		"own":    {[]string{own}, "taught 61 rounds: ", "e0", "propensities of the log are kept"},
		"vw": {[]string{writeFile(t, "log.dat", "1:0.5:0.5 | x:1\n2:0:0.25 | x:2 y\n2:1:0.25 | x:3\n")},
			"taught 3 rounds: ", "r1", "propensities of the log are kept"},
		"csv": {[]string{writeFile(t, "log.csv", banditText), "--action-column", "who", "--reward-column", "paid",
			"--time-column", "at", "--outcome-time-column", "back",
			"--id-column", "id", "--features", "x"}, "taught 4 rounds: ", "q", "the log has no propensities"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, dir := writeFile(t, "shop.yaml", text), filepath.Join(t.TempDir(), "log")
			args := append([]string{"teach", "--model", file, "--log", "embedded:" + dir, "--data"}, c.data...)
			for range 2 {
				got := execute(t.Context(), args...)
				if got.code != 0 || !strings.Contains(got.stdout, c.rounds) || !strings.Contains(got.stdout, c.says) ||
					!strings.Contains(got.stdout, "go live:  decider --model "+file+" --log embedded:"+dir) {
					t.Fatalf("%+v", got)
				}
			}
			if got := execute(t.Context(), "verify", "--log", "embedded:"+dir); got.code != 0 {
				t.Errorf("%+v", got)
			}
			if got := execute(t.Context(), "explain", c.first, "--log", "embedded:"+dir); got.code != 0 {
				t.Errorf("%+v", got)
			}
			liveOn(t, dir, file, nil)
			if got := execute(t.Context(), args...); got.code != daemon.Failed || !strings.Contains(got.stderr,
				"is taught no more") {
				t.Errorf("taught while live: %+v", got)
			}
		})
	}
}

// TestTeachNamed: a log with named outcomes teaches a model that names them, of two windows, and the live model goes on
// with what it learned.
func TestTeachNamed(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 40 {
		at := func(s int) string { return time.Unix(1.6e9+int64(10*i+s), 0).UTC().Format(time.RFC3339) }
		fmt.Fprintf(&log,
			`{"id":"e%d","time":"%s","features":{"h":%d},"actions":["x","y"],"action":"%s","propensity":0.5,`+
				`"outcomes":{"q":{"value":%v,"time":"%s"},"c":{"value":%d,"time":"%s"}}}`+"\n", i, at(0), i%3,
			[]string{"x", "y"}[i%2],
			float64(i%5)/5, at(40), i%4, at(3+4*(i%3)))
	}
	data, dir := writeFile(t, "log.jsonl", log.String()), filepath.Join(t.TempDir(), "log")
	file := writeFile(t, "m.yaml", "name: shop\nversion: 2\nwarm: keep\nactions: [x, y]\nreward: q - "+
		"c/10\noutcomes: {q: {window: 60s}, c: {max: 10, window: 10s}}\nbudget: {spent: {of: c, mean_at_most: 1, "+
		"about: 1}}\n")
	args := []string{"teach", "--model", file, "--log", "embedded:" + dir, "--data", data}
	for range 2 {
		got := execute(t.Context(), args...)
		if got.code != 0 || !strings.Contains(got.stdout, "taught 40 rounds: ") ||
			!strings.Contains(got.stdout, "after the model's window: 13 outcomes") {
			t.Fatalf("%+v", got)
		}
	}
	if got := execute(t.Context(), "explain", "e7", "--log", "embedded:"+dir); got.code != 0 ||
		!strings.Contains(got.stdout, "outcomes c 3") || !strings.Contains(got.stdout, "identical") {
		t.Errorf("%+v", got)
	}
	// Costs are known at the next decision, quality four later: each is taught when its own window ends.
	if got := execute(t.Context(), "explain", "e7", "--log", "embedded:"+dir); !strings.Contains(got.stdout, "c "+
		"observed, 3, by outcomes[0]@11; learned in stage 1") {
		t.Errorf("%+v", got)
	}
	liveOn(t, dir, file, nil)
}

// A system that is live is not taught, and nothing of it changes: it goes on with its model.
func TestTeachSparesTheLive(t *testing.T) {
	data, dir := writeFile(t, "log.json", rankLog()), filepath.Join(t.TempDir(), "log")
	live := writeFile(t, "shop.yaml", "name: shop\nversion: 1\n")
	liveOn(t, dir, live, nil)
	next := writeFile(t, "next.yaml", "name: shop\nversion: 3\nwarm: keep\nreward: {min: 0, max: 1}\nwindow: "+
		"1h\nmissing: impute\n")
	if got := execute(t.Context(), "teach", "--data", data, "--model", next, "--log",
		"embedded:"+dir); got.code != daemon.Failed || !strings.Contains(got.stderr, "is taught no more") {
		t.Errorf("%+v", got)
	}
	liveOn(t, dir, live, nil)
}

// TestTeachPage runs the commands of docs/teach.md with its model file, word for word but for folders.
func TestTeachPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/teach.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	file, _, _ := strings.Cut(rest, "```")
	dir := filepath.Join(t.TempDir(), "food-data")
	places := strings.NewReplacer("compose/", "../../compose/", "food.yaml", writeFile(t, "food.yaml",
		strings.ReplaceAll(file, "   ", "")), "food-data", dir)
	for line := range strings.Lines(testkit.Block(t, "../../docs/teach.md", "teach")) {
		args := strings.Fields(places.Replace(line))
		if got := execute(t.Context(), args[1:]...); args[0] != "replayer" || got.code != 0 {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

func TestTeachUsage(t *testing.T) {
	data, old := writeFile(t, "log.json", rankLog()), writeFile(t, "shop.yaml", "name: shop\n")
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{2, "--data", nil},
		{2, "nothing would be left", []string{"--data", data, "--model", old, "--log", "mem:"}},
		{daemon.Failed, "shop.yaml: the model must go on with what was taught", []string{"--data", data, "--model", old,
			"--log", "embedded:" + t.TempDir() + "/log"}},
		{daemon.Failed, "which actions were taken", []string{"--data", writeFile(t, "d.csv", "label,n_a\nx,1\ny,2\n"),
			"--model", old, "--log", "embedded:" + t.TempDir() + "/log"}},
	} {
		if got := execute(t.Context(), append([]string{"teach"}, c.args...)...); got.code != c.code ||
			!strings.Contains(got.stderr, c.want) {
			t.Errorf("%v: %+v", c.args, got)
		}
	}
}

// liveOn runs the system of a model file on an embedded log as a decider does, and asks it.
func liveOn(t *testing.T, dir, file string, ask func(e *engine.Engine)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e, err := engine.Open(ctx, engine.Options{Log: "embedded:" + dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	source, err := modelfile.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := daemon.SeedFile(filepath.Join(dir, engine.SeedName))
	if err != nil {
		t.Fatal(err)
	}
	partitions, err := topics.Ensure(ctx, e.Log, source.Name, 0, topics.Retention{})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := service.Start(ctx, service.SystemConfig{Log: e.Log, Bus: e.Bus, Name: source.Name, Source: source,
		Build: model.Epoch, Seed: seed, Partitions: partitions, Owner: "test",
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if ask != nil {
		ask(e)
	}
	if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// TestTaughtKnows: a system that was taught what a random policy did loses less, from its first
// requests on, than one that was not.
func TestTaughtKnows(t *testing.T) {
	if testing.Short() {
		t.Skip("it learns thousands of rows")
	}
	f, err := os.Open("../../../shared/data/multiclass/pendigits.csv")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the data is not here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	names, rows := rows[0], rows[1:]
	const history, asked = 1500, 200
	var log strings.Builder
	rng := rand.New(rand.NewPCG(1, 2))
	fmt.Fprintln(&log, "played,paid,p,"+strings.Join(names[1:], ","))
	for _, r := range rows[:history] {
		played := fmt.Sprint(rng.IntN(10))
		fmt.Fprintf(&log, "%s,%d,0.1,%s\n", played, map[bool]int{true: 1}[played == r[0]], strings.Join(r[1:], ","))
	}
	file := writeFile(t, "digits.yaml", "name: digits\nversion: 2\nwarm: keep\nreward: {min: 0, max: 1}\n")
	loss := func(dir string) (mean float64) {
		liveOn(t, dir, file, func(e *engine.Engine) {
			for _, r := range rows[history : history+asked] {
				features := map[string]json.Number{}
				for i, x := range r[1:] {
					features[names[1+i]] = json.Number(x)
				}
				ask, _ := json.Marshal(map[string]any{"features": features, "actions": strings.Split("0123456789", "")})
				reply, _, err := e.Bus.Request(t.Context(), "digits.decide", ask)
				var d struct{ ID, Action string }
				if err = errors.Join(err, json.Unmarshal(reply, &d)); err != nil || d.ID == "" {
					t.Fatalf("%v %s", err, reply)
				}
				outcome := fmt.Sprintf(`{"id":%q,"reward":%d}`, d.ID, map[bool]int{true: 1}[d.Action == r[0]])
				if _, _, err := e.Bus.Request(t.Context(), "digits.outcome", []byte(outcome)); err != nil {
					t.Fatal(err)
				}
				if d.Action != r[0] {
					mean += 1. / asked
				}
			}
		})
		if got := execute(t.Context(), "verify", "--log", "embedded:"+dir); got.code != 0 {
			t.Errorf("%+v", got)
		}
		return mean
	}
	dirs := []string{filepath.Join(t.TempDir(), "fresh"), filepath.Join(t.TempDir(), "taught")}
	got := execute(t.Context(), "teach", "--data", writeFile(t, "log.csv", log.String()), "--action-column", "played",
		"--reward-column", "paid", "--propensity-column", "p",
		"--feature-prefix", "n_", "--model", file, "--log", "embedded:"+dirs[1])
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	fresh, taught := loss(dirs[0]), loss(dirs[1])
	if t.Logf("mean loss of the first %d requests: %.3f, of a system that was not taught %.3f", asked, taught,
		fresh); !(taught < fresh-.2) {
		t.Errorf("mean loss %.3f, not taught %.3f", taught, fresh)
	}
}
