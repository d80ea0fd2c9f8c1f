package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream"
)

// TestOwners holds which owner comes after which, and that none of another partition counts.
func TestOwners(t *testing.T) {
	first := ownerID("t", 0)
	for _, c := range []struct {
		last owner
		skip int
		want owner
	}{
		{owner{}, 0, owner{first, 1}},
		{owner{}, 4, owner{first, 5}},
		{owner{first - 1, 7}, 0, owner{first, 1}},
		{owner{first + ownerIDs, 7}, 0, owner{first, 1}},
		{owner{first, 0}, 0, owner{first, 1}},
		{owner{first, 7}, 0, owner{first, 8}},
		{owner{first, 7}, 4, owner{first, 12}},
		{owner{first, lastEpoch - 2}, 0, owner{first, lastEpoch - 1}},
		{owner{first, lastEpoch - 1}, 0, owner{first, lastEpoch}},
		{owner{first, lastEpoch - 1}, 9, owner{first, lastEpoch}},
		{owner{first, lastEpoch}, 0, owner{first + 1, 0}},
		{owner{first, lastEpoch}, 3, owner{first + 1, 3}},
	} {
		got := c.last.next(first, c.skip)
		if got != c.want {
			t.Errorf("after %+v, skipping %d: %+v, want %+v", c.last, c.skip, got, c.want)
		}
		if c.last.isOurs(first) && (!c.last.before(got) || got.before(c.last)) {
			t.Errorf("%+v is not before %+v", c.last, got)
		}
	}
	for o, ours := range map[owner]bool{{first - 1, 0}: false, {first, 0}: true, {first + ownerIDs - 1, 0}: true,
		{first + ownerIDs, 0}: false} {
		if o.isOurs(first) != ours {
			t.Errorf("%+v is ours: %v", o, !ours)
		}
	}
	if o := (owner{first, 3}); o.before(o) || o.before(owner{first - 1, 9}) || !o.before(owner{first + 1, 0}) {
		t.Error("owners have another order")
	}
	if first != 0x48561ffc19430000 { // as it always was: an earlier owner has it
		t.Errorf("the owners of a partition begin with %#x", first)
	}
	if id := ownerID("t", 1); id == first || id>>56 != 0x48 || id&(ownerIDs-1) != 0 {
		t.Errorf("the owners of another begin with %#x", id)
	}
}

// TestSealedBatch holds the bytes of a batch.
func TestSealedBatch(t *testing.T) {
	b := batch{b: bytes.Repeat([]byte{0xff}, 2*batchHead)} // of another batch
	b.reset()
	b.add(&stream.Record{Type: "t", Key: []byte("k"), Value: []byte{},
		Headers: []stream.Header{{Key: "h", Value: "v"}}},
		[]stream.Header{{Key: "m"}})
	b.add(&stream.Record{Value: bytes.Repeat([]byte("x"), 70)}, nil)
	b.seal(0x0102030405060708, 0x090a, 0x0b0c0d0e, 0x0f1011)
	const want = "0000000000000000" + "000000a0" + "ffffffff" + "02" + "CRC" + "0000" + "00000001" +
		"00000000000f1011" + "00000000000f1011" + "0102030405060708" + "090a" + "0b0c0d0e" + "00000002"
	got := hex.EncodeToString(b.b[:batchHead])
	got = got[:2*atCRC] + "CRC" + got[2*atAttributes:]
	rest := hex.EncodeToString(b.b[batchHead:])
	if got != want {
		t.Errorf("head\n %s, want\n %s", got, want)
	}
	const records = "3e" + "0000" + "00" + "026b" + "00" + "06" + "1c" + "68696e6473696768742d74797065" + "0274" +
		"0268" + "0276" + "026d" + "00" + "9a01" + "0000" + "02" + "01" + "8c01"
	if len(rest) < len(records) || rest[:len(records)] != records {
		t.Errorf("records\n %s, want\n %s", rest, records)
	}
	if s, _, ok, err := cutBatch(b.b); !ok || err != nil || s.check() != nil || s.next != 2 || s.count != 2 {
		t.Errorf("%+v, %v, %v", s, ok, err)
	}
	var z batch
	if z.reset(); len(z.b) != batchHead {
		t.Errorf("an empty batch of %d bytes", len(z.b))
	}
	z.b = make([]byte, batchHead-1)
	if z.reset(); len(z.b) != batchHead {
		t.Errorf("an empty batch of %d bytes", len(z.b))
	}
}

