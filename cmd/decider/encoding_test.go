package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
	"hindsight/pkg/stream/nats"
)

// TestEncoding makes a model in JSON and kills its decider: without the flag the next one goes on in
// JSON, and another encoding is refused, as is that of a model in MessagePack.
func TestEncoding(t *testing.T) {
	for i, encoding := range codec.Encodings() {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := func(args ...string) *process {
				return start(t, decider(t, append([]string{"--log", "embedded:" + dir, "--listen", "127.0.0.1:0",
					"--model", writeModel(t, dir, shop)}, args...)...))
			}
			p := run("--encoding", encoding).ready()
			decideOnce(t, asService(p.reached(dir)), "one")
			before := decidePacked(t, asService(p.reached(dir)), false)
			p.kill()
			for n, args := range [][]string{nil, {"--encoding", encoding}} {
				p = run(args...).ready()
				decideOnce(t, asService(p.reached(dir)), fmt.Sprint("more", n))
				if again := decidePacked(t, asService(p.reached(dir)), true); again != before {
					t.Errorf("decided %v, and again %v", before, again)
				}
				p.stop(patience)
			}
			other := codec.Encodings()[1-i]
			says := fmt.Sprintf("model %q: its topics have another encoding, and that cannot change: start without "+
				"--encoding, which goes on in %s, or give a model with --encoding %s another name", "shop",
				encoding, other)
			p = run("--encoding", other)
			if code := p.wait(patience); code != 1 || !strings.Contains(strings.ReplaceAll(p.log(), `\"`, `"`), says) {
				t.Errorf("--encoding %s: exit code %d: %s", other, code, p.log())
			}
			p = run("--encoding", "xml")
			if code := p.wait(patience); code != 2 || !strings.Contains(p.log(), "expected msgpack or json") {
				t.Errorf("--encoding xml: exit code %d: %s", code, p.log())
			}
			e, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, DontListen: true})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			decisions := 0
			for _, topic := range []string{"shop.decisions", "shop.feedback"} {
				scan(t, e.Log(), topic, 0, func(r *stream.Record) error {
					if got := codec.EncodingOf(r.Value).String(); got != encoding {
						t.Errorf("%s@%d, %q: %s", topic, r.Offset, r.Type, got)
					}
					if topic == "shop.decisions" && r.Type == "" {
						decisions++
					}
					return nil
				})
			}
			if decisions != 4 {
				t.Errorf("%d decisions", decisions)
			}
		})
	}
}

// decidePacked asks for a decision in MessagePack, of a context with a key that no context has, and returns its round.
func decidePacked(t *testing.T, url string, again bool) (n int64) {
	t.Helper()
	c, err := (&nats.Access{URL: url}).Dial("test", nats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reply, headers, err := c.Bus().Request(ctx, "shop.decide",
		[]byte("\x84\xa2id\xa6packed\xa8features\x81\xa4hour\x07\xa7actions\x92\xa3red\xa4blue\xa4more\xc4\x01x"))
	if err != nil || errorCode(headers) != 0 {
		t.Fatalf("%v %v %q", headers, err, reply)
	}
	var d struct {
		N         int64 `msgpack:"n"`
		Duplicate bool  `msgpack:"duplicate"`
	}
	if err := msgpack.Unmarshal(reply, &d); err != nil || d.N == 0 || d.Duplicate != again {
		t.Fatalf("%v: %+v", err, d)
	}
	return d.N
}
