package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream"
)

// TestLearn holds what is kept of the brokers' answers: the brokers of the last that names any, the leaders of each
// topic, and none of a topic that is gone.
func TestLearn(t *testing.T) {
	var k cluster
	k.init([]string{"seed:1"})
	broker := func(id int32, host string) metadata.ResponseBroker {
		return metadata.ResponseBroker{NodeID: id, Host: host, Port: 9}
	}
	for i, c := range []struct {
		r       metadata.Response
		brokers string
		leaders string
	}{
		{metadata.Response{Brokers: []metadata.ResponseBroker{broker(1, "a"), broker(2, "b")}, ControllerID: 2},
			"a:9 b:9", "[]"},
		{metadata.Response{Brokers: []metadata.ResponseBroker{broker(1, "c")},
			Topics: []metadata.ResponseTopic{{Name: "t",
				Partitions: []metadata.ResponsePartition{{PartitionIndex: 1, LeaderID: 5},
					{PartitionIndex: 0, LeaderID: 4},
					{PartitionIndex: 2, LeaderID: 6, ErrorCode: 5}, {PartitionIndex: 3, LeaderID: 7, ErrorCode: 9},
					{PartitionIndex: 6, LeaderID: 8}, {PartitionIndex: -1, LeaderID: 8}}}}}, "c:9", "[4 5 -1 7 -1 -1]"},
		{metadata.Response{}, "c:9", "[4 5 -1 7 -1 -1]"},
		{metadata.Response{Topics: []metadata.ResponseTopic{{Name: "t", ErrorCode: 3}}}, "c:9", "[]"},
	} {
		k.learn(&c.r)
		all := strings.Join(k.addresses(), " ")
		if all != c.brokers+" seed:1" || fmt.Sprint(k.topics["t"]) != c.leaders || k.controller != c.r.ControllerID {
			t.Errorf("%d: brokers %s, leaders %v, controller %d", i, all, k.topics["t"], k.controller)
		}
	}
	k.brokers = map[int32]string{1: "a", 2: "b", 3: "c"}
	for good, want := range map[string]string{"": "a b c seed:1", "a": "a b c seed:1", "b": "b a c seed:1",
		"c": "c a b seed:1", "seed:1": "seed:1 a b c"} {
		if k.good = good; strings.Join(k.addresses(), " ") != want {
			t.Errorf("after an answer of %s: %v", good, k.addresses())
		}
	}
}

// TestLine holds that a line that was closed makes no connection any more, and gives up the one it had.
func TestLine(t *testing.T) {
	k := fake(t)
	var left atomic.Int64
	c := client(t, k, Options{Dial: counting(&left)})
	open(t, c, "t", 1)
	for _, connected := range []bool{false, true} {
		l := &line{c: c, p: place{Topic: "t"}}
		if connected {
			cn, err := l.connection(t.Context(), false)
			if again, _ := l.connection(t.Context(), false); err != nil || again != cn {
				t.Errorf("another connection: %v", err)
			}
		}
		l.close()
		if cn, err := l.connection(t.Context(), false); !errors.Is(err, stream.ErrClosed) || cn != nil {
			t.Errorf("connected %v: closed, and %v", connected, err)
		}
	}
	l := &line{c: c, p: place{Topic: "t"}}
	defer l.close()
	cn, err := l.connection(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if l.drop(cn); l.cn != nil {
		t.Error("the one that was given up is kept")
	}
	if c.Close(); left.Load() != 0 {
		t.Errorf("%d connections are left", left.Load())
	}
}

// TestMorePartitions: brokers are asked anew about a topic where it has no such partition as far as is known, and only
// there.
func TestMorePartitions(t *testing.T) {
	k := fake(t)
	defer k.Close()
	c := client(t, k, Options{})
	defer c.Close()
	open(t, c, "t", 2)
	var asked atomic.Int64
	k.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		asked.Add(1)
		return nil, nil, false
	})
	for _, x := range []struct {
		known     int // partitions
		partition int
		fresh     bool
		asked     int64
		err       error
	}{{2, 1, false, 0, nil}, {1, 1, false, 1, nil}, {0, 0, false, 1, nil}, {2, 2, false, 1, stream.ErrNotFound},
		{2, 1, true, 1, nil}, {2, 2, true, 1, stream.ErrNotFound}} {
		c.cluster.topics["t"] = c.cluster.topics["t"][:x.known]
		asked.Store(0)
		addr, err := c.leader(t.Context(), &place{Topic: "t", Partition: x.partition}, x.fresh)
		if asked.Load() != x.asked || !errors.Is(err, x.err) || (err == nil) != (addr == k.ListenAddrs()[0]) {
			t.Errorf("%+v: asked %d times, %q, %v", x, asked.Load(), addr, err)
		}
	}
}

