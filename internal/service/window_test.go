package service

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

	"hindsight/internal/loop"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// windowedLog is a log that takes only so many records at once into a partition, as a
// replicated stream does, and holds back what it acknowledges.
type windowedLog struct {
	stream.Log
	t      *testing.T
	window int

	mu   sync.Mutex
	hold bool
	held []func()
	dead func(context.Context) error // what Append and Writer come to; nil: all goes well
}

type windowedAppender struct {
	stream.Appender
	log      *windowedLog
	inFlight int // guarded by log.mu
}

func (l *windowedLog) Open(ctx context.Context, topic string, partition int, o stream.OpenOptions) (stream.Appender, stream.Tail, error) {
	a := &windowedAppender{log: l}
	o.Ack = a.later(o.Ack)
	out, tail, err := l.Log.Open(ctx, topic, partition, o)
	a.Appender = out
	return a, tail, err
}

func (l *windowedLog) Writer(ctx context.Context, topic string, partition int, ack stream.AckFunc) (stream.Appender, error) {
	a := &windowedAppender{log: l}
	if l.dead != nil {
		return nil, l.dead(ctx)
	}
	out, err := l.Log.Writer(ctx, topic, partition, a.later(ack))
	a.Appender = out
	return a, err
}

// later returns an AckFunc that is held back.
func (a *windowedAppender) later(ack stream.AckFunc) stream.AckFunc {
	return func(seq uint64, offset int64, err error) {
		a.log.mu.Lock()
		a.log.held = append(a.log.held, func() {
			a.log.mu.Lock()
			a.inFlight--
			a.log.mu.Unlock()
			if ack != nil {
				ack(seq, offset, err)
			}
		})
		hold := a.log.hold
		a.log.mu.Unlock()
		if !hold {
			a.log.deliver(-1)
		}
	}
}

// deliver tells of the first n records that are held back, of all if n is negative.
func (l *windowedLog) deliver(n int) {
	l.mu.Lock()
	if n < 0 || n > len(l.held) {
		n = len(l.held)
	}
	first := slices.Clone(l.held[:n])
	l.held = l.held[n:]
	l.mu.Unlock()
	for _, tell := range first {
		tell()
	}
}

// release tells of all that is held back, and holds nothing back any more.
func (l *windowedLog) release() {
	l.mu.Lock()
	l.hold = false
	l.mu.Unlock()
	l.deliver(-1)
}

func (a *windowedAppender) Append(ctx context.Context, r *stream.Record) (uint64, error) {
	a.log.mu.Lock()
	a.inFlight++
	if a.inFlight > a.log.window {
		a.log.t.Errorf("Append blocks: %d records are on their way", a.inFlight)
	}
	a.log.mu.Unlock()
	if a.log.dead != nil {
		return 0, a.log.dead(ctx)
	}
	return a.Appender.Append(ctx, r)
}

func (a *windowedAppender) Window() int { return a.log.window }

// TestDecisionsOfWindow holds that a decider has no more decisions on their way than its log
// takes at once, and leaves room for requests and marks.
func TestDecisionsOfWindow(t *testing.T) {
	for window, most := range map[int]int{64: 62, 1025: 1023, 1026: DefaultMaxInFlight, 2000: DefaultMaxInFlight, 1: 1} {
		l := &windowedLog{t: t, window: window}
		if got := roomOf(&windowedAppender{log: l}, DefaultMaxInFlight); got != most {
			t.Errorf("a window of %d: %d decisions, and not %d", window, got, most)
		}
	}
	l := &windowedLog{t: t, window: 64}
	r := newRig(t, func(r *rig) { l.Log, r.dc.Log, r.dc.MaxInFlight = r.log, l, DefaultMaxInFlight })
	r.must(r.settle())
	l.hold = true
	early := 0
	for n := range 62 {
		if reply := r.request(`{"id":"q%d","actions":["a","b"]}`, n); reply != "" {
			early++
		}
	}
	if early > 0 || !strings.Contains(r.request(`{"id":"over","actions":["a","b"]}`), "overloaded") {
		t.Errorf("%d of 62 requests were refused, and one more was not", early)
	}
	l.deliver(-1)
	r.d.gate = newGate("decide", r.m, r.d.requestOf)
	defer r.d.gate.close()
	for n := range 100 {
		r.contexts(fmt.Sprint("c", n))
	}
	for busy := true; busy; {
		var err error
		busy, err = r.d.StepContexts(t.Context(), 10)
		r.must(err)
	}
	if len(l.held) != 46 {
		t.Errorf("%d decisions of contexts by topic are on their way, and not 46", len(l.held))
	}
	l.release()
	r.must(r.settle())
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
	l := &windowedLog{Log: log, t: t, window: window, hold: true}
	if err := log.Create(t.Context(), "m.outcomes", 2, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	s, err := ServeOutcomes(t.Context(), l, log, "m", 2, nil)
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
		s.gate.request(stream.Message{Data: fmt.Appendf(nil, `{"id":%q,"loss":1}`, id), Respond: func(b []byte, _ ...stream.Header) error {
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
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.held) != held || len(stored) != told || !slices.Equal(refused, refusals) {
			t.Errorf("window %d, %s: %d on their way, %d stored, %v refused; expected %d, %d, %v", window, what, len(l.held), len(stored), refused, held, told, refusals)
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
	l.deliver(1)
	state("one is stored", most+1, 1) // and the second is sent
	time.Sleep(forwardLimit - 1)
	state("just in time", most+1, 1)
	time.Sleep(time.Nanosecond)
	state("too late", most+1, 1, third)
	l.release()
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
	for name, most := range map[string]time.Duration{"stalls": forwardLimit + time.Second, "dies": 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) { outcomesOfDead(t, name == "dies", most) })
	}
}

func outcomesOfDead(t *testing.T, dies bool, most time.Duration) {
	const window = 12
	log := mem.New(mem.Options{})
	defer log.Close()
	l := &windowedLog{Log: log, t: t, window: 1 << 20, hold: true}
	must(t, 0, log.Create(t.Context(), "m.outcomes", 1, stream.TopicOptions{}))
	w := newOutcomeWriter(l, "m.outcomes", 0)
	must(t, 0, w.open(t.Context()))
	w.waiting.most = window
	defer w.close()
	var mu sync.Mutex // guards what was told
	stored, failed, last := 0, 0, time.Duration(0)
	ask := func() {
		start := time.Now()
		w.append(&stream.Record{Value: []byte("{}")}, start.Add(forwardLimit), func(_ int64, err error) {
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
	l.dead = func(ctx context.Context) error {
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
	l.deliver(1)
	time.Sleep(2 * forwardLimit)
	synctest.Wait()
	told := 60
	if !dies {
		told -= window - 1 // they are on their way yet
	}
	if t.Failed() || stored != 1 || stored+failed != told || last > most {
		t.Fatalf("dies: %v: %d stored, %d failed, of %d, the last after %v", dies, stored, failed, told, last)
	}
	ask()
	time.Sleep(forwardLimit)
	if synctest.Wait(); stored+failed != told+1 || last > most {
		t.Errorf("dies: %v: the next one is told after %v", dies, last)
	}
	l.dead = nil
	if dies {
		l.held = nil // what a closed appender sent is told of no more
	}
	ask()
	synctest.Wait()
	l.release()
	if synctest.Wait(); stored+failed != 62 || stored != 62-told {
		t.Errorf("dies: %v: %d stored, %d failed, after the log came back", dies, stored, failed)
	}
}
