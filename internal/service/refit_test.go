package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/model"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// slowLog is a log of which reading all feedback takes its time for each record.
type slowLog struct {
	stream.Log
	pace atomic.Int64 // ns; 0: none
}

func (l *slowLog) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	r, err := l.Log.Read(ctx, topic, partition, from)
	if err != nil || topic != "m.feedback" || from > 1 || l.pace.Load() == 0 {
		return r, err
	}
	return &slowReader{Reader: r, at: r.Position(), pace: time.Duration(l.pace.Load())}, nil
}

type slowReader struct {
	stream.Reader
	batch []stream.Record
	at    int64
	pace  time.Duration
}

func (r *slowReader) Position() int64 { return r.at }

func (r *slowReader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	if len(r.batch) == 0 {
		var err error
		if r.batch, err = r.Reader.Next(ctx, nil); err != nil {
			return dst, err
		}
	}
	select {
	case <-time.After(r.pace):
	case <-ctx.Done():
		return dst, ctx.Err()
	}
	dst = append(dst, r.batch[0])
	r.at, r.batch = r.batch[0].Offset+1, r.batch[1:]
	return dst, nil
}

// refitted is a system whose next model is to be taught all feedback first. Its test runs in a
// bubble.
type refitted struct {
	*daemon
	log     *slowLog
	control *Control
	asked   int
}

func newRefitted(t *testing.T) *refitted {
	d := newDaemon(t, watch.RoleDecider)
	x := &refitted{daemon: d, log: &slowLog{Log: d.log}}
	x.control = &Control{Reload: func() (*follow.Source, error) {
		return &follow.Source{Name: "m", Version: 2, Model: []byte("name: m\nwarm: refit\n"),
				Warm: model.Warm{Refit: true}},
			nil
	}}
	d.config.Log, d.config.Control, d.config.Build, d.config.Source = x.log, x.control, modeBuild, source(1)
	return x
}

// renew asks for the next model from so many askers at once. Their answers come on the channel.
func (x *refitted) renew(askers int) <-chan error {
	begun := make(chan error, askers)
	for range askers {
		go func() {
			_, err := x.control.Renew(x.t.Context())
			begun <- err
		}()
	}
	return begun
}

// ask puts a context, with its outcome, and returns its decision after a second.
func (x *refitted) ask() codec.Decision {
	x.t.Helper()
	d := x.askFor()
	if d.N != int64(x.asked) {
		x.t.Errorf("round %d was not decided: the last is %d", x.asked, d.N)
	}
	return d
}

// askFor is ask, and returns the last decision.
func (x *refitted) askFor() codec.Decision {
	x.t.Helper()
	ctx := x.t.Context()
	for _, r := range [...]struct{ topic, format string }{
		{"m.contexts", `{"id":"c%d","features":{"x":1},"actions":["a","b"]}`},
		{"m.outcomes", `{"id":"c%d","loss":0.5}`}} {
		w, err := x.log.Writer(ctx, r.topic, 0, nil)
		must(x.t, 0, err)
		_, err = w.Append(ctx, &stream.Record{Value: fmt.Appendf(nil, r.format, x.asked)})
		must(x.t, 0, err)
		time.Sleep(time.Second / 2)
	}
	x.asked++
	_, end, err := x.log.Bounds(ctx, "m.decisions", 0)
	must(x.t, 0, err)
	var d codec.Decision
	must(x.t, 0, stream.Scan(ctx, x.log, "m.decisions", 0, 0, end, func(r *stream.Record) error {
		if r.Type != "" {
			return nil
		}
		return codec.ParseDecision(&d, bytes.Clone(r.Value))
	}))
	if err := x.health.Alive(); err != nil {
		x.t.Error(err)
	}
	return d
}

// TestRefitDecidesOn: while an epoch's learner is taught for minutes what the log keeps, the
// decider goes on in the old epoch, and its loops and the joiner's are alive; then it decides
// in the new one, with the learner that anybody comes to.
func TestRefitDecidesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRefitted(t)
		stop := x.run(x.system)
		synctest.Wait()
		for range 200 {
			x.ask()
		}
		x.log.pace.Store(int64(time.Second / 2))
		begun := x.renew(1)
		for range 200 { // the joiner tries the model
			x.ask()
			if len(begun) > 0 {
				break
			}
		}
		must(t, 0, <-begun)
		old := 0
		for x.ask().Epoch == 1 {
			if old++; old > 1000 {
				t.Fatal("the new epoch never begins")
			}
		}
		if old < 100 {
			t.Errorf("the old epoch went on for %d s", old)
		}
		x.log.pace.Store(0)
		x.ask()
		stop()
		d, err := OpenDecider(t.Context(), x.config.decider0())
		must(t, 0, err)
		defer d.Close()
		want, err := d.AppendState(nil)
		must(t, 0, err)
		if got := x.fromStart(); !bytes.Equal(got, want) {
			t.Error("who reads the log from its start has another learner")
		}
	})
}

