package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"hindsight/internal/check"
	"hindsight/internal/daemon"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/stream"
)

// users ask for decisions, write contexts, and report outcomes.
type users struct {
	s     *shared
	stop  context.CancelFunc
	begin context.Context
	group sync.WaitGroup
	uncut bool // a joiner that logged no cuts was at work: what follows from them is not known

	mu      sync.Mutex
	replies []check.Reply
	slowest time.Duration // from the first attempt to the answer
}

func (s *shared) newUsers(seed uint64) *users {
	u := &users{s: s}
	u.begin, u.stop = context.WithCancel(s.t.Context())
	for i := range 3 {
		u.group.Go(func() { u.ask(i, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	u.group.Go(func() { u.write(rand.New(rand.NewPCG(seed, 99))) })
	s.t.Cleanup(func() { u.stop(); u.group.Wait() })
	return u
}

// ask asks, with an id until there is an answer, and reports outcomes.
func (u *users) ask(i int, r *rand.Rand) {
	for n := 0; u.begin.Err() == nil; n++ {
		u.think(r.IntN(8))
		id := fmt.Sprintf("q%d-%d", i, n)
		data := context1(r, id)
		began := time.Now()
		reply := u.insist("shop.decide", data)
		u.mu.Lock()
		u.replies = append(u.replies, check.Reply{ID: id, Data: reply})
		u.slowest = max(u.slowest, time.Since(began))
		u.mu.Unlock()
		if n%7 == 0 { // a retry meets the decision, whoever it asks
			if again := u.insist("shop.decide", data); again != nil {
				u.mu.Lock()
				u.replies = append(u.replies, check.Reply{ID: id, Data: again})
				u.mu.Unlock()
			}
		}
		if r.IntN(4) > 0 {
			u.insist("shop.outcome", fmt.Appendf(nil, `{"id":%q,"loss":%g}`, id, float64(r.IntN(5))/4))
		}
	}
}

// insist asks until there is an answer that is not about now.
func (u *users) insist(subject string, data []byte) []byte {
	for {
		ctx, cancel := context.WithTimeout(u.s.t.Context(), time.Second)
		reply, headers, err := u.s.client.Bus().Request(ctx, subject, data)
		cancel()
		switch code := errorCode(headers); {
		case err == nil && code == 0:
			return reply
		case err == nil && code != 503:
			u.s.t.Errorf("%s %s: %d %s", subject, data, code, reply)
			return nil
		case u.s.t.Context().Err() != nil:
			return nil
		case err != nil && !errors.Is(err, stream.ErrNoResponder) && !errors.Is(err, context.DeadlineExceeded) &&
			!stream.IsRetryable(err):
			u.s.t.Errorf("%s: %v", subject, err)
			return nil
		}
		u.think(5)
	}
}

// think lets some milliseconds pass, as a user would.
func (u *users) think(ms int) {
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
	case <-u.s.t.Context().Done():
	}
}

// write puts contexts in their partitions, now and then one in another.
func (u *users) write(r *rand.Rand) {
	for n := 0; u.begin.Err() == nil; n++ {
		u.think(3)
		id := fmt.Sprintf("c%d", n)
		p := loop.PartitionOf([]byte(id), u.s.partitions)
		if n%50 == 0 {
			p = r.IntN(u.s.partitions)
		}
		for u.s.t.Context().Err() == nil && !u.put(p, id, context1(r, id)) {
			u.think(5)
		}
	}
}

// put appends one context. One whose fate is unknown is not put again: the checker
// would take it for a repeat.
func (u *users) put(p int, id string, value []byte) (done bool) {
	ctx, cancel := context.WithTimeout(u.s.t.Context(), 5*time.Second)
	defer cancel()
	w, err := u.s.client.Log().Writer(ctx, "shop.contexts", p, nil)
	if err != nil {
		return false
	}
	defer w.Close()
	if _, err := w.Append(ctx, &stream.Record{Key: []byte(id), Value: value}); err != nil {
		return !errors.Is(err, stream.ErrUnavailable)
	}
	_ = w.Flush(ctx)
	return true
}

// end stops the users and waits until every record has its fate.
func (u *users) end() {
	u.s.t.Helper()
	u.stop()
	u.group.Wait()
	s, o := u.s, check.Options{Rules: rulesOf, Unfinished: true}
	if u.uncut {
		o.Rules = nil
	}
	var r *check.Report
	defer func() {
		if s.t.Failed() {
			s.t.Log(figures(r))
		}
	}()
	eventually(s.t, "every record has its fate", func() bool {
		var err error
		r, err = check.Run(s.t.Context(), s.client.Log(), "shop", s.partitions, o)
		if err != nil {
			s.t.Error(err)
			return true
		}
		return r.Waiting == 0 && r.Unread == 0
	})
}

// audit holds the logs against every promise.
func (u *users) audit() {
	s := u.s
	s.t.Helper()
	seed, err := daemon.SeedFile(filepath.Join(s.dir, "seed"))
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := check.Run(s.t.Context(), s.client.Log(), "shop", s.partitions,
		check.Options{Seed: seed, Rules: rulesOf, Replies: u.replies, Dedup: 100_000})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range r.Violations {
		s.t.Error(v)
	}
	verifyLogs(s.t.Context(), s.t, s.client.Log(), "shop", seed, join.ClockSkew)
	s.t.Logf("%d replies, the slowest after %v; %s", len(u.replies), u.slowest.Round(time.Millisecond), figures(r))
}
