package landed

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/join"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// TestDowngrade holds that what a later program wrote is refused by name: the error says
// which version is needed, and the system does not start, or ends.
func TestDowngrade(t *testing.T) {
	feedback := func(t *testing.T, old []byte) []byte { return raise(t, old, "\xa1v\x01", "\xa1v\x05") }
	for _, c := range []struct {
		name, topic string
		change      func(*testing.T, []byte) []byte
		want        string
	}{
		{"feedback", join.TopicsOf("m").Feedback, feedback, "record version is newer than this program: " +
			"version 5, and this one reads versions up to 4"},
		{"decision", join.TopicsOf("m").Decisions, feedback, "record version is newer than this program: version 5"},
		{"snapshot record", join.TopicsOf("m").Snapshots, feedback,
			"record version is newer than this program: version 5"},
		{"snapshot", join.TopicsOf("m").Snapshots, newState(0, 5), "snapshot: record version is newer than this " +
			"program: version 5"},
		{"learner", join.TopicsOf("m").Snapshots, newLearner(0, 2),
			"version 2, and this one reads versions up to 1"},
		{"oracle", join.TopicsOf("m").Snapshots, newLearner(10+8*11, 99), "linear: version 99, and this one reads " +
			"versions up to"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			unpackLog(t, filepath.Join("testdata", "logs", All()[0].Short(), "linear.tar.gz"), dir)
			appendChanged(t, dir, c.topic, c.change)
			err := run(t, dir, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// raise replaces one part of a record.
func raise(t *testing.T, b []byte, old, new string) []byte {
	t.Helper()
	if !bytes.Contains(b, []byte(old)) {
		t.Fatalf("%q is not in %x", old, b)
	}
	return bytes.Replace(b, []byte(old), []byte(new), 1)
}

// newState returns what changes one byte of a snapshot's state.
func newState(at int, to byte) func(*testing.T, []byte) []byte {
	return changeSnapshot(func(_ *testing.T, state []byte) { state[at] = to })
}

// newLearner returns what changes one byte of the learner in a snapshot's state, which is
// the blob at its end.
func newLearner(at int, to byte) func(*testing.T, []byte) []byte {
	return changeSnapshot(func(t *testing.T, state []byte) {
		for begin := len(state) - 1; begin > 2; begin-- {
			for k := 1; k <= 3; k++ {
				if n, read := binary.Uvarint(state[begin-k : begin]); read == k && int(n) == len(state)-begin &&
					state[begin] == 1 {
					state[begin+at] = to
					return
				}
			}
		}
		t.Fatalf("no learner in %x", state)
	})
}

// changeSnapshot returns what changes a snapshot and makes its checksums right again.
func changeSnapshot(change func(*testing.T, []byte)) func(*testing.T, []byte) []byte {
	return func(t *testing.T, b []byte) []byte {
		s, err := codec.ParseSnapshot(b)
		if err != nil || s.Parts != 1 {
			t.Fatalf("%+v: %v", s, err)
		}
		change(t, s.Bytes)
		s.Nonce, s.SHA256 = "changed", fmt.Sprintf("%x", sha256.Sum256(s.Bytes))
		return codec.AppendSnapshot(nil, &s)
	}
}

// appendChanged appends the last record of a topic once more, changed.
func appendChanged(t *testing.T, dir, topic string, change func(*testing.T, []byte) []byte) {
	t.Helper()
	e, _ := open(t, dir)
	defer e.Close()
	_, end, err := e.Log.Bounds(t.Context(), topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	var last stream.Record
	err = stream.Scan(t.Context(), e.Log, topic, 0, stream.Earliest, end, func(r *stream.Record) error {
		if r.Type == "" {
			last = stream.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)}
		}
		return nil
	})
	if err != nil || last.Value == nil {
		t.Fatalf("last record of %s: %v", topic, err)
	}
	w, err := e.Log.Writer(t.Context(), topic, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Append(t.Context(), &stream.Record{Key: last.Key, Value: change(t, last.Value)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}
