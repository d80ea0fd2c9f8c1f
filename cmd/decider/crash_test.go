package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hindsight/internal/check"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// shop is a model whose rounds wait for a moment only.
const shop = "name: shop\nversion: 1\nwindow: 300ms\n"

// testSeed returns the seed of a test's random moments: HINDSIGHT_TEST_SEED, or
// another one each time.
func testSeed(t testing.TB) uint64 {
	seed := uint64(time.Now().UnixNano()) % 1e6
	if s := os.Getenv("HINDSIGHT_TEST_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("HINDSIGHT_TEST_SEED=%d", seed)
	return seed
}

// long returns a count for a quick run or, with HINDSIGHT_LONG=1, a long one.
func long(quick, thorough int) int {
	if os.Getenv("HINDSIGHT_LONG") == "1" {
		return thorough
	}
	return quick
}

// TestKilled kills the decider with everything in it, again and again, under load by NATS and
// by HTTP, at any moment of its life. Nothing that was acknowledged may be lost, nothing
// decided twice, and all of it must be computed again from the logs.
func TestKilled(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	args := []string{"--log", "embedded:" + dir, "--listen", "127.0.0.1:0", "--model", writeModel(t, dir, shop)}
	l := newLoad(t, dir, "shop", seed)
	kills := long(7, 200)
	var took []time.Duration
	early, stops := 0, 0
	for range kills {
		p := start(t, decider(t, args...))
		switch k := r.IntN(8); {
		case k < 2: // while it starts
			early++
			after(p, time.Duration(r.IntN(80))*time.Millisecond)
			p.kill()
		default:
			l.attach(p.ready().reached(dir).URL, p.http())
			took = append(took, p.took)
			after(p, time.Duration(r.IntN(400))*time.Millisecond)
			if k == 2 { // while it stops
				stops++
				p.signal(syscall.SIGTERM)
				after(p, time.Duration(r.IntN(20))*time.Millisecond)
			}
			p.kill()
		}
		l.detach()
	}
	p := start(t, decider(t, args...)).ready()
	took = append(took, p.took)
	l.attach(p.reached(dir).URL, p.http())
	l.stop()
	settle(t, l)
	l.detach()
	p.stop(patience)
	report := audit(t, dir, "shop", l.replies, check.Options{Dedup: 100_000},
		func(log stream.Log) { auditUsers(t, log, l) })
	slices.Sort(took)
	t.Logf("%d kills, %d of them during the start and %d during the stop; ready after %v to %v; %d replies; %s", kills,
		early, stops,
		took[0].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), len(l.replies), figures(report))
}

// after waits until some time has passed in the life of a process.
func after(p *process, d time.Duration) {
	p.t.Helper()
	select {
	case <-time.After(d):
	case <-p.ended:
		if p.cmd.ProcessState.ExitCode() == 0 {
			return // it was told to stop
		}
		p.t.Errorf("%s ended by itself, with %v:\n%s", p.cmd.Args[0], p.cmd.ProcessState, p.log())
	}
}

// settled counts records as far as they were read.
type settled struct {
	partitions int
	from       map[string]int64 // by topic and partition

	contexts, outcomes, decisions, decided, feedback int
	// done are, by topic and offset, contexts that were rejected, and outcomes that were used or rejected.
	done map[string]bool
}

// settle waits until every record has its fate.
func settle(t testing.TB, l *load) {
	t.Helper()
	k := l.link()
	s := &settled{partitions: l.o.partitions, from: map[string]int64{}, done: map[string]bool{}}
	defer func() {
		if t.Failed() {
			t.Logf("%+v", s)
		}
	}()
	eventually(t, "every record has its fate", func() bool {
		if err := s.read(k.ctx, k.log, l.name); err != nil {
			t.Error(err)
			return true
		}
		refused := 0
		for at := range s.done {
			if strings.HasPrefix(at, "contexts") {
				refused++
			}
		}
		return s.contexts == s.decided+refused && s.decisions == s.feedback && s.outcomes == len(s.done)-refused
	})
}

// used notes the outcome that feedback names, if it names one.
func (s *settled) used(partition int, offset int64) {
	if offset >= 0 {
		s.done[fmt.Sprint("outcomes", partition, "@", offset)] = true
	}
}

