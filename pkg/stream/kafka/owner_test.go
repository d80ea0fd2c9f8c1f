package kafka

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream"
)

// TestLastOwner holds that the last owner is the latest of all that a partition's end and its leader tell of, in
// whichever order they do.
func TestLastOwner(t *testing.T) {
	k := fake(t)
	var told []owner
	k.ControlKey(int16(kmsg.DescribeProducers), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		q := r.(*kmsg.DescribeProducersRequest).Topics[0]
		part := kmsg.NewDescribeProducersResponseTopicPartition()
		part.Partition = q.Partitions[0]
		for _, o := range told {
			p := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
			p.ProducerID, p.ProducerEpoch = o.id, int32(o.epoch)
			part.ActiveProducers = append(part.ActiveProducers, p)
		}
		topic := kmsg.NewDescribeProducersResponseTopic()
		topic.Topic, topic.Partitions = q.Topic, append(topic.Partitions, part)
		answer := r.ResponseKind().(*kmsg.DescribeProducersResponse)
		answer.Topics = append(answer.Topics, topic)
		return answer, nil, true
	})
	var read atomic.Int64
	k.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		read.Add(1)
		return nil, nil, false
	})
	c := client(t, k, Options{})
	for i, x := range []struct {
		end  owner // who wrote the last record; none: there is no record
		told []owner
		want owner // those of ids from 0 on
	}{
		{},
		{end: owner{0, 3}, want: owner{0, 3}},
		{told: []owner{{0, 3}}, want: owner{0, 3}},
		{end: owner{0, 3}, told: []owner{{0, 5}}, want: owner{0, 5}},
		{end: owner{0, 5}, told: []owner{{0, 3}}, want: owner{0, 5}},
		{told: []owner{{0, lastEpoch}, {1, 0}}, want: owner{1, 0}},
		{told: []owner{{1, 0}, {0, lastEpoch}}, want: owner{1, 0}},
		{end: owner{1, 0}, told: []owner{{0, lastEpoch}, {ownerIDs, 9}, {-1, 9}}, want: owner{1, 0}},
	} {
		p := place{Topic: fmt.Sprint("t", i)}
		if err := c.Log().Create(t.Context(), p.Topic, 1, stream.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
		first := ownerID(p.Topic, 0)
		a := opening(t, c, p)
		defer a.sender.close()
		if x.end != (owner{}) {
			var b batch
			b.reset()
			b.add(&stream.Record{}, nil)
			b.seal(first+x.end.id, x.end.epoch, 0, 0)
			if _, err := a.sender.deliver(t.Context(), b.b); err != nil {
				t.Fatal(err)
			}
		}
		told = nil
		for _, o := range x.told {
			told = append(told, owner{first + o.id, o.epoch})
		}
		if x.want != (owner{}) {
			x.want.id += first
		}
		read.Store(0)
		got, begin, err := c.lastOwner(t.Context(), &p)
		if none := x.end == (owner{}); err != nil || got != x.want || begin != 0 || none != (read.Load() == 0) {
			t.Errorf("%d: %+v, want %+v; the log begins at %d, %v", i, got, x.want, begin, err)
		}
	}
}

// TestNonce holds which record's random number is that of an opening: that of an open record at the offset.
func TestNonce(t *testing.T) {
	open := func(nonce string) stream.Record {
		return stream.Record{Type: stream.TypeOpen, Headers: []stream.Header{{Key: "h", Value: "v"},
			{Key: headerNonce, Value: nonce}}}
	}
	plain := open("plain")
	plain.Type = ""
	for _, x := range []struct {
		name   string
		recs   []stream.Record
		offset int64
		attrs  uint16
		want   string
		fails  bool
	}{
		{"an open record", []stream.Record{open("a")}, 0, 0, "a", false},
		{"another record", []stream.Record{plain}, 0, 0, "", false},
		{"behind an open record", []stream.Record{open("a"), open("b")}, 1, 0, "", false},
		{"behind another record", []stream.Record{plain, open("b")}, 1, 0, "", false},
		{"all is gone", nil, 0, 0, "", false},
		{"an unknown compression", []stream.Record{open("a")}, 0, compressionMask, "", true},
	} {
		s, _, _, err := cutBatch(encode(x.recs, 1, 2, 3, 4))
		if len(x.recs) > 0 && err != nil {
			t.Fatal(err)
		}
		s.attrs = x.attrs
		got, err := s.nonce(x.offset)
		if got != x.want || (err != nil) != x.fails {
			t.Errorf("%s: %q, want %q, %v", x.name, got, x.want, err)
		}
	}
}

