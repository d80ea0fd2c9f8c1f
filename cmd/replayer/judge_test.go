package main

import (
	"bufio"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hindsight/internal/daemon"
)

// TestResume: what a journal has is not run again and comes out to the byte; what it has
// not is run.
func TestResume(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	args := []string{"backtest", "--rounds", "200", "--orders", "2", "--delays", "none", "--delays", "exp:5", "--json",
		"--resume", file}
	first := execute(t.Context(), args...)
	if first.code != 0 || strings.Contains(first.stderr, "finished before") {
		t.Fatalf("%+v", first)
	}
	again := execute(t.Context(), args...)
	if again.code != 0 || again.stdout != first.stdout || !strings.Contains(again.stderr,
		"4 of 4 runs were finished before") {
		t.Errorf("exit code %d, %s\n%s\n%s", again.code, again.stderr, again.stdout, first.stdout)
	}
	more := execute(t.Context(), append(args, "--delays", "constant:3")...)
	if more.code != 0 || !strings.Contains(more.stderr, "4 of 6 runs were finished before") {
		t.Errorf("%+v", more)
	}
	if err := os.WriteFile(file, []byte("a,b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := execute(t.Context(), args...); got.code != daemon.WrongUsage || !strings.Contains(got.stderr,
		"runs.jsonl:1: ") {
		t.Errorf("a file of something else: %+v", got)
	}
}

// TestInterruptedRuns: Ctrl-C prints what is finished, and the rest is run by the same
// command.
func TestInterruptedRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("a run must be stopped in its middle: go test without -short does")
	}
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go afterFirstLine(ctx, file, cancel) // the first run is kept, the second goes on
	args := []string{"backtest", "--rounds", "60000", "--learner", "uniform", "--learner", "dafa", "--delays", "none",
		"--resume", file}
	got := execute(ctx, args...)
	if got.code != daemon.Interrupted || !strings.Contains(got.stdout, "uniform") || strings.Contains(got.stdout,
		"dafa") || !strings.Contains(got.stderr, "1 of 2 runs are finished and kept") {
		t.Fatalf("exit code %d, %s\n%s", got.code, got.stderr, got.stdout)
	}
}

