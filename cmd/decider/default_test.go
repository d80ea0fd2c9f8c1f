package main

import (
	"strings"
	"testing"

	"hindsight/pkg/stream/nats"
)

// TestMemory asks a decider whose log is in memory, and reports what came of it.
func TestMemory(t *testing.T) {
	p := start(t, decider(t, "--log", "mem:", "--listen", "127.0.0.1:0", "--partitions", "2")).ready()
	user, err := nats.Dial(p.answersAt(), "test", nats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	for subject, data := range map[string]string{"hindsight.decide": `{"id":"a","actions":["x","y"]}`,
		"hindsight.outcome": `{"id":"a","loss":0}`} {
		if code, reply := say(t, user.Bus(), subject, data); code != 0 {
			t.Errorf("%s: %d %s", subject, code, reply)
		}
	}
	p.stop(patience)
}

// TestOlderDefault holds what happens to a log that was begun when the linear oracle was
// the default: without a model file it is refused, the refusal names the line, and a model
// file with that line goes on.
func TestOlderDefault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := []string{"--log", "embedded:" + dir, "--listen", "127.0.0.1:0"}
	old := append(
		[]string{"--model", writeModel(t, t.TempDir(), "oracle: {kind: linear, version: 1, beta: 0, lambda: 1}\n")},
		log...)
	p := start(t, decider(t, old...)).ready()
	p.stop(patience)
	got := finish(t, decider(t, log...))
	const says = `The log has "oracle: {kind: linear, beta: 0, lambda: 1}" where this has "oracle: {kind: auto, ` +
		`version: 2, beta: auto, columns: 0, fourier: auto, seed: 1}"`
	if said := strings.ReplaceAll(got.stderr, `\"`, `"`); got.code != 1 || !strings.Contains(said, says) {
		t.Errorf("%+v; want %s", got, says)
	}
	start(t, decider(t, old...)).ready().stop(patience)
}

// TestOracleLine: the start says which oracle it is, why, and what it costs.
func TestOracleLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ model, says string }{
		{"", "3 regressions an action, as large as the columns seen, the third on random features while actions × " +
			"(columns + 128)² ≤ 1e6; at most 1.08 GB in all"},
		{"", "at most 1.08 GB for each partition decided here, 3.24 GB while a snapshot is written or read"},
		{"oracle: {kind: auto, version: 1, beta: 0}\n", "without random features, because 1000 actions × (257 + " +
			"128)² > 1e6"},
		{"max_actions: 10\nmax_features: 16\noracle: {kind: auto, version: 1}\n", "3 regressions of 17, 17 and 145 " +
			"columns an action, 91.2 kB each"},
	} {
		p := start(t, decider(t, "--log", "mem:", "--listen", "127.0.0.1:0", "--model",
			writeModel(t, t.TempDir(), c.model))).ready()
		p.stop(patience)
		if said := p.log(); !strings.Contains(said, "msg=oracle") || !strings.Contains(said, c.says) {
			t.Errorf("%q: %s\nwant %s", c.model, said, c.says)
		}
	}
}
