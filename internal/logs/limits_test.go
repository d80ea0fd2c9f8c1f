package logs

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"hindsight/internal/scan"
)

// oneLine is a line of so many bytes, then what follows. It measures the heap as it is read.
type oneLine struct {
	left int
	then io.Reader
	most uint64
	read int
}

func (o *oneLine) Read(p []byte) (int, error) {
	if o.left == 0 {
		return o.then.Read(p)
	}
	n := min(len(p), o.left)
	for i := range p[:n] {
		p[i] = 'x'
	}
	o.left -= n
	if o.read += n; o.read > scan.MaxLineBytes/4 {
		o.read = 0
		o.most = max(o.most, heap())
	}
	return n, nil
}

// TestLongLine: a line of more than 64 MiB is malformed, whatever its length, the next is read,
// and of the long one no more than that is held.
func TestLongLine(t *testing.T) {
	if testing.Short() {
		t.Skip("counts bytes of the heap, which the race detector's build shares")
	}
	const event = `{"id":"a","action":"x","propensity":1}` + "\n"
	for _, length := range []int{scan.MaxLineBytes + 1<<20, 4 * scan.MaxLineBytes} {
		before := heap()
		in := &oneLine{left: length, then: strings.NewReader("\n" + event)}
		r, err := Open(Stdin, Options{Format: JSONL, Stdin: in})
		if err != nil {
			t.Fatal(err)
		}
		var rec Record
		err = r.Next(&rec)
		a := r.Account()
		if err != nil || rec.ID != "a" || rec.Line != 2 || a.Malformed != 1 || !strings.Contains(a.Errors()[0],
			"a line of more than 64 MiB") {
			t.Errorf("%v, %+v, %+v", err, rec, a)
		}
		if held := int64(in.most) - int64(before); held > 3*scan.MaxLineBytes {
			t.Errorf("%d MiB are held for a line of %d MiB", held>>20, length>>20)
		}
		runtime.KeepAlive(r)
	}
}

// TestLongExample: an example with such a line is malformed to its end, and the next is read.
func TestLongExample(t *testing.T) {
	if testing.Short() {
		t.Skip("a line of more than 64 MiB")
	}
	const example = "1:0.5:0.5 |a y\n|a z\n"
	r, err := Open(Stdin, Options{Format: CBADF, Stdin: &oneLine{left: scan.MaxLineBytes + 1,
		then: strings.NewReader("\n" + example + "\n" + example)}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(t, r)
	if a := r.Account(); err != nil || len(all) != 1 || all[0].Line != 5 || a.Malformed != 1 || a.Read != 2 {
		t.Errorf("%v: %+v", err, a)
	}
}

// TestZstdWindow: zstd data that refers back over 128 MiB at most is read; what wants more memory
// than that is refused before it has it.
func TestZstdWindow(t *testing.T) {
	const event = `{"id":"a","action":"x","propensity":1,"loss":0}` + "\n"
	for _, c := range []struct {
		window byte // of the frame: the exponent less 10, and eighths
		says   string
	}{{17 << 3, ""}, {17<<3 | 1, "--long"}, {21 << 3, "--long"}, {31<<3 | 7, "--long"}} {
		block := len(event)<<3 | 1 // the last one, as it is
		frame := "\x28\xb5\x2f\xfd\x00" + string([]byte{c.window, byte(block), byte(block >> 8), 0}) + event
		r, err := Open(Stdin, Options{Format: JSONL, Stdin: strings.NewReader(frame)})
		if err == nil {
			var rec Record
			err = r.Next(&rec)
			r.Close()
		}
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("window %#x: %v", c.window, err)
		}
	}
}