// TestPlayers: which learners a command plays, and which policies it judges.
func TestPlayers(t *testing.T) {
	for _, c := range []struct {
		learners, policies []string
		model, want        string
	}{
		{nil, nil, "", "learner:dafa"},
		{nil, nil, "m.yaml", "model:m.yaml"},
		{[]string{"greedy", "uniform"}, []string{"logging"}, "", "learner:greedy learner:uniform"},
		{nil, []string{"logging", "always:a"}, "m.yaml", ""},
		{nil, []string{"model:n.yaml", "learner:greedy"}, "", "model:n.yaml learner:greedy"},
		{[]string{"greedy"}, []string{"learner:greedy"}, "", "learner:greedy"},
	} {
		b := &backtest{learners: c.learners, source: source{model: c.model}, policies: policies{specs: c.policies}}
		var got []string
		for _, p := range b.players() {
			got = append(got, p.target())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestJudgedTwice: a learner on a log with propensities is replayed and estimated.
func TestJudgedTwice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log.csv")
	text := "a,r,p,x\n" + strings.Repeat("red,1,.5,1\ngreen,0,.25,2\nred,0,.5,3\nblue,1,.25,1\n", 20)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	base := []string{"backtest", "--data", file, "--action-column", "a", "--reward-column", "r", "--propensity-column",
		"p", "--features", "x", "--bootstrap", "0", "--delays", "none", "--json"}
	for _, more := range [][]string{{"--learner", "egreedy:0.1"}, {"--policy", "learner:egreedy:0.1"}} {
		o := object(t, append(base, more...)...)
		runs, _ := o["runs"].([]any)
		all, _ := o["policies"].([]any)
		if len(runs) != 1 || len(all) == 0 {
			t.Fatalf("%v: %v", more, o)
		}
		last := all[len(all)-1].(map[string]any)
		if need(t, last, "policy") != "learner:egreedy:0.1" {
			t.Errorf("%v: the last policy is %v", more, last["policy"])
		}
		number(t, last, "estimates.dr.value")
		number(t, runs[0].(map[string]any), "replay.snips.value")
	}
}

// TestSnapshotPolicy judges learners of a live system on its own log.
func TestSnapshotPolicy(t *testing.T) {
	t.Parallel()
	log := "embedded:" + filepath.Join(t.TempDir(), "log")
	object(t, "inject", "--rounds", "200", "--delays", "none", "--json", "--log", log, "--listen", "127.0.0.1:0")
	o := object(t, "backtest", "--data", log, "--policy", "logging", "--policy", "snapshot:1", "--policy",
		"snapshot:200", "--policy", "snapshot", "--bootstrap", "0", "--json")
	all, _ := o["policies"].([]any)
	if len(all) != 4 {
		t.Fatalf("%v", o)
	}
	var ess, ips [4]float64
	for i := range all {
		p := all[i].(map[string]any)
		ess[i], ips[i] = number(t, p, "ess"), number(t, p, "estimates.ips.value")
		flags, _ := json.Marshal(need(t, p, "flags"))
		if number(t, p, "rows") != 200 || strings.Contains(string(flags), "learned from rows of this "+
			"very log") != (i > 0) {
			t.Errorf("%v", p)
		}
	}
	if ess[0] != 200 || ess[1] == ess[2] || ess[2] != ess[3] || ips[2] != ips[3] || ips[1] == ips[2] {
		t.Errorf("effective sample sizes %v, IPS %v of logging, the learner after 1, after 200, and as it is", ess, ips)
	}
	for want, args := range map[string][]string{
		"feedback through 200, not 900":     {"--data", log, "--policy", "snapshot:900"},
		"expected the number of a feedback": {"--data", log, "--policy", "snapshot:x"},
		"does not hold the model \"other\"": {"--data", log, "--policy", "logging", "--policy", "snapshot", "--name",
			"other"},
		"holds no log": {"--data", log, "--policy", "snapshot", "--log", "embedded:" + t.TempDir()},
		"name its log, for example --log em": {"--data", writeBandit(t), "--action-column", "a", "--reward-column", "r",
			"--propensity-column", "p", "--policy", "snapshot"},
	} {
		if got := execute(t.Context(), append([]string{"backtest"}, args...)...); got.code == 0 ||
			!strings.Contains(got.stderr, want) {
			t.Errorf("%v: exit code %d: %s, want %s", args, got.code, got.stderr, want)
		}
	}
}

// TestInterruptedTopics: Ctrl-C ends the reading of topics, too.
func TestInterruptedTopics(t *testing.T) {
	log := "embedded:" + filepath.Join(t.TempDir(), "log")
	object(t, "inject", "--rounds", "20", "--delays", "none", "--json", "--log", log, "--listen", "127.0.0.1:0")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := execute(ctx, "backtest", "--data", log); got.code != daemon.Interrupted || strings.Contains(got.stderr,
		"20 events") {
		t.Errorf("%+v", got)
	}
}

func writeBandit(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "log.csv")
	if err := os.WriteFile(file, []byte("a,r,p\nred,1,.5\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestWorst searches on a small scale; the file has the budget, and backtest plays it.
func TestWorst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "worst.txt")
	o := object(t, "worst", "--env", "needle:0.4,0.2,0.6", "--rounds", "200", "--total", "1000", "--max", "40",
		"--steps", "3", "--batch", "2", "--random", "3", "--draws", "1", "--out", file, "--json")
	if number(t, o, "tried") != 3+4+3*2 || number(t, o, "steps") != 3 || need(t, o, "of") != "regret" ||
		need(t, o, "file") != file {
		t.Errorf("%v", o)
	}
	if number(t, o, "found.delays.raw.D") != 1000 || number(t, o, "random.delays.raw.D") != 1000 ||
		number(t, o, "none.delays.raw.D") != 0 {
		t.Errorf("%v", o)
	}
	worst := number(t, o, "random.search")
	for _, p := range need(t, o, "plans").([]any) {
		worst = max(worst, number(t, p.(map[string]any), "search"))
	}
	if found := number(t, o, "found.search"); found < worst {
		t.Errorf("found %v, and one that was tried does %v", found, worst)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum, lines := 0, 0
	for s := bufio.NewScanner(f); s.Scan(); lines++ {
		d, err := strconv.Atoi(s.Text())
		if err != nil || d < 0 || d > 40 {
			t.Fatalf("line %d: %q", lines+1, s.Text())
		}
		sum += d
	}
	if sum != 1000 || lines != 200 {
		t.Errorf("%d delays that sum to %d", lines, sum)
	}
	runs := need(t, object(t, "backtest", "--env", "needle:0.4,0.2,0.6", "--rounds", "200", "--delays",
		"recorded:"+file, "--json"), "runs").([]any)
	if got := number(t, runs[0].(map[string]any), "delays.raw.D"); got != 1000 {
		t.Errorf("played, they sum to %v", got)
	}
	for want, args := range map[string]string{
		"a total delay of 99999":           "--rounds 20 --total 99999",
		"--max -1: it must be at least 0":  "--rounds 20 --max -1",
		"--draws 0":                        "--draws 0",
		"--batch 0: it must be at least 1": "--rounds 20 --batch 0",
	} {
		if got := execute(t.Context(), append([]string{"worst", "--out", file},
			strings.Fields(args)...)...); got.code != daemon.WrongUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestWorstLearner: by draws that the search did not see, what it finds hurts a learner
// more than random delays of the same total, and those more than none.
func TestWorstLearner(t *testing.T) {
	o := object(t, "worst", "--env", "cyc:50,10", "--learner", "exp4dale", "--order", "arrival", "--rounds", "400",
		"--total", "4000", "--max", "50",
		"--steps", "12", "--random", "6", "--draws", "2", "--out", filepath.Join(t.TempDir(), "w.txt"), "--json")
	figure := func(row string) (mean, se float64) { return number(t, o, row+".fresh"), number(t, o, row+".fresh_se") }
	found, foundSE := figure("found")
	random, randomSE := figure("random")
	none, noneSE := figure("none")
	if found < random+3*math.Hypot(foundSE, randomSE) || random < none+3*math.Hypot(randomSE, noneSE) {
		t.Errorf("regret %v ± %v as found, %v ± %v at random, %v ± %v without delay", found, foundSE, random,
			randomSE, none, noneSE)
	}
}

// TestFitCommand fits a class, which a model file then names.
func TestFitCommand(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "c.jsonl")
	o := object(t, "fit", "--rounds", "500", "--fit-rows", "300", "--functions", "6", "--out", file, "--json")
	functions, _ := o["functions"].([]any)
	if len(functions) != 6 || number(t, o, "rows") != 240 || number(t, o, "held_out") != 60 ||
		number(t, o, "columns") != 5 || number(t, o, "played_rows") != 200 {
		t.Errorf("%v", o)
	}
	played := need(t, o, "played").([]any)
	if len(played) != 5 {
		t.Fatalf("%v", played)
	}
	for _, p := range played {
		if loss := number(t, p.(map[string]any), "mean_loss"); loss <= 0 || loss >= 1 {
			t.Errorf("%v", p)
		}
	}
	m := filepath.Join(dir, "m.yaml")
	if err := os.WriteFile(m, []byte("name: m\noracle: {kind: hedge, eta: 0.5, class: c.jsonl}\nwindow: 200 rounds\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	runs := need(t, object(t, "backtest", "--rounds", "100", "--model", m, "--json"), "runs").([]any)
	if number(t, runs[0].(map[string]any), "certificate.plausible_set.functions") != 6 {
		t.Errorf("%v", runs[0])
	}
	for want, args := range map[string]string{
		"at least 1":                         "--functions 0",
		"no kind":                            "--kinds bush",
		"--columns 0: it must be at least 1": "--columns 0",
		"has no features":                    "--env needle:0.4,0.2,0.6 --rounds 100",
	} {
		if got := execute(t.Context(), append([]string{"fit", "--out", file},
			strings.Fields(args)...)...); got.code == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