// TestCutBatch holds each bound of the head of a batch.
func TestCutBatch(t *testing.T) {
	be := binary.BigEndian
	for _, c := range []struct {
		name        string
		base        int64
		last, count int32
		ok          bool
	}{
		{"one", 0, 0, 1, true}, {"none", 7, 0, 0, true}, {"fewer", 7, 4, 3, true}, {"as many", 7, 4, 5, true},
		{"too many", 7, 4, 6, false}, {"negative count", 7, 4, -1, false}, {"negative base", -1, 0, 1, false},
		{"negative last", 7, -1, 0, false}, {"the last offset", math.MaxInt64 - 5, 4, 5, true},
		{"beyond", math.MaxInt64 - 4, 4, 5, false},
	} {
		b := make([]byte, batchHead)
		b[atMagic] = 2
		be.PutUint64(b, uint64(c.base))
		be.PutUint32(b[atLength:], batchHead-lengthBase)
		be.PutUint32(b[atLastDelta:], uint32(c.last))
		be.PutUint32(b[atCount:], uint32(c.count))
		s, rest, ok, err := cutBatch(append(b, 1, 2, 3))
		if ok != c.ok || (err == nil) != c.ok || ok && (len(rest) != 3 || s.next != c.base+int64(c.last)+1) {
			t.Errorf("%s: %+v, %d bytes left, %v, %v", c.name, s, len(rest), ok, err)
		}
	}
	for length, want := range map[uint32]string{batchHead - lengthBase - 1: "corrupt", batchHead - lengthBase: "whole",
		batchHead - lengthBase + 1: "cut", maxFrame: "cut", maxFrame + 1: "corrupt"} {
		b := make([]byte, batchHead)
		b[atMagic] = 2
		be.PutUint32(b[atLength:], length)
		_, _, ok, err := cutBatch(b)
		got := map[bool]string{true: "whole", false: "cut"}[ok]
		if errors.Is(err, ErrCorrupt) {
			got = "corrupt"
		}
		if got != want {
			t.Errorf("length %d: %s, want %s", length, got, want)
		}
	}
	if _, _, ok, err := cutBatch(make([]byte, atMagic)); ok || err != nil {
		t.Errorf("%d bytes: %v, %v", atMagic, ok, err)
	}
	if _, _, _, err := cutBatch(make([]byte, atMagic+1)); err == nil {
		t.Error("a batch of version 0 is read")
	}
}

// TestOrderInBatch holds that offsets in a batch go up and end before its end.
func TestOrderInBatch(t *testing.T) {
	record := func(delta byte) []byte { return []byte{14, 0, 0, delta << 1, 1, 1, 0, 0}[:8] }
	for _, c := range []struct {
		deltas []byte
		ok     bool
	}{{[]byte{0, 1}, true}, {[]byte{0, 4}, true}, {[]byte{0, 5}, false}, {[]byte{1, 1}, false}, {[]byte{2, 1}, false},
		{[]byte{3, 4}, true}} {
		var d decoder
		s := stored{base: 10, next: 15, count: 2}
		for _, delta := range c.deltas {
			r := record(delta)
			r[0] = byte(2 * (len(r) - 2))
			s.payload = append(s.payload, r[:len(r)-1]...)
		}
		d.start(s)
		var err error
		for i, delta := range c.deltas {
			var r stream.Record
			if err = d.record(&r); err != nil {
				break
			}
			if r.Offset != 10+int64(delta) || d.left != int32(1-i) {
				t.Errorf("%v: offset %d, %d left", c.deltas, r.Offset, d.left)
			}
		}
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v: %v", c.deltas, err)
		}
	}
}

