package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/certify"
	"hindsight/internal/follow"
	"hindsight/internal/ledger"
	"hindsight/internal/loop"
	"hindsight/internal/testkit/leasetest"
	"hindsight/internal/watch"
	"hindsight/pkg/learner"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/lease"
	"hindsight/pkg/stream/mem"
)

// bad is a log that does not answer while it is away, and does not open while held.
type bad struct {
	*mem.Log
	away atomic.Bool
	open chan struct{} // nil: it opens
}

func (b *bad) Bounds(ctx context.Context, topic string, p int) (int64, int64, error) {
	if b.away.Load() {
		<-ctx.Done()
		return 0, 0, &stream.Error{Op: "bounds", Topic: topic, Offset: -1,
			Err: fmt.Errorf("%w:\nno\tanswer", stream.ErrUnavailable)}
	}
	return b.Log.Bounds(ctx, topic, p)
}

func (b *bad) Open(ctx context.Context, topic string, p int, o stream.OpenOptions) (stream.Appender,
	stream.Tail, error) {
	if b.open != nil {
		select {
		case <-b.open:
		case <-ctx.Done():
			return nil, stream.Tail{}, ctx.Err()
		}
	}
	return b.Log.Open(ctx, topic, p, o)
}

// daemon is one process's services at work on a log in memory. Its test runs in a
// bubble, where time passes only when nothing else is left to do.
type daemon struct {
	t      *testing.T
	log    *bad
	fault  atomic.Pointer[func(topic string, r *stream.Record) mem.Fault]
	reg    *prometheus.Registry
	health *watch.Health
	config SystemConfig
}

func newDaemon(t *testing.T, role string) *daemon {
	d := &daemon{t: t, reg: prometheus.NewRegistry(), health: watch.NewHealth(role)}
	d.log = &bad{Log: mem.New(mem.Options{OnAppend: func(topic string, _ int, r *stream.Record) mem.Fault {
		if f := d.fault.Load(); f != nil {
			return (*f)(topic, r)
		}
		return mem.None
	}})}
	createTopics(t, d.log, "m", 1)
	seed := []byte("seed")
	d.config = SystemConfig{Log: d.log, Bus: d.log, Name: "m", Source: &follow.Source{Name: "m", Version: 1,
		Model: []byte("x")}, Build: testBuild,
		Seed: seed, Partitions: 1, Owner: "test", Logger: slog.New(slog.DiscardHandler),
		Metrics: watch.NewMetrics(d.reg, d.health), Health: d.health}
	return d
}

func (d *daemon) setFault(f func(topic string, r *stream.Record) mem.Fault) { d.fault.Store(&f) }

// run starts something that ends with the test.
func (d *daemon) run(f func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); err != nil {
			d.t.Error(err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (d *daemon) system(ctx context.Context) error { return RunSystem(ctx, d.config, nil) }

// pass lets some time pass.
func pass(d time.Duration) {
	time.Sleep(d) // in a bubble: until all else waits for longer
	synctest.Wait()
}

// ready checks that Ready says nothing, or a line with a text in it.
func (d *daemon) ready(want string) {
	d.t.Helper()
	err := d.health.Ready()
	shown := scrape(d.t, d.reg)
	got := shown["hindsight_ready"]
	if idle := strings.HasPrefix(want, "standing by"); shown["hindsight_standing_by"] == 1 != idle {
		d.t.Errorf("%q: hindsight_standing_by is %v", want, shown["hindsight_standing_by"])
	}
	switch {
	case want == "" && (err != nil || got != 1):
		d.t.Errorf("not ready: %v, the metric says %v", err, got)
	case want != "" && (err == nil || got != 0 || !strings.Contains(err.Error(), want) ||
		strings.ContainsAny(err.Error(), "\n\t")):
		d.t.Errorf("ready says %v, expected %q in one line; the metric says %v", err, want, got)
	}
	if err := d.health.Alive(); err != nil {
		d.t.Errorf("not alive: %v", err)
	}
}

func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, watch.RoleDecider)
		d.log.open = make(chan struct{})
		d.ready("starting")
		stop := d.run(d.system)
		pass(time.Second)
		d.ready("recovering")
		close(d.log.open)
		pass(time.Second)
		d.ready("")
		d.log.away.Store(true)
		pass(5 * time.Second)
		d.ready("the log is away")
		d.log.away.Store(false)
		pass(10 * time.Second)
		d.ready("")
		d.setFault(failing("m.decisions"))
		if _, err := d.ask(); err != nil {
			t.Error(err)
		}
		pass(time.Second)
		d.ready("stopped, it will be opened again: open m.decisions[0]: log is full")
		d.setFault(func(string, *stream.Record) mem.Fault { return mem.None })
		pass(10 * time.Second)
		d.ready("")
		pass(time.Hour) // nothing happens, and the loops come round
		d.ready("")
		stop()
		d.ready("starting, or shutting down")
	})
}

