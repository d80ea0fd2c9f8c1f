package replay

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/logs"
)

// TestEventsMemory: of rows that are kept the heap holds some numbers, whatever their
// contexts hold.
func TestEventsMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("counts bytes of the heap")
	}
	const few, many = 2_000, 12_000
	held := func(n int) float64 {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text,
				`{"id":"event-%d","features":{"x":"%s"},"actions":["a","b"],"action":"a","propensity":0.5,"loss":1}`+
					"\n", i,
				strings.Repeat("y", 400))
		}
		heap := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		r, err := logs.Open(logs.Stdin, logs.Options{Stdin: strings.NewReader(text.String()), Dedup: 100})
		if err != nil {
			t.Fatal(err)
		}
		b, err := dataset.Read("log", r, dataset.Options{Dedup: 100, Heap: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		grown := float64(heap()) - float64(before)
		runtime.KeepAlive(b)
		runtime.KeepAlive(text)
		return grown
	}
	if row := (held(many) - held(few)) / (many - few); row > 100 {
		t.Errorf("a row holds %.0f bytes of the heap, of contexts of 450", row)
	}
}
