package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hindsight/internal/check"
	"hindsight/internal/daemon"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafka"
	"hindsight/pkg/stream/kafkatest"
)

// kafkaSession is the session of the groups in these tests: they wait for its end.
const kafkaSession = 1500 * time.Millisecond

// brokered is a model on brokers, with any number of processes at work.
type brokered struct {
	t          *testing.T
	log        stream.Log
	session    time.Duration
	url, dir   string
	partitions int
	args       []string
}

func newBrokered(t *testing.T, partitions int, more ...string) *brokered {
	t.Helper()
	addrs, _ := kafkatest.Fake(t, 1)
	return newBrokeredOn(t, addrs, kafkaSession, partitions, more...)
}

func newBrokeredOn(t *testing.T, addrs []string, session time.Duration, partitions int, more ...string) *brokered {
	t.Helper()
	s := &brokered{t: t, session: session, dir: t.TempDir(), partitions: partitions}
	s.url = fmt.Sprintf("kafka://%s/?session=%v", strings.Join(addrs, ","), session)
	c, err := kafka.Dial(t.Context(), kafka.Options{Brokers: addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s.log = c.Log()
	s.args = append([]string{"--log", s.url, "--model", writeModel(t, s.dir, shop), "--seed-file",
		filepath.Join(s.dir, "seed"), "--admin", "127.0.0.1:0"}, more...)
	return s
}

// decider starts a decider that is not waited for.
func (s *brokered) decider(more ...string) *process {
	s.t.Helper()
	return start(s.t, decider(s.t, append(append(slices.Clone(s.args), "--partitions", fmt.Sprint(s.partitions)),
		more...)...))
}

// metric waits until a line of a process's metrics is there.
func (p *process) metric(line string) {
	p.t.Helper()
	addr, want := p.admin(), regexp.MustCompile("(?m)^"+line+"$")
	eventually(p.t, "the metric "+line, func() bool {
		_, page := p.page(addr, "/metrics")
		return want.MatchString(page)
	})
}

// owns waits until a process decides so many partitions.
func (p *process) owns(n int) {
	p.t.Helper()
	p.metric(fmt.Sprintf(`hindsight_at_work{role="decider"} %d`, n))
}

// pipeline writes contexts to all partitions, reads the decisions, and writes most of
// their outcomes, some twice, until it is stopped.
type pipeline struct {
	s     *brokered
	ctx   context.Context
	stop  context.CancelFunc
	group sync.WaitGroup
	n     int64 // contexts
}

func (s *brokered) pipeline(seed uint64) *pipeline {
	w := &pipeline{s: s}
	w.ctx, w.stop = context.WithCancel(s.t.Context())
	w.group.Go(func() { w.write(rand.New(rand.NewPCG(seed, 1))) })
	for p := range s.partitions {
		w.group.Go(func() { w.answer(p, rand.New(rand.NewPCG(seed, uint64(2+p)))) })
	}
	s.t.Cleanup(w.end)
	return w
}

func (w *pipeline) writers(topic string) (all []stream.Appender) {
	for p := range w.s.partitions {
		a, err := w.s.log.Writer(w.s.t.Context(), topic, p, nil)
		if err != nil {
			w.s.t.Error(err)
			return nil
		}
		all = append(all, a)
	}
	return all
}

func (w *pipeline) put(a stream.Appender, value []byte) {
	if _, err := a.Append(w.s.t.Context(), &stream.Record{Value: value}); err != nil {
		w.s.t.Error(err)
	}
}

func (w *pipeline) flush(all []stream.Appender) {
	for _, a := range all {
		if err := a.Flush(w.s.t.Context()); err != nil {
			w.s.t.Error(err)
		}
		a.Close()
	}
}

// write writes contexts, to any partition.
func (w *pipeline) write(r *rand.Rand) {
	contexts := w.writers("shop.contexts")
	defer w.flush(contexts)
	for ; w.ctx.Err() == nil; w.n++ {
		w.put(contexts[r.IntN(len(contexts))], context1(r, fmt.Sprintf("c%d", w.n)))
		<-time.After(3 * time.Millisecond)
	}
}

// answer reads the decisions of a partition and writes outcomes. Several of one round
// are in one partition, so that they keep their order.
func (w *pipeline) answer(p int, r *rand.Rand) {
	outcomes := w.writers("shop.outcomes")
	defer w.flush(outcomes)
	reader, err := w.s.log.Read(w.ctx, "shop.decisions", p, stream.Earliest)
	if err != nil {
		w.s.t.Error(err)
		return
	}
	defer reader.Close()
	var batch []stream.Record
	for {
		if batch, err = reader.Next(w.ctx, batch[:0]); err != nil {
			return
		}
		for i := range batch {
			var d codec.Decision
			if batch[i].Type != "" {
				continue
			}
			if err := codec.ParseDecision(&d, batch[i].Value); err != nil {
				w.s.t.Error(err)
			}
			for range []int{0, 1, 1, 2}[r.IntN(4)] {
				w.put(outcomes[loop.PartitionOf([]byte(d.ID), len(outcomes))], fmt.Appendf(nil, `{"id":%q,"loss":%g}`,
					d.ID, float64(r.IntN(5))/4))
			}
		}
	}
}

func (w *pipeline) end() { w.stop(); w.group.Wait() }

// settled waits until every record has its fate.
func (s *brokered) settled() {
	s.t.Helper()
	eventually(s.t, "every record has its fate", func() bool {
		r, err := check.Run(s.t.Context(), s.log, "shop", s.partitions, check.Options{Rules: rulesOf, Unfinished: true})
		if err != nil {
			s.t.Error(err)
			return true
		}
		return r.Waiting == 0 && r.Unread == 0
	})
}

// audit holds the logs against every promise.
func (s *brokered) audit() *check.Report {
	s.t.Helper()
	seed, err := daemon.SeedFile(filepath.Join(s.dir, "seed"))
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := check.Run(s.t.Context(), s.log, "shop", s.partitions,
		check.Options{Seed: seed, Rules: rulesOf, Dedup: 100_000})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range r.Violations {
		s.t.Error(v)
	}
	verifyLogs(s.t.Context(), s.t, s.log, "shop", seed, join.ClockSkew)
	s.t.Log(figures(r))
	return r
}

// alike stops the deciders and holds that all have the same learner, to the byte.
func (s *brokered) alike(all ...*process) {
	s.t.Helper()
	_, end, err := s.log.Bounds(s.t.Context(), join.TopicsOf("shop").Feedback, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range all {
		p.metric(`hindsight_feedback_lag_records{partition="\d+"} 0`)
		p.signal(syscall.SIGTERM)
	}
	most, sums := "", map[string]bool{}
	for _, p := range all {
		if code := p.wait(patience); code != 0 {
			s.t.Fatalf("it ended with %d:\n%s", code, p.log())
		}
		lines := stopLine.FindAllStringSubmatch(p.log(), -1)
		if len(lines) == 0 {
			s.t.Fatalf("it does not say what it has learned:\n%s", p.log())
		}
		last := lines[len(lines)-1]
		if most == "" {
			most = last[1]
		}
		if last[1] != most {
			s.t.Errorf("one has learned through %s, another one through %s of %d", most, last[1], end)
		}
		sums[last[2]] = true
	}
	if len(sums) != 1 {
		s.t.Errorf("%d learners of %d processes", len(sums), len(all))
	}
}
