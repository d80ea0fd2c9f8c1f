package stream_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestPlain holds each bound of what every log keeps of a header.
func TestPlain(t *testing.T) {
	for h, want := range map[stream.Header]bool{
		{Key: "!", Value: ""}: true, {Key: "a~", Value: "b c"}: true, {Key: "a", Value: "b:c"}: true,
		{Key: "", Value: "b"}: false, {Key: "a b", Value: "c"}: false, {Key: "a\x7f", Value: "b"}: false,
		{Key: "a:", Value: "b"}: false, {Key: "é", Value: "b"}: false, {Key: "a", Value: "b\rc"}: false,
		{Key: "a", Value: "b\nc"}: false, {Key: "a", Value: " b"}: false, {Key: "a", Value: "b\t"}: false,
	} {
		if h.Plain() != want {
			t.Errorf("%q is plain: %v", h, !want)
		}
	}
}

// TestIsRetryable holds which errors pass without anyone mending anything.
func TestIsRetryable(t *testing.T) {
	here, elsewhere := stream.Place{Topic: "t", Partition: 2}, stream.Place{Topic: "u"}
	for err, want := range map[error]bool{
		stream.ErrUnknown: true, stream.ErrUnavailable: true, stream.ErrFull: true, stream.ErrClosed: false,
		stream.ErrNotFound: false, stream.ErrFenced: false, stream.ErrTooLarge: false, stream.ErrUnfit: false,
		stream.ErrTruncated: false, stream.ErrAhead: false, stream.ErrGap: false, stream.ErrCorrupt: false,
		stream.ErrPartitions: false, stream.ErrNotTrimmable: false,
	} {
		at := here.Fail("read", 7, err)
		if stream.IsRetryable(at) != want {
			t.Errorf("%v is retryable: %v", at, !want)
		}
		again := at
		if elsewhere.Locate("open", -1, &again); again != at {
			t.Errorf("%v has another place: %v", at, again)
		}
	}
	plain := stream.ErrFull
	here.Locate("read", 7, &plain)
	if want := here.Fail("read", 7, stream.ErrFull); plain.Error() != want.Error() {
		t.Errorf("%v, want %v", plain, want)
	}
	var none error
	if elsewhere.Locate("open", -1, &none); none != nil {
		t.Errorf("no error is one: %v", none)
	}
}

// TestOpenRecord holds that an open record names its owner, if there is one.
func TestOpenRecord(t *testing.T) {
	for owner, headers := range map[string][]stream.Header{"": nil, "me": {{Key: stream.HeaderOwner, Value: "me"}}} {
		o := stream.OpenOptions{Owner: owner, Value: []byte("v")}
		if r := o.Record(); r.Type != stream.TypeOpen || string(r.Value) != "v" || !slices.Equal(r.Headers, headers) {
			t.Errorf("owner %q: %+v", owner, r)
		}
	}
}

// counted is a log that counts its readers, and whose Get says what it is told to.
type counted struct {
	stream.Log
	reads, closed int
	value         []byte
	err           error
}

func (c *counted) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	r, err := c.Log.Read(ctx, topic, partition, from)
	c.reads++
	return countedReader{r, c}, err
}

func (c *counted) Get(context.Context, string, int, int64) ([]byte, error) { return c.value, c.err }

type countedReader struct {
	stream.Reader
	c *counted
}

func (r countedReader) Close() error {
	r.c.closed++
	return r.Reader.Close()
}

// written returns a log with a topic t of records at 10, 12, … 28, whose value is their offset.
func written(t *testing.T) *counted {
	t.Helper()
	l := mem.New(mem.Options{FirstOffset: 10, Step: 2, MaxBatch: 3})
	t.Cleanup(func() { l.Close() })
	if err := l.Create(t.Context(), "t", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	a, err := l.Writer(t.Context(), "t", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for at := 10; at < 30; at += 2 {
		if _, err := a.Append(t.Context(), &stream.Record{Value: fmt.Append(nil, at)}); err != nil {
			t.Fatal(err)
		}
	}
	return &counted{Log: l, err: stream.ErrUnavailable}
}

// TestScan holds which records are passed over, that a range without records opens no reader, and that others close
// theirs.
func TestScan(t *testing.T) {
	bad := errors.New("bad")
	for _, x := range []struct {
		from, end int64
		stopAt    int64 // 0: nowhere
		stop      error
		want      string
		reads     int
	}{
		{stream.Earliest, math.MaxInt64, 0, nil, "[10 12 14 16 18 20 22 24 26 28]", 1},
		{3, 16, 0, nil, "[10 12 14]", 1}, {16, 17, 0, nil, "[16]", 1}, {28, 30, 0, nil, "[28]", 1},
		{12, 12, 0, nil, "[]", 0}, {30, 99, 0, nil, "[]", 0}, {stream.Earliest, 10, 0, nil, "[]", 0},
		{12, 26, 14, stream.ErrStop, "[12 14]", 1}, {12, 26, 20, bad, "[12 14 16 18 20]", 1},
	} {
		l := written(t)
		got := []int64{}
		err := stream.Scan(t.Context(), l, "t", 0, x.from, x.end, func(r *stream.Record) error {
			if got = append(got, r.Offset); r.Offset == x.stopAt {
				return x.stop
			}
			return nil
		})
		var at *stream.Error
		if fmt.Sprint(got) != x.want || l.reads != x.reads || l.closed != x.reads ||
			errors.Is(err, bad) != (x.stop == bad) ||
			(err != nil) != (errors.As(err, &at) && at.Offset == 20 && at.Topic == "t") {
			t.Errorf("from %d to %d: %v, want %s; %d readers, %v", x.from, x.end, got, x.want, l.reads, err)
		}
	}
	for topic, end := range map[string]int64{"none": 99, "t": 99} {
		ctx, cancel := context.WithCancel(t.Context())
		if cancel(); stream.Scan(ctx, written(t), topic, 0, 10, end, nil) == nil {
			t.Errorf("topic %s is read by a context that has ended", topic)
		}
	}
}

// TestGet holds that a record is read as its log does that best, or else by a reader.
func TestGet(t *testing.T) {
	l := written(t)
	for at, want := range map[int64]string{10: "10", 28: "28", 11: "", 9: "", 30: ""} {
		got, err := stream.Get(t.Context(), l, "t", 0, at)
		if string(got) != want || errors.Is(err, stream.ErrNotFound) != (want == "") {
			t.Errorf("at %d: %q, %v", at, got, err)
		}
	}
	l.value, l.err = []byte("at once"), nil
	if got, err := stream.Get(t.Context(), l, "t", 0, 10); string(got) != "at once" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	l.value, l.err = nil, stream.ErrUnavailable
	if got, err := stream.Get(t.Context(), l, "none", 0, 10); got != nil || !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestScanBack holds the blocks: each is larger than the one before it, and the last one ends with the log.
func TestScanBack(t *testing.T) {
	var blocks [][]int64
	var block []int64
	err := stream.ScanBack(t.Context(), written(t), "t", 0, 99, 1, func(r *stream.Record) error {
		block = append(block, r.Offset)
		return nil
	}, func() bool {
		blocks, block = append(blocks, block), nil
		return false
	})
	if got := fmt.Sprint(blocks); got != "[[] [22 24 26 28] [10 12 14 16 18 20]]" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	err = stream.ScanBack(t.Context(), written(t), "none", 0, 99, 1, nil, nil)
	if !errors.Is(err, stream.ErrNotFound) {
		t.Error(err)
	}
}
