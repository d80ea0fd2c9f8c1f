package logs

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
)

// endless gives the lines of a log, made as they are read.
type endless struct {
	n    int // lines to come
	i    int
	rest []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.n == e.i {
			return 0, io.EOF
		}
		e.i++
		e.rest = fmt.Appendf(e.rest,
			`{"_label_cost":-1,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0,"o":[{"v":1}],`+
				`"Timestamp":"2021-02-04T16:31:29Z","EventId":"event-%d","a":[1,2],"p":[0.5,0.5],"c":{"u":{"name":"user %d"},`+
				`"_multi":[{"_tag":"a"},{"_tag":"b"}]}}`+"\n", e.i, e.i)
	}
	n := copy(p, e.rest)
	e.rest = e.rest[:copy(e.rest, e.rest[n:])]
	return n, nil
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // pools keep what they have for one collection more
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestConstantMemory: what is held while a log is converted does not grow with its length.
func TestConstantMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("counts bytes of the heap, which the race detector's build shares")
	}
	for _, format := range WriteFormats() {
		held := func(lines int) int64 {
			before := heap()
			r, err := Open(Stdin, Options{Stdin: &endless{n: lines}, Dedup: 500})
			if err != nil {
				t.Fatal(err)
			}
			w, err := NewWriter(io.Discard, format)
			if err != nil {
				t.Fatal(err)
			}
			var rec Record
			for err == nil {
				if err = r.Next(&rec); err == nil {
					err = w.Write(&rec)
				}
			}
			if !errors.Is(err, io.EOF) || r.Account().Events != int64(lines) {
				t.Fatal(err, r.Account())
			}
			after := heap()
			runtime.KeepAlive(w)
			runtime.KeepAlive(r)
			return int64(after) - int64(before)
		}
		few, many := held(rowsPerGroup+2_000), held(3*rowsPerGroup+2_000) // as far into a group of rows of Parquet
		// a line is some 250 bytes: of the lines more it would be 10 MB
		const slack = 256 << 10
		if many-few > slack {
			t.Errorf("%s: %d bytes are held after 22,000 lines, %d after 62,000", format, few, many)
		}
	}
}