// TestPlaces holds which topics and partitions there may be.
func TestPlaces(t *testing.T) {
	l := &Log{}
	for _, c := range []struct {
		topic     string
		partition int
		ok        bool
	}{
		{"t", 0, true}, {"t", math.MaxInt32, true}, {"t", math.MaxInt32 + 1, false}, {"t", -1, false},
		{strings.Repeat("t", 249), 0, true}, {strings.Repeat("t", 250), 0, false}, {"", 0, false}, {".", 0, false},
		{"..", 0, false}, {"...", 0, true}, {"a b", 0, false}, {"A-b_c.9", 0, true},
	} {
		if _, err := l.place(c.topic, c.partition); (err == nil) != c.ok {
			t.Errorf("%s/%d: %v", c.topic, c.partition, err)
		}
	}
}

// TestSpeaks holds which versions a broker speaks.
func TestSpeaks(t *testing.T) {
	cn := &conn{versions: map[protocol.ApiKey][2]int16{protocol.Fetch: {3, 5}}}
	for version, want := range map[int16]bool{2: false, 3: true, 4: true, 5: true, 6: false} {
		if cn.speaks(protocol.Fetch, version) != want || cn.speaks(protocol.Produce, version) {
			t.Errorf("version %d: %v", version, !want)
		}
	}
}

// TestFields holds the bounds of numbers and lengths.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		bytes []byte
		want  uint64
		ok    bool
	}{
		{[]byte{0}, 0, true}, {[]byte{0x7f}, 0x7f, true}, {[]byte{0x80, 1}, 0x80, true},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0x07}, 1<<31 - 1, true}, {[]byte{0x80, 0x80, 0x80, 0x80, 0x08}, 0, false},
		{[]byte{0x80}, 0, false}, {nil, 0, false},
		{[]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}, 0, false},
	} {
		if f := (fields{b: c.bytes}); f.uvarint() != c.want || f.bad == c.ok || len(f.b) > 0 {
			t.Errorf("%x: %+v", c.bytes, f)
		}
	}
	f := fields{b: []byte{0xff, 0xff, 0, 0, 0, 1, 'a', 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2, 'b', 'c', 0, 0, 0, 1}}
	if a, b, c, d, e := f.stringBytes(), f.stringBytes(), f.stringBytes(), f.bytes(), f.bytes(); len(a) > 0 ||
		len(b) > 0 ||
		string(c) != "a" || len(d) > 0 || string(e) != "bc" || f.bad || len(f.bytes()) > 0 || !f.bad {
		t.Errorf("%q %q %q %q %q, %+v", a, b, c, d, e, f)
	}
	for tags, left := range map[string]int{"\x00x": 1, "\x01\x07\x00x": 1, "\x02\x07\x02ab\x08\x01cx": 1,
		"\x02\x07\x01a": 0, "\x01\x07\x03ab": 0} {
		if f := (fields{b: []byte(tags)}); true {
			if f.tags(); len(f.b) != left || f.bad != (left == 0) {
				t.Errorf("tags %q: %+v", tags, f)
			}
		}
	}
}