func (d *daemon) ask() ([]byte, error) {
	b, _, err := d.log.Request(d.t.Context(), "m.decide", []byte(`{"actions":["a","b"]}`))
	return b, err
}

func TestReadinessWithoutEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, watch.RoleDecider)
		source := d.config.Source
		d.config.Source = nil
		defer d.run(d.system)()
		pass(time.Second)
		d.ready("no epoch")
		if got := scrape(t, d.reg); got[`hindsight_at_work{role="decider"}`] != 1 ||
			got["hindsight_joiner_epoch"] != 0 {
			t.Error("a decider alone shows a joiner, or not itself")
		}
		jc := SystemConfig{Log: d.log, Source: source, Build: testBuild, Seed: d.config.Seed, Partitions: 1,
			MaxPending: 100, Dedup: 100, MarkEvery: 10, Logger: d.config.Logger}
		stop := d.run(func(ctx context.Context) error { return runJoiner(ctx, jc, nil) })
		pass(time.Second)
		d.ready("")
		stop()
		d.ready("") // it can decide
		d.log.away.Store(true)
		pass(5 * time.Second)
		d.ready("the log is away") // though nothing is asked of it
	})
}

// With a lease that another process has there is nothing to be ready for.
func TestReadinessWithoutLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, watch.RoleDecider)
		leases := leasetest.NewMemory(LeaseTTL)
		other, err := lease.NewKeeper(leases, "other").Try(t.Context(), deciderLease(0))
		if err != nil {
			t.Fatal(err)
		}
		d.config.Sharing = Leased(lease.NewKeeper(leases, "this"))
		stop := d.run(d.system)
		pass(20 * time.Second)
		d.ready("standing by: deciders: other processes")
		other.Release()
		pass(20 * time.Second)
		d.ready("")
		want := map[string]float64{`hindsight_lease_events_total{event="acquired",role="decider"}`: 1,
			`hindsight_lease_events_total{event="acquired",role="joiner"}`: 1}
		hold := func() {
			for series, v := range want {
				if got := scrape(t, d.reg)[series]; got != v {
					t.Errorf("%s is %v, expected %v", series, got, v)
				}
			}
		}
		hold()
		leases.Fail(errors.New("the store is away"))
		pass(2 * LeaseTTL)
		d.ready("standing by")
		leases.Fail(nil)
		pass(3 * LeaseTTL)
		d.ready("")
		stop()
		for _, role := range []string{watch.RoleDecider, watch.RoleJoiner} {
			for event, n := range map[string]float64{watch.LeaseAcquired: 2, watch.LeaseLost: 1,
				watch.LeaseReleased: 1} {
				want[fmt.Sprintf("hindsight_lease_events_total{event=%q,role=%q}", event, role)] = n
			}
		}
		hold()
	})
}

func TestReadinessOfStandbyJoiner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, watch.RoleJoiner)
		leases := leasetest.NewMemory(LeaseTTL)
		other, err := lease.NewKeeper(leases, "other").Try(t.Context(), joinerLease)
		if err != nil {
			t.Fatal(err)
		}
		jc := d.config.joiner()
		defer d.run(func(ctx context.Context) error {
			return RunSharedJoiner(ctx, Leased(lease.NewKeeper(leases, "this")), jc, nil)
		})()
		pass(time.Minute)
		d.ready("standing by: joiner: another process has the lease")
		other.Release()
		pass(time.Minute)
		d.ready("")
		d.log.away.Store(true)
		pass(5 * time.Second)
		d.ready("joiner: the log is away")
	})
}

// Another owner takes the partition: this one says so, and takes it back later.
func TestMetricsOfFences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, watch.RoleDecider)
		defer d.run(d.system)()
		pass(time.Second)
		d.ready("")
		if _, _, err := d.log.Open(t.Context(), "m.decisions", 0, stream.OpenOptions{Owner: "other"}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.ask(); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		d.ready("fenced")
		got := scrape(t, d.reg)
		for _, name := range []string{"hindsight_fences_total", "hindsight_restarts_total"} {
			if got[name+`{role="decider"}`] != 1 || got[name+`{role="joiner"}`] != 0 {
				t.Errorf("%s: %v and %v", name, got[name+`{role="decider"}`], got[name+`{role="joiner"}`])
			}
		}
		if got[`hindsight_at_work{role="decider"}`] != 0 || got[`hindsight_at_work{role="joiner"}`] != 1 {
			t.Error("a fenced decider counts as at work")
		}
		pass(fenceWait)
		d.ready("")
	})
}

