package service

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestFlightAwaitRoom holds what ends the wait for room among the decisions on their way: one
// that is done, a decider that has failed, the time.
func TestFlightAwaitRoom(t *testing.T) {
	for _, c := range []struct {
		name string
		most time.Duration
		end  func(f *flight)
	}{
		{"room", time.Hour, func(f *flight) { f.pop() }},
		{"failure", time.Hour, func(f *flight) { f.d.fail(errors.New("x")) }},
		{"time", time.Second, func(*flight) { time.Sleep(time.Second) }}, // of the bubble's clock
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &Decider{cfg: SystemConfig{MaxInFlight: 2}}
			d.flight = newFlight(d)
			d.flight.add(ticket{})
			d.flight.awaitRoom(0) // there is room
			d.flight.add(ticket{})
			var done atomic.Bool
			go func() {
				d.flight.awaitRoom(c.most)
				done.Store(true)
			}()
			synctest.Wait()
			if done.Load() {
				t.Errorf("%s: it did not wait", c.name)
			}
			c.end(d.flight)
			if synctest.Wait(); !done.Load() {
				t.Errorf("%s: it waits on", c.name)
				d.flight.pop()
			}
		})
	}
}

// TestFlightWakes holds that an acknowledgement wakes the contexts of the topic if they wait for room, and only then.
func TestFlightWakes(t *testing.T) {
	d := &Decider{cfg: SystemConfig{MaxInFlight: 2}, wakeup: make(chan struct{}, 1)}
	d.flight = newFlight(d)
	for _, c := range []struct {
		onWay  int
		woken  bool
		reason string
	}{{1, false, "there is room"}, {2, true, "there is none"}} {
		for range c.onWay {
			d.flight.add(ticket{n: 1})
		}
		if d.flight.topicRoom() == c.woken {
			t.Errorf("%s: room for a context %v", c.reason, !c.woken)
		}
		for i := range c.onWay {
			d.flight.pop()
			if woken := len(d.wakeup) == 1; woken != (c.woken && i == 0) {
				t.Errorf("%s: woken %v at acknowledgement %d", c.reason, woken, i)
			}
			select {
			case <-d.wakeup:
			default:
			}
		}
	}
}
