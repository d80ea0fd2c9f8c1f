package replay

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
)

// rowText is a labelled CSV that is made while it is read.
type rowText struct {
	rows, next int
	buf        []byte
}

func (r *rowText) Read(p []byte) (int, error) {
	for len(r.buf) < len(p) && r.next <= r.rows {
		if r.next == 0 {
			r.buf = append(r.buf, "label,n_a,n_b,n_c,n_d,n_e,n_f,c_g\n"...)
		} else {
			r.buf = fmt.Appendf(r.buf, "%d,%d,.25,1,2,3,4,v%d\n", r.next%3, r.next%7, r.next%5)
		}
		r.next++
	}
	if len(r.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.buf)
	r.buf = append(r.buf[:0], r.buf[n:]...)
	return n, nil
}

// pagedRows reads a labelled CSV of which little is on the heap.
func pagedRows(t *testing.T, n int) *Rounds {
	t.Helper()
	m, err := readLog("t.csv", &rowText{rows: n}, logOptions{Options: logs.Options{Format: logs.Labelled},
		Heap: 1 << 14})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// liveHeap is what the heap holds after a collection.
func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// mostHeld plays env and returns the most that the run and the data held on the heap at
// eight checkpoints. A planted leak keeps so many bytes a round.
func mostHeld(t *testing.T, env *Rounds, spec string, before int64, leak int) int64 {
	t.Helper()
	m, files := ModelFor(env, "replay", model.Learner{Kind: model.Uniform}, loop.Window{Rounds: 50})
	d := delays(t, spec, 1)
	l, err := m.Build(files)
	if err != nil {
		t.Fatal(err)
	}
	b := newBacktest(loop.Epoch{Number: 1, Rules: m.Rules(), Learner: l}, "replay", SecretSeed(1), env, d)
	b.match.contexts = newContextTable()
	most := int64(0)
	var leaked [][]byte
	b.each = func(i int) {
		if leak > 0 {
			leaked = append(leaked, make([]byte, leak))
		}
		if every := env.Len() / 8; (i+1)%every == 0 {
			most = max(most, liveHeap()-before)
		}
	}
	if _, err := b.run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(leaked)
	return most
}

// holdsTenfold compares what the heap holds of few rounds and of ten times as many, of
// which row bytes each may be kept: it must have grown, or not. What tests before it held may
// be given back meanwhile, so it looks three times: what grows does so each time.
func holdsTenfold(t *testing.T, name string, few int, row float64, grows bool, held func(n int) int64) {
	t.Helper()
	const slack = 64 << 10
	for try := 0; ; try++ {
		once, tenfold := held(few), held(10*few)
		allowed := 2*max(once, 0) + slack + int64(row*float64(10*few))
		t.Logf("%s: %d rounds hold %d bytes, %d hold %d", name, few, once, 10*few, tenfold)
		if (tenfold > allowed) == grows {
			return
		}
		if grows || try == 2 {
			t.Errorf("%s: %d rounds hold %d bytes, %d hold %d: at most %d are allowed", name, few, once, 10*few,
				tenfold, allowed)
			return
		}
	}
}

// TestBacktestMemoryIsConstant plays ten times the rounds and compares what the heap holds:
// of environments, of a labelled CSV, of rounds that wait, and of outcomes that never come.
func TestBacktestMemoryIsConstant(t *testing.T) {
	if testing.Short() {
		t.Skip("counts bytes of the heap")
	}
	few := 4_000
	if os.Getenv("HINDSIGHT_LONG") != "" {
		few = 200_000
	}
	world := func(n int) *Rounds { return environment(t, "bandit:3,0.2,0.6", 1, n) }
	rows := func(n int) *Rounds { return pagedRows(t, n) }
	for _, c := range []struct {
		name, delays string
		env          func(n int) *Rounds
		leak         int
		row          float64 // bytes a round that may be kept
	}{
		{"environment", "none", world, 0, 0},
		{"waiting", "exp:40", world, 0, 0},
		{"never", "never:0.1", world, 0, 1. / 8},
		{"labelled CSV", "none", rows, 0, 8}, // labels: 4 bytes, and room to grow
		{"planted", "none", world, 32, 0},
	} {
		held := func(n int) int64 {
			before := liveHeap()
			return mostHeld(t, c.env(n), c.delays, before, c.leak)
		}
		holdsTenfold(t, c.name, few, c.row, c.leak > 0, held)
	}
}

// TestPagedRowsAreTheRows plays rows in pages in another order as rows on the heap.
func TestPagedRowsAreTheRows(t *testing.T) {
	const n = 3000
	text := &strings.Builder{}
	if _, err := io.Copy(text, &rowText{rows: n}); err != nil {
		t.Fatal(err)
	}
	heap, err := readLabelled("t.csv", strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	play := func(m *Rounds) string {
		r, err := trialOf(t, Order(m, 1, 1), "dafa", "50", "exp:5").Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.RoundsPerSecond = 0
		return fmt.Sprintf("%+v", r.Fates) + fmt.Sprint(*r.Regret, *r.MeanLoss)
	}
	if got, want := play(pagedRows(t, n)), play(heap); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
