package judge

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/logs"
	"hindsight/internal/replay"
	"hindsight/internal/scan"
)

// tableLog has the rounds q, r, s, of which s has no outcome, and the actions a, b.
func tableLog(t testing.TB) *replay.Rounds {
	t.Helper()
	log, err := readLog("t.csv", strings.NewReader("id,a,r,p\nq,b,1,.5\nr,a,0,.25\ns,b,,.5\n"),
		logOptions{Options: logs.Options{Mapping: logs.Mapping{ID: "id", Action: "a", Reward: "r", Propensity: "p"}}})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// writeTable writes a table and returns the policy that names it.
func writeTable(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "p.csv")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return "table:" + file
}

// TestProbTable: the same laws by id, by row, in order, and as JSON; the round without an
// outcome needs none.
func TestProbTable(t *testing.T) {
	o := judged(t, tableLog(t))
	for name, text := range map[string]string{
		"id":    "id,a,b\nr,.75,.25\nq,.1,.9\n",
		"row":   "b,row,a\n.9,1,.1\n.25,2,.75\n",
		"order": "a,b\n.1,.9\n.75,.25\n",
		"none":  "a,b\n.1,.9\n.75,.25\n0,1\n",
		"BOM":   "\ufeffa,b\n.1,.9\n.75,.25\n,1\n",
		"more":  "id,a,b\nr,.75,.25\nq,.1,.9\nzz,1,\n",
		"JSON id": `{"id":"q","propensities":{"a":0.1,"b":0.9},"action":"b"}` + "\n" +
			`{"id":"r","propensities":{"a":0.75,"b":0.25}}`,
		"JSON row": `{"row":2,"propensities":{"a":0.75,"b":0.25}}{"row":1,"propensities":{"b":0.9,"a":0.1}}`,
	} {
		p, err := o.target(writeTable(t, text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, want := range [][]float64{{.1, .9}, {.75, .25}} {
			dst := make([]float64, 2)
			if p.law(dst, i); dst[0] != want[0] || dst[1] != want[1] || p.failed() != nil {
				t.Errorf("%s, row %d: %v, want %v (%v)", name, i, dst, want, p.failed())
			}
		}
	}
	// w = .9/.5 of reward 1 and .75/.25 of 0.
	e, err := o.Evaluate(writeTable(t, "a,b\n.1,.9\n.75,.25\n"), o.Options())
	if err != nil || math.Abs(float64(e.Estimates.Get("ips").Value)-.9) > 1e-12 || e.MaxWeight != 3 {
		t.Errorf("IPS %v, largest weight %v (%v); want 0.9 and 3", e.Estimates.Get("ips"), e.MaxWeight, err)
	}
}

// TestProbTableRefuses: what is wrong with a table, and where.
func TestProbTableRefuses(t *testing.T) {
	o := judged(t, tableLog(t))
	for text, want := range map[string]string{
		"":      "the file is empty",
		"a,b\n": "p.csv:1: there are no rows",
		"a,c\n1,0\n": `p.csv:1: column "c": expected id, row or an action: the log has no action ` +
			`"c"; it has a, b`,
		"a,b\n.5,.5\n.5\n":  "p.csv:3: 1 cells",
		"a,b\n\".5\"\n":     "p.csv:2: 1 cells",
		"a,b\n.5,.6\n":      "p.csv:2: the probabilities sum to 1.1",
		"a,b\n2,-1\n":       `p.csv:2: column a: "2" is no probability`,
		"a,b\nx,1\n":        `p.csv:2: column a: "x" is no probability`,
		"row,a\n0,1\n":      "count from 1",
		"row,a\n1,1\n1,1\n": "p.csv:3: the round is there twice",
		"id,a\nq,1\nq,1\n":  "p.csv:3: the round is there twice",
		`{"id":"q","propensities":{"a":1}}{"id":"q","propensities":{"a":1}}`: "p.csv:2: the round is there twice",
		`{"id":"q","propensities":{"a":2,"b":-1}}`:                           " is no probability",
		"\"a\n":                               "p.csv:1: not CSV",
		"a,b\n.5,.5\n\".5":                    "p.csv:3: not CSV",
		`{"id":"q"}`:                          `p.csv:1: no "propensities"`,
		`{"id":"q","propensities":{"c":1}}`:   `no action "c"`,
		`{"id":"q","propensities":{"a":0.5}}`: "sum to 0.5",
		`{"row":-1,"propensities":{"a":1}}`:   "count from 1",
		`{"id":`:                              "p.csv:1: ",
		`{"row":1,"propensities":{"a":1}}` + "\n" + `{"row":-1,"propensities":{"a":1}}`: "p.csv:2: ",
	} {
		if err := o.Check(writeTable(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	_, err := o.Evaluate(writeTable(t, "id,a,b\nq,.5,.5\n"), o.Options())
	if err == nil || !strings.Contains(err.Error(), "no probabilities for row 2 of the log r") {
		t.Errorf("a round that is not in the table: %v", err)
	}
	if err := o.Check("table:" + filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a table that is not there: %v", err)
	}
	unnamed := judged(t, worldLog(t, 1, 5))
	if err := unnamed.Check(writeTable(t, "id,a\nq,1\n")); err == nil || !strings.Contains(err.Error(), "--id-column") {
		t.Errorf("ids for a log without: %v", err)
	}
}

// TestProbTableEquals: a table of what a policy plays is judged as the policy is.
func TestProbTableEquals(t *testing.T) {
	log := worldLog(t, 1, 400)
	o := judged(t, log)
	const spec = "eps:0.2,hash:x"
	p, err := o.target(spec)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("c,a,b\n")
	for i := range o.rows {
		dst := make([]float64, 3)
		p.law(dst, i)
		fmt.Fprintf(&text, "%v,%v,%v\n", dst[2], dst[0], dst[1])
	}
	opt := o.Options()
	want, err := o.Evaluate(spec, opt)
	if err != nil {
		t.Fatal(err)
	}
	got, err := o.Evaluate(writeTable(t, text.String()), opt)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := asJSON(t, got.Estimates), asJSON(t, want.Estimates); a != b || asJSON(t, got.Flags) != asJSON(
		t, want.Flags) {
		t.Errorf("%s\n%s", a, b)
	}
}

func FuzzProbTable(f *testing.F) {
	for _, seed := range []string{"a,b\n.5,.5\n", "id,a,b\nq,1,\n", "row,b\n2,1\n", `{"id":"q","propensities":{"a":1}}`,
		`{"propensities":{"a":0.5,"b":0.5}}{}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := readProbTable("f", strings.NewReader(string(b)), []string{"a", "b"})
		if err != nil {
			var at *scan.LineError
			if !errors.As(err, &at) || at.Line < 1 {
				t.Errorf("%q: %v says no line", b, err)
			}
			return
		}
		for i := 0; i < len(table.probs); i += 2 {
			if p, q := table.probs[i], table.probs[i+1]; p < 0 || q < 0 || math.Abs(p+q-1) > 1e-6 {
				t.Errorf("%q: a law of %v and %v", b, p, q)
			}
		}
	})
}
