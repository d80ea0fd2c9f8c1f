package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
)

// TestKafkaRealTwoOwners keeps a decider's signs of life from its group's coordinator,
// but nothing else: another one takes the partition over, and both believe that they own
// it. What the first appends from then on is rejected, and nothing of it is ever visible.
func TestKafkaRealTwoOwners(t *testing.T) {
	kafkatest.Heavy(t)
	t.Parallel() // on a cluster of its own
	cluster := kafkatest.Start(t, kafkatest.Options{Proxied: true})
	s := newBrokeredOn(t, cluster.Brokers(), 6*time.Second, 1)
	s.log = observe(t, cluster)
	direct := []string{"--log", strings.Replace(s.url, cluster.Brokers()[0], cluster.Internal()[0], 1)}
	a := s.decider("--joiner=false", "--nats", "none")
	j := start(t, feedbackJoiner(t, append(s.args, direct...)...)).ready()
	a.ready()
	a.owns(1)
	b := s.decider(append(direct, "--joiner=false", "--nats", "none")...)
	eventually(t, "the second one stands by", func() bool { return b.said("standing by") > 0 })
	w := s.pipeline(testSeed(t))
	after(a, 500*time.Millisecond)
	proxy := cluster.Proxy(1)
	proxy.HoldGroups()
	began := time.Now()
	eventually(t, "the first one is fenced", func() bool { return a.said("fenced") > 0 })
	took := time.Since(began)
	if a.said("lease lost") > 0 {
		t.Errorf("it did not believe any more that it owned the partition:\n%s", a.log())
	}
	b.owns(1)
	after(b, time.Second)
	proxy.Heal()
	eventually(t, "the first one knows", func() bool { return a.said("lease lost") > 0 })
	after(b, time.Second)
	w.end()
	s.settled()
	for _, p := range []*process{a, b, j} {
		p.stop(patience)
	}
	s.audit()
	var names []string
	opened := map[string]string{} // who, by epoch
	for _, r := range s.log.(*observer).sightOf(t, "shop.decisions", 0) {
		name := fmt.Sprintf("%d.%d", r.ProducerID, r.ProducerEpoch)
		if out := recordOf(r); out.Type == stream.TypeOpen {
			for _, h := range out.Headers {
				if h.Key == stream.HeaderOwner {
					opened[name] = h.Value
				}
			}
		}
		names = append(names, name)
	}
	if err := fenced(names); err != nil {
		t.Error(err)
	}
	if first, last := opened[names[0]], opened[names[len(names)-1]]; len(opened) != 2 || first == last {
		t.Errorf("opened by %v", opened)
	}
	t.Logf("the other one had taken over, and the first was fenced, %v after its last sign of life",
		took.Round(time.Millisecond))
}
