package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hindsight/internal/check"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// largest is the largest value that the log takes with a short key.
const largest = mem.DefaultMaxBytes - 64

// Records as large as the log takes them, that are refused, do not stop the one who
// refuses them: the reject keeps what fits.
func TestLargestRejects(t *testing.T) {
	s := newSim(t, 1, planted{})
	s.o = simOptions{partitions: 1, pending: 100, markEvery: 3, strict: true, rules: check.Rules{MaxActions: 8, Max: 1, WindowRounds: 1}}
	s.log = mem.New(mem.Options{Clock: s.clock})
	s.heal = true
	for _, topic := range []string{s.topics.Contexts, s.topics.Decisions, s.topics.Outcomes, s.topics.Feedback, s.topics.Snapshots, s.topics.Rejects} {
		s.log.Create(s.ctx, topic, 1, stream.TopicOptions{Trimmable: topic == s.topics.Snapshots})
	}
	s.users = newUsers(s)
	u := s.users
	filler := strings.Repeat("x", largest-200)
	for i, bad := range [][]byte{
		bytes.Repeat([]byte{'{'}, largest), bytes.Repeat([]byte{0xff}, largest),
		fmt.Appendf(nil, `{"id":"c0","actions":["%s"]}`, filler), fmt.Appendf(nil, `{"id":"%s","actions":["a"]}`, filler),
	} {
		u.append(s.topics.Contexts, 0, &stream.Record{Key: []byte("k"), Value: bad})
		u.append(s.topics.Contexts, 0, &stream.Record{Value: fmt.Appendf(nil, `{"id":"c%d","actions":["a","b"]}`, i+1)})
		u.append(s.topics.Outcomes, 0, &stream.Record{Value: bad})
		u.append(s.topics.Outcomes, 0, &stream.Record{Value: fmt.Appendf(nil, `{"id":"nobody","loss":1,"x":"%s"}`, filler)})
	}
	s.finish()
	s.verify()
	for _, b := range s.broken {
		t.Error(b)
	}
	cut := map[string]int{}
	s.records(s.topics.Rejects, 0, func(r *stream.Record) {
		if x, err := codec.ParseReject(r.Value); err != nil {
			t.Error(err)
		} else if x.Size > 0 {
			cut[x.Topic]++
		}
	})
	if cut["contexts"] != 4 || cut["outcomes"] != 8 {
		t.Errorf("%v rejects were cut", cut)
	}
}

// An outcome by request that is too large is refused, and the others do not notice.
func TestLargeOutcomeByRequest(t *testing.T) {
	log := mem.New(mem.Options{ManualAcks: true})
	ctx := context.Background()
	log.Create(ctx, "m.outcomes", 1, stream.TopicOptions{})
	s, err := ServeOutcomes(ctx, log, log, "m", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var replies []string
	ask := func(data string, headers ...stream.Header) {
		s.request(stream.Message{Data: []byte(data), Headers: headers, Respond: func(b []byte, _ ...stream.Header) error {
			replies = append(replies, string(b))
			return nil
		}})
	}
	w := s.writers[0].out
	ask(`{"id":"a","loss":1}`)
	ask(`{"id":"b","loss":1}`, stream.Header{Key: "h", Value: strings.Repeat("x", mem.DefaultMaxBytes)})
	ask(`{"id":"c","loss":1}`, stream.Header{Key: "h", Value: strings.Repeat("x", codec.MaxRecordBytes-40)})
	// The log may take less than we think.
	told := 0
	s.writers[0].append(&stream.Record{Value: make([]byte, mem.DefaultMaxBytes+1)}, time.Now(), func(_ int64, err error) {
		if told++; !errors.Is(err, stream.ErrTooLarge) || told > 1 {
			t.Errorf("told %d times of too large a record: %v", told, err)
		}
	})
	ask(`{"id":"d","loss":1}`)
	log.DeliverAcks(-1)
	if told != 1 {
		t.Errorf("told %d times of too large a record", told)
	}
	if s.writers[0].out != w {
		t.Error("the appender was replaced")
	}
	if len(replies) != 4 || !strings.Contains(replies[0], "413") {
		t.Fatalf("%q", replies)
	}
	for i, id := range []string{"a", "c", "d"} {
		if !strings.Contains(replies[i+1], `"`+id+`"`) || strings.Contains(replies[i+1], "error") {
			t.Errorf("%q", replies[i+1])
		}
	}
}
