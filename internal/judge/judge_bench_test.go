package judge

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"hindsight/internal/delay"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/replay"
)

// benchRows writes n rows of a multiclass problem with K = 10 and d = 16 as our labelled
// CSV and as Vowpal Wabbit's text.
func benchRows(b *testing.B, n int) (ours, theirs string) {
	b.Helper()
	const k, d = 10, 16
	dir := b.TempDir()
	ours, theirs = filepath.Join(dir, "rows.csv"), filepath.Join(dir, "rows.vw")
	rng := rand.New(rand.NewPCG(1, 1))
	var w [k][d]float64
	for a := range w {
		for j := range w[a] {
			w[a][j] = rng.NormFloat64()
		}
	}
	var files [2]*bufio.Writer
	for i, name := range []string{ours, theirs} {
		f, err := os.Create(name)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		files[i] = bufio.NewWriterSize(f, 1<<20)
		defer files[i].Flush()
	}
	files[0].WriteString("label")
	for j := range d {
		fmt.Fprintf(files[0], ",n_%d", j)
	}
	files[0].WriteString("\n")
	for range n {
		var x [d]string
		var score [k]float64
		for j := range x {
			v := float64(rng.IntN(2001)-1000) / 1000
			x[j] = strconv.FormatFloat(v, 'f', -1, 64)
			for a := range score {
				score[a] += w[a][j] * v
			}
		}
		label := 0
		for a := range score {
			if score[a] += rng.NormFloat64() / 2; score[a] > score[label] {
				label = a
			}
		}
		fmt.Fprintf(files[0], "%d,%s\n", label, strings.Join(x[:], ","))
		fmt.Fprintf(files[1], "%d |", label+1)
		for j := range x {
			fmt.Fprintf(files[1], " f%d:%s", j, x[j])
		}
		files[1].WriteString("\n")
	}
	return ours, theirs
}

// vw returns the command of Vowpal Wabbit: vw, or the package vowpalwabbit of PyPI.
func vw(b *testing.B) []string {
	b.Helper()
	for _, command := range [][]string{{"vw"}, {"python3", "-m", "vowpalwabbit"}} {
		if exec.Command(command[0], append(command[1:len(command):len(command)], "--version")...).Run() == nil {
			return command
		}
	}
	b.Skip("Vowpal Wabbit is not at hand: neither vw nor Python's vowpalwabbit (pip install vowpalwabbit)")
	return nil
}

