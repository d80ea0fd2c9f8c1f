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
	s.o = simOptions{partitions: 1, pending: 100, markEvery: 3, rules: check.Rules{MaxActions: 8, Max: 1, WindowRounds: 1}}
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
		for _, n := range []int{codec.MaxOutcomeBytes + 1, codec.MaxOutcomeBytes} {
			u.append(s.topics.Outcomes, 0, &stream.Record{Value: sized(`{"id":"nobody","loss":1,"x":"%s"}`, n)})
		}
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

// An outcome by request that is too large, or that cannot be stored as it is, is refused, and
// the others do not notice: the appender is the same.
func TestLargeOutcomeByRequest(t *testing.T) {
	log := mem.New(mem.Options{ManualAcks: true})
	ctx := context.Background()
	log.Create(ctx, "m.outcomes", 1, stream.TopicOptions{})
	s, err := ServeOutcomes(ctx, log, log, "m", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := s.writers[0].out
	header := func(key string, n int) stream.Header { return stream.Header{Key: key, Value: strings.Repeat("x", n)} }
	outcome := func(n int) string { return string(sized(`{"id":"a","loss":1,"x":"%s"}`, n)) }
	for _, c := range []struct {
		what, data string
		headers    []stream.Header
		want       string
	}{
		{"64 KiB", outcome(codec.MaxOutcomeBytes), nil, `"a"`},
		{"a byte more", outcome(codec.MaxOutcomeBytes + 1), nil, "413"},
		{"64 KiB with its headers", outcome(codec.MaxOutcomeBytes - 5), []stream.Header{header("h", 4)}, `"a"`},
		{"a byte more with its headers", outcome(codec.MaxOutcomeBytes - 5), []stream.Header{header("h", 5)}, "413"},
		{"16 KiB of headers", outcome(40), []stream.Header{header("h", maxHeaderBytes-5)}, `"a"`},
		{"a byte more of headers", outcome(40), []stream.Header{header("h", 100), header("h", maxHeaderBytes-109)}, "413"},
		{"a header over 64 KiB", outcome(40), []stream.Header{header("h", 1<<16)}, "413"},
		{"a name with a space", outcome(40), []stream.Header{header("a b", 1)}, "400"},
		{"an empty name", outcome(40), []stream.Header{header("", 1)}, "400"},
		{"a name that is not ASCII", outcome(40), []stream.Header{header("ä", 1)}, "400"},
		{"a value of two lines", outcome(40), []stream.Header{{Key: "h", Value: "a\rb"}}, "400"},
		{"spaces around a value, orders to the server", outcome(40),
			[]stream.Header{{Key: "h", Value: " a\t"}, header("nats-Rollup", 1)}, `"a"`},
	} {
		var replies []string
		s.request(stream.Message{Data: []byte(c.data), Headers: c.headers, Respond: func(b []byte, _ ...stream.Header) error {
			replies = append(replies, string(b))
			return nil
		}})
		log.DeliverAcks(-1)
		refused := strings.HasPrefix(c.want, "4")
		if len(replies) != 1 || !strings.Contains(replies[0], c.want) || strings.Contains(replies[0], "error") != refused {
			t.Errorf("%s: %q, want %s", c.what, replies, c.want)
		}
	}
	// The log may take less than we think.
	told := 0
	s.writers[0].append(&stream.Record{Value: make([]byte, mem.DefaultMaxBytes+1)}, time.Now(), func(_ int64, err error) {
		if told++; !errors.Is(err, stream.ErrTooLarge) || told > 1 {
			t.Errorf("told %d times of too large a record: %v", told, err)
		}
	})
	if told != 1 || s.writers[0].out != w {
		t.Errorf("told %d times of too large a record; another appender: %v", told, s.writers[0].out != w)
	}
	rd, err := log.Read(ctx, "m.outcomes", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	records, err := rd.Next(ctx, nil)
	if h := records[len(records)-1].Headers; err != nil || fmt.Sprint(h) != "[{h a}]" {
		t.Errorf("headers stored: %v, %v", h, err)
	}
}
