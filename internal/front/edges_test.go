package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/join"
	"hindsight/internal/testkit/locked"
	"hindsight/internal/watch"
	"hindsight/pkg/stream"
)

// TestForgottenClients: for room those are forgotten that did not ask for a second, and all if every one did.
func TestForgottenClients(t *testing.T) {
	start := time.Unix(1000, 0)
	for idle, want := range map[time.Duration]int{time.Second: 2, time.Second - 1: 1} {
		r := newRates(1)
		r.allow("old", start)
		for i := range rateClients - 2 {
			r.allow(fmt.Sprint(i), start)
		}
		r.allow("late", start.Add(idle))
		if n := len(r.clients); n != rateClients {
			t.Fatalf("%d clients are remembered", n)
		}
		r.allow("new", start.Add(idle))
		if n := len(r.clients); n != want {
			t.Errorf("after %v %d clients are remembered, want %d", idle, n, want)
		}
		if r.allow("late", start.Add(idle)) != (want == 1) {
			t.Errorf("after %v: one that asked just now is forgotten: %t", idle, want == 1)
		}
	}
}

// TestRecordedOf: the header of a request for a decision that is recorded, in any case of letters.
func TestRecordedOf(t *testing.T) {
	for key, want := range map[string]string{RecordedHeader: "only", strings.ToUpper(RecordedHeader): "only",
		"other": ""} {
		m := stream.Message{Headers: []stream.Header{{Key: "first", Value: "x"}, {Key: key, Value: "only"}}}
		if got := RecordedOf(&m); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	if got := RecordedOf(&stream.Message{}); got != "" {
		t.Errorf("of no header: %q", got)
	}
}

// filling is a store whose answers change.
type filling struct {
	stream.Log
	mu          sync.Mutex
	held, limit int64
	err         error
	asked       int
}

func (f *filling) Fill(_ context.Context, topics ...string) (held, limit int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked++; len(topics) != 2 || topics[0] != "m.outcomes" || topics[1] != "m.rejects" {
		return 0, 0, errors.New("other topics are asked for")
	}
	return f.held, f.limit, f.err
}

// set changes its answers, and count returns how often it was asked.
func (f *filling) set(held int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held, f.err = held, err
}

func (f *filling) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// TestQuotaLooks: the store is asked every ten seconds and when it is said to, a store that does not answer changes
// nothing, and each change of what may be taken is logged once.
func TestQuotaLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said locked.Buffer
		m := watch.NewMetrics(nil, nil)
		m.Log = slog.New(slog.NewTextHandler(&said, nil))
		store := &filling{held: 31 << 20, limit: 64 << 20}
		q := newQuota(t.Context(), store, join.TopicsOf("m"), m)
		step := func(what string, asked int, taken bool, lines int) {
			t.Helper()
			synctest.Wait()
			if got := q.take(1); got != taken || store.count() != asked || strings.Count(said.String(), "\n") != lines {
				t.Errorf("%s: taken %t, asked %d times, said %s", what, got, store.asked, &said)
			}
		}
		step("at first", 1, true, 0)
		time.Sleep(quotaLook - 1)
		step("before the next look", 1, true, 0)
		store.set(32<<20, nil)
		time.Sleep(time.Nanosecond)
		step("full", 2, false, 1)
		if text := said.String(); !strings.Contains(text, "outcomes_are_taken=false mib=32 limit_mib=64") {
			t.Error(text)
		}
		store.set(0, errors.New("away"))
		time.Sleep(quotaLook)
		step("away", 3, false, 1)
		store.set(0, nil)
		Signal(q.look)
		step("room again", 4, true, 2)
		time.Sleep(quotaLook)
		step("room still", 5, true, 2)
		for asked, left := range []int64{storedBytes + 2, 32 << 20, 1} {
			store.set(32<<20-left, nil)
			time.Sleep(quotaLook)
			step("there is some room", 6+asked, true, 2)
		}
		q.close()
		(*quota)(nil).close()
		if asked := store.count(); !(*quota)(nil).take(1<<40) || asked != 8 {
			t.Error("without a quota something is refused")
		}
	})
}