// TestAnswers holds what each answer to a batch says: that it is decided, that it may be stored, and what it is
// in the contract.
func TestAnswers(t *testing.T) {
	type says struct{ decided, ambiguous bool }
	known := map[kafkago.Error]says{
		kafkago.RequestTimedOut: {false, true}, kafkago.NotEnoughReplicasAfterAppend: {false, true},
		kafkago.Unknown: {false, true}, kafkago.NetworkException: {false, true},
		kafkago.UnknownTopicOrPartition: {false, false}, kafkago.LeaderNotAvailable: {false, false},
		kafkago.NotLeaderForPartition: {false, false}, kafkago.BrokerNotAvailable: {false, false},
		kafkago.ReplicaNotAvailable: {false, false}, kafkago.NotEnoughReplicas: {false, false},
		kafkago.NotController: {false, false}, kafkago.KafkaStorageError: {false, false},
		kafkago.FencedLeaderEpoch: {false, false}, kafkago.UnknownLeaderEpoch: {false, false},
		kafkago.OffsetNotAvailable: {false, false}, kafkago.GroupLoadInProgress: {false, false},
		kafkago.GroupCoordinatorNotAvailable: {false, false}, kafkago.NotCoordinatorForGroup: {false, false},
		kafkago.ThrottlingQuotaExceeded: {false, false}, kafkago.InvalidMessage: {false, false},
	}
	classes := map[kafkago.Error]error{kafkago.UnknownTopicOrPartition: stream.ErrNotFound,
		kafkago.UnknownTopicID: stream.ErrNotFound, kafkago.InvalidTopic: stream.ErrNotFound,
		kafkago.MessageSizeTooLarge: stream.ErrTooLarge, kafkago.RecordListTooLarge: stream.ErrTooLarge,
		kafkago.InvalidProducerEpoch: stream.ErrFenced, kafkago.ProducerFenced: stream.ErrFenced,
		kafkago.OutOfOrderSequenceNumber: stream.ErrUnknown, kafkago.UnknownProducerId: stream.ErrUnknown,
		kafkago.DuplicateSequenceNumber: stream.ErrUnknown, kafkago.TopicAuthorizationFailed: ErrAuthorization,
		kafkago.ClusterAuthorizationFailed: ErrAuthorization, kafkago.GroupAuthorizationFailed: ErrAuthorization,
		kafkago.TransactionalIDAuthorizationFailed: ErrAuthorization}
	for code := int16(-1); code < 134; code++ {
		if code == 0 {
			continue
		}
		want, ok := known[kafkago.Error(code)]
		if !ok {
			want.decided = true
		}
		if got := (says{isDecided(code), isAmbiguous(code)}); got != want {
			t.Errorf("code %d: %+v, want %+v", code, got, want)
		}
		class := stream.ErrUnavailable
		if c := classes[kafkago.Error(code)]; c != nil {
			class = c
		}
		err := refused(produced{code: code, message: "why"})
		if !strings.Contains(err.Error(), "why") {
			t.Errorf("code %d: %v does not say why", code, err)
		}
		for _, other := range []error{stream.ErrNotFound, stream.ErrTooLarge, stream.ErrFenced, stream.ErrUnknown,
			ErrAuthorization} {
			if errors.Is(err, other) != (class == other) {
				t.Errorf("code %d: %v", code, err)
			}
		}
	}
	if classify(0) != nil {
		t.Error("no error is one")
	}
	s, away := &sender{}, errors.New("away")
	if err := s.undecided(away, true); !errors.Is(err, stream.ErrUnknown) || !errors.Is(err, away) {
		t.Errorf("what may be stored: %v", err)
	}
	if err := s.undecided(away, false); err != away {
		t.Errorf("what is not stored: %v", err)
	}
}

