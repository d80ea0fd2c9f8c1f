package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
)

var shopTopics = []string{"contexts", "decisions", "outcomes", "feedback", "rejects", "snapshots"}

// fresh is a new system in a cluster that had others.
func fresh(t *testing.T, k *kafkatest.Cluster, partitions int, more ...string) *brokered {
	t.Helper()
	return newBrokeredOn(t, cleaned(k).Brokers(), kafkaSession, partitions, more...)
}

// cleaned is a cluster without what another test made there.
func cleaned(k *kafkatest.Cluster) *kafkatest.Cluster {
	for _, topic := range shopTopics {
		k.DeleteTopic("shop." + topic)
	}
	return k
}

// next returns the end of partition 0 of a topic.
func (s *brokered) next(topic string) int64 {
	s.t.Helper()
	_, next, err := s.log.Bounds(s.t.Context(), topic, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return next
}

// TestKafkaRealRetention lets retention cut each log of a system that is stopped, while
// contexts come in. It goes on where it was, with what the snapshot had learned, or
// says which records it misses and changes nothing, until it is told to go on without
// them.
func TestKafkaRealRetention(t *testing.T) {
	kafkatest.Heavy(t)
	k := kafkatest.Shared(t)
	const contexts, decisions, outcomes, feedback, snapshots = "shop.contexts", "shop.decisions", "shop.outcomes",
		"shop.feedback", "shop.snapshots"
	for _, c := range []struct {
		name string
		cut  map[string]int64 // topic to how many of its last records stay
		says string           // why it refuses, with the first offset that is gone; "": it goes on
		gone string           // the topic that it says so of
		lost int              // contexts that nobody decides
		over bool             // told to, it goes on
	}{
		{"what was read of all logs", map[string]int64{contexts: 10, decisions: 2, outcomes: 3, feedback: 1}, "",
			"", 0, false},
		{"contexts that were not read", map[string]int64{contexts: 4}, "which nobody has decided", contexts, 6, true},
		{"all decisions", map[string]int64{decisions: 0}, "the last of them said which contexts are decided",
			decisions, 0, true},
		{"all feedback", map[string]int64{feedback: 0}, "with them what was joined and learned", feedback, 0, false},
		{"feedback before the last mark, and snapshots", map[string]int64{feedback: 1, snapshots: 0},
			"which no good snapshot has learned", feedback, 0, false},
		{"outcomes that were not read", map[string]int64{outcomes: 1}, "which waiting rounds may need",
			outcomes, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fresh(t, k, 1, "--nats", "none")
			through := s.stopped()
			for topic, stay := range c.cut {
				k.DeleteRecords(topic, 0, s.next(topic)-stay)
			}
			d := s.decider()
			if c.says != "" {
				before := s.next(decisions)
				first := s.next(c.gone) - c.cut[c.gone]
				ranged := regexp.MustCompile(fmt.Sprintf(`offsets (\d+…%d|before %d), .*`, first-1, first) + c.says)
				if code := d.wait(patience); code != 1 || !ranged.MatchString(lastLine(d)) {
					t.Errorf("exit code %d, it does not say %v:\n%s", code, ranged, d.log())
				}
				if now := s.next(decisions); now > before+1 && c.gone != outcomes {
					// without the joiner's word contexts are decided all the same
					t.Errorf("it wrote to decisions, from %d to %d", before, now)
				}
				t.Log(lastLine(d))
				if !c.over {
					return
				}
				d = s.decider("--accept-loss")
			}
			d.ready()
			last := fated(t, s.log, "later9")
			if last.LearnedThrough < through {
				t.Errorf("it decides with what it learned through %d, and had learned through %d", last.LearnedThrough,
					through)
			}
			times := s.timesDecided()
			for i := range 10 {
				want := 1
				if i < c.lost {
					want = 0
				}
				if n := times[fmt.Sprint("later", i)]; n != want {
					t.Errorf("later%d was decided %d times, want %d", i, n, want)
				}
			}
			if c.over && !strings.Contains(d.log(), "going on without records, as --accept-loss says") {
				t.Errorf("it does not say what it lacks:\n%s", d.log())
			}
			d.stop(patience)
		})
	}
}

// stopped runs a system for a moment, and stops it. While it is stopped there are ten
// contexts, and three outcomes that are repeats. It returns what was learned.
func (s *brokered) stopped() (through int64) {
	s.t.Helper()
	d := s.decider().ready()
	w := s.pipeline(testSeed(s.t))
	after(d, 300*time.Millisecond)
	w.end()
	s.settled()
	d.metric(`hindsight_feedback_lag_records{partition="0"} 0`)
	d.stop(patience)
	for i := range 10 {
		put(s.t, s.log, "shop.contexts", 0, fmt.Sprintf(`{"id":"later%d","actions":["x","y"]}`, i))
	}
	for range 3 {
		put(s.t, s.log, "shop.outcomes", 0, `{"id":"c0","loss":1}`)
	}
	scan(s.t, s.log, "shop.feedback", 0, func(r *stream.Record) error {
		var f codec.Feedback
		err := codec.ParseFeedback(&f, r.Value)
		through = f.N
		return err
	})
	return through
}

// timesDecided counts the decisions of each id.
func (s *brokered) timesDecided() map[string]int {
	s.t.Helper()
	times := map[string]int{}
	for p := range s.partitions {
		scan(s.t, s.log, "shop.decisions", p, func(r *stream.Record) error {
			var d codec.Decision
			err := codec.ParseDecision(&d, r.Value)
			times[strings.Clone(d.ID)]++
			return err
		})
	}
	return times
}

func lastLine(p *process) string {
	lines := strings.Split(strings.TrimSpace(p.log()), "\n")
	return lines[len(lines)-1]
}
