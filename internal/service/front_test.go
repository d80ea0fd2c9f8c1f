package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/loop"
	"hindsight/internal/topics"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// startSystem runs the deciders of some partitions, as one process.
func startSystem(t *testing.T, log *mem.Log, source *follow.Source, partitions int, owned ...int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- RunSystem(ctx, SystemConfig{Log: log, Bus: log, Name: "m", Source: source, Build: testBuild,
			Seed:       []byte("seed"),
			Partitions: partitions, Owned: owned, Owner: "test", Logger: slog.New(slog.DiscardHandler)},
			func() { close(ready) })
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(20 * time.Second):
		t.Fatal("not ready")
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// clock is a log time that moves on.
func clock() func() int64 {
	var n atomic.Int64
	return func() int64 { return n.Add(int64(time.Millisecond)) }
}

// TestFront asks two processes that own different partitions: each request is decided
// by the owner of its id, whoever takes it, and a retry meets the decision.
func TestFront(t *testing.T) {
	const partitions = 4
	log := mem.New(mem.Options{Clock: clock()})
	defer log.Close()
	if err := topics.Create(t.Context(), log, "m", partitions, topics.Retention{}); err != nil {
		t.Fatal(err)
	}
	source := &follow.Source{Name: "m", Version: 1, Model: []byte("x")}
	stop1 := startSystem(t, log, source, partitions, 0, 2)
	stop2 := startSystem(t, log, nil, partitions, 1)
	ask := func(data string, headers ...stream.Header) (string, int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		reply, h, err := log.Request(ctx, "m.decide", []byte(data), headers...)
		if err != nil {
			t.Fatal(err)
		}
		code := 0
		for _, x := range h {
			if x.Key == "Nats-Service-Error-Code" {
				fmt.Sscan(x.Value, &code)
			}
		}
		return string(reply), code
	}
	context1 := func(id string) string { return fmt.Sprintf(`{"id":%q,"features":{"x":1},"actions":["a","b"]}`, id) }
	seen := map[int]int{}
	for i := range 200 {
		id := fmt.Sprint("id", i)
		p := loop.PartitionOf([]byte(id), partitions)
		seen[p]++
		began := time.Now()
		reply, code := ask(context1(id))
		if p == 3 { // nobody owns it
			if code != 503 || !strings.Contains(reply, "no responders") || time.Since(began) > 10*time.Second {
				t.Fatalf("%s, of a partition without an owner: %d %s after %v", id, code, reply, time.Since(began))
			}
			continue
		}
		if want := fmt.Sprintf(`"partition":%d,`, p); code != 0 || !strings.Contains(reply, want) ||
			!strings.Contains(reply, `"duplicate":false`) {
			t.Fatalf("%s: %d %s, want %s", id, code, reply, want)
		}
		if again, code := ask(context1(id)); code != 0 || !strings.Contains(again, `"duplicate":true`) ||
			strings.Replace(again, "true", "false", 1) != reply {
			t.Fatalf("%s again: %d %s, the first was %s", id, code, again, reply)
		}
		if reply, code := ask(strings.Replace(context1(id), `"x":1`, `"x":2`, 1)); code != 409 {
			t.Fatalf("%s with another context: %d %s", id, code, reply)
		}
	}
	for p := range partitions {
		if seen[p] == 0 {
			t.Errorf("no id falls to partition %d", p)
		}
	}
	spread := map[string]int{}
	for i := range 30 {
		reply, code := ask(`{"features":{"x":1},"actions":["a","b"]}`)
		_, rest, ok := strings.Cut(reply, `"id":"r-`)
		if code != 0 || !ok {
			t.Fatalf("without an id: %d %s", code, reply)
		}
		id, _, _ := strings.Cut(rest, `"`)
		if spread[rest[:1]]++; i%3 > 0 {
			continue
		}
		if again, code := ask(context1("r-" + id)); code != 0 || strings.Replace(again, "true", "false", 1) != reply ||
			again == reply {
			t.Fatalf("without an id, and again with the one it got: %d %s, the first was %s", code, again, reply)
		}
	}
	if spread["0"] == 0 || spread["1"] == 0 || spread["2"] == 0 {
		t.Errorf("requests without an id were decided in the partitions %v, of 0, 1 and 2", spread)
	}
	for i, left := 0, 10; left > 0; i++ {
		id := fmt.Sprint("marked", i)
		if loop.PartitionOf([]byte(id), partitions) == 3 {
			continue
		}
		left--
		plain, _ := ask(context1(id))
		if reply, code := ask("\ufeff" + context1(id)); code != 0 || strings.Replace(reply, "true", "false",
			1) != plain || reply == plain {
			t.Fatalf("with a byte order mark: %d %s, without it was %s", code, reply, plain)
		}
	}
	if reply, code := ask(`{"actions":`); code != 400 {
		t.Errorf("malformed: %d %s", code, reply)
	}
	if reply, code := ask(strings.Repeat(" ", codec.MaxRecordBytes+1)); code != 413 {
		t.Errorf("too large: %d %.100s", code, reply)
	}
	ce := "from-header"
	reply, code := ask(`{"features":{"x":1},"actions":["a","b"]}`, stream.Header{Key: "ce_id", Value: ce},
		stream.Header{Key: "ce_specversion", Value: "1.0"},
		stream.Header{Key: "ce_source", Value: "x"}, stream.Header{Key: "ce_type", Value: "y"})
	if p := loop.PartitionOf([]byte(ce), partitions); p != 3 &&
		(code != 0 || !strings.Contains(reply, fmt.Sprintf(`"id":%q`, ce)) ||
			!strings.Contains(reply, fmt.Sprintf(`"partition":%d,`, p))) {
		t.Errorf("with an id in the headers: %d %s", code, reply)
	}
	stop2()
	for i := range 50 {
		id := fmt.Sprint("late", i)
		if p := loop.PartitionOf([]byte(id), partitions); p == 1 {
			if reply, code := ask(context1(id)); code != 503 || !strings.Contains(reply, "no responders") {
				t.Errorf("an owner that went: %d %s", code, reply)
			}
		}
	}
	stop1()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, _, err := log.Request(ctx, "m.decide", []byte(context1("x"))); !errors.Is(err, stream.ErrNoResponder) {
		t.Errorf("nobody is there: %v", err)
	}
}

// signedBus tells clients apart by a header; what a process asks for comes from a client
// of its own.
type signedBus struct{ stream.Bus }

func (b signedBus) Serve(subject, queue string, h func(stream.Message)) (func(), error) {
	return b.Bus.Serve(subject, queue, func(m stream.Message) {
		for _, x := range m.Headers {
			if x.Key == "from" {
				m.From = x.Value
			}
		}
		h(m)
	})
}

func (b signedBus) Request(ctx context.Context, subject string, data []byte, headers ...stream.Header) ([]byte,
	[]stream.Header, error) {
	return b.Bus.Request(ctx, subject, data, append(headers, stream.Header{Key: "from", Value: "a process"})...)
}

// TestClientRateOfPartitions: a client that asks a partition's own subject is limited as on
// the others, even if it says that it forwards; what a process forwards is not.
func TestClientRateOfPartitions(t *testing.T) {
	const partitions, rate = 2, 10
	log := mem.New(mem.Options{Clock: clock()})
	defer log.Close()
	if err := topics.Create(t.Context(), log, "m", partitions, topics.Retention{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, partitions)
	for p := range partitions {
		c := SystemConfig{Log: log, Bus: signedBus{log}, Name: "m", Build: testBuild, Seed: []byte("seed"),
			Partitions: partitions, Owned: []int{p}, ClientRate: rate, Owner: "test",
			Logger: slog.New(slog.DiscardHandler)}
		if p == 0 {
			c.Source = &follow.Source{Name: "m", Version: 1, Model: []byte("x")}
		}
		ready := make(chan struct{})
		go func() { ended <- RunSystem(ctx, c, func() { close(ready) }) }()
		select {
		case <-ready:
		case err := <-ended:
			t.Fatal(err)
		}
	}
	ask := func(subject, client string, headers ...stream.Header) (refused bool) {
		t.Helper()
		reply, _, err := log.Request(ctx, subject, []byte(`{"actions":["a","b"]}`),
			append(headers, stream.Header{Key: "from", Value: client})...)
		if err != nil {
			t.Fatal(err)
		}
		if refused = strings.Contains(string(reply), `"code":429`); !refused && strings.Contains(string(reply),
			`"error"`) {
			t.Fatalf("%s", reply)
		}
		return refused
	}
	for _, forged := range []string{"", "forged"} {
		began, taken := time.Now(), 0
		for range 6 * rate {
			if !ask("m.decide.1", "greedy"+forged, stream.Header{Key: "hindsight-forwarded", Value: forged}) {
				taken++
			}
		}
		if most := rate + int(rate*time.Since(began).Seconds()) + 1; taken < rate || taken > most {
			t.Errorf("%q: %d of %d were taken on a partition's subject, at most %d should be", forged, taken,
				6*rate, most)
		}
	}
	for i := range 6 * rate {
		client := fmt.Sprint("modest", i)
		if ask("m.decide", client, stream.Header{Key: "ce_id", Value: client},
			stream.Header{Key: "ce_specversion", Value: "1.0"}, stream.Header{Key: "hindsight-forwarded",
				Value: "forged"}) {
			t.Fatalf("request %d, each of another client, is refused", i)
		}
	}
	cancel()
	for range partitions {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