// slowToStop is a worker that ends in its own time.
type slowToStop func()

func (f slowToStop) Run(context.Context) error { f(); return nil }
func (slowToStop) Close()                      {}

// Who was told to stop is not ready while it finishes its work.
func TestReadinessWhileStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, watch.RoleDecider)
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		stop := d.run(func(context.Context) error {
			return d.config.supervise(ctx, watch.RoleDecider, watch.RoleDecider, func(_ context.Context,
				part *watch.Part) (worker, error) {
				part.Set(watch.Working, "")
				return slowToStop(func() { <-release; part.Set(watch.Working, "") }), nil
			})
		})
		pass(time.Second)
		d.ready("")
		cancel()
		pass(time.Second)
		d.ready("standing by: decider: shutting down")
		close(release)
		stop()
		d.ready("starting, or shutting down")
	})
}

// A loop that does not come round is not alive.
func TestLiveness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, watch.RoleDecider)
		stop := d.run(d.system)
		pass(time.Second)
		release := make(chan struct{})
		d.setFault(func(topic string, _ *stream.Record) mem.Fault {
			if topic == "m.decisions" {
				<-release
			}
			return mem.None
		})
		w, err := d.log.Writer(t.Context(), "m.contexts", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Append(t.Context(), &stream.Record{Value: []byte(`{"actions":["a"]}`)}); err != nil {
			t.Fatal(err)
		}
		pass(watch.StuckAfter / 2)
		if err := d.health.Alive(); err != nil {
			t.Error(err)
		}
		pass(watch.StuckAfter)
		if err := d.health.Alive(); err == nil || !strings.Contains(err.Error(),
			"decider of partition 0: its loop of contexts") {
			t.Errorf("a loop is stuck, and Alive says %v", err)
		}
		close(release)
		pass(time.Second)
		d.ready("")
		stop()
	})
}

// Two processes' services in one process share nothing, and a scrape of both after
// all kinds of events has the metrics of the list and no others.
func TestTwoDaemons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newDaemon(t, watch.RoleDecider), newDaemon(t, watch.RoleDecider)
		a.config.Owner = plantedText
		defer a.run(a.system)()
		defer b.run(b.system)()
		pass(time.Second)
		for i := range 3 {
			id := fmt.Sprint(plantedText, i)
			reply, _, err := a.log.Request(t.Context(), "m.decide",
				fmt.Appendf(nil, `{"id":%q,"features":{%q:%q},"actions":[%q,"b"]}`, id, id, id, id))
			if err != nil || !strings.Contains(string(reply), "propensity") {
				t.Fatal(string(reply), err)
			}
			if _, _, err := a.log.Request(t.Context(), "m.outcome", fmt.Appendf(nil, `{"id":%q,"loss":1}`,
				id)); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		series := `hindsight_decisions_total{partition="0",source="request"}`
		if x, y := scrape(t, a.reg)[series], scrape(t, b.reg)[series]; x != 3 || y != 0 {
			t.Errorf("%v and %v decisions", x, y)
		}
		part := a.config.Metrics.Decider(0)
		part.Snapshot(100, time.Now()) // none is due yet
		part.Age(time.Now())
		part.Certificate(&certify.Figures{Functions: 1}) // of a class
		part.Weights(weighted{})
		part.Provisional.Set(0) // of a model with early
		part.Changes.Set(0)     // of an oracle that watches for them
		part.Missed(false)      // of a model with budgets
		guard := &loop.Guard{}
		guard.Begin(1, false, &loop.Rules{Guard: loop.GuardRules{Margin: .1, Alpha: .05, LoseAtMost: .1}})
		a.config.Metrics.Joiner().Guard(guard, false)
		a.config.Metrics.Joiner().Candidates([]ledger.Estimate{{Rounds: 1}}, true, false) // of a model with a rule
		a.config.Metrics.Lease(watch.RoleDecider, watch.LeaseLost)
		pass(2 * time.Second)
		names := checkExposed(t, exposed(t, a.reg), 1)
		for _, d := range watch.MetricDocs() {
			if !names[d.Name] {
				t.Errorf("%s is in the list, and no scrape shows it", d.Name)
			}
		}
		checkExposed(t, exposed(t, b.reg), 1)
	})
}

// weighted is a learner with weights.
type weighted struct{ learner.Learner }

func (weighted) AppendWeights(dst []float64) []float64 { return append(dst, .75, .25) }
