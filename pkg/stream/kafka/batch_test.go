package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"hindsight/pkg/stream"
)

// encode makes a batch of records.
func encode(recs []stream.Record, pid int64, epoch int16, sequence int32, now int64) []byte {
	var b batch
	b.reset()
	for i := range recs {
		b.add(&recs[i], nil)
	}
	b.seal(pid, epoch, sequence, now)
	return b.b
}

func drawRecords(t *rapid.T) []stream.Record {
	bytesOrNil := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 200))
	header := rapid.Custom(func(t *rapid.T) stream.Header {
		return stream.Header{Key: rapid.StringMatching(`[a-z]{1,9}`).Draw(t, "header"),
			Value: rapid.String().Draw(t, "header value")}
	})
	one := rapid.Custom(func(t *rapid.T) stream.Record {
		r := stream.Record{Key: bytesOrNil.Draw(t, "key"), Value: bytesOrNil.Draw(t, "value"),
			Type: rapid.SampledFrom([]string{"", "mark", "void"}).Draw(t, "type")}
		if n := rapid.IntRange(0, 3).Draw(t, "headers"); n > 0 {
			r.Headers = rapid.SliceOfN(header, n, n).Draw(t, "list")
		}
		return r
	})
	return rapid.SliceOfN(one, 1, 200).Draw(t, "records")
}

// What we encode is what three decoders read: ours, kafka-go's and franz-go's.
func TestBatchIsReadByOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := drawRecords(t)
		pid, epoch := rapid.Int64Range(0, math.MaxInt64).Draw(t, "pid"), rapid.Int16Range(0, math.MaxInt16).Draw(t,
			"epoch")
		sequence, now := rapid.Int32Range(0, math.MaxInt32).Draw(t, "sequence"), rapid.Int64Range(1, 1<<41).Draw(t,
			"now")
		b := encode(recs, pid, epoch, sequence, now)
		for i := range recs {
			recs[i].Offset, recs[i].Time = int64(i), now*1e6
		}
		if got := decodeOurs(t, b); !reflect.DeepEqual(got, recs) {
			t.Fatalf("ours: %v\nwant %v", got, recs)
		}
		if got := decodeKafkaGo(t, b); !reflect.DeepEqual(got, recs) {
			t.Fatalf("kafka-go: %v\nwant %v", got, recs)
		}
		var k kmsg.RecordBatch
		if err := k.ReadFrom(b); err != nil || k.ProducerID != pid || k.ProducerEpoch != epoch ||
			k.FirstSequence != sequence || k.NumRecords != int32(len(recs)) {
			t.Fatalf("franz-go: %v, %+v", err, k)
		}
		if got := decodeFranz(t, k); !reflect.DeepEqual(got, recs) {
			t.Fatalf("franz-go: %v\nwant %v", got, recs)
		}
	})
}