// TestKill holds what an appender that dies tells: of what is not told yet the one error, and of later ones the other.
func TestKill(t *testing.T) {
	rest, dead, late := stream.ErrUnknown, stream.ErrFenced, stream.ErrFull
	for _, told := range []uint64{1, 2, 3} {
		var errs []string
		a := &appender{room: make(chan struct{}, 1), sent: 3, told: told, fill: &batch{count: 1}}
		a.ack = func(seq uint64, offset int64, err error) {
			errs = append(errs, fmt.Sprint(seq, " ", offset, " ", errors.Is(err, rest)))
		}
		a.kill(rest, dead)
		a.kill(late, late)
		if want := map[uint64]string{1: "[2 0 true 3 0 true]", 2: "[3 0 true]",
			3: "[]"}[told]; fmt.Sprint(errs) != want {
			t.Errorf("%d of 3 told: then %v, want %s", told, errs, want)
		}
		if len(a.room) != 1 {
			t.Errorf("%d of 3 told: who waits is not woken", told)
		}
		want := map[uint64]error{1: rest, 2: rest, 3: dead}[told]
		if err := a.Flush(t.Context()); !errors.Is(err, want) || a.told != 3 {
			t.Errorf("%d of 3 told: flush says %v, want %v; %d told", told, err, want, a.told)
		}
		if _, err := a.Append(t.Context(), &stream.Record{}); !errors.Is(err, dead) {
			t.Errorf("%d of 3 told: append says %v", told, err)
		}
		if a.take() != nil {
			t.Error("a dead appender sends")
		}
	}
}

// TestStoredAreTold holds where the records of a batch are told to be.
func TestStoredAreTold(t *testing.T) {
	var told []string
	a := &appender{room: make(chan struct{}, 1), sent: 9, told: 4}
	a.ack = func(seq uint64, offset int64, err error) { told = append(told, fmt.Sprint(seq, " ", offset, " ", err)) }
	if a.stored(70, &batch{count: 2}); len(a.room) != 1 {
		t.Error("who waits is not woken")
	}
	a.stored(72, &batch{count: 1})
	if got := fmt.Sprint(told); got != "[5 70 <nil> 6 71 <nil> 7 72 <nil>]" || a.told != 7 || a.spare == nil {
		t.Errorf("told %s", got)
	}
	a.mute = true
	if a.stored(73, &batch{count: 2}); len(told) != 3 || a.told != 9 {
		t.Errorf("one that is closed tells %v", told)
	}
}

// TestTakenMakesRoom holds that who waits for room is woken when what fills it is about to be sent.
func TestTakenMakesRoom(t *testing.T) {
	full, spare := &batch{count: 1}, &batch{count: 7}
	a := &appender{room: make(chan struct{}, 1), fill: full, spare: spare}
	if b := a.take(); b != full || a.fill != spare || spare.count != 0 || a.spare != nil || len(a.room) != 1 {
		t.Errorf("%p of %p is sent, %d records wait, woken: %v", b, full, spare.count, len(a.room) == 1)
	}
}

// TestLogClosedWhileAppending holds that what is on its way when its log is closed is told to be unknown, and that the
// appender is closed then.
func TestLogClosedWhileAppending(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	var told []error
	a, _ := openAcked(t, c, "t", 1, func(_ uint64, _ int64, err error) { told = append(told, err) })
	h := hold(k)
	defer close(h.release)
	if _, err := a.Append(t.Context(), &stream.Record{}); err != nil {
		t.Fatal(err)
	}
	<-h.arrived
	if err := c.log.Close(); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || !errors.Is(told[0], stream.ErrUnknown) || !errors.Is(told[0], stream.ErrClosed) {
		t.Fatalf("told %v", told)
	}
	if err := a.Flush(t.Context()); !errors.Is(err, stream.ErrUnknown) {
		t.Errorf("flush says %v", err)
	}
	if _, err := a.Append(t.Context(), &stream.Record{}); !errors.Is(err, stream.ErrClosed) || errors.Is(err,
		stream.ErrUnknown) {
		t.Errorf("append says %v", err)
	}
}

