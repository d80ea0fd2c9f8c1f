package service

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/loop"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

const (
	ageSeries     = "hindsight_pending_oldest_age_seconds"
	overdueSeries = "hindsight_head_of_line_overdue_seconds"
)

// newTimedDaemon is a daemon whose log's clock is ahead of the process's by some time, and
// whose rounds wait for their outcomes as long as windows says, by version of the model.
func newTimedDaemon(t *testing.T, ahead time.Duration, windows ...time.Duration) *daemon {
	d := newDaemon(t, watch.RoleDecider)
	d.log.Log = mem.New(mem.Options{Clock: func() int64 {
		return time.Now().Add(ahead).UnixNano()
	}, OnAppend: func(topic string, _ int, r *stream.Record) mem.Fault {
		if f := d.fault.Load(); f != nil {
			return (*f)(topic, r)
		}
		return mem.None
	}})
	createTopics(t, d.log, "m", 1)
	d.config.Build = func(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
		ep, err := testBuild(rec, files)
		if err == nil {
			ep.Rules.Window = loop.Window{Nanos: int64(windows[rec.Version-1])}
		}
		return ep, err
	}
	return d
}

// line checks how old the head of the line is, to some seconds, and for how long it waits
// past its window.
func (d *daemon) line(age, overdue time.Duration) {
	d.t.Helper()
	const some = 3
	got := scrape(d.t, d.reg)
	if math.Abs(got[ageSeries]-age.Seconds()) > some || math.Abs(got[overdueSeries]-overdue.Seconds()) > some ||
		overdue == 0 && got[overdueSeries] != 0 {
		d.t.Errorf("the head of the line is %.1f s old, overdue by %.1f s; expected %v and %v", got[ageSeries],
			got[overdueSeries], age, overdue)
	}
}

// TestHeadOfLine: the age of the oldest round goes on while nothing comes, and while the
// joiner hangs, which the process is not ready in; a clock that is wrong changes nothing.
func TestHeadOfLine(t *testing.T) {
	const window = 10 * time.Minute
	for _, ahead := range []time.Duration{0, -time.Hour, time.Hour} {
		if testing.Short() && ahead != 0 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			d := newTimedDaemon(t, ahead, window)
			stop := d.run(d.system)
			pass(time.Second)
			d.line(0, 0)
			if _, err := d.ask(); err != nil {
				t.Fatal(err)
			}
			for _, age := range []time.Duration{0, 4 * time.Minute} {
				pass(age)
				d.line(age, 0)
			}
			pass(window)
			d.line(0, 0) // it was closed
			d.ready("")
			release := make(chan struct{})
			d.setFault(func(topic string, _ *stream.Record) mem.Fault {
				if topic == "m.feedback" {
					<-release
				}
				return mem.None
			})
			if _, err := d.ask(); err != nil {
				t.Fatal(err)
			}
			pass(window + 3*time.Minute)
			d.line(window+3*time.Minute, 3*time.Minute)
			if err := d.health.Ready(); err == nil || !strings.Contains(err.Error(), "joiner: its loop of records "+
				"has not come round") || scrape(t, d.reg)["hindsight_ready"] != 0 {
				t.Errorf("the joiner hangs, and the process is ready: %v", err)
			}
			close(release)
			pass(5 * time.Second)
			d.line(0, 0)
			d.ready("")
			stop()
		})
	}
}

// TestHeadOfLineOfAnEarlierEpoch: a round waits by the rules of its own epoch, and is not
// overdue when the next epoch has a shorter window.
func TestHeadOfLineOfAnEarlierEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTimedDaemon(t, 0, 40*time.Minute, 10*time.Minute)
		d.config.Control = &Control{Reload: func() (*follow.Source, error) {
			return &follow.Source{Name: "m", Version: 2, Model: []byte("y")}, nil
		}}
		defer d.run(d.system)()
		pass(time.Second)
		if _, err := d.ask(); err != nil {
			t.Fatal(err)
		}
		if _, err := d.config.Control.Renew(context.Background()); err != nil {
			t.Fatal(err)
		}
		pass(30 * time.Minute)
		d.line(30*time.Minute, 0)
		if w := scrape(t, d.reg)["hindsight_window_seconds"]; w != 600 {
			t.Errorf("the window of the last epoch is %v s", w)
		}
		pass(11 * time.Minute)
		d.line(0, 0)
	})
}