// decider0 returns the configuration of the decider of partition 0, apart from any process.
func (c *SystemConfig) decider0() SystemConfig {
	c.setDefaults()
	d := c.decider(0)
	d.Bus, d.Metrics, d.Health = nil, nil, nil
	return d
}

// fromStart returns the state of one that reads the log from its start.
func (x *refitted) fromStart() []byte {
	x.t.Helper()
	ctx, a := x.t.Context(), follow.New(x.log, "m", x.config.Build, 1)
	_, end, err := x.log.Bounds(ctx, "m.feedback", 0)
	must(x.t, 0, err)
	must(x.t, 0, stream.Scan(ctx, x.log, "m.feedback", 0, 0, end, func(r *stream.Record) error {
		return a.Take(ctx, r)
	}))
	state, err := a.AppendState(nil)
	must(x.t, 0, err)
	return state
}

// TestRefitGivesWay: the mode is switched at once while the joiner tries a model, which is
// given up; and a process that is told to stop while its decider refits does so, and its next
// start begins the epoch.
func TestRefitGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRefitted(t)
		stop := x.run(x.system)
		synctest.Wait()
		for range 100 {
			x.ask()
		}
		x.log.pace.Store(int64(50 * time.Millisecond))
		begun := x.renew(2) // one waits its turn
		time.Sleep(4 * time.Second)
		start := time.Now()
		if epoch, err := x.control.Switch(t.Context(), codec.Paused, ""); epoch != 2 || err != nil ||
			time.Since(start) > 5*time.Second {
			t.Errorf("switched after %v: epoch %d, %v", time.Since(start), epoch, err)
		}
		if err := <-begun; !errors.Is(err, errOvertaken) {
			t.Errorf("the trial that was given up: %v", err)
		}
		must(t, 0, <-begun)
		if n := x.ask().Epoch; n != 2 {
			t.Errorf("decided in epoch %d", n)
		}
		start = time.Now()
		stop()
		if d := time.Since(start); d > 4*time.Second {
			t.Errorf("stopped after %v", d)
		}
		x.log.pace.Store(0)
		x.config.Source = source(2)
		x.config.Source.Model, x.config.Source.Warm = []byte("name: m\nwarm: refit\n"), model.Warm{Refit: true}
		defer x.run(x.system)()
		synctest.Wait()
		if n := x.ask().Epoch; n != 3 {
			t.Errorf("after the next start decided in epoch %d", n)
		}
	})
}

// TestRefitPaused: a pause does not wait until a decider has refitted, whether it is in the
// model that is refitted or comes later: nothing is decided then until it can be decided paused, and meanwhile the
// process is not ready.
func TestRefitPaused(t *testing.T) {
	for _, mode := range []codec.Mode{codec.Live, codec.Paused} {
		synctest.Test(t, func(t *testing.T) {
			x := newRefitted(t)
			x.control.Reload = func() (*follow.Source, error) {
				return &follow.Source{Name: "m", Version: 2, Model: []byte("name: m\nwarm: refit\n"), Mode: mode,
					Warm: model.Warm{Refit: true}}, nil
			}
			defer x.run(x.system)()
			synctest.Wait()
			for range 200 {
				x.ask()
			}
			x.log.pace.Store(int64(time.Second / 2))
			epoch, err := x.control.Renew(t.Context())
			must(t, 0, err)
			if mode == codec.Live {
				if d := x.ask(); d.Epoch != 1 {
					t.Errorf("decided in epoch %d", d.Epoch)
				}
				epoch, err = x.control.Switch(t.Context(), codec.Paused, "")
				must(t, 0, err)
			}
			time.Sleep(32 * time.Second) // half as many as lie between two looks ahead
			last, waited := int64(x.asked), 0
			before := x.health.Ready()
			for d := x.askFor(); d.Epoch < epoch; d = x.askFor() {
				if waited++; d.N > last {
					t.Fatalf("round %d was decided in epoch %d after the pause", d.N, d.Epoch)
				}
				if why := fmt.Sprintf("nothing is decided until epoch %d has begun", epoch); !strings.Contains(
					fmt.Sprint(before), why) {
					t.Fatalf("%d s into that: %v, and not %s", waited, before, why)
				}
				before = x.health.Ready()
			}
			if d := x.ask(); d.Mode != codec.Paused || d.Epoch != epoch || waited < 10 {
				t.Errorf("after %d s decided in epoch %d, %v", waited, d.Epoch, d.Mode)
			}
			must(t, 0, x.health.Ready())
		})
	}
}

// TestAnswerLate holds that an answer may take longer than the server's limits.
func TestAnswerLate(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !readOrder(w, r, &struct{}{}) {
			return
		}
		answerLate(w)
		select {
		case <-r.Context().Done():
		case <-time.After(300 * time.Millisecond):
			io.WriteString(w, "done")
		}
	}))
	s.Config.ReadTimeout, s.Config.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	s.Start()
	defer s.Close()
	resp, err := http.Post(s.URL, "application/json", bytes.NewReader([]byte("{}")))
	must(t, 0, err)
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); string(b) != "done" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}
