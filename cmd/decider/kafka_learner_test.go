package main

import (
	"fmt"
	"testing"
	"time"

	"hindsight/pkg/stream/kafkatest"
)

// TestKafkaRealLearners runs two deciders on four partitions and on one of a real broker,
// which share them, and moves partitions under load: in the end each has the learner, to
// the byte, that one process has which is fed the feedback log that another client read.
func TestKafkaRealLearners(t *testing.T) {
	kafkatest.Heavy(t)
	cluster := kafkatest.Shared(t)
	for _, partitions := range []int{4, 1} {
		t.Run(fmt.Sprint("partitions=", partitions), func(t *testing.T) {
			s := newBrokeredOn(t, cleaned(cluster).Brokers(), chaosSession, partitions, "--nats", "none")
			s.log = observe(t, cluster)
			a := s.decider().ready()
			a.owns(partitions)
			w := s.pipeline(testSeed(t))
			after(a, time.Second)
			b := s.decider()
			at := []*process{a}
			if partitions > 1 {
				a.owns(2)
				b.owns(2)
				at = append(at, b)
			} else { // one owns it; the other one takes it over
				after(a, time.Second)
				a.stop(patience)
				b.owns(1)
				at[0] = b
			}
			after(b, time.Duration(long(1000, 20_000))*time.Millisecond)
			w.end()
			s.settled()
			s.alike(at...)
			want, learned := learnerOf(t, s.log, partitions)
			for i, p := range at {
				lines := stopLine.FindAllStringSubmatch(p.log(), -1)
				if last := lines[len(lines)-1]; last[1] != fmt.Sprint(learned) || last[2] != want {
					t.Errorf("process %d has learner %s after %s feedbacks; one that is fed the log has %s after %d",
						i, last[2], last[1], want, learned)
				}
			}
			r := s.audit()
			if int64(r.Decisions) != w.n {
				t.Errorf("%d decisions of %d contexts", r.Decisions, w.n)
			}
			t.Logf("%d processes on %d partitions have learner %s after %d feedbacks", len(at), partitions,
				want[:16], learned)
		})
	}
}