// read reads on in all topics.
func (s *settled) read(ctx context.Context, log stream.Log, name string) error {
	for topic, take := range map[string]func([]byte) error{
		"contexts": func([]byte) error { s.contexts++; return nil },
		"outcomes": func([]byte) error { s.outcomes++; return nil },
		"decisions": func(b []byte) error {
			var d codec.Decision
			s.decisions++
			err := codec.ParseDecision(&d, b)
			if d.Source >= 0 {
				s.decided++
			}
			return err
		},
		"feedback": func(b []byte) error {
			var f codec.Feedback
			err := codec.ParseFeedback(&f, b)
			if f.Stage > 0 {
				return err
			}
			s.feedback++
			s.used(f.OutcomePartition, f.OutcomeOffset)
			for i := range f.Outcomes {
				s.used(f.Outcomes[i].Partition, f.Outcomes[i].Offset)
			}
			return err
		},
		"rejects": func(b []byte) error {
			r, err := codec.ParseReject(b)
			s.done[fmt.Sprint(r.Topic, r.Partition, "@", r.Offset)] = true
			return err
		},
	} {
		partitions := s.partitions
		if topic == "feedback" || topic == "rejects" {
			partitions = 1
		}
		for p := range partitions {
			at := fmt.Sprint(topic, p)
			err := stream.Scan(ctx, log, name+"."+topic, p, s.from[at], 1<<62, func(r *stream.Record) error {
				s.from[at] = r.Offset + 1
				if r.Type != "" {
					return nil
				}
				return take(r.Value)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// auditUsers holds the logs against what the users know.
func auditUsers(t testing.TB, log stream.Log, l *load) {
	t.Helper()
	decisions := map[string]codec.Decision{}
	for p := range l.o.partitions {
		scan(t, log, l.name+".decisions", p, func(r *stream.Record) error {
			var d codec.Decision
			err := codec.ParseDecision(&d, slices.Clone(r.Value))
			if _, ok := decisions[d.ID]; ok {
				t.Errorf("%s was decided twice", d.ID)
			}
			decisions[d.ID] = d
			return err
		})
	}
	contexts := l.contexts.sent()
	if len(contexts) == 0 {
		t.Error("nothing was sent")
	}
	for _, it := range contexts {
		if _, ok := decisions[it.id]; it.id != "" && len(it.stored) > 0 && !ok {
			t.Errorf("context %s was acknowledged at %v, and has no decision", it.id, it.stored)
		}
	}
	for _, reply := range l.replies {
		r, err := parseReply(reply.Data)
		d, ok := decisions[reply.ID]
		if err != nil || !ok || r.ID != reply.ID || r.N != d.N || r.Action != d.Actions[d.Action] {
			t.Errorf("request %s was answered with %+v (%v), its decision is %d %q", reply.ID, r, err, d.N, d.ID)
		}
	}
	auditTopic(t, log, l.name+".contexts", l.o.partitions, contexts)
	auditTopic(t, log, l.name+".outcomes", l.o.partitions, append(l.outcomes.sent(), l.reports.sent...))
}

// auditTopic finds what was acknowledged in a topic, where the acknowledgement said if
// that is known.
func auditTopic(t testing.TB, log stream.Log, topic string, partitions int, sent []*item) {
	t.Helper()
	at := make([]map[int64]string, partitions)
	values := map[string]bool{}
	for p := range at {
		at[p] = map[int64]string{}
		scan(t, log, topic, p, func(r *stream.Record) error {
			at[p][r.Offset] = string(r.Value)
			values[string(r.Value)] = true
			return nil
		})
	}
	for _, it := range sent {
		for _, offset := range it.stored {
			if v, ok := at[it.place][offset]; offset >= 0 && (!ok || v != string(it.record.Value)) ||
				!values[string(it.record.Value)] {
				t.Errorf("%s was acknowledged at %s[%d]@%d, and is not there", it.record.Value, topic, it.place, offset)
			}
		}
	}
}

func scan(t testing.TB, log stream.Log, topic string, partition int, f func(*stream.Record) error) {
	t.Helper()
	err := stream.Scan(t.Context(), log, topic, partition, stream.Earliest, 1<<62, func(r *stream.Record) error {
		if r.Type != "" {
			return nil
		}
		return f(r)
	})
	if err != nil && !errors.Is(err, stream.ErrNotFound) {
		t.Error(err)
	}
}