// TestPauses holds that pauses grow up to the longest, and end with their context and with the client.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{}
		c.ctx, c.cancel = context.WithCancel(t.Context())
		var all []time.Duration
		for d := firstBackoff; len(all) < 8; {
			began := time.Now()
			if err := c.pause(t.Context(), &d); err != nil {
				t.Fatal(err)
			}
			all = append(all, time.Since(began))
		}
		if fmt.Sprint(all) != "[5ms 10ms 20ms 40ms 80ms 160ms 250ms 250ms]" {
			t.Errorf("pauses %v", all)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d := time.Hour
		if err := c.pause(ctx, &d); !errors.Is(err, context.Canceled) || d != time.Hour {
			t.Errorf("of a context that has ended: %v, %v", err, d)
		}
		c.cancel()
		if err := c.pause(t.Context(), &d); !errors.Is(err, stream.ErrClosed) || d != time.Hour {
			t.Errorf("of a client that is closed: %v, %v", err, d)
		}
	})
}

// TestAgain holds how often a question is asked, and which of its errors is told.
func TestAgain(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	for _, x := range []struct {
		name  string
		errs  []error // of the tries; the last one stays
		final int     // the try whose error is final; 0: none
		late  int     // the try that takes all the time that is left; 0: none
		ends  bool    // the caller's context ends then
		asked int
		want  []error // nil: no error
	}{
		{"answered", []error{nil}, 1, 0, false, 1, nil},
		{"answered the third time", []error{a, b, nil}, 0, 0, false, 3, nil},
		{"final", []error{a, b}, 2, 0, false, 2, []error{b}},
		{"final, and answered", []error{a, nil}, 2, 2, false, 2, nil},
		{"no time is left", []error{a, b}, 0, 2, false, 2, []error{a}},
		{"no time is left, and final", []error{a, b}, 2, 2, false, 2, []error{a}},
		{"all the time is taken by the first", []error{a}, 0, 1, false, 1, []error{a}},
		{"the context ends", []error{a, b}, 0, 2, true, 2, []error{a, context.Canceled}},
		{"the context ends with the first", []error{b}, 1, 1, true, 1, []error{b, context.Canceled}},
		{"never", []error{a, a, b}, 0, 0, false, 9, []error{b}}, // after 5 ms, 15, 35, 75, 155, 315, 565, 815
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &Client{o: Options{RequestTimeout: time.Second}, ctx: t.Context()}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			asked, began := 0, time.Now()
			err := c.again(ctx, func(limited context.Context) (bool, error) {
				if asked++; asked == x.late {
					if x.ends {
						cancel()
					}
					<-limited.Done()
				}
				return asked == x.final, x.errs[min(asked, len(x.errs))-1]
			})
			if asked != x.asked || (err == nil) != (x.want == nil) || time.Since(began) > time.Second {
				t.Errorf("%s: asked %d times, %v after %v", x.name, asked, err, time.Since(began))
			}
			for _, want := range []error{a, b, context.Canceled, context.DeadlineExceeded} {
				if errors.Is(err, want) != slices.Contains(x.want, want) {
					t.Errorf("%s: %v; %v is asked for", x.name, err, x.want)
				}
			}
		})
	}
}

// TestLongNames: the leader tells the producers of a topic with a name of any length.
func TestLongNames(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	for _, n := range []int{1, 126, 127, 128, 249} {
		a := open(t, c, strings.Repeat("t", n), 1)
		if last, _, err := c.lastOwner(t.Context(), &a.sender.p); err != nil || last != (owner{a.producer, a.epoch}) {
			t.Errorf("%d letters: %+v, %v", n, last, err)
		}
	}
}

