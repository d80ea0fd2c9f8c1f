package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
)

// What a reader finds in a damaged log is the records as they were, up to an
// error: never others, never fewer without a word.
func TestDamage(t *testing.T) {
	const n = 2000
	tests := []struct {
		name   string
		damage func(t *testing.T, block string)
	}{
		{"flipped byte, and the index is kept", func(t *testing.T, block string) { overwrite(t, block, 0.4, false) }},
		{"tail cut, and the index is kept", func(t *testing.T, block string) { truncate(t, block, 0.7) }},
		{"emptied, and the index is kept", func(t *testing.T, block string) { truncate(t, block, 0) }},
		{"tail cut", func(t *testing.T, block string) { truncate(t, block, 0.7) }},
		{"tail zeroed", func(t *testing.T, block string) { overwrite(t, block, 0.7, true) }},
		{"flipped byte", func(t *testing.T, block string) { overwrite(t, block, 0.4, false) }},
		{"emptied", func(t *testing.T, block string) { truncate(t, block, 0) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			next := writeNumbered(t, dir, n, stream.TopicOptions{})
			streamDir := filepath.Join(dir, "jetstream", "$G", "streams", "a_0", "msgs")
			blocks, err := filepath.Glob(filepath.Join(streamDir, "*.blk"))
			if err != nil || len(blocks) != 1 {
				t.Fatalf("blocks: %v, %v", blocks, err)
			}
			tt.damage(t, blocks[0])
			if !strings.HasSuffix(tt.name, "index is kept") {
				if err := os.Remove(filepath.Join(streamDir, "index.db")); err != nil { // as after a crash
					t.Fatal(err)
				}
			}
			if err := readNumbered(t, embedded.Options{Dir: dir}, next); err == nil {
				t.Error("the damage was not noticed")
			} else {
				t.Log(err)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		dir := t.TempDir()
		if err := readNumbered(t, embedded.Options{Dir: dir}, writeNumbered(t, dir, n,
			stream.TopicOptions{})); err != nil {
			t.Error(err)
		}
	})
}

func truncate(t *testing.T, file string, part float64) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, int64(float64(info.Size())*part)); err != nil {
		t.Fatal(err)
	}
}

// overwrite changes the byte that lies at a part of the file, or zeroes all from
// there.
func overwrite(t *testing.T, file string, part float64, toEnd bool) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	i := int(float64(len(data)) * part)
	if toEnd {
		clear(data[i:])
	} else {
		data[i] ^= 0x10
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeNumbered appends n records that hold their offset and returns the next.
func writeNumbered(t *testing.T, dir string, n int, o stream.TopicOptions) int64 {
	t.Helper()
	ctx := context.Background()
	e := open(t, embedded.Options{Dir: dir, DontListen: true})
	defer closeEngine(t, e)
	if err := e.Log().Create(ctx, "a", 1, o); err != nil {
		t.Fatal(err)
	}
	a, tail, err := e.Log().Open(ctx, "a", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(n) {
		if _, err := a.Append(ctx, &stream.Record{Value: fmt.Appendf(nil, "%d padded %050d", tail.Next+i,
			0)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	return tail.Next + int64(n)
}

// readNumbered reads all records, as someone who has read up to next before, and
// returns what is wrong.
func readNumbered(t *testing.T, o embedded.Options, next int64) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	o.DontListen, o.Log.Heartbeat = true, 10*time.Millisecond
	e := open(t, o)
	defer closeEngine(t, e)
	ahead, err := e.Log().Read(ctx, "a", 0, next)
	if err != nil {
		if !errors.Is(err, stream.ErrAhead) {
			t.Errorf("read at the end: %v", err)
		}
		return err
	}
	defer ahead.Close()
	r, err := e.Log().Read(ctx, "a", 0, 1)
	if err != nil {
		return err
	}
	defer r.Close()
	var recs []stream.Record
	for r.Position() < next {
		if recs, err = r.Next(ctx, recs[:0]); err != nil {
			if !errors.Is(err, stream.ErrGap) && !errors.Is(err, stream.ErrTruncated) {
				t.Errorf("read: %v", err)
			}
			return err
		}
		for _, rec := range recs {
			if says := ""; rec.Type == "" {
				_, _ = fmt.Sscan(string(rec.Value), &says)
				if says != fmt.Sprint(rec.Offset) {
					t.Errorf("record %d says that it is %s", rec.Offset, says)
				}
			}
		}
	}
	return nil
}
