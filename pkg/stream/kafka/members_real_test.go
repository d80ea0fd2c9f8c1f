package kafka

import (
	"testing"

	"hindsight/pkg/stream/kafkatest"
)

// TestKafkaRealGroupMembers has members come, go, die and come back, as a real
// coordinator sees it.
func TestKafkaRealGroupMembers(t *testing.T) {
	kafkatest.Heavy(t)
	k := kafkatest.Shared(t)
	k.CreateTopic("members", 4)
	o := &office{t: t, brokers: k.Brokers(), topic: "members", work: map[int]string{}, begun: map[int]int{},
		lost: map[string]int{}}
	o.member("a", &cable{})
	t.Logf("the first: %v", o.until("alone", 4))
	stopB := o.member("b", &cable{})
	t.Logf("a second: %v", o.until("two", 2, 2))
	if s := o.starts(); s[0]+s[1]+s[2]+s[3] != 6 {
		t.Errorf("two partitions moved, and these runs began: %v", s)
	}
	stopB()
	t.Logf("one went: %v", o.until("one went", 4))

	o.mu.Lock()
	o.doubly = true // who is cut off works until its time is over
	o.mu.Unlock()
	var network cable
	o.member("c", &network)
	o.until("two again", 2, 2)
	network.cut.Store(true)
	t.Logf("taken over after %v; the session is %v", o.until("a has all", 4), groupTimes.Session)
	network.cut.Store(false)
	t.Logf("back: %v", o.until("back", 2, 2))
}
