package main

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
)

// TestKafkaRealClock has a pipeline whose clock is a year ahead, or behind: windows are
// of the broker's time. A topic that takes its producers' times is refused.
func TestKafkaRealClock(t *testing.T) {
	kafkatest.Heavy(t)
	const window = 2 * time.Second
	k := kafkatest.Shared(t)
	s := fresh(t, k, 1, "--nats", "none", "--model", writeModel(t, t.TempDir(), "name: shop\nversion: 1\nwindow: 2s\n"))
	d := s.decider().ready()
	cl := k.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	began := time.Now()
	write := func(years int, topic, value string) {
		t.Helper()
		r := &kgo.Record{Topic: topic, Value: []byte(value), Timestamp: began.AddDate(years, 0, 0)}
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		years int
		id    string
	}{{1, "ahead"}, {-1, "behind"}} {
		write(c.years, "shop.contexts", `{"id":"`+c.id+`","actions":["x","y"]}`)
		write(c.years, "shop.contexts", `{"id":"silent-`+c.id+`","actions":["x","y"]}`)
		eventually(t, "it is decided", func() bool { return decided(t, s.log, c.id) })
		write(c.years, "shop.outcomes", `{"id":"`+c.id+`","loss":0.25}`)
		write(-c.years, "shop.outcomes", `{"id":"`+c.id+`","loss":0.75}`)
		if r := rejectOf(t, s.log, "outcomes", `{"id":"`+c.id+`","loss":0.75}`); r.Reason != codec.ReasonDuplicate {
			t.Errorf("the second outcome of %s: %+v", c.id, r)
		}
		if f := fated(t, s.log, c.id); f.Fate != codec.Observed || f.Loss != 0.25 {
			t.Errorf("%s: fate %v, loss %v", c.id, f.Fate, f.Loss)
		}
		f := fated(t, s.log, "silent-"+c.id)
		open := time.Duration(f.ClosedAt - f.Time)
		if f.Fate != codec.Skipped || open < window || open > window+patience {
			t.Errorf("silent-%s: fate %v after %v, the window is %v", c.id, f.Fate, open, window)
		}
	}
	scan(t, s.log, "shop.decisions", 0, func(r *stream.Record) error {
		var d codec.Decision
		err := codec.ParseDecision(&d, r.Value)
		if at := time.Unix(0, d.Time); at.Before(began.Add(-time.Minute)) || at.After(began.Add(time.Minute+patience)) {
			t.Errorf("the context %s came at %v by the log, it is %v", d.ID, at, began)
		}
		return err
	})
	k.SetTopic("shop.outcomes", "message.timestamp.type", "CreateTime")
	d.stop(patience)
	refused := s.decider()
	if code := refused.wait(patience); code != 1 || !strings.Contains(refused.log(),
		`message.timestamp.type is "CreateTime" (times must be the brokers')`) ||
		!strings.Contains(refused.log(), "--entity-name shop.outcomes --add-config "+
			"message.timestamp.type=LogAppendTime") {
		t.Errorf("producers' times: exit code %d:\n%s", code, refused.log())
	}
	t.Log(lastLine(refused))
	k.SetTopic("shop.outcomes", "message.timestamp.type", "LogAppendTime")
	s.decider().ready().stop(patience)
	s.audit()
}
