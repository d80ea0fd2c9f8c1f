package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/internal/engine"
	"hindsight/internal/join"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
	"hindsight/pkg/stream/natstest"
)

// TestMove moves a log from a folder to a server: the records are the same there, with their
// offsets and times, and whoever owns a partition goes on. Half of a move is completed, and
// what went on there is left alone.
func TestMove(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "log")
	from := "embedded:" + dir
	run := func(code int, says string, args ...string) {
		t.Helper()
		got := execute(t.Context(), args...)
		if all := got.stdout + got.stderr; got.code != code || !strings.Contains(all, says) ||
			strings.Contains(all, "topsecret") {
			t.Fatalf("%q: exit code %d, want %d and %q:\n%s", args, got.code, code, says, all)
		}
	}
	run(0, "", "inject", "--rounds", "120", "--partitions", "2", "--log", from, "--listen", "127.0.0.1:0",
		"--encoding", "json")
	if err := embedded.SetAge(dir, time.Hour); err != nil {
		t.Fatal(err)
	}
	before := folder(t, dir)
	s := natstest.Start(t, natstest.Options{Users: []natstest.User{{Name: "u", Password: "topsecret"}}})
	to := "nats://u:topsecret@" + s.Addr()
	run(0, "the same on both sides", "move", "--log", from, "--to", to)
	if after := folder(t, dir); after != before {
		t.Errorf("the folder was\n%s\nand is\n%s", before, after)
	}
	sameRecords(t, from, to)

	conn, err := natsgo.Connect(to)
	if err != nil {
		t.Fatal(err)
	}
	js, err := conn.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	name := modelIn(t, to)
	for _, gone := range []string{name + "_feedback_0", name + "_decisions_0"} { // as if it had been killed meanwhile
		info, err := js.StreamInfo(gone)
		if err == nil {
			err = js.DeleteStream(gone)
		}
		if err != nil {
			t.Fatal(err)
		}
		begin, err := json.Marshal(map[string]any{"config": info.Config, "state": info.State})
		if err != nil {
			t.Fatal(err)
		}
		if m, err := conn.Request("$JS.API.STREAM.RESTORE."+gone, begin, time.Minute); err != nil ||
			!strings.Contains(string(m.Data), "deliver_subject") {
			t.Fatalf("%s, %v", m.Data, err)
		}
	}
	run(0, "the same on both sides", "move", "--log", from, "--to", to)
	sameRecords(t, from, to)
	info, err := js.StreamInfo(name + "_snapshots_0")
	if err != nil || info.Config.MaxAge != time.Hour || info.Config.DenyPurge || info.Config.Sealed {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err = js.StreamInfo(name + "_decisions_1"); err != nil || info.Config.MaxAge != time.Hour ||
		!info.Config.DenyPurge || info.Config.Sealed {
		t.Errorf("%+v, %v", info, err)
	}

	conn.Close() // it would look for the server meanwhile
	s.Kill()
	s.Restart()
	goOn(t, to, name)
	run(1, "exists with other records", "move", "--log", from, "--to", to)
}

// TestMoveRefuses names what is not moved.
func TestMoveRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		code         int
		from, to, is string
	}{
		{2, "embedded:" + dir, "kafka://127.0.0.1:1", "new offsets"},
		{2, "embedded:" + dir, "", "which servers"},
		{2, "embedded:" + dir, "embedded:" + dir, "which servers"},
		{2, "nats://127.0.0.1:1", "nats://127.0.0.1:1", "only a folder"},
		{1, "embedded:" + dir, "nats://127.0.0.1:1", "holds no log"},
	} {
		if got := execute(t.Context(), "move", "--log", c.from, "--to", c.to); got.code != c.code ||
			!strings.Contains(got.stderr, c.is) {
			t.Errorf("%s to %s: %+v", c.from, c.to, got)
		}
	}
}

func opened(t *testing.T, log string) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{Log: log, Read: true})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func modelIn(t *testing.T, log string) string {
	t.Helper()
	e := opened(t, log)
	defer e.Close()
	names, err := engine.Models(t.Context(), e.Log)
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	return names[0]
}

// sameRecords compares all records of two logs.
func sameRecords(t *testing.T, from, to string) {
	t.Helper()
	one, two := opened(t, from), opened(t, to)
	defer one.Close()
	defer two.Close()
	topics, err := one.Log.(stream.Lister).Topics(t.Context())
	if err != nil || len(topics) != 6 {
		t.Fatal(topics, err)
	}
	all := 0
	for _, topic := range topics {
		n, err := one.Log.Partitions(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		for p := range n {
			want, got := recordsOf(t, one.Log, topic, p), recordsOf(t, two.Log, topic, p)
			if !bytes.Equal(want, got) {
				t.Errorf("%s[%d] differs:\n%.300s\n%.300s", topic, p, want, got)
			}
			all += len(want)
		}
	}
	if all < 10_000 {
		t.Errorf("only %d bytes: this shows nothing", all)
	}
}

func recordsOf(t *testing.T, log stream.Log, topic string, p int) []byte {
	t.Helper()
	first, next, err := log.Bounds(t.Context(), topic, p)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal([]int64{first, next})
	if err != nil {
		t.Fatal(err)
	}
	if first == next {
		return text
	}
	r, err := log.Read(t.Context(), topic, p, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for r.Position() < next {
		recs, err := r.Next(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(recs)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, bytes.ReplaceAll(bytes.Trim(line, "[]"), []byte("},{"), []byte("}{"))...)
	}
	return text
}

// goOn owns a partition and adds to it.
func goOn(t *testing.T, log, name string) {
	t.Helper()
	e := opened(t, log)
	defer e.Close()
	topic := join.TopicsOf(name).Decisions
	a, tail, err := e.Log.Open(t.Context(), topic, 1, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Append(t.Context(), &stream.Record{Value: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, next, err := e.Log.Bounds(t.Context(), topic, 1); err != nil || next != tail.Next+1 {
		t.Errorf("the next is %d, not %d: %v", next, tail.Next+1, err)
	}
}
