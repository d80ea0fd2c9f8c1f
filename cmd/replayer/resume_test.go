package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"hindsight/internal/daemon"
	"hindsight/pkg/stream/natstest"
)

const asReplayer = "HINDSIGHT_TEST_REPLAYER"

func TestMain(m *testing.M) {
	natstest.Main()
	if text := os.Getenv(asReplayer); text != "" {
		_ = os.Unsetenv(asReplayer)
		var args []string
		if err := json.Unmarshal([]byte(text), &args); err != nil {
			panic(err)
		}
		os.Args = append(os.Args[:1], args...)
		main()
	}
	if os.Getenv("GOGC") == "" { // as package roomy does, but not for the command itself
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}

// ofTheClock is what differs between equal backtests: how fast they were and when a report
// was made, and of which command.
var ofTheClock = regexp.MustCompile(
	`"(rounds_per_second|made|command)":("[^"]*"|[^,}]*)|Made [^<]* by replayer|<td class="text ` +
		`">(command|made)</td>.*|<td class="">[0-9,.]+</td></tr>`)

func timeless(text string) string { return ofTheClock.ReplaceAllString(text, "") }

// longBacktest are the arguments of a backtest with everything that can be kept: runs, a
// sweep, and policies of every kind.
func longBacktest(t *testing.T) []string {
	t.Helper()
	data := writeShop(t, 60)
	log := "embedded:" + filepath.Join(t.TempDir(), "log")
	columns := []string{"--data", data, "--time-column", "at", "--outcome-time-column", "seen", "--action-column",
		"item",
		"--propensity-column", "p",
		"--reward-column", "bought", "--features", "hour,plan", "--window", "200", "--oracle", "linear", "--json"}
	object(t, append([]string{"inject", "--rounds", "20", "--delays", "none", "--log", log, "--listen", "127.0.0.1:0"},
		columns...)...)
	model := writeFile(t, "m.yaml", "name: m\nlearner: {egreedy: 0.2}\nwindow: 200 rounds\n")
	table := writeFile(t, "table.csv", "red,blue\n"+strings.Repeat(".5,.5\n.2,.8\n", 30))
	return append([]string{"backtest", "--learner", "dafa", "--learner", "uniform", "--delays", "recorded", "--delays",
		"exp:5",
		"--policy", "logging", "--policy", "always:red", "--policy", "hash:plan", "--policy", "eps:0.1,learner:greedy",
		"--policy", "model:" + model, "--policy", "table:" + table,
		"--policy", "snapshot:7", "--policy", "snapshot", "--log", log, "--lambda", "inf", "--bootstrap", "20",
		"--sweep",
		"0,10"}, columns...)
}

// TestResumeEverything: wherever a backtest was killed, the same command with its journal
// prints what it prints uninterrupted, in JSON and in the report, and does nothing twice.
func TestResumeEverything(t *testing.T) {
	t.Parallel()
	args := longBacktest(t)
	dir := t.TempDir()
	html := filepath.Join(dir, "out.html")
	play := func(more ...string) (out, page, told string) {
		t.Helper()
		got := execute(t.Context(), append(append(args, "--report", html), more...)...)
		b, err := os.ReadFile(html)
		if got.code != 0 || err != nil {
			t.Fatalf("exit code %d, %v: %s", got.code, err, got.stderr)
		}
		return timeless(got.stdout), timeless(string(b)), got.stderr
	}
	want, wantPage, _ := play()
	if strings.Contains(want, `"interrupted"`) || strings.Contains(wantPage, "was interrupted") {
		t.Error("a backtest that was not interrupted says so")
	}
	file := filepath.Join(dir, "runs.jsonl")
	play("--resume", file)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	const policies, runs, swept = 8, 3 * 3, 3 * 3 * 2 // learners × delays; learners × row orders × delays
	if len(lines) != policies+runs+swept {
		t.Fatalf("%d lines", len(lines))
	}
	ends := []int{3, policies + 4, policies + runs + 4, len(lines)}
	if testing.Short() {
		ends = ends[1:2]
	}
	for _, n := range ends {
		kept := bytes.Join(lines[:n], nil)
		if n < len(lines) {
			kept = append(kept, lines[n][:len(lines[n])/2]...) // the line that was being written
		}
		if err := os.WriteFile(file, kept, 0o600); err != nil {
			t.Fatal(err)
		}
		out, page, told := play("--resume", file)
		if out != want {
			t.Errorf("killed after %d of %d lines, resumed it prints\n%s\nnot\n%s", n, len(lines), out, want)
		}
		if page != wantPage {
			t.Errorf("killed after %d of %d lines, resumed it is another report", n, len(lines))
		}
		if says := fmt.Sprintf("%d of %d policies were judged before", min(n, policies), policies); n > 0 &&
			!strings.Contains(told, says) {
			t.Errorf("after %d lines: no %q in %s", n, says, told)
		}
		now, err := os.ReadFile(file)
		if got := bytes.Count(now, []byte("\n")); err != nil || got != len(lines) ||
			!bytes.HasPrefix(now, bytes.Join(lines[:n], nil)) {
			t.Errorf("after %d lines there are %d, not %d (%v)", n, got, len(lines), err)
		}
	}
}

// afterFirstLine calls then when a journal has its first line, unless ctx ends before.
func afterFirstLine(ctx context.Context, file string, then func()) {
	for ctx.Err() == nil {
		if b, _ := os.ReadFile(file); bytes.HasSuffix(b, []byte("\n")) {
			then()
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestKilledAndInterrupted: a backtest that is killed, and one that is interrupted, both in
// the middle of a run; what the latter prints says so; and both are taken up.
func TestKilledAndInterrupted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a run must be stopped in its middle: go test without -short does")
	}
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	html := filepath.Join(t.TempDir(), "out.html")
	args := []string{"backtest", "--rounds", "20000", "--learner", "uniform", "--learner", "dafa", "--delays", "none",
		"--json"}
	want := execute(t.Context(), args...)
	args = append(args, "--resume", file)

	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	killed := exec.Command(os.Args[0])
	killed.Env = append(os.Environ(), asReplayer+"="+string(text), "GOMAXPROCS=1") // one run after the other
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	afterFirstLine(ctx, file, func() { _ = killed.Process.Kill() })
	if err := killed.Wait(); err == nil || killed.ProcessState.Exited() {
		t.Fatalf("it was not killed in the middle: %v", killed.ProcessState)
	}
	if got := execute(t.Context(), args...); got.code != 0 || timeless(got.stdout) != timeless(want.stdout) ||
		!strings.Contains(got.stderr, "1 of 2 runs were finished before") {
		t.Errorf("killed and resumed: exit code %d, %s\n%s\nnot\n%s", got.code, got.stderr, got.stdout, want.stdout)
	}

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	interrupted, stop := context.WithCancel(ctx)
	defer stop()
	go afterFirstLine(interrupted, file, stop)
	args = append(args, "--report", html, "--sweep", "none")
	cores := runtime.GOMAXPROCS(1)
	got := execute(interrupted, args...)
	runtime.GOMAXPROCS(cores)
	var o struct {
		Interrupted bool
		Runs        []struct{ Learner string }
		Parameters  *struct{ Version string }
	}
	page, _ := os.ReadFile(html)
	if err := json.Unmarshal([]byte(got.stdout), &o); err != nil || got.code != daemon.Interrupted || !o.Interrupted ||
		len(o.Runs) != 1 || o.Runs[0].Learner != "uniform" || o.Parameters == nil {
		t.Errorf("interrupted: exit code %d, %v: %s\n%s", got.code, err, got.stdout, got.stderr)
	}
	if !strings.Contains(string(page), "this backtest was interrupted") {
		t.Error("the report does not say that the backtest was interrupted")
	}
	again := execute(t.Context(), args...)
	if again.code != 0 || !strings.Contains(again.stderr, "1 of 2 runs were finished before") ||
		!strings.Contains(again.stdout, `"learner":"dafa"`) || strings.Contains(again.stdout, `"interrupted"`) {
		t.Errorf("interrupted and resumed: exit code %d, %s\n%s", again.code, again.stderr, again.stdout)
	}
}
