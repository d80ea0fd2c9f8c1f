package replay

import (
	"fmt"
	"io"
	"os"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/logs"
)

// madeText is a text whose lines are made while it is read.
type madeText struct {
	lines, next int
	line        func(dst []byte, i int) []byte
	buf         []byte
}

func (m *madeText) Read(p []byte) (int, error) {
	for len(m.buf) < len(p) && m.next < m.lines {
		m.buf = m.line(m.buf, m.next)
		m.next++
	}
	if len(m.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, m.buf)
	m.buf = append(m.buf[:0], m.buf[n:]...)
	return n, nil
}

// csvLine is a row with a number that differs from row to row, behind a header.
func csvLine(dst []byte, i int) []byte {
	if i == 0 {
		dst = append(dst, "id,t,ot,a,p,r,x,y\n"...)
	}
	return fmt.Appendf(dst, "row-%d,%d,%d,%c,0.5,0.25,%d.5,v%d\n", i, 1600000000+i, 1600000003+i, 'a'+i%2, i, i%7)
}

func dsjsonLine(dst []byte, i int) []byte {
	return fmt.Appendf(dst,
		`{"_label_cost":-1,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0,"o":[{"v":1}],`+
			`"Timestamp":"2021-02-04T%02d:%02d:%02dZ","EventId":"event-%d","a":[1,2],"p":[0.5,0.5],"c":{"u":{"name":"user `+
			`%d"},"_multi":[{"_tag":"a"},{"_tag":"b"}]}}`+"\n",
		i/3600%24, i/60%60, i%60, i, i%50)
}

// ourLine is a round of ours, and behind it its outcome.
func ourLine(dst []byte, i int) []byte {
	dst = fmt.Appendf(dst, `{"id":"event-%d","features":{"x":%d.5},"actions":["a","b"],"action":"a","propensity":0.5}`+
		"\n", i, i)
	return fmt.Appendf(dst, `{"id":"event-%d","loss":0.5}`+"\n", i)
}

// readMade reads a log of n rounds and keeps it in files.
func readMade(t *testing.T, heap int, format string, n int) *Rounds {
	t.Helper()
	const dedup = 500
	var b *Rounds
	var table *dataset.Table
	var err error
	if format == "csv" {
		m := logs.Mapping{ID: "id", Time: "t", OutcomeTime: "ot", Action: "a", Propensity: "p", Reward: "r",
			Features: []string{"x", "y"}}
		b, err = readLog("log", &madeText{lines: n, line: csvLine},
			logOptions{Options: logs.Options{Mapping: m, Dedup: dedup}, Account: true, Heap: heap})
	} else {
		line := map[string]func([]byte, int) []byte{logs.Dsjson: dsjsonLine, logs.JSONL: ourLine}[format]
		var r *logs.Reader
		if r, err = logs.Open(logs.Stdin, logs.Options{Stdin: &madeText{lines: n, line: line}, Dedup: dedup,
			Format: format}); err != nil {
			t.Fatal(err)
		}
		if table, err = dataset.Read("log", r, dataset.Options{Dedup: dedup, Heap: heap}); err == nil {
			b = OfTable(table)
		}
	}
	if err != nil || b.Len() != n {
		t.Fatal(err, b.Len())
	}
	return b
}

// TestLogMemoryIsConstant reads and plays logs of ten times the rounds and
// compares what the heap holds. Planted: columns that stay on the heap.
func TestLogMemoryIsConstant(t *testing.T) {
	if testing.Short() {
		t.Skip("counts bytes of the heap")
	}
	few := 1_500
	if os.Getenv("HINDSIGHT_LONG") != "" {
		few = 100_000
	}
	const onHeap = 1 << 14
	for _, c := range []struct {
		name, format string
		most         int
		grows        bool
	}{
		{"CSV", "csv", onHeap, false},
		{"our JSON lines", logs.JSONL, onHeap, false},
		{"dsjson", logs.Dsjson, onHeap, false},
		{"planted", logs.Dsjson, 1 << 40, true},
	} {
		held := func(n int) int64 {
			before := liveHeap()
			env := readMade(t, c.most, c.format, n)
			return mostHeld(t, env, "exp:40", before, 0)
		}
		holdsTenfold(t, c.name, few, 0, c.grows, held)
	}
}
