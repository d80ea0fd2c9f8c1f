package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
)

// TestKafkaHeaders reads what a decider writes to Kafka as others do: each record says what it is, and when it was.
func TestKafkaHeaders(t *testing.T) {
	notShort(t)
	addrs, _ := kafkatest.Fake(t, 1)
	for _, encoding := range codec.Encodings() {
		kafkaHeaders(t, addrs, encoding)
	}
}

// TestKafkaRealHeaders is the same on a real broker.
func TestKafkaRealHeaders(t *testing.T) {
	kafkatest.Heavy(t)
	for _, encoding := range codec.Encodings() {
		kafkaHeaders(t, cleaned(kafkatest.Shared(t)).Brokers(), encoding)
	}
}

func kafkaHeaders(t *testing.T, addrs []string, encoding string) {
	began := time.Now()
	s := newBrokeredOn(t, addrs, kafkaSession, 1, "--nats", "none", "--http", "127.0.0.1:0", "--encoding", encoding)
	s.args[3] = writeModel(t, s.dir, strings.Replace(shop, "shop", encoding, 1)) // one topic name for each
	name, p := encoding, s.decider().ready()
	ask := func(path, kind, body string) {
		t.Helper()
		r, err := http.Post(p.http()+path, kind, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if r.Body.Close(); r.StatusCode >= 300 {
			t.Fatalf("%s: %s", path, r.Status)
		}
	}
	put(t, s.log, name+".contexts", 0, `{"id":"topic","actions":["x","y"]}`)
	put(t, s.log, name+".contexts", 0, `{"id":"none"}`)
	ask("/v1/decide", "application/json", `{"id":"asked","actions":["x","y"]}`)
	ask("/v1/outcome", "application/json", `{"id":"asked","reward":1,"time":5}`)
	ask("/v1/outcome", "application/msgpack", "\x82\xa2id\xa5asked\xa4loss\x01")
	ask("/v1/outcome", "application/cloudevents+json",
		`{"specversion":"1.0","type":"sale","source":"/shop","id":"e1","data":{"id":"asked","reward":1}}`)
	for _, id := range []string{"topic", "asked"} {
		eventually(t, "the end of "+id, func() (ended bool) {
			scan(t, s.log, name+".feedback", 0, func(r *stream.Record) error {
				var f codec.Feedback
				ended = ended || codec.ParseFeedback(&f, r.Value) == nil && f.ID == id
				return nil
			})
			return ended
		})
	}
	p.stop(patience)
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ConsumeTopics(name+".decisions", name+".outcomes",
		name+".feedback", name+".rejects"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	left, kinds := int64(0), map[string]int{}
	for _, topic := range []string{".decisions", ".outcomes", ".feedback", ".rejects"} {
		_, next, err := s.log.Bounds(t.Context(), name+topic, 0)
		if err != nil {
			t.Fatal(err)
		}
		left += next
	}
	for left > 0 {
		fetched := cl.PollFetches(t.Context())
		if err := fetched.Err(); err != nil {
			t.Fatal(err)
		}
		for _, r := range fetched.Records() {
			left--
			said := map[string]string{}
			for _, h := range r.Headers {
				if said[h.Key] != "" {
					t.Errorf("%s@%d: two headers %s", r.Topic, r.Offset, h.Key)
				}
				said[h.Key] = string(h.Value)
			}
			topic := strings.TrimPrefix(r.Topic, name+".")
			if said[stream.HeaderType] == "" {
				kinds[topic+" "+said["content-type"]]++
			}
			if len(r.Value) == 0 {
				continue // an owner's open record
			}
			form := "application/" + codec.EncodingOf(r.Value).String()
			if kind := said["content-type"]; kind != form && (topic != "outcomes" || !codec.IsJSON(r.Value)) {
				t.Errorf("%s@%d: content-type %q of %q", r.Topic, r.Offset, kind, r.Value)
			}
			at, err := time.Parse(time.RFC3339Nano, said["hindsight-time"])
			if err != nil || at.Before(began.Truncate(time.Second)) || at.After(time.Now().Add(time.Second)) {
				t.Errorf("%s@%d %s: hindsight-time %q", r.Topic, r.Offset, said[stream.HeaderType],
					said["hindsight-time"])
			}
			if told := codec.EventTime(r.Value); topic == "feedback" && told != 0 && at.UnixNano() != told {
				t.Errorf("%s@%d: hindsight-time %v, and it tells %v", r.Topic, r.Offset, at, time.Unix(0, told))
			}
		}
	}
	form := "application/" + encoding
	for _, kind := range []string{"decisions " + form, "feedback " + form, "rejects " + form, "outcomes " +
		"application/json", "outcomes application/msgpack", "outcomes application/cloudevents+json"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s in %v", kind, kinds)
		}
	}
}
