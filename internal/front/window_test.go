package front

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/front/testkit"
	"hindsight/internal/loop"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// windowed is an appender that takes so many records at once.
type windowed struct {
	stream.Appender
	window int
}

func (w windowed) Window() int { return w.window }

func TestMostInFlight(t *testing.T) {
	for window, most := range map[int]int{64: 62, 1025: 1023, 1026: 1024, 2000: 1024, 1: 1} {
		if got := MostInFlight(windowed{nil, window}, 1024); got != most {
			t.Errorf("a window of %d: %d records, and not %d", window, got, most)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestOutcomesWaitForRoom holds that outcomes wait while as many as the log takes at once
// are on their way: until there is room, or their time is over. Those of other partitions
// go on.
func TestOutcomesWaitForRoom(t *testing.T) {
	for window, most := range map[int]int{64: 62, 2000: maxOutcomesInFlight} {
		synctest.Test(t, func(t *testing.T) { outcomesWait(t, window, most) })
	}
}

func outcomesWait(t *testing.T, window, most int) {
	log := mem.New(mem.Options{})
	l := &testkit.WindowedLog{Log: log, T: t, Window: window, Hold: true}
	if err := log.Create(t.Context(), "m.outcomes", 2, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(Config{Bus: log, Name: "m", Partitions: 2}).ServeOutcomes(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	defer s.Close()
	var mu sync.Mutex // guards those told, from several goroutines
	var stored, refused []string
	next := [2]int{}
	ask := func(p int) (id string) { // of a round of this partition
		for id = fmt.Sprint(next[p]); loop.PartitionOf([]byte(id), 2) != p; id = fmt.Sprint(next[p]) {
			next[p]++
		}
		next[p]++
		data := fmt.Appendf(nil, `{"id":%q,"loss":1}`, id)
		s.gate.Request(stream.Message{Data: data, Respond: func(b []byte, _ ...stream.Header) error {
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(string(b), "overloaded") {
				refused = append(refused, id)
			} else {
				stored = append(stored, id)
			}
			return nil
		}})
		synctest.Wait()
		return id
	}
	state := func(what string, held, told int, refusals ...string) {
		t.Helper()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if l.Held() != held || len(stored) != told || !slices.Equal(refused, refusals) {
			t.Errorf("window %d, %s: %d on their way, %d stored, %v refused; expected %d, %d, %v",
				window, what, l.Held(), len(stored), refused, held, told, refusals)
		}
	}
	for range most {
		ask(0)
	}
	state("full", most, 0)
	second, third := ask(0), ask(0)
	state("over", most, 0)
	other := ask(1)
	state("another partition", most+1, 0)
	l.Deliver(1)
	state("one is stored", most+1, 1) // and the second is sent
	time.Sleep(MaxPatience - 1)
	state("just in time", most+1, 1)
	time.Sleep(time.Nanosecond)
	state("too late", most+1, 1, third)
	l.Release()
	state("the log goes on", 0, most+2, third)
	if !slices.Contains(stored, second) || !slices.Contains(stored, other) {
		t.Errorf("%s and %s are not among %v", second, other, stored)
	}
	ask(0)
	state("as before", 0, most+3, third)
}

// TestOutcomesOfDeadAppender holds that an outcome that waits for room is told in time where
// the appender dies meanwhile and no other can be had, and where it takes nothing any more;
// those behind it, too; and that whoever brings outcomes does not wait meanwhile.
func TestOutcomesOfDeadAppender(t *testing.T) {
	for name, most := range map[string]time.Duration{"stalls": MaxPatience + time.Second, "dies": 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) { outcomesOfDead(t, name == "dies", most) })
	}
}

func outcomesOfDead(t *testing.T, dies bool, most time.Duration) {
	const window = 12
	log := mem.New(mem.Options{})
	defer log.Close()
	l := &testkit.WindowedLog{Log: log, T: t, Window: 1 << 20, Hold: true}
	must(t, log.Create(t.Context(), "m.outcomes", 1, stream.TopicOptions{}))
	w := newOutcomeWriter(l, "m.outcomes", 0)
	must(t, w.open(t.Context()))
	w.waiting.most = window
	defer w.close()
	var mu sync.Mutex // guards what was told
	stored, failed, last := 0, 0, time.Duration(0)
	ask := func() {
		start := time.Now()
		w.append(&stream.Record{Value: []byte("{}")}, start.Add(MaxPatience), func(_ int64, err error) {
			mu.Lock()
			defer mu.Unlock()
			if last = max(last, time.Since(start)); err == nil {
				stored++
			} else {
				failed++
			}
		})
	}
	for range 60 {
		ask()
	}
	l.Dead = func(ctx context.Context) error {
		if w.mu.TryLock() {
			w.mu.Unlock()
		} else if dies && w.out == nil {
			t.Error("whoever brings an outcome waits for another appender")
		} else if dies {
			return errors.New("the appender is dead")
		}
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(time.Second / 2)
	l.Deliver(1)
	time.Sleep(2 * MaxPatience)
	synctest.Wait()
	told := 60
	if !dies {
		told -= window - 1 // they are on their way yet
	}
	if t.Failed() || stored != 1 || stored+failed != told || last > most {
		t.Fatalf("dies: %v: %d stored, %d failed, of %d, the last after %v", dies, stored, failed, told, last)
	}
	ask()
	time.Sleep(MaxPatience)
	if synctest.Wait(); stored+failed != told+1 || last > most {
		t.Errorf("dies: %v: the next one is told after %v", dies, last)
	}
	l.Dead = nil
	if dies {
		l.Forget() // what a closed appender sent is told of no more
	}
	ask()
	synctest.Wait()
	l.Release()
	if synctest.Wait(); stored+failed != 62 || stored != 62-told {
		t.Errorf("dies: %v: %d stored, %d failed, after the log came back", dies, stored, failed)
	}
}
