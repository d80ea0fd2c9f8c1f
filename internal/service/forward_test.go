package service

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hindsight/internal/loop"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// hungBus is a bus on which nobody answers for one partition until it goes on.
type hungBus struct {
	stream.Bus
	hung    string
	asked   atomic.Int32 // of that partition
	goOn    chan struct{}
	waiting sync.WaitGroup
}

func (b *hungBus) Request(_ context.Context, subject string, _ []byte, _ ...stream.Header) ([]byte, []stream.Header, error) {
	if subject == b.hung {
		b.asked.Add(1)
		<-b.goOn
	}
	return []byte("answered"), nil, nil
}

// TestFrontRoom holds how many requests, and how many bytes, may wait for a partition whose
// owner hangs; that the others are answered meanwhile, and that there is room again when
// it goes on.
func TestFrontRoom(t *testing.T) {
	const partitions = 4
	for _, c := range []struct {
		name string
		size int // bytes of a request
		most int
	}{{"small", 100, maxForwarded}, {"large", 512 << 10, maxWaitingBytes / partitions / (512 << 10)}} {
		t.Run(c.name, func(t *testing.T) {
			bus := &hungBus{hung: decideSubject("m", 2), goOn: make(chan struct{})}
			f := newFront(bus, "m", partitions)
			f.metrics = watch.NewMetrics(nil, nil)
			var ids [partitions][]string
			for i := 0; len(ids[1]) < 10 || len(ids[2]) < maxForwarded+10; i++ {
				id := fmt.Sprint("id", i)
				p := loop.PartitionOf([]byte(id), partitions)
				ids[p] = append(ids[p], id)
			}
			var refused atomic.Int32
			ask := func(id string) {
				data := fmt.Sprintf(`{"id":%q,"actions":["a"]}`, id)
				bus.waiting.Add(1)
				f.request(stream.Message{Data: []byte(data + strings.Repeat(" ", max(0, c.size-len(data)))), Respond: func(b []byte, _ ...stream.Header) error {
					if string(b) != "answered" {
						refused.Add(1)
					}
					bus.waiting.Done()
					return nil
				}})
			}
			for i := range c.most {
				ask(ids[2][i])
			}
			if n := refused.Load(); n > 0 {
				t.Fatalf("%d of the first %d are refused", n, c.most)
			}
			ask(ids[2][c.most])
			if n := refused.Load(); n != 1 {
				t.Errorf("one more than %d: %d refused", c.most, n)
			}
			for _, id := range ids[1][:10] {
				ask(id)
			}
			if n := refused.Load(); n != 1 {
				t.Errorf("of another partition: %d refused", n-1)
			}
			close(bus.goOn)
			bus.waiting.Wait()
			if n := bus.asked.Load(); n != int32(c.most) {
				t.Errorf("%d were forwarded, want %d", n, c.most)
			}
			for f.rooms[2].full() { // it answers before it is out
				runtime.Gosched()
			}
			ask(ids[2][0])
			if bus.waiting.Wait(); refused.Load() != 1 {
				t.Error("there is no room when the owner goes on")
			}
		})
	}
}

func (r *room) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests > 0
}

// TestFrontTooLarge: a request that is too large with its headers is not forwarded.
func TestFrontTooLarge(t *testing.T) {
	f := newFront(&hungBus{}, "m", 2)
	f.metrics = watch.NewMetrics(nil, nil)
	for extra, want := range map[int]string{0: "answered", 1: "413"} {
		got := make(chan string, 1)
		f.request(stream.Message{Data: []byte(`{"actions":["a"]}`), Headers: []stream.Header{{Key: "k", Value: strings.Repeat("v", codec.MaxRecordBytes-len(`{"actions":["a"]}k`)+extra)}},
			Respond: func(b []byte, _ ...stream.Header) error { got <- string(b); return nil }})
		if s := <-got; !strings.Contains(s, want) {
			t.Errorf("%d bytes too many: %s, want %s", extra, s, want)
		}
	}
}

// TestFrontSpreads: requests without an id take turns among the partitions of the process.
func TestFrontSpreads(t *testing.T) {
	f := newFront(nil, "m", 5)
	for _, p := range []int{0, 2, 3} {
		f.set(p, &Decider{cfg: SystemConfig{Partition: p}})
	}
	m := &stream.Message{Data: []byte(`{"actions":["a"]}`)}
	count := func(n int) (got [5]int) {
		for range n {
			p, d := f.owner(m)
			if d == nil || d.cfg.Partition != p {
				t.Fatalf("partition %d has the decider %v", p, d)
			}
			got[p]++
		}
		return got
	}
	if got := count(300); got != [5]int{100, 0, 100, 100, 0} {
		t.Errorf("of 300: %v", got)
	}
	f.set(2, nil)
	if got := count(300); got != [5]int{150, 0, 0, 150, 0} {
		t.Errorf("of 300, without partition 2: %v", got)
	}
	f.set(0, nil)
	f.set(3, nil)
	if p, d := f.owner(m); p != 0 || d != nil {
		t.Errorf("without deciders: %d, %v", p, d)
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

func (b signedBus) Request(ctx context.Context, subject string, data []byte, headers ...stream.Header) ([]byte, []stream.Header, error) {
	return b.Bus.Request(ctx, subject, data, append(headers, stream.Header{Key: "from", Value: "a process"})...)
}

// TestClientRateOfPartitions: a client that asks a partition's own subject is limited as on
// the others, even if it says that it forwards; what a process forwards is not.
func TestClientRateOfPartitions(t *testing.T) {
	const partitions, rate = 2, 10
	log := mem.New(mem.Options{Clock: clock()})
	defer log.Close()
	if err := CreateTopics(t.Context(), log, "m", partitions, Retention{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, partitions)
	for p := range partitions {
		c := SystemConfig{Log: log, Bus: signedBus{log}, Name: "m", Build: testBuild, Seed: []byte("seed"), Partitions: partitions, Owned: []int{p},
			ClientRate: rate, Owner: "test", Logger: slog.New(slog.DiscardHandler)}
		if p == 0 {
			c.Source = &Source{Name: "m", Version: 1, Model: []byte("x")}
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
		reply, _, err := log.Request(ctx, subject, []byte(`{"actions":["a","b"]}`), append(headers, stream.Header{Key: "from", Value: client})...)
		if err != nil {
			t.Fatal(err)
		}
		if refused = strings.Contains(string(reply), `"code":429`); !refused && strings.Contains(string(reply), `"error"`) {
			t.Fatalf("%s", reply)
		}
		return refused
	}
	for _, forged := range []string{"", "forged"} {
		began, taken := time.Now(), 0
		for range 6 * rate {
			if !ask("m.decide.1", "greedy"+forged, stream.Header{Key: passHeader, Value: forged}) {
				taken++
			}
		}
		if most := rate + int(rate*time.Since(began).Seconds()) + 1; taken < rate || taken > most {
			t.Errorf("%q: %d of %d were taken on a partition's subject, at most %d should be", forged, taken, 6*rate, most)
		}
	}
	for i := range 6 * rate {
		client := fmt.Sprint("modest", i)
		if ask("m.decide", client, stream.Header{Key: "ce_id", Value: client}, stream.Header{Key: "ce_specversion", Value: "1.0"}, stream.Header{Key: passHeader, Value: "forged"}) {
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