// TestNoteOpen holds when readers are told that they wait for a transaction: when there was nothing else for a while.
func TestNoteOpen(t *testing.T) {
	k := fake(t)
	var log bytes.Buffer
	c := client(t, k, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	open(t, c, "t", 1)
	s := &leaderSource{line: line{c: c, p: place{Topic: "t"}}}
	for i, x := range []struct {
		r          fetched
		hangs      time.Duration
		waits, not bool // not: it is not told
	}{
		{fetched{stable: 5, high: 5}, 0, false, true}, {fetched{stable: 4, high: 5, batches: []byte{0}}, 0, false,
			true},
		{fetched{stable: 4, high: 5}, 0, true, true}, {fetched{stable: 4, high: 5}, time.Hour, true, true},
		{fetched{stable: 4, high: 5}, 0, true, false}, {fetched{stable: 4, high: 5}, time.Hour, true, false},
		{fetched{stable: 4, high: 5, batches: []byte{0}}, 0, false, true}, {fetched{stable: 4, high: 5}, 0, true, true},
		{fetched{stable: 4, high: 5}, 0, true, false}, {fetched{stable: 5, high: 5}, 0, false, true},
		{fetched{stable: 4, high: 5}, 0, true, true}, {fetched{stable: 4, high: 5}, 0, true, false},
		{fetched{stable: 4, high: 5}, 0, true, false},
	} {
		c.hangs = x.hangs
		if s.noteOpen(t.Context(), &x.r); s.waits.IsZero() == x.waits || (c.log.Held() == nil) != x.not {
			t.Errorf("%d: waits since %v, told %v", i, s.waits, c.log.Held())
		}
	}
	if s.close(); c.log.Held() != nil {
		t.Errorf("nobody reads, and told %v", c.log.Held())
	}
	if n := strings.Count(log.String(), "an open transaction is waited for"); n != 3 {
		t.Errorf("three are waited for, and logged %d times:\n%s", n, &log)
	}
}

// TestClosedWhileAsking: who waits for an answer when the client is closed is told, at once.
func TestClosedWhileAsking(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{RequestTimeout: 10 * time.Minute})
	open(t, c, "t", 1)
	arrived, release := make(chan struct{}, 9), make(chan struct{})
	k.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		arrived <- struct{}{}
		<-release
		return nil, nil, false
	})
	told := make(chan error, 1)
	go func() {
		_, _, err := c.ends(context.WithoutCancel(t.Context()), &place{Topic: "t"})
		told <- err
	}()
	<-arrived
	go c.Close()
	select {
	case err := <-told:
		if !errors.Is(err, stream.ErrClosed) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for the answer")
	}
	close(release)
}

// TestNoAnswerAtAll: who asks for a leader of brokers that say nothing is told that there is no answer.
func TestNoAnswerAtAll(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{RequestTimeout: 50 * time.Millisecond})
	release := make(chan struct{})
	k.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		<-release
		return nil, nil, false
	})
	if _, _, err := c.ends(t.Context(), &place{Topic: "t"}); err == nil {
		t.Error("asked nobody, and answered")
	}
	close(release)
}

// TestNothingReadable: at an offset where a broker gives nothing the record is not readable yet, and a record that is
// damaged is not believed.
func TestNothingReadable(t *testing.T) {
	k := fake(t)
	var left, flips atomic.Int64
	c := client(t, k, Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		cn, err := dialNet(ctx, network, addr)
		return &flip{cn, &flips}, err
	}})
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	a := open(t, c, "t", 1)
	if _, err := a.Append(t.Context(), &stream.Record{Value: make([]byte, 20_000)}); err != nil {
		t.Fatal(err)
	}
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := func() (found bool, err error) {
		err = c.batchAt(ctx, &a.sender.p, 1, func(s *stored) error {
			found = s.base == 1
			return nil
		})
		return found, err
	}
	if found, err := at(); !found || err != nil {
		t.Fatal(found, err)
	}
	flips.Store(1)
	if found, err := at(); found || !errors.Is(err, ErrCorrupt) {
		t.Errorf("damaged: %v, %v", found, err)
	}
	k.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		switch n := left.Add(-1); {
		case n < 0:
			return nil, nil, false
		case n == math.MaxInt64-5:
			cancel() // it would be asked for long
		}
		answer := r.ResponseKind().(*kmsg.FetchResponse)
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.Partitions = "t", append(topic.Partitions, kmsg.NewFetchResponseTopicPartition())
		answer.Topics = append(answer.Topics, topic)
		return answer, nil, true
	})
	left.Store(math.MaxInt64)
	if found, err := at(); found || !errors.Is(err, errNotYet) {
		t.Errorf("nothing there: %v, %v", found, err)
	}
	ctx = t.Context()
	left.Store(2)
	if found, err := at(); !found || err != nil {
		t.Errorf("nothing there yet: %v, %v", found, err)
	}
}

