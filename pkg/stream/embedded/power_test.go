package embedded_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
)

// TestPowerCut cuts the power at every write around the one that wrote the index, which the
// disk has while it has the blocks up to that write only: the log is read up to there, goes on
// there without a gap, and is read again. In the long form the index is the one that a server
// writes while it runs, and what is cut are the two minutes before and after it.
func TestPowerCut(t *testing.T) {
	h := &powerHistory{dir: t.TempDir(), options: small, padding: 9000} // some blocks
	if os.Getenv("HINDSIGHT_LONG") != "" {
		h.options, h.padding = stream.TopicOptions{}, 200
		var end time.Time
		h.write(t, 200*time.Millisecond, func() bool {
			if end.IsZero() && h.readIndex() {
				end = time.Now().Add(2 * time.Minute)
			}
			return !end.IsZero() && time.Now().After(end)
		})
	} else {
		h.write(t, 0, func() bool { return len(h.sizes) == 6 })
		if !h.readIndex() {
			t.Fatal("a stop writes no index: this shows nothing")
		}
		h.write(t, 0, func() bool { return len(h.sizes) == 10 })
	}
	for n := range h.sizes {
		dir := h.image(t, n, n%3)
		view := open(t, embedded.Options{Dir: dir, ReadOnly: true})
		if _, next, err := view.Log().Bounds(t.Context(), "a", 0); next != int64(n)+2 || err != nil {
			t.Errorf("cut after %d records, only read: the next is %d, %v", n+1, next, err)
		}
		closeEngine(t, view)
		e := open(t, embedded.Options{Dir: dir, DontListen: true})
		if err := h.append(t, e, int64(n)+2); err != nil {
			t.Errorf("cut after %d records: %v", n+1, err)
		}
		closeEngine(t, e)
		if next := checkSelfDescribing(t, dir); next != int64(n)+3 {
			t.Errorf("cut after %d records, after one more: the next is %d", n+1, next)
		}
		if t.Failed() {
			return
		}
	}
}

// powerHistory is what a log's folder was after each record.
type powerHistory struct {
	dir     string
	options stream.TopicOptions
	padding int                // of a record
	index   []byte             // as it was written in between
	sizes   []map[string]int64 // of the blocks, after each record
}

// write writes records until enough of them are there, and stops in order.
func (h *powerHistory) write(t *testing.T, pause time.Duration, enough func() bool) {
	t.Helper()
	e := open(t, embedded.Options{Dir: h.dir, DontListen: true})
	defer closeEngine(t, e)
	if err := e.Log().Create(t.Context(), "a", 1, h.options); err != nil {
		t.Fatal(err)
	}
	for done := false; !done; done = enough() {
		if err := h.append(t, e, int64(len(h.sizes))+1); err != nil {
			t.Fatal(err)
		}
		h.sizes = append(h.sizes, h.blocks(t))
		<-time.After(pause)
	}
}

// readIndex keeps the index, if there is one.
func (h *powerHistory) readIndex() bool {
	var err error
	h.index, err = os.ReadFile(filepath.Join(h.msgs(h.dir), "index.db"))
	return err == nil
}

func (h *powerHistory) msgs(dir string) string {
	return filepath.Join(dir, "jetstream", "$G", "streams", "a_0", "msgs")
}

func (h *powerHistory) blocks(t *testing.T) map[string]int64 {
	t.Helper()
	sizes := map[string]int64{}
	names, err := filepath.Glob(filepath.Join(h.msgs(h.dir), "*.blk"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		sizes[filepath.Base(name)] = info.Size()
	}
	return sizes
}

// image makes the folder that a power cut leaves: the index, and the blocks as they were after
// record n, or with some of the next as well, or with zeros in its place.
func (h *powerHistory) image(t *testing.T, n, how int) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(h.dir)); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(dir, "stopped")) // it was running
	if err := os.WriteFile(filepath.Join(h.msgs(dir), "index.db"), h.index, 0o600); err != nil {
		t.Fatal(err)
	}
	for name := range maps.Keys(h.sizes[len(h.sizes)-1]) {
		size, ok := h.sizes[n][name]
		path := filepath.Join(h.msgs(dir), name)
		if !ok {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		after := data[size:min(len(data), int(size)+[]int{0, 40, 100}[how])]
		if how == 2 {
			clear(after)
		}
		if err := os.WriteFile(path, append(data[:size:size], after...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// append appends a record that says its offset.
func (h *powerHistory) append(t *testing.T, e *embedded.Engine, offset int64) error {
	t.Helper()
	w, err := e.Log().Writer(t.Context(), "a", 0, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := w.Append(t.Context(),
		&stream.Record{Value: fmt.Appendf(nil, "%d padded %0*d", offset, h.padding, 0)}); err != nil {
		return err
	}
	return w.Flush(t.Context())
}
