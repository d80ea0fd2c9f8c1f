package kafka

import (
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hindsight/pkg/stream/kafkatest"
)

// TestKafkaRealGroupCoordinator kills the broker that coordinates a group, and brings it
// back: nobody loses a partition, and later one that comes gets its part.
func TestKafkaRealGroupCoordinator(t *testing.T) {
	kafkatest.Heavy(t)
	c := kafkatest.Hurt(t, 3)
	c.CreateTopic("m.contexts", 4)
	o := &office{t: t, brokers: c.Brokers(), topic: "m.contexts", times: GroupOptions{Session: 6 * time.Second,
		Rebalance: 6 * time.Second},
		work: map[int]string{}, begun: map[int]int{}, lost: map[string]int{}}
	o.member("a", &cable{})
	o.until("alone", 4)
	o.member("b", &cable{})
	t.Logf("a second one has its part after %v", o.until("two", 2, 2))
	was := o.starts()
	coordinator := coordinatorOf(t, c.Brokers(), "m.deciders")
	began := time.Now()
	c.Kill(coordinator)
	for next := 0; next == 0 || next == coordinator; <-time.After(50 * time.Millisecond) {
		next = coordinatorOf(t, c.Brokers(), "m.deciders")
	}
	t.Logf("another coordinator %v after kill -9", time.Since(began).Round(10*time.Millisecond))
	o.member("c", &cable{})
	for o.shares()["c"] == 0 {
		if time.Since(began) > time.Minute {
			t.Fatalf("shared %v", o.shares())
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Logf("a third one has its part %v after kill -9", time.Since(began).Round(10*time.Millisecond))
	now := o.starts()
	if moved := now[0] + now[1] + now[2] + now[3] - was[0] - was[1] - was[2] - was[3]; moved != 1 || len(o.lost) > 0 {
		t.Errorf("%d runs began beyond those before the kill, for one part that moved; lost: %v", moved, o.lost)
	}
	c.Restart(coordinator)
}

// coordinatorOf returns the number of the broker that coordinates a group, 0 if none
// says so.
func coordinatorOf(t *testing.T, brokers []string, group string) int {
	t.Helper()
	for _, addr := range brokers {
		tr := &kafkago.Transport{DialTimeout: time.Second}
		client := kafkago.Client{Addr: kafkago.TCP(addr), Timeout: 2 * time.Second, Transport: tr}
		r, err := client.FindCoordinator(t.Context(), &kafkago.FindCoordinatorRequest{Addr: client.Addr, Key: group,
			KeyType: kafkago.CoordinatorKeyTypeConsumer})
		tr.CloseIdleConnections()
		if err == nil && r.Error == nil && r.Coordinator != nil {
			return r.Coordinator.NodeID
		}
	}
	return 0
}
