package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
)

// writeKinds writes records of all kinds, of which the first are dropped, by two owners. It returns in how many blocks.
func writeKinds(t *testing.T, dir string, o stream.TopicOptions) int {
	t.Helper()
	ctx := t.Context()
	e := open(t, embedded.Options{Dir: dir, DontListen: true})
	defer closeEngine(t, e)
	if err := e.Log().Create(ctx, "a.b", 2, o); err != nil {
		t.Fatal(err)
	}
	kinds := []stream.Record{{}, {Type: "mark"}, {Key: []byte("a key")}, {Type: "cut", Key: []byte("k")},
		{Key: []byte(" spaces ")}, {Key: []byte("\x00\xff")}, {Headers: []stream.Header{{Key: "ce_id", Value: "7"}}},
		{Key: []byte("k"), Headers: []stream.Header{{Key: "b", Value: "x: y"}, {Key: "a", Value: "z"}}}}
	for range 2 {
		a, _, err := e.Log().Open(ctx, "a.b", 1, stream.OpenOptions{Owner: "of a test", Value: []byte("opened")})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 700 {
			r := kinds[i%len(kinds)]
			r.Value = []byte(strings.Repeat(fmt.Sprint(i, " "), i%97))
			if i == 500 && o != small {
				r.Value = make([]byte, 300_000) // more than is read at once
			}
			if _, err := a.Append(ctx, &r); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(a.Flush(ctx), a.Close()); err != nil {
			t.Fatal(err)
		}
	}
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "a_b_1", "msgs", "*.blk"))
	if err != nil {
		t.Fatal(err)
	}
	return len(blocks)
}

// consumers returns how many the server of a log has.
func consumers(t *testing.T, e *embedded.Engine) int {
	t.Helper()
	j, err := e.Server().Jsz(&server.JSzOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return j.Consumers
}

// A folder that is only read is read from its blocks: the same records, wherever one begins, without a
// consumer of the server.
func TestReadBlocks(t *testing.T) {
	t.Run("one, with a record that is larger than what is read at once", func(t *testing.T) {
		readBlocks(t, stream.TopicOptions{MaxBytes: 500_000}, 1)
	})
	t.Run("several", func(t *testing.T) { readBlocks(t, small, 3) })
}

func readBlocks(t *testing.T, o stream.TopicOptions, blocks int) {
	t.Helper()
	dir := t.TempDir()
	if n := writeKinds(t, dir, o); n < blocks {
		t.Fatalf("%d blocks", n)
	}
	t.Chdir(dir)
	e := open(t, embedded.Options{Dir: ".", ReadOnly: true})
	defer closeEngine(t, e)
	first, next, err := e.Log().Bounds(t.Context(), "a.b", 1)
	if err != nil || first == 1 || next-first < 200 {
		t.Fatalf("%d to %d, %v: nothing was dropped, or too much", first, next, err)
	}
	type read func(context.Context, string, int, int64) (stream.Reader, error)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	all := func(read read, from int64, served bool) (all []stream.Record) {
		r, err := read(ctx, "a.b", 1, from)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for r.Position() < next {
			batch, err := r.Next(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range batch {
				x.Key, x.Value = append([]byte{}, x.Key...), append([]byte{}, x.Value...)
				all = append(all, x)
			}
		}
		if n := consumers(t, e); n > 0 != served {
			t.Errorf("from %d: the server has %d consumers", from, n)
		}
		return all
	}
	starts := []int64{stream.Earliest, first, first + 1, (first + next) / 2, next - 1}
	var got [][]stream.Record
	for _, from := range starts {
		got = append(got, all(e.Log().Read, from, false)) // the server is not asked for records
	}
	for i, from := range starts {
		if want := all(e.Log().ReadServed, from, true); len(want) == 0 || !reflect.DeepEqual(got[i], want) {
			t.Errorf("from %d: %d records of blocks are not the %d of the server", from, len(got[i]), len(want))
		}
	}
	for from, want := range map[int64]error{first - 1: stream.ErrTruncated, next + 1: stream.ErrAhead} {
		if _, err := e.Log().Read(t.Context(), "a.b", 1, from); !errors.Is(err, want) {
			t.Errorf("from %d: %v, want %v", from, err, want)
		}
	}
}

// A reader of blocks that is closed says so, also while it waits behind the last record.
func TestReadBlocksClosed(t *testing.T) {
	dir := t.TempDir()
	writeNumbered(t, dir, 10, stream.TopicOptions{})
	e := open(t, embedded.Options{Dir: dir, ReadOnly: true})
	defer closeEngine(t, e)
	for _, all := range []bool{false, true} {
		r, err := e.Log().Read(t.Context(), "a", 0, stream.Earliest)
		if err != nil {
			t.Fatal(err)
		}
		if all {
			if _, err := r.Next(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error, 1)
		if all {
			go func() { _, err := r.Next(t.Context(), nil); done <- err }()
			await(t, "it waits at the server", func() bool { return consumers(t, e) == 1 })
		}
		r.Close()
		if !all {
			_, err := r.Next(t.Context(), nil)
			done <- err
		}
		if err := <-done; !errors.Is(err, stream.ErrClosed) {
			t.Errorf("read all: %v: %v", all, err)
		}
	}
	r, err := e.Log().Read(t.Context(), "a", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := e.Log().Close(); err != nil {
		t.Error(err)
	}
	if got, err := r.Next(t.Context(), nil); len(got) != 11 || err != nil { // with the open record
		t.Errorf("%d records of a closed log's blocks: %v", len(got), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := r.Next(ctx, nil); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("behind the blocks of a closed log: %v", err)
	}
}
