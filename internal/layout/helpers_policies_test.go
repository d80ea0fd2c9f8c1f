package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/judge"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/scan"
)

// judged returns the off-policy view of a log whose learners are those of [ModelFor].
func judged(t testing.TB, env *replay.Rounds) *judge.OffPolicy {
	t.Helper()
	o, err := judge.NewOffPolicy(env, func(_, spec string) (*judge.Progressive, error) {
		l, err := model.ParseLearner(spec)
		if err != nil {
			return nil, err
		}
		m, files := replay.ModelFor(env, "m", l, loop.Window{Rounds: 200})
		built, err := m.Build(files)
		if err != nil {
			return nil, err
		}
		return judge.NewProgressive(loop.Epoch{Number: 1, Rules: m.Rules(), Learner: built}, "m", replay.SecretSeed(1), env), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// worldLog draws a log of two contexts and three actions: the logging policy prefers the
// action that is best in the context.
func worldLog(t testing.TB, seed uint64, rows int) *replay.Rounds {
	t.Helper()
	logging := [2][3]float64{{.6, .3, .1}, {.1, .2, .7}}
	rng := rand.New(rand.NewPCG(seed, 5))
	var b strings.Builder
	b.WriteString("a,l,p,x\n")
	for range rows {
		x, a, u := rng.IntN(2), 0, rng.Float64()
		for a < 2 && u >= logging[x][a] {
			u -= logging[x][a]
			a++
		}
		l := 0
		if rng.Float64() < worldMeans[x][a] {
			l = 1
		}
		fmt.Fprintf(&b, "%c,%d,%v,c%d\n", 'a'+a, l, logging[x][a], x)
	}
	log, err := readLog("w.csv", strings.NewReader(b.String()), logOptions{Options: logs.Options{Mapping: logs.Mapping{Action: "a", Loss: "l", Propensity: "p", Features: []string{"x"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

var worldMeans = [2][3]float64{{.2, .5, .7}, {.9, .6, .3}}

// readLog reads a log in CSV, whose file has that name in errors.
func readLog(file string, in io.Reader, o logOptions) (*replay.Rounds, error) {
	var rejects strings.Builder
	if o.Stdin, o.Typed, o.Strict = in, true, !o.account; o.Strict {
		o.Rejects = &rejects
	}
	if o.Range == (loop.Range{}) {
		o.Range = loop.Range{Min: 0, Max: 1}
	}
	var b *dataset.Table
	r, err := logs.Open(logs.Stdin, o.Options)
	if err == nil {
		b, err = dataset.Read(file, r, dataset.Options{Range: o.Range, Dedup: o.Dedup, Heap: o.heap})
	}
	if err == nil && o.Strict && b.Intake.Duplicates > 0 {
		err = repeatIn(rejects.String(), o.Mapping.ID)
	}
	var at *scan.LineError
	if errors.As(err, &at) {
		at.File = file
	}
	if err != nil {
		return nil, err
	}
	b.Name = file
	return replay.OfTable(b), nil
}

// logOptions say how a test reads a log in CSV.
type logOptions struct {
	logs.Options
	account bool // rows that cannot be read, and repeats, are counted; without it the first ends the log
	heap    int  // bytes of a column in memory
}

// repeatIn returns the first repeat of a file of rejects as an error.
func repeatIn(rejects, column string) error {
	var x logs.Reject
	if err := json.Unmarshal([]byte(strings.SplitN(rejects, "\n", 2)[0]), &x); err != nil {
		return err
	}
	return &scan.LineError{Line: x.Line, Name: column, Msg: x.Reason}
}