// deadlined is a connection that notes when an answer has to be there.
type deadlined struct {
	net.Conn
	at time.Time
}

func (d *deadlined) SetDeadline(at time.Time) error {
	d.at = at
	return nil
}

// TestDeadlineOfBatch holds how long the answer to a batch is waited for: longer than the broker waits for its
// replicas.
func TestDeadlineOfBatch(t *testing.T) {
	nc, other := net.Pipe()
	other.Close()
	d := &deadlined{Conn: nc}
	s := &sender{line: line{c: &Client{o: Options{RequestTimeout: 4 * time.Hour}}, cn: &conn{Conn: d}}}
	begin := time.Now().Add(5 * time.Hour)
	_, sent, err := s.try(t.Context(), make([]byte, batchHead), false)
	if end := time.Now().Add(5 * time.Hour); d.at.Before(begin) || d.at.After(end) || !sent || err == nil ||
		s.cn != nil {
		t.Errorf("waits until %v, not %v; sent %v, %v", d.at, end, sent, err)
	}
}

// TestFindGivesUp holds that who looks for a batch is told what the broker refuses, and that it said that there is more
// and gave nothing.
func TestFindGivesUp(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	a := open(t, c, "t", 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var code, asked atomic.Int64
	k.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		if asked.Add(1) == 5 {
			cancel()
		}
		answer := r.ResponseKind().(*kmsg.FetchResponse)
		part, topic := kmsg.NewFetchResponseTopicPartition(), kmsg.NewFetchResponseTopic()
		part.ErrorCode = int16(code.Load())
		topic.Topic, topic.Partitions = "t", append(topic.Partitions, part)
		answer.Topics = append(answer.Topics, topic)
		return answer, nil, true
	})
	s := &sender{line: line{c: c, p: a.sender.p}, search: 0}
	for _, want := range []error{ErrAuthorization, errShort} {
		code.Store(0)
		if want == ErrAuthorization {
			code.Store(int64(kafkago.TopicAuthorizationFailed))
		}
		_, err := s.decided(ctx, produced{code: int16(kafkago.InvalidProducerEpoch)}, make([]byte, batchHead), true)
		if !errors.Is(err, stream.ErrUnknown) || !errors.Is(err, want) || want == ErrAuthorization && ctx.Err() != nil {
			t.Errorf("%v: want %v", err, want)
		}
	}
}

// ending is a context that does something when the last of so many that were derived from it is given up.
type ending struct {
	context.Context
	left atomic.Int64
	do   func()
	done chan struct{}

	mu  sync.Mutex
	err error
	all []func()
}

func endingAfter(ctx context.Context, n int64) *ending {
	e := &ending{Context: ctx, done: make(chan struct{})}
	e.left.Store(n)
	e.do = e.end
	return e
}

func (e *ending) Value(any) any         { return nil } // so that AfterFunc is asked
func (e *ending) Done() <-chan struct{} { return e.done }

func (e *ending) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// AfterFunc is what package context asks for.
func (e *ending) AfterFunc(f func()) func() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, f)
	return func() bool {
		if e.left.Add(-1) == 0 {
			e.do()
		}
		return true
	}
}

// end cancels all that was derived from the context.
func (e *ending) end() {
	e.mu.Lock()
	e.err = context.Canceled
	all := e.all
	e.mu.Unlock()
	close(e.done)
	for _, f := range all {
		f()
	}
}