// TestWritersApart holds that writers of one partition are producers of their own, which the broker does not take for
// one that repeats itself, and that none of them is an owner.
func TestWritersApart(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	first := open(t, c, "t", 1)
	k.ControlKey(int16(kmsg.InitProducerID), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		if q := r.(*kmsg.InitProducerIDRequest); q.ProducerID != -1 || q.ProducerEpoch != -1 {
			t.Errorf("asks for producer %d, epoch %d, and not for a new one", q.ProducerID, q.ProducerEpoch)
		}
		return nil, nil, false
	})
	var ids []int64
	for i := range int64(3) {
		w, err := c.Log().Writer(t.Context(), "t", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		a := w.(*appender)
		if slices.Contains(ids, a.producer) || (owner{id: a.producer}).isOurs(ownerID("t", 0)) ||
			a.sender.search != 1+i {
			t.Errorf("producer %d beside %v, looks for its records from %d on", a.producer, ids, a.sender.search)
		}
		ids = append(ids, a.producer)
		fill(t, w, fmt.Sprint("w", i), 1)
	}
	fill(t, first, "o", 1)
	want(t, values(t, c, "t"), "open w00 w10 w20 o0")
	for len(first.room) > 0 {
		<-first.room
	}
	if err := first.Close(); err != nil || !first.mute || len(first.room) != 1 {
		t.Errorf("closed: %v, mute %v, who waits is woken: %v", err, first.mute, len(first.room) == 1)
	}
	_, err := first.Append(t.Context(), &stream.Record{})
	if flushed := first.Flush(t.Context()); !errors.Is(err, stream.ErrClosed) || !errors.Is(flushed, stream.ErrClosed) {
		t.Errorf("closed: append says %v, flush %v", err, flushed)
	}
}

// TestOpenBatch holds the largest open record, and that each has a random number of its own, which readers do not see.
func TestOpenBatch(t *testing.T) {
	a := &appender{hard: 1 << 20}
	o := stream.OpenOptions{Value: make([]byte, 500)}
	b, nonce, err := a.openBatch(o)
	if err != nil || len(nonce) != 16 {
		t.Fatal(nonce, err)
	}
	for hard, fits := range map[int]bool{len(b.b): true, len(b.b) - 1: false} {
		a.hard = hard
		other, another, err := a.openBatch(o)
		if another == nonce || len(other.b) != len(b.b) || errors.Is(err, stream.ErrTooLarge) == fits || fits &&
			err != nil {
			t.Errorf("%d of at most %d bytes, %s after %s: %v", len(other.b), hard, another, nonce, err)
		}
	}
	b.seal(1, 2, 0, 4)
	s, _, _, err := cutBatch(b.b)
	if got, none := s.nonce(0); got != nonce || none != nil || err != nil {
		t.Errorf("%q, want %q", got, nonce)
	}
	for _, headers := range [][]stream.Header{nil, {{Key: "h", Value: "v"}}, {{Key: "g"}, {Key: "h", Value: "v"}}} {
		r := stream.Record{Headers: append(slices.Clone(headers), stream.Header{Key: headerNonce, Value: nonce})}
		if dropNonce(&r); !reflect.DeepEqual(r.Headers, headers) {
			t.Errorf("%v, want %v", r.Headers, headers)
		}
	}
}
