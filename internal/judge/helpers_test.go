package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/internal/dataset"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/replay"
	"hindsight/internal/scan"
)

func readEvents(t rapid.TB, text string, o dataset.Options, lo logs.Options) *replay.Rounds {
	t.Helper()
	lo.Stdin, lo.Inactive = strings.NewReader(text), true
	r, err := logs.Open(logs.Stdin, lo)
	if err != nil {
		t.Fatal(err)
	}
	b, err := dataset.Read("log", r, o)
	if err != nil {
		t.Fatal(err)
	}
	if !balanced(&b.Intake.Account) {
		t.Fatalf("unbalanced: %+v", b.Intake)
	}
	return replay.OfTable(b)
}

// openLog opens data of any format by itself.
func openLog(path string, o logs.Options) (*replay.Rounds, error) {
	o.Typed, o.Labelled, o.Strict, o.Range = true, true, true, loop.Range{Min: 0, Max: 1}
	r, err := logs.Open(path, o)
	if err != nil {
		return nil, err
	}
	b, err := dataset.Read(path, r, dataset.Options{})
	if err != nil {
		return nil, err
	}
	return replay.OfTable(b), nil
}

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

func timedLog(t testing.TB) *replay.Rounds { return parseLog(t, timedText, timedMapping()) }

func parseLog(t testing.TB, text string, m logs.Mapping) *replay.Rounds {
	t.Helper()
	log, err := readLog("t.csv", strings.NewReader(text), logOptions{Options: logs.Options{Mapping: m}})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

const timedText = `id,at,who,paid,back,x,y
q,2020-01-01T00:00:00Z,b,1,2020-01-01T00:00:25Z,1.5,u
r,2020-01-01 00:00:10,a,0,1577836811,,7
s,1577836820.5,b,,,3,"v,w"
t,2020-01-01 00:00:30+00:00,a,0.25,2020-01-01T00:00:30Z,-2,u
`

func timedMapping() logs.Mapping {
	return logs.Mapping{Time: "at", OutcomeTime: "back", Action: "who", Reward: "paid", ID: "id", Features: []string{"x", "y"}}
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

func openJournal(t *testing.T, path string) *replay.Journal {
	t.Helper()
	j, err := replay.OpenJournal(path, "v1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// balanced reports whether every record has its class.
func balanced(a *logs.Account) bool {
	skipped := int64(0)
	for _, n := range a.Reasons {
		skipped += n
	}
	return a.Read == a.Events+a.Duplicates+a.Dangling+a.Skipped+a.Malformed && skipped == a.Skipped
}