// TestOpenEnds holds that an Open fails whose context ends, or whose log is closed, before it returns, also right after
// its record was stored, and that one that fails keeps no connection.
func TestOpenEnds(t *testing.T) {
	k := fake(t)
	var kept atomic.Int64
	dial := func() *Client {
		c := client(t, k, Options{Dial: counting(&kept)})
		open(t, c, "t", 1)
		return c
	}
	c := dial()
	whole := endingAfter(t.Context(), 0)
	if _, _, err := c.Log().Open(whole, "t", 0, stream.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	last := -whole.left.Load() - 1 // the one after it is Open's own
	for n := int64(1); n <= last; n++ {
		for _, closed := range []bool{false, true} {
			c, ctx, want := dial(), endingAfter(t.Context(), n), context.Canceled // a client that has no connection
			if closed {
				ctx.do, want = func() { c.Close() }, stream.ErrClosed
			}
			a, _, err := c.Log().Open(ctx, "t", 0, stream.OpenOptions{})
			if a != nil || !errors.Is(err, want) || n == last && !closed && !errors.Is(err, stream.ErrUnknown) {
				t.Errorf("ended at %d of %d, closed %v: %v", n, last, closed, err)
			}
			c.Close()
		}
	}
	every(k, 1, kfake.Fault{Err: kerr.TopicAuthorizationFailed})
	if _, _, err := c.Log().Open(t.Context(), "t", 0, stream.OpenOptions{}); !errors.Is(err, ErrAuthorization) {
		t.Error(err)
	}
	if c.Close(); last < 3 || kept.Load() != 0 {
		t.Errorf("%d steps; %d connections are left", last, kept.Load())
	}
}

// TestNoSuchOffset holds what is said of an offset that the log no longer has.
func TestNoSuchOffset(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	a := open(t, c, "t", 1)
	fill(t, a, "a", 3)
	trimAll(t, c)
	for offset := range int64(4) {
		if _, err := c.nonceAt(t.Context(), &a.sender.p, offset); !errors.Is(err, errTrimmed) {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
}

// TestUnseenOwner holds that one who opens gets past an owner with a much later epoch whom the broker does not tell
// of, in few tries.
func TestUnseenOwner(t *testing.T) {
	k := fake(t)
	var hidden, asked atomic.Int64
	k.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		q := r.(*kmsg.ProduceRequest)
		if int64(binary.BigEndian.Uint16(q.Topics[0].Partitions[0].Records[atEpoch:])) >= hidden.Load() {
			return nil, nil, false
		}
		asked.Add(1)
		part := kmsg.NewProduceResponseTopicPartition()
		part.ErrorCode = int16(kafkago.InvalidProducerEpoch)
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.Partitions = "t", append(topic.Partitions, part)
		answer := r.ResponseKind().(*kmsg.ProduceResponse)
		answer.Topics = append(answer.Topics, topic)
		return answer, nil, true
	})
	c := client(t, k, Options{})
	open(t, c, "t", 1) // whom the broker tells of
	for _, x := range []struct{ hidden, asks, epoch int64 }{{2, 0, 2}, {1000, 10, 1036}, {30_000, 25, 31_781}} {
		hidden.Store(x.hidden)
		asked.Store(0)
		a, _, err := c.Log().Open(t.Context(), "t", 0, stream.OpenOptions{})
		if err != nil || asked.Load() != x.asks || int64(a.(*appender).epoch) != x.epoch {
			t.Errorf("%+v: after %d refusals epoch %d, %v", x, asked.Load(), a.(*appender).epoch, err)
		}
	}
}

// TestFind holds which batch of a log is the one whose answer was lost: that of the producer, the epoch and the
// sequence. One that would lie where the log has lost its beginning is unknown.
func TestFind(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	a := open(t, c, "t", 1)
	fill(t, a, "a", 1)
	fill(t, a, "b", 1)
	if a.sender.mu.Lock(); a.sender.waiting {
		t.Error("it waits for an answer that has come")
	}
	a.sender.mu.Unlock()
	if a.sender.search != 3 {
		t.Errorf("the next batch would be looked for from %d on, and not from 3", a.sender.search)
	}
	s := &sender{line: line{c: c, p: a.sender.p}, search: 0}
	defer s.close()
	for _, x := range []struct {
		pid      int64
		epoch    int16
		sequence int32
		base     int64 // −1: not there
	}{{a.producer, a.epoch, 1, 1}, {a.producer, a.epoch, 2, 2}, {a.producer, a.epoch, 3, -1},
		{a.producer, a.epoch + 1, 1, -1}, {a.producer + 1, a.epoch, 1, -1}} {
		b := make([]byte, batchHead)
		binary.BigEndian.PutUint64(b[atProducer:], uint64(x.pid))
		binary.BigEndian.PutUint16(b[atEpoch:], uint16(x.epoch))
		binary.BigEndian.PutUint32(b[atSequence:], uint32(x.sequence))
		for _, maybe := range []bool{true, false} {
			r, err := s.decided(t.Context(), produced{code: int16(kafkago.DuplicateSequenceNumber)}, b, maybe)
			if x.base >= 0 != (err == nil) || err == nil && r.base != x.base || err != nil && !errors.Is(err,
				stream.ErrUnknown) {
				t.Errorf("%+v: %+v, %v", x, r, err)
			}
		}
		r, err := s.decided(t.Context(), produced{code: int16(kafkago.InvalidProducerEpoch)}, b, false)
		if !errors.Is(err, stream.ErrFenced) {
			t.Errorf("refused at the first try: %+v, %v", r, err)
		}
		if r, err = s.decided(t.Context(), produced{code: int16(kafkago.InvalidProducerEpoch)}, b, true); x.base >= 0 !=
			(err == nil) || err != nil && !errors.Is(err, stream.ErrFenced) {
			t.Errorf("%+v, refused at a later try: %+v, %v", x, r, err)
		}
	}
	b := make([]byte, batchHead) // behind more than one answer holds
	binary.BigEndian.PutUint64(b[atProducer:], uint64(a.producer))
	binary.BigEndian.PutUint16(b[atEpoch:], uint16(a.epoch))
	binary.BigEndian.PutUint32(b[atSequence:], 6)
	for range 4 {
		if _, err := a.Append(t.Context(), &stream.Record{Value: make([]byte, softBatch)}); err != nil {
			t.Fatal(err)
		}
		if err := a.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.decided(t.Context(), produced{code: int16(kafkago.InvalidProducerEpoch)}, b, true)
	if err != nil || r.base != 6 {
		t.Errorf("behind large batches: %+v, %v", r, err)
	}
	trimAll(t, c)
	_, err = s.decided(t.Context(), produced{code: int16(kafkago.InvalidProducerEpoch)}, make([]byte, batchHead), true)
	if !errors.Is(err, stream.ErrUnknown) || !strings.Contains(err.Error(), "no longer has where they would be") {
		t.Errorf("where the log has lost its beginning: %v", err)
	}
}

// TestRoomOfBatch holds how many records and bytes go into one batch, and which record goes into none.
func TestRoomOfBatch(t *testing.T) {
	full := stream.Record{Value: make([]byte, 80)} // takes 89
	for _, c := range []struct {
		name       string
		soft, hard int
		r          stream.Record
		want       int
		err        error
	}{
		{"records", 1 << 20, 1 << 20, stream.Record{}, maxRecords, context.Canceled},
		{"bytes", batchHead + 3*89, batchHead + 5*89, full, 3, context.Canceled},
		{"bytes, less than three", batchHead + 3*89 - 1, batchHead + 5*89, full, 2, context.Canceled},
		{"the first alone", 10, batchHead + 89, full, 1, context.Canceled},
		{"too large", 10, batchHead + 89 - 1, full, 0, stream.ErrTooLarge},
	} {
		a := &appender{fill: &batch{}, soft: c.soft, hard: c.hard, work: make(chan struct{}, 1)}
		a.fill.reset()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var err error
		for err == nil && a.sent <= maxRecords {
			before, sent := len(a.fill.b), a.sent
			var n uint64
			if n, err = a.Append(afterwards{ctx, cancel}, &c.r); err == nil && (n != sent+1 || len(a.work) != 1) ||
				err != nil && len(a.fill.b) != before {
				t.Errorf("%s: append %d is %d; %d bytes after %d", c.name, sent+1, n, len(a.fill.b), before)
			}
		}
		if !errors.Is(err, c.err) || a.fill.count != c.want || a.sent != uint64(c.want) {
			t.Errorf("%s: %d of %d records in a batch, want %d; %v", c.name, a.fill.count, a.sent, c.want, err)
		}
	}
}

// TestLayoutOfRecord holds which bytes are no record.
func TestLayoutOfRecord(t *testing.T) {
	for _, c := range []struct {
		payload []byte
		ok      bool
	}{
		{[]byte{12, 0, 0, 0, 1, 1, 0}, true}, {[]byte{14, 0, 0, 0, 1, 1, 0, 9}, false}, // a byte too many
		{[]byte{10, 0, 0, 0, 1, 1}, false}, {[]byte{0}, false}, {[]byte{1}, false}, {[]byte{16, 0, 0, 0, 1, 1, 0},
			false},
		{[]byte{0x80}, false}, {nil, false}, {[]byte{12, 0, 0, 0, 1, 1, 1}, false}, // −1 headers
		{[]byte{14, 0, 0, 0, 1, 1, 4, 1}, false}, {[]byte{16, 0, 0, 0, 1, 1, 2, 0, 0}, true},
	} {
		var d decoder
		d.start(stored{count: 1, next: 1, payload: c.payload})
		if err := d.record(&stream.Record{}); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v: %v", c.payload, err)
		}
	}
}

// TestRoomOfValues holds that values of headers keep their bytes, and no more memory than that of a few.
func TestRoomOfValues(t *testing.T) {
	var d decoder
	var all []string
	for n := range 200 {
		all = append(all, d.value(bytes.Repeat([]byte{byte(n)}, 100)))
	}
	for n, v := range all {
		if v != strings.Repeat(string([]byte{byte(n)}), 100) {
			t.Fatalf("value %d is %q", n, v)
		}
	}
	if d.text.Cap() > 2*manyText || len(d.value(make([]byte, 3*manyText))) != 3*manyText {
		t.Errorf("room for %d bytes", d.text.Cap())
	}
}

// TestLate holds that the answer to a batch is doubted while it is waited for, each time, and not afterwards.
func TestLate(t *testing.T) {
	s := &sender{}
	for range 2 {
		if s.wait(true); !s.waiting || !s.late.Stop() {
			t.Error("an answer that is waited for is not doubted")
		}
		if s.wait(true); !s.late.Stop() {
			t.Error("the next one is not")
		}
		s.late.Reset(time.Hour)
		if s.wait(false); s.waiting || s.late.Stop() {
			t.Error("one that has come is")
		}
	}
}

// TestDoubt holds that who waits for an answer gives its connection up where another broker leads by now, and looks
// again after a while where it leads itself, or nobody can say who does.
func TestDoubt(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	open(t, c, "t", 1)
	for _, x := range []struct {
		addr, topic            string
		waiting, given, looked bool
	}{
		{"elsewhere", "t", true, true, false}, {"elsewhere", "none", true, false, true},
		{k.ListenAddrs()[0], "t", true, false, true}, {k.ListenAddrs()[0], "t", false, false, false},
	} {
		nc, other := net.Pipe()
		s := &sender{line: line{c: c, p: place{Topic: x.topic}, cn: &conn{Conn: nc, addr: x.addr}}, waiting: x.waiting}
		s.late = time.AfterFunc(time.Hour, func() {})
		s.late.Stop()
		s.doubt()
		if given := s.cn == nil; given != x.given || s.late.Stop() != x.looked {
			t.Errorf("%+v: given up %v", x, given)
		}
		nc.Close()
		other.Close()
	}
	(&sender{line: line{c: c}}).doubt() // without a connection there is nothing to doubt
}