// TestFenceIsSeen holds which answers to a probe prove that a broker has a fence.
func TestFenceIsSeen(t *testing.T) {
	for code, proves := range map[int16]bool{47: true, 90: true, 45: false, 59: false, 3: false, 6: false, 7: false} {
		k := fake(t)
		ctx, cancel := context.WithCancel(t.Context())
		last := uint16(0)
		var refused atomic.Int64
		k.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
			k.KeepControl()
			b := r.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records
			if epoch := binary.BigEndian.Uint16(b[atEpoch:]); epoch >= last {
				last = epoch
				return nil, nil, false
			}
			if refused.Add(1) == 3 {
				cancel() // it would be tried for long
			}
			answer := r.ResponseKind().(*kmsg.ProduceResponse)
			part, topic := kmsg.NewProduceResponseTopicPartition(), kmsg.NewProduceResponseTopic()
			part.ErrorCode = code
			topic.Topic, topic.Partitions = "t", append(topic.Partitions, part)
			answer.Topics = append(answer.Topics, topic)
			return answer, nil, true
		})
		c := client(t, k, Options{})
		if err := c.Log().Create(ctx, "t", 1, stream.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
		_, _, err := c.Log().Open(ctx, "t", 0, stream.OpenOptions{})
		cancel()
		if c.log.fences.Load() != proves || proves && err != nil {
			t.Errorf("code %d: proves a fence %v, %v", code, c.log.fences.Load(), err)
		}
		if again := code == 6 || code == 7; refused.Load() > 1 != again || (err != nil) != again {
			t.Errorf("code %d: asked %d times, %v", code, refused.Load(), err)
		}
		c.Close()
		k.Close()
	}
}

