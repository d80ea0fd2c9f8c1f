package front

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// hungBus is a bus on which nobody answers for one partition until it goes on.
type hungBus struct {
	stream.Bus
	hung    string
	asked   atomic.Int32 // of that partition
	goOn    chan struct{}
	waiting sync.WaitGroup
}

func (b *hungBus) Request(_ context.Context, subject string, _ []byte, _ ...stream.Header) (
	[]byte, []stream.Header, error) {
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
			bus := &hungBus{hung: "m.decide.2", goOn: make(chan struct{})}
			s := NewServer(Config{Bus: bus, Name: "m", Partitions: partitions})
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
				data += strings.Repeat(" ", max(0, c.size-len(data)))
				s.Decide(stream.Message{Data: []byte(data), Respond: func(b []byte, _ ...stream.Header) error {
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
			for s.rooms[2].full() { // it answers before it is out
				runtime.Gosched()
			}
			ask(ids[2][0])
			if bus.waiting.Wait(); refused.Load() != 1 {
				t.Error("there is no room when the owner goes on")
			}
		})
	}
}

func (r *Room) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests > 0
}

// TestFrontTooLarge: a request that is too large with its headers is not forwarded.
func TestFrontTooLarge(t *testing.T) {
	s := NewServer(Config{Bus: &hungBus{}, Name: "m", Partitions: 2})
	for extra, want := range map[int]string{0: "answered", 1: "413"} {
		got := make(chan string, 1)
		long := strings.Repeat("v", codec.MaxRecordBytes-len(`{"actions":["a"]}k`)+extra)
		s.Decide(stream.Message{Data: []byte(`{"actions":["a"]}`), Headers: []stream.Header{{Key: "k", Value: long}},
			Respond: func(b []byte, _ ...stream.Header) error { got <- string(b); return nil }})
		if reply := <-got; !strings.Contains(reply, want) {
			t.Errorf("%d bytes too many: %s, want %s", extra, reply, want)
		}
	}
}

// TestFrontSpreads: requests without an id take turns among the partitions of the process, or among all if it has none.
func TestFrontSpreads(t *testing.T) {
	s, gates := NewServer(Config{Name: "m", Partitions: 5}), [5]*Gate{{}, nil, {}, {}, nil}
	for _, p := range []int{0, 2, 3} {
		s.set(p, gates[p])
	}
	m := &stream.Message{Data: []byte(`{"actions":["a"]}`)}
	count := func(n int) (got [5]int) {
		for range n {
			p, g := s.owner(m)
			if g != s.here.Load().gates[p] || g == nil && len(s.here.Load().ours) > 0 {
				t.Fatalf("partition %d has the gate %p", p, g)
			}
			got[p]++
		}
		return got
	}
	if got := count(300); got != [5]int{100, 0, 100, 100, 0} {
		t.Errorf("of 300: %v", got)
	}
	s.set(2, nil)
	if got := count(300); got != [5]int{150, 0, 0, 150, 0} {
		t.Errorf("of 300, without partition 2: %v", got)
	}
	s.set(0, nil)
	s.set(3, nil)
	if got := count(300); got != [5]int{60, 60, 60, 60, 60} {
		t.Errorf("of 300, without deciders: %v", got)
	}
}

// TestUnitRoutes: a request for a unit goes to the partition of the unit, whatever its id, and an outcome that names a
// unit has a partition too.
func TestUnitRoutes(t *testing.T) {
	s := NewServer(Config{Name: "m", Partitions: 4, Bus: &hungBus{}})
	for i := range 40 {
		unit := fmt.Sprint("unit", i)
		want := loop.PartitionOf([]byte(unit), 4)
		for _, id := range []string{"", `"id":"x",`, `"id":"r-3-7",`} {
			if p, _ := s.owner(&stream.Message{Data: fmt.Appendf(nil, `{%s"unit":%q}`, id, unit)}); p != want {
				t.Errorf("%s of %s goes to partition %d, want %d", id, unit, p, want)
			}
		}
	}
	far := `{"id":"r-4-7"}` // of a system with more partitions
	for body, want := range map[string]int{far: loop.PartitionOf([]byte("r-4-7"), 4), `{"id":"r-3-7"}`: 3,
		`{"id":"r-3-7","unit":17}`:   3,
		`{"id":"r-3-7","unit":null}`: 3} {
		if p, _ := s.owner(&stream.Message{Data: []byte(body)}); p != want {
			t.Errorf("%s goes to partition %d, want %d", body, p, want)
		}
	}
}

// TestForwardedSign: the sign of a request that a process of the model forwarded is taken away; nobody else can make
// it.
func TestForwardedSign(t *testing.T) {
	s := Server{pass: passOf([]byte("seed"), "m")}
	first, last := stream.Header{Key: "a", Value: "1"}, stream.Header{Key: "b", Value: "2"}
	for pass, want := range map[string]bool{s.pass: true, passOf([]byte("seed"), "n"): false,
		passOf([]byte("other"), "m"): false, "": false} {
		m := stream.Message{Headers: []stream.Header{first, {Key: "Hindsight-Forwarded", Value: pass}, last}}
		if got := s.isForwarded(&m); got != want || want && !slices.Equal(m.Headers, []stream.Header{first, last}) {
			t.Errorf("sign %q: %v, %v are left", pass, got, m.Headers)
		}
	}
}
