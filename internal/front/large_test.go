package front

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// An outcome by request that is too large, or that cannot be stored as it is, is refused, and
// the others do not notice: the appender is the same.
func TestLargeOutcomeByRequest(t *testing.T) {
	log := mem.New(mem.Options{ManualAcks: true})
	ctx := t.Context()
	log.Create(ctx, "m.outcomes", 1, stream.TopicOptions{})
	s, err := NewServer(Config{Bus: log, Name: "m", Partitions: 1}).ServeOutcomes(ctx, log)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := s.writers[0].out
	header := func(key string, n int) stream.Header { return stream.Header{Key: key, Value: strings.Repeat("x", n)} }
	outcome := func(n int) string {
		const head = `{"id":"a","loss":1,"x":"`
		return head + strings.Repeat("x", n-len(head)-2) + `"}`
	}
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
		{"a byte more of headers", outcome(40), []stream.Header{header("h", 100), header("h", maxHeaderBytes-109)},
			"413"},
		{"a header over 64 KiB", outcome(40), []stream.Header{header("h", 1<<16)}, "413"},
		{"a name with a space", outcome(40), []stream.Header{header("a b", 1)}, "400"},
		{"an empty name", outcome(40), []stream.Header{header("", 1)}, "400"},
		{"a name that is not ASCII", outcome(40), []stream.Header{header("ä", 1)}, "400"},
		{"a value of two lines", outcome(40), []stream.Header{{Key: "h", Value: "a\rb"}}, "400"},
		{"spaces around a value, orders to the server", outcome(40),
			[]stream.Header{{Key: "h", Value: " a\t"}, header("nats-Rollup", 1)}, `"a"`},
	} {
		var replies []string
		s.Store(stream.Message{Data: []byte(c.data), Headers: c.headers,
			Respond: func(b []byte, _ ...stream.Header) error {
				replies = append(replies, string(b))
				return nil
			}})
		log.DeliverAcks(-1)
		refused := strings.HasPrefix(c.want, "4")
		if len(replies) != 1 || !strings.Contains(replies[0], c.want) || strings.Contains(replies[0],
			"error") != refused {
			t.Errorf("%s: %q, want %s", c.what, replies, c.want)
		}
	}
	// The log may take less than we think.
	told := 0
	s.writers[0].append(&stream.Record{Value: make([]byte, mem.DefaultMaxBytes+1)}, time.Now(),
		func(_ int64, err error) {
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