// TestReaderGivesBack: a reader with more ahead than it has room for ends when it is closed or starts over, and the log
// forgets it.
func TestReaderGivesBack(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	a := open(t, c, "t", 1)
	for range 2 * chunks {
		if _, err := a.Append(t.Context(), &stream.Record{Value: make([]byte, softBatch)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(a.Flush(t.Context()), a.Close()); err != nil {
		t.Fatal(err)
	}
	x, err := c.Log().Read(t.Context(), "t", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := x.(*reader)
	r.restart() // there is nothing to give up
	for _, end := range []func(){r.restart, func() { _ = r.Close() }} {
		f, err := r.fetcher()
		if err != nil {
			t.Fatal(err)
		}
		for len(f.full) < chunks {
			runtime.Gosched()
		}
		go end()
		select {
		case <-f.done:
		case <-time.After(20 * time.Second):
			t.Fatal("it fetches on")
		}
	}
	if err := r.Close(); err != nil { // it waits
		t.Error(err)
	}
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	if len(c.log.open) > 0 {
		t.Errorf("the log has %d open", len(c.log.open))
	}
}

// TestReadBehindOpenTransaction: who has read uncommitted records starts again behind them.
func TestReadBehindOpenTransaction(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	open(t, c, "t", 1)
	defer begin(t, k.ListenAddrs(), "t", "x", 2)(false)
	for from, want := range map[int64]error{0: nil, 1: nil, 2: nil, 3: nil, 4: stream.ErrAhead, stream.Earliest: nil} {
		r, err := c.Log().Read(t.Context(), "t", 0, from)
		if !errors.Is(err, want) {
			t.Errorf("from %d: %v", from, err)
		}
		if err == nil {
			if at := max(from, 0); r.Position() != at {
				t.Errorf("from %d: at %d", from, r.Position())
			}
			r.Close()
		}
	}
}

// TestGroupDefaults holds the times of a group that are not given.
func TestGroupDefaults(t *testing.T) {
	var o GroupOptions
	o.complete()
	given := GroupOptions{1, 2, 3, 4, 5}
	given.complete()
	short := GroupOptions{Session: 6 * time.Millisecond}
	short.complete()
	if want := (GroupOptions{0, DefaultHeartbeat, DefaultSession, DefaultRebalance, DefaultBackoff}); o != want ||
		given != (GroupOptions{1, 2, 3, 4, 5}) || short.Heartbeat != time.Millisecond {
		t.Errorf("%+v; %+v; %+v", o, given, short)
	}
}

// TestPlaceOfErrors holds where errors say that they come from.
func TestPlaceOfErrors(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	l, ctx := c.Log(), t.Context()
	_, _, opened := l.Open(ctx, "t.snapshots", 2, stream.OpenOptions{})
	_, wrote := l.Writer(ctx, "t.snapshots", 2, nil)
	_, _, bounds := l.Bounds(ctx, "t.snapshots", 2)
	_, read := l.Read(ctx, "t.snapshots", 2, 7)
	_, counted := l.Partitions(ctx, "t.snapshots")
	for want, err := range map[stream.Error]error{{Op: "open", Partition: 2, Offset: -1}: opened,
		{Op: "writer", Partition: 2, Offset: -1}: wrote, {Op: "bounds", Partition: 2, Offset: -1}: bounds,
		{Op: "read", Partition: 2, Offset: 7}: read, {Op: "partitions", Offset: -1}: counted,
		{Op: "trim", Partition: 2, Offset: 9}: l.Trim(ctx, "t.snapshots", 2, 9)} {
		var at *stream.Error
		if !errors.As(err, &at) || !errors.Is(err, stream.ErrNotFound) || at.Op != want.Op ||
			at.Partition != want.Partition || at.Offset != want.Offset {
			t.Errorf("%+v: %+v", want, err)
		}
	}
}

// TestTrimWaits holds how long a broker may take to drop records.
func TestTrimWaits(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{RequestTimeout: 7 * time.Second})
	var waits, before atomic.Int64
	k.ControlKey(int16(kmsg.DeleteRecords), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		q := r.(*kmsg.DeleteRecordsRequest)
		waits.Store(int64(q.TimeoutMillis))
		before.Store(q.Topics[0].Partitions[0].Offset)
		return nil, nil, false
	})
	if err := c.Log().Create(t.Context(), "t.snapshots", 1, stream.TopicOptions{Trimmable: true}); err != nil {
		t.Fatal(err)
	}
	a, _, err := c.Log().Open(t.Context(), "t.snapshots", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, a, "a", 3)
	for to, want := range map[int64]int64{2: 2, 99: 4} {
		if err := c.Log().Trim(t.Context(), "t.snapshots", 0, to); err != nil || to == 99 && before.Load() != want ||
			waits.Load() != 7000 {
			t.Errorf("to %d: to %d within %d ms, %v", to, before.Load(), waits.Load(), err)
		}
	}
}

// TestChooseCopies holds how many copies must have a record: one less than there are, one at least, or as many as
// are asked for.
func TestChooseCopies(t *testing.T) {
	for _, x := range []struct {
		copies, minISR, want int
		fails                bool
	}{{1, 0, 1, false}, {2, 0, 1, false}, {3, 0, 2, false}, {3, 1, 1, false}, {3, 3, 3, false}, {3, 4, 0, true}} {
		c := &Client{o: Options{Replication: x.copies, MinISR: x.minISR}}
		if got, err := c.chooseCopies(t.Context(), nil); got != x.want || (err != nil) != x.fails {
			t.Errorf("%d of %d: %d, want %d, %v", x.minISR, x.copies, got, x.want, err)
		}
	}
}

// TestNewTopicIsNotKnownYet: a broker need not know at once of a topic that was made.
func TestNewTopicIsNotKnownYet(t *testing.T) {
	k := fake(t)
	defer k.Close()
	c := client(t, k, Options{})
	defer c.Close()
	var asked atomic.Int64
	k.ControlKey(int16(kmsg.CreateTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
		asked.Store(1)
		return nil, nil, false
	})
	k.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		if n := asked.Load(); n == 0 || n == 4 {
			return nil, nil, false
		}
		asked.Add(1)
		answer, topic := r.ResponseKind().(*kmsg.MetadataResponse), kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.ErrorCode = kmsg.StringPtr("t"), 3
		answer.Topics = append(answer.Topics, topic)
		return answer, nil, true
	})
	if err := c.Log().Create(t.Context(), "t", 1, stream.TopicOptions{}); err != nil || asked.Load() != 4 {
		t.Errorf("asked %d times: %v", asked.Load()-1, err)
	}
	asked.Store(1)
	c.cluster.created["t"] = time.Now().Add(-newTopicPeriod)
	if _, err := c.log.Partitions(t.Context(), "t"); !errors.Is(err, stream.ErrNotFound) || asked.Load() != 2 {
		t.Errorf("after long, asked %d times: %v", asked.Load()-1, err)
	}
}