func decodeOurs(t interface{ Fatal(...any) }, b []byte) (all []stream.Record) {
	s, rest, ok, err := cutBatch(b)
	if err != nil || !ok || len(rest) != 0 || s.check() != nil || s.inflate() != nil {
		t.Fatal(err, ok, len(rest))
	}
	var d decoder
	d.start(s)
	for d.left > 0 {
		var r stream.Record
		if err := d.record(&r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func decodeKafkaGo(t *rapid.T, b []byte) (all []stream.Record) {
	var set protocol.RecordSet
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
	if _, err := set.ReadFrom(bytes.NewReader(frame)); err != nil {
		t.Fatal(err)
	}
	for {
		x, err := set.Records.ReadRecord()
		if err != nil {
			return all
		}
		key, _ := protocol.ReadAll(x.Key)
		value, _ := protocol.ReadAll(x.Value)
		r := stream.Record{Offset: x.Offset, Time: x.Time.UnixNano(), Key: key, Value: value}
		for _, h := range x.Headers {
			setHeader(&r, h.Key, string(h.Value))
		}
		all = append(all, r)
	}
}

func decodeFranz(t *rapid.T, b kmsg.RecordBatch) (all []stream.Record) {
	list, err := kfake.BatchRecords(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		r := stream.Record{Offset: b.FirstOffset + int64(x.OffsetDelta), Time: (b.FirstTimestamp +
			x.TimestampDelta64) * 1e6, Key: x.Key, Value: x.Value}
		for _, h := range x.Headers {
			setHeader(&r, h.Key, string(h.Value))
		}
		all = append(all, r)
	}
	return all
}

func setHeader(r *stream.Record, key, value string) {
	if key == stream.HeaderType {
		r.Type = value
		return
	}
	r.Headers = append(r.Headers, stream.Header{Key: key, Value: value})
}

// Like Kafka's DefaultRecordBatch.incrementSequence: 0 follows the largest.
func TestNextSequence(t *testing.T) {
	for _, x := range []struct {
		from int32
		n    int
		want int32
	}{{0, 1, 1}, {5, 10, 15}, {math.MaxInt32 - 1, 1, math.MaxInt32}, {math.MaxInt32, 1, 0}, {math.MaxInt32 - 2, 5, 2}} {
		if got := nextSequence(x.from, x.n); got != x.want {
			t.Errorf("%d after %d: %d, want %d", x.n, x.from, got, x.want)
		}
	}
}

// Neither filling a batch nor reading one allocates.
func TestBatchAllocs(t *testing.T) {
	r := stream.Record{Key: []byte("0123456789abcdef"), Value: make([]byte, 200)}
	var b batch
	fill := func() {
		b.reset()
		for range 100 {
			b.add(&r, nil)
		}
		b.seal(1, 2, 3, 4)
	}
	fill()
	if n := testing.AllocsPerRun(100, fill); n != 0 {
		t.Errorf("filling a batch allocates %v times", n)
	}
	var d decoder
	dst := make([]stream.Record, 0, 100)
	read := func() {
		s, _, _, err := cutBatch(b.b)
		if err != nil || s.check() != nil || s.inflate() != nil {
			t.Fatal(err)
		}
		d.start(s)
		for dst = dst[:0]; d.left > 0; {
			dst = append(dst, stream.Record{})
			if err := d.record(&dst[len(dst)-1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	read()
	if n := testing.AllocsPerRun(100, read); n != 0 {
		t.Errorf("reading a batch allocates %v times", n)
	}
}

// Appending and reading through a connection allocate for batches, not for records.
// The fake's own work is counted as well, which is most of it.
func TestAppendAndReadAllocs(t *testing.T) {
	if testing.Short() {
		t.Skip("counts allocations")
	}
	k := fake(t)
	headers := []stream.Header{{Key: "content-type", Value: "application/json"}, {Key: "at",
		Value: "2026-11-23T10:00:00Z"}}
	c := client(t, k, Options{Headers: func(string) func(*stream.Record) []stream.Header {
		return func(*stream.Record) []stream.Header { return headers }
	}})
	ctx := context.Background()
	a := open(t, c, "t", 1)
	r := stream.Record{Value: make([]byte, 200)}
	const n = 20_000
	perRecord := testing.AllocsPerRun(3, func() {
		for range n {
			if _, err := a.Append(ctx, &r); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}) / n
	if perRecord > 0.2 {
		t.Errorf("%.2f allocations for each record appended", perRecord)
	}
	rd, err := c.Log().Read(ctx, "t", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	dst := make([]stream.Record, 0, maxNext)
	perRecord = testing.AllocsPerRun(3, func() {
		for left := n; left > 0; left -= len(dst) {
			if dst, err = rd.Next(ctx, dst[:0]); err != nil {
				t.Fatal(err)
			}
			for i := range dst {
				if h := dst[i].Headers; dst[i].Type == "" && !slices.Equal(h, headers) {
					t.Fatalf("headers %v", h)
				}
			}
		}
	}) / n
	if perRecord > 0.05 {
		t.Errorf("%.2f allocations for each record read", perRecord)
	}
}

// open makes a topic, if it is not there, and owns its partition 0.
func open(t testing.TB, c *Client, topic string, partitions int) *appender {
	t.Helper()
	a, _ := openAcked(t, c, topic, partitions, nil)
	return a
}

func openAcked(t testing.TB, c *Client, topic string, partitions int, ack stream.AckFunc) (*appender, stream.Tail) {
	t.Helper()
	ctx := context.Background()
	if err := c.Log().Create(ctx, topic, partitions, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	a, tail, err := c.Log().Open(ctx, topic, 0, stream.OpenOptions{Owner: "test", Ack: ack})
	if err != nil {
		t.Fatal(err)
	}
	return a.(*appender), tail
}

// fill appends values prefix0 … prefix(n−1) and waits for them.
func fill(t testing.TB, a stream.Appender, prefix string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := range n {
		if _, err := a.Append(ctx, &stream.Record{Value: fmt.Appendf(nil, "%s%d", prefix, i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

// values reads partition 0 up to its present end: types and values in order.
func values(t testing.TB, c *Client, topic string) (all []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := stream.Scan(ctx, c.Log(), topic, 0, 0, math.MaxInt64, func(r *stream.Record) error {
		all = append(all, r.Type+string(r.Value))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
