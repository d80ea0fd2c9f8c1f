package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
)

// TestKafkaAssigned: contexts of the topic that another system decided become external rounds, each exactly once, also
// if the process is killed among them; repeats are rejected with the reason.
func TestKafkaAssigned(t *testing.T) {
	notShort(t)
	kafkaAssigned(newBrokered(t, 1, "--nats", "none"))
}

// TestKafkaRealAssigned is the same on a real broker.
func TestKafkaRealAssigned(t *testing.T) {
	kafkatest.Heavy(t)
	kafkaAssigned(newBrokeredOn(t, cleaned(kafkatest.Shared(t)).Brokers(), 6*time.Second, 1, "--nats", "none"))
}

func kafkaAssigned(s *brokered) {
	const rounds, repeats = 60, 6
	t := s.t
	say := func(i int) {
		said := [...]string{"", `,"propensity":0.25`, `,"propensities":{"x":0.75,"y":0.25},"by":"router"`}[i%3]
		put(t, s.log, "shop.contexts", 0, fmt.Sprintf(`{"id":"r%d","actions":["x","y"],"assigned":{"action":"y"%s}}`, i,
			said))
	}
	laws := func() map[string][]codec.Decision {
		of := map[string][]codec.Decision{}
		scan(t, s.log, "shop.decisions", 0, func(r *stream.Record) error {
			var d codec.Decision
			err := codec.ParseDecision(&d, slices.Clone(r.Value))
			of[d.ID] = append(of[d.ID], d)
			return err
		})
		return of
	}
	p := s.decider().ready()
	for i := range rounds / 2 {
		say(i)
	}
	eventually(t, "some rounds", func() bool { return len(laws()) > 5 })
	p.kill()
	for i := rounds / 2; i < rounds; i++ {
		say(i)
	}
	for i := range repeats {
		say(i * 7)
	}
	put(t, s.log, "shop.contexts", 0, `{"id":"last","actions":["x"]}`)
	p = s.decider().ready()
	eventually(t, "the last context", func() bool { return len(laws()["last"]) > 0 })
	eventually(t, "the end of all rounds", func() bool {
		ended := 0
		scan(t, s.log, "shop.feedback", 0, func(r *stream.Record) error {
			var f codec.Feedback
			if codec.ParseFeedback(&f, r.Value) == nil && f.Mode == codec.External {
				ended++
			}
			return nil
		})
		return ended == rounds
	})
	p.stop(patience)
	got := laws()
	for i := range rounds {
		all := got[fmt.Sprintf("r%d", i)]
		if len(all) != 1 || all[0].Mode != codec.External || all[0].Actions[all[0].Action] != "y" ||
			all[0].Unknown == codec.UnknownLaw != (i%3 == 0) || i%3 > 0 && all[0].Propensities[1] != .25 {
			t.Errorf("round %d: %+v", i, all)
		}
	}
	rejected := 0
	scan(t, s.log, "shop.rejects", 0, func(r *stream.Record) error {
		x, err := codec.ParseReject(r.Value)
		if err == nil && x.Reason == codec.ReasonDuplicate || x.Reason == codec.ReasonDuplicateID {
			rejected++
		}
		return err
	})
	if rejected != repeats || len(got) != rounds+1 {
		t.Errorf("%d ids, %d repeats are rejected, want %d and %d", len(got), rejected, rounds+1, repeats)
	}
}