// TestNewTopicHasLeaders: a topic is made when each of its partitions has a leader.
func TestNewTopicHasLeaders(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	host, port, err := net.SplitHostPort(k.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	k.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		answer := r.ResponseKind().(*kmsg.MetadataResponse)
		broker, topic := kmsg.NewMetadataResponseBroker(), kmsg.NewMetadataResponseTopic()
		broker.Host, broker.Port = host, int32(n)
		topic.Topic = kmsg.StringPtr("t")
		for p := range int32(2) {
			part := kmsg.NewMetadataResponseTopicPartition()
			if part.Partition = p; p == 0 && asked.Add(1) < 3 {
				part.Leader, part.ErrorCode = -1, 5
			}
			topic.Partitions = append(topic.Partitions, part)
		}
		answer.Brokers, answer.Topics = append(answer.Brokers, broker), append(answer.Topics, topic)
		return answer, nil, true
	})
	if err := c.awaitTopic(t.Context(), "t", 2); err != nil || asked.Load() != 3 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

// TestFrame holds which sizes an answer may have, and that what has arrived behind one is kept for the next.
func TestFrame(t *testing.T) {
	for _, x := range []struct {
		bytes string
		sizes []int // of answers, with their size
		says  string
	}{
		{"\x00\x00\x00\x04abcd\x00\x00\x00\x05abcde\x00\x00\x00\x04abcd", []int{8, 9, 8}, "EOF"},
		{"\x00\x00\x00\x03abc", nil, "a response of 3 bytes"},
		{"\x10\x00\x00\x00", nil, "EOF"}, {"\x10\x00\x00\x01", nil, "a response of 268435457 bytes"},
		{"\x15\x03\x01\x00", nil, "expects TLS"}, {"\x00\x00", nil, "EOF"},
		{"\x00\x00\x20\x00" + strings.Repeat("a", 0x2000) + "\x00\x00\x00\x04abcd", []int{0x2004, 8}, "EOF"},
		{"\x00\x00\x00\x04abcd\x00\x00\x20\x00" + strings.Repeat("a", 0x2000) + "\x00\x00\x00\x04abcd",
			[]int{8, 0x2004, 8}, "EOF"},
	} {
		server, client := net.Pipe()
		go func() {
			_, _ = server.Write([]byte(x.bytes))
			server.Close()
		}()
		cn := &conn{Conn: client}
		for _, size := range x.sizes {
			b, err := cn.frame()
			if err != nil || len(b) != size || b[4] != 'a' || b[size-1] != "d"[0] && b[size-1] != "e"[0] && size < 10 {
				t.Fatalf("%.20q: %d bytes, want %d, %v", x.bytes, len(b), size, err)
			}
		}
		if b, err := cn.frame(); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%.20q: %q, %v, want %s", x.bytes, b, err, x.says)
		}
	}
}

// TestStartOfClosedLog: an appender that was made when its log is closed keeps no connection.
func TestStartOfClosedLog(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	open(t, c, "t", 1)
	a := opening(t, c, place{Topic: "t"})
	if err := c.log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.start(); !errors.Is(err, stream.ErrClosed) || !a.sender.closed || a.ctx.Err() == nil {
		t.Errorf("%v, its line closed %v", err, a.sender.closed)
	}
}

