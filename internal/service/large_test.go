package service

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

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
	s.o = simOptions{partitions: 1, pending: 100, markEvery: 3, rules: check.Rules{MaxActions: 8, Max: 1,
		WindowRounds: 1}}
	s.log = mem.New(mem.Options{Clock: s.clock})
	s.heal = true
	for _, topic := range []string{s.topics.Contexts, s.topics.Decisions, s.topics.Outcomes, s.topics.Feedback,
		s.topics.Snapshots, s.topics.Rejects} {
		s.log.Create(s.ctx, topic, 1, stream.TopicOptions{Trimmable: topic == s.topics.Snapshots})
	}
	s.users = newUsers(s)
	u := s.users
	filler := strings.Repeat("x", largest-200)
	for i, bad := range [][]byte{
		bytes.Repeat([]byte{'{'}, largest), bytes.Repeat([]byte{0xff}, largest),
		fmt.Appendf(nil, `{"id":"c0","actions":["%s"]}`, filler), fmt.Appendf(nil, `{"id":"%s","actions":["a"]}`,
			filler),
	} {
		u.append(s.topics.Contexts, 0, &stream.Record{Key: []byte("k"), Value: bad})
		u.append(s.topics.Contexts, 0, &stream.Record{Value: fmt.Appendf(nil, `{"id":"c%d","actions":["a","b"]}`, i+1)})
		u.append(s.topics.Outcomes, 0, &stream.Record{Value: bad})
		for _, n := range []int{codec.MaxOutcomeBytes + 1, codec.MaxOutcomeBytes} {
			u.append(s.topics.Outcomes, 0, &stream.Record{Value: sized(`{"id":"nobody","loss":1,"x":"%s"}`, n)})
		}
		u.append(s.topics.Outcomes, 0, &stream.Record{Value: fmt.Appendf(nil, `{"id":"nobody","loss":1,"x":"%s"}`,
			filler)})
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
			cut[x.Topic+" "+x.Reason]++
			if len(x.Bytes) != codec.MaxRejectBytes || !strings.Contains(x.Detail, "only the first 4096 of ") {
				t.Errorf("%d bytes of %d: %s", len(x.Bytes), x.Size, x.Detail)
			}
		}
	})
	if cut["contexts malformed"] != 4 || cut["outcomes malformed"] != 4+4+4 || cut["outcomes orphan"] != 4 {
		t.Errorf("%v rejects were cut", cut)
	}
}

// sized fills a record up to a number of bytes.
func sized(format string, n int) []byte {
	return fmt.Appendf(nil, format, strings.Repeat("x", n-len(format)+len("%s")))
}