// linearTrial is a backtest of a labelled CSV with the linear oracle, without delay.
func linearTrial(b *testing.B, file string) *replay.Trial {
	b.Helper()
	env, err := openLog(file, logs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	m, _ := replay.ModelFor(env, "replay", model.Learner{Kind: model.DAFA}, loop.Window{Rounds: 200})
	if m.Oracle, err = model.ParseOracle(model.Linear); err != nil {
		b.Fatal(err)
	}
	m.Resolve(env.Columns, len(env.Actions))
	none, err := delay.Parse("none", delay.Options{Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	return &replay.Trial{Rounds: env, Delays: none, Model: m, Label: "dafa", Seed: 1}
}

// replayer builds the command.
func replayer(b *testing.B) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "replayer")
	if out, err := exec.Command("go", "build", "-o", file, "hindsight/cmd/replayer").CombinedOutput(); err != nil {
		b.Fatalf("build replayer: %v: %s", err, out)
	}
	return file
}

// BenchmarkVowpalWabbit lets `replayer backtest` play a million rounds (HINDSIGHT_ROWS
// changes that) from a file, and Vowpal Wabbit's squarecb learn from the same rows: the
// whole commands, start, reading and end included, both files read before. Vowpal Wabbit
// has the settings of its manual, but for the gamma_scale of 1, 10 (its default), 100 and
// 1000 with which it loses least here. What counts is processor time, all threads of each
// added up: what one core takes, with one thread for our Go code and two for Vowpal
// Wabbit's, which reads in one of its own. x-vw is of the linear oracle, auto-x-vw of the default. x-cached is
// beside its reading of a cache file
// that it has made of the rows before; ours are text always. rounds/cpu-s and played/cpu-s
// are of a backtest in this process, with and without reading, which is what a profile
// shows. One run is enough: -benchtime 1x.
func BenchmarkVowpalWabbit(b *testing.B) {
	command := vw(b)
	n := 1_000_000
	if text := os.Getenv("HINDSIGHT_ROWS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	ours, theirs := benchRows(b, n)
	command = append(command, "-d", theirs, "--cbify", "10", "--cb_explore_adf", "--squarecb", "--gamma_scale", "100",
		"-P", strconv.Itoa(n))
	cached := append(command[:len(command):len(command)], "--cache_file", theirs+".cache")
	processorTimeOf(b, cached) // makes it
	auto := []string{replayer(b), "backtest", "--data", ours, "--delays", "none", "--json"}
	linear := append(auto[:len(auto):len(auto)], "--oracle", "linear")
	b.Setenv("GOMAXPROCS", "1")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var whole, byDefault, mine, playing, other, fromCache time.Duration
	var loss, autoLoss, vwLoss float64
	rounds := 0
	for b.Loop() {
		start := processorTime(b)
		trial := linearTrial(b, ours)
		read := processorTime(b)
		r, err := trial.Run(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		end := processorTime(b)
		mine, playing = mine+end-start, playing+end-read
		loss = *r.MeanLoss
		used, _ := processorTimeOf(b, linear)
		whole += used
		used, said := processorTimeOf(b, auto)
		byDefault += used
		autoLoss = numberAfter(b, said, `"mean_loss":`)
		used, said = processorTimeOf(b, command)
		other += used
		vwLoss = numberAfter(b, said, "average loss = ")
		used, _ = processorTimeOf(b, cached)
		fromCache += used
		rounds += n
	}
	b.ReportMetric(float64(rounds)/mine.Seconds(), "rounds/cpu-s")
	b.ReportMetric(float64(rounds)/playing.Seconds(), "played/cpu-s")
	b.ReportMetric(float64(rounds)/other.Seconds(), "vw-rounds/cpu-s")
	b.ReportMetric(float64(rounds)/whole.Seconds(), "backtest-rounds/cpu-s")
	b.ReportMetric(other.Seconds()/whole.Seconds(), "x-vw")
	b.ReportMetric(other.Seconds()/byDefault.Seconds(), "auto-x-vw")
	b.ReportMetric(fromCache.Seconds()/whole.Seconds(), "x-cached")
	b.ReportMetric(loss, "loss")
	b.ReportMetric(autoLoss, "auto-loss")
	b.ReportMetric(vwLoss, "vw-loss")
}

// numberAfter returns the number that stands behind the first such words of what a command said.
func numberAfter(b *testing.B, said []byte, words string) (x float64) {
	b.Helper()
	_, rest, _ := strings.Cut(string(said), words)
	if _, err := fmt.Sscan(rest, &x); err != nil {
		b.Fatalf("no number behind %q: %v: %s", words, err, said)
	}
	return x
}

// processorTimeOf runs a command and returns what it used and said.
func processorTimeOf(b *testing.B, command []string) (used time.Duration, said []byte) {
	b.Helper()
	c := exec.Command(command[0], command[1:]...)
	said, err := c.CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %v: %s", command, err, bytes.TrimSpace(said))
	}
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime(), said
}

// processorTime returns what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTwoRuns plays two backtests at once on two cores, against one: x-one is how
// many times as many rounds a second they make. x-one-cpu is the same by processor time, four
// times that of one over that of two: 2 where they are not in each other's way, also while
// other processes have the cores.
func BenchmarkTwoRuns(b *testing.B) {
	if runtime.NumCPU() < 2 {
		b.Skip("there is one core")
	}
	ours, _ := benchRows(b, 50_000)
	trial := linearTrial(b, ours)
	play := func(n int) (wall, used time.Duration) {
		start, before := time.Now(), processorTime(b)
		var g errgroup.Group
		for range n {
			t := *trial
			g.Go(func() error {
				_, err := t.Run(b.Context(), nil)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			b.Fatal(err)
		}
		return time.Since(start), processorTime(b) - before
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var one, two, oneUsed, twoUsed time.Duration
	for b.Loop() {
		wall, used := play(1)
		one, oneUsed = one+wall, oneUsed+used
		wall, used = play(2)
		two, twoUsed = two+wall, twoUsed+used
	}
	b.ReportMetric(2*one.Seconds()/two.Seconds(), "x-one")
	b.ReportMetric(4*oneUsed.Seconds()/twoUsed.Seconds(), "x-one-cpu")
}

// BenchmarkOpenBandit judges policies on 10,000 rows of Open Bandit data by all estimators
// with 1,000 bootstrap samples. What that is to its floor says BenchmarkEvaluate of
// package ope.
func BenchmarkOpenBandit(b *testing.B) {
	const folder = "../../../shared/data/obd_men/random"
	if _, err := os.Stat(folder); err != nil {
		b.Skip("the Open Bandit data is not beside the project")
	}
	env, err := openLog(folder, logs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	o := judged(b, env)
	opt := o.Options()
	for _, spec := range []string{"uniform", "hash:user_feature_0", "eps:0.1,hash:user_feature_0"} {
		b.Run(spec, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := o.Evaluate(spec, opt); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/policy")
		})
	}
}