// TestErrorStays: an error that was met behind good records is not looked past.
func TestErrorStays(t *testing.T) {
	r := &reader{err: ErrCorrupt, pos: 3, high: 9}
	if at := r.Position(); at != 3 || r.err != ErrCorrupt {
		t.Errorf("at %d, %v", at, r.err)
	}
	r = &reader{pos: 3, high: 9, chunk: &chunk{}, rest: make([]byte, batchHead)} // a batch of version 0
	if at := r.Position(); at != 3 || !errors.Is(r.err, ErrCorrupt) || r.chunk != nil {
		t.Errorf("behind a batch that is damaged: at %d, %v, goes on in %v", at, r.err, r.chunk)
	}
}

// TestRefusalSaysWhy: of a refusal that one is told that is of a record, else that of the batch.
func TestRefusalSaysWhy(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	a := open(t, c, "t", 1)
	for _, records := range []int{0, 1, 2} {
		k.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
			answer := r.ResponseKind().(*kmsg.ProduceResponse)
			part, topic := kmsg.NewProduceResponseTopicPartition(), kmsg.NewProduceResponseTopic()
			part.ErrorCode, part.ErrorMessage, part.BaseOffset = 87, kmsg.StringPtr("batch"), 77
			for i := range records {
				part.ErrorRecords = append(part.ErrorRecords, kmsg.ProduceResponseTopicPartitionErrorRecord{
					RelativeOffset: int32(i), ErrorMessage: kmsg.StringPtr(fmt.Sprint("record ", i))})
			}
			topic.Topic, topic.Partitions = "t", append(topic.Partitions, part)
			answer.Topics = append(answer.Topics, topic)
			return answer, nil, true
		})
		want := map[bool]string{true: "record 0", false: "batch"}[records > 0]
		err := c.atLeader(t.Context(), &a.sender.p, func(cn *conn) (int16, error) {
			r, err := cn.produce(&a.sender.p, 1000, encode([]stream.Record{{}}, 1, 0, 0, 0))
			if r.code != 87 || r.base != 77 || r.message != want {
				t.Errorf("%d records: %+v, want %s", records, r, want)
			}
			return 0, err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestSettings holds what a topic that is made is asked to be.
func TestSettings(t *testing.T) {
	const day = int64(24 * time.Hour)
	for _, x := range []struct {
		o      stream.TopicOptions
		minISR int
		want   string
	}{
		{stream.TopicOptions{}, 0, "cleanup.policy=delete message.timestamp.type=LogAppendTime retention.ms=-1 " +
			"retention.bytes=-1 max.message.bytes=1064960"},
		{stream.TopicOptions{MaxAge: day, MaxBytes: 1 << 30}, 2, "segment.ms=10800000 segment.bytes=134217728 " +
			"cleanup.policy=delete message.timestamp.type=LogAppendTime retention.ms=86400000 " +
			"retention.bytes=1073741824 " +
			"max.message.bytes=1064960 min.insync.replicas=2"},
		{stream.TopicOptions{MaxAge: 1, MaxBytes: 1}, 1, "segment.ms=1000 segment.bytes=1048576 " +
			"cleanup.policy=delete message.timestamp.type=LogAppendTime retention.ms=1 retention.bytes=1 " +
			"max.message.bytes=1064960 min.insync.replicas=1"},
		{stream.TopicOptions{MaxBytes: 1 << 40}, 0, "segment.bytes=1073741824 " +
			"cleanup.policy=delete message.timestamp.type=LogAppendTime retention.ms=-1 " +
			"retention.bytes=1099511627776 " +
			"max.message.bytes=1064960"},
	} {
		var got []string
		for _, c := range settings(x.o, x.minISR) {
			got = append(got, c.Name+"="+c.Value)
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("%+v: %s", x.o, strings.Join(got, " "))
		}
	}
}
