// Package testkit reads logs as tests need them: from text, strictly or with an account, and of a small world whose
// truth is known.
package testkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"hindsight/internal/dataset"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/scan"
)

// TB is what a test is told by.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// LogOptions say how a test reads a log in CSV.
type LogOptions struct {
	logs.Options
	Account bool // rows that cannot be read, and repeats, are counted; without it the first ends the log
	Heap    int  // bytes of a column in memory
}

// ReadLog reads a log in CSV, whose file has that name in errors.
func ReadLog(file string, in io.Reader, o LogOptions) (*dataset.Table, error) {
	var rejects strings.Builder
	if o.Stdin, o.Typed, o.Strict = in, true, !o.Account; o.Strict {
		o.Rejects = &rejects
	}
	if o.Range == (loop.Range{}) {
		o.Range = loop.Range{Min: 0, Max: 1}
	}
	var b *dataset.Table
	r, err := logs.Open(logs.Stdin, o.Options)
	if err == nil {
		b, err = dataset.Read(file, r, dataset.Options{Range: o.Range, Dedup: o.Dedup, Heap: o.Heap})
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
	return b, nil
}

// repeatIn returns the first repeat of a file of rejects as an error.
func repeatIn(rejects, column string) error {
	var x logs.Reject
	if err := json.Unmarshal([]byte(strings.SplitN(rejects, "\n", 2)[0]), &x); err != nil {
		return err
	}
	return &scan.LineError{Line: x.Line, Name: column, Msg: x.Reason}
}

// OpenLog opens data of any format by itself.
func OpenLog(path string, o logs.Options) (*dataset.Table, error) {
	o.Typed, o.Labelled, o.Strict, o.Range = true, true, true, loop.Range{Min: 0, Max: 1}
	r, err := logs.Open(path, o)
	if err != nil {
		return nil, err
	}
	return dataset.Read(path, r, dataset.Options{})
}

// ReadEvents reads a log of events, whose account must be balanced.
func ReadEvents(t TB, text string, o dataset.Options, lo logs.Options) *dataset.Table {
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
	if !Balanced(&b.Intake.Account) {
		t.Fatalf("unbalanced: %+v", b.Intake)
	}
	return b
}

// Balanced reports whether every record has its class.
func Balanced(a *logs.Account) bool {
	skipped := int64(0)
	for _, n := range a.Reasons {
		skipped += n
	}
	return a.Read == a.Events+a.Duplicates+a.Dangling+a.Skipped+a.Malformed && skipped == a.Skipped
}

// ParseLog reads a log in CSV that must be well formed.
func ParseLog(t TB, text string, m logs.Mapping) *dataset.Table {
	t.Helper()
	b, err := ReadLog("t.csv", strings.NewReader(text), LogOptions{Options: logs.Options{Mapping: m}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TimedText is a log with times in several forms, one of whose rounds has no outcome.
const TimedText = `id,at,who,paid,back,x,y
q,2020-01-01T00:00:00Z,b,1,2020-01-01T00:00:25Z,1.5,u
r,2020-01-01 00:00:10,a,0,1577836811,,7
s,1577836820.5,b,,,3,"v,w"
t,2020-01-01 00:00:30+00:00,a,0.25,2020-01-01T00:00:30Z,-2,u
`

// TimedMapping names the columns of TimedText.
func TimedMapping() logs.Mapping {
	return logs.Mapping{Time: "at", OutcomeTime: "back", Action: "who", Reward: "paid", ID: "id",
		Features: []string{"x", "y"}}
}

// WorldMeans are the mean losses of the actions of WorldLog, by context.
var WorldMeans = [2][3]float64{{.2, .5, .7}, {.9, .6, .3}}

// WorldLog draws a log of two contexts and three actions: the logging policy prefers the
// action that is best in the context.
func WorldLog(t TB, seed uint64, rows int) *dataset.Table {
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
		if rng.Float64() < WorldMeans[x][a] {
			l = 1
		}
		fmt.Fprintf(&b, "%c,%d,%v,c%d\n", 'a'+a, l, logging[x][a], x)
	}
	m := logs.Mapping{Action: "a", Loss: "l", Propensity: "p", Features: []string{"x"}}
	log, err := ReadLog("w.csv", strings.NewReader(b.String()), LogOptions{Options: logs.Options{Mapping: m}})
	if err != nil {
		t.Fatal(err)
	}
	return log
}
