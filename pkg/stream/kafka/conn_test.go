package kafka

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
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

// question is what a broker is asked.
type question struct {
	key, version int16
	corr         int32
	rest         []byte
}

// answering is a connection to a broker that answers each question with a body behind its number plus wrong, or hangs
// up if the body is nil.
func answering(body []byte, wrong int32) (cn *conn, asked chan question) {
	server, client := net.Pipe()
	asked = make(chan question, 9)
	go func() {
		defer close(asked)
		defer server.Close()
		for {
			var head [4]byte
			if _, err := io.ReadFull(server, head[:]); err != nil {
				return
			}
			b := make([]byte, binary.BigEndian.Uint32(head[:]))
			if _, err := io.ReadFull(server, b); err != nil {
				return
			}
			f := fields{b: b}
			q := question{f.int16(), f.int16(), f.int32(), f.b}
			if asked <- q; body == nil {
				return
			}
			answer := append(appendInt32(appendInt32(nil, int32(4+len(body))), q.corr+wrong), body...)
			if _, err := server.Write(answer); err != nil {
				return
			}
		}
	}()
	return &conn{Conn: client, addr: "there"}, asked
}

// TestAskVersions holds what a broker must speak, and what is said of one that does not or is none.
func TestAskVersions(t *testing.T) {
	speaks := func(code int16, least, more int16) []byte {
		b := appendInt32(appendInt16(nil, code), int32(len(needed)))
		for key, v := range needed {
			b = appendInt16(appendInt16(appendInt16(b, int16(key)), v+least), v+more)
		}
		return b
	}
	for _, x := range []struct {
		name  string
		body  []byte
		wrong int32
		says  string // "": all is well
		lost  bool
	}{
		{"as needed", speaks(0, 0, 0), 0, "", false}, {"more than needed", speaks(0, -3, 3), 0, "", false},
		{"too old", speaks(0, -3, -1), 0, "Kafka " + leastKafka + " or later is needed", false},
		{"too new", speaks(0, 1, 3), 0, "or later is needed", false},
		{"nothing", appendInt32(appendInt16(nil, 0), 0), 0, "or later is needed", false},
		{"refuses", speaks(1, 0, 0), 0, "Offset Out Of Range", false},
		{"refuses the version", speaks(35, 0, 0), 0, "Version", false},
		{"answers another", speaks(0, 0, 0), 1, "answer 2 to question 1", true},
		{"hangs up", nil, 0, "expect TLS?", true},
		{"cut short", []byte{0}, 0, "there", true},
	} {
		cn, asked := answering(x.body, x.wrong)
		err := cn.askVersions()
		if (err == nil) != (x.says == "") || err != nil && !strings.Contains(err.Error(), x.says) ||
			isLost(err) != x.lost {
			t.Errorf("%s: %v, want %q", x.name, err, x.says)
		}
		cn.Close()
		if q := <-asked; q.key != int16(protocol.ApiVersions) || q.version != 0 || q.corr != 1 {
			t.Errorf("%s: asked %+v", x.name, q)
		}
	}
}

// TestTLSHint: of a connection on which no TLS is spoken it is asked whether the port speaks it.
func TestTLSHint(t *testing.T) {
	for err, want := range map[error]bool{tls.RecordHeaderError{}: true, io.EOF: true, errGate: false} {
		if hint := tlsHint(err); (hint != "") != want {
			t.Errorf("%v: %q", err, hint)
		}
	}
}

// TestTopics holds that topics are listed in order, without those of the brokers and those that cannot be told of.
func TestTopics(t *testing.T) {
	k := fake(t)
	defer k.Close()
	c := client(t, k, Options{})
	defer c.Close()
	k.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		if r.(*kmsg.MetadataRequest).Topics != nil {
			t.Error("some topics are asked for")
		}
		answer := r.ResponseKind().(*kmsg.MetadataResponse)
		for _, name := range []string{"c", "b", "__own", "away", "a"} {
			topic := kmsg.NewMetadataResponseTopic()
			topic.Topic, topic.IsInternal = kmsg.StringPtr(name), name == "__own"
			if name == "away" {
				topic.ErrorCode = 3
			}
			answer.Topics = append(answer.Topics, topic)
		}
		return answer, nil, true
	})
	if all, err := c.log.Topics(t.Context()); strings.Join(all, " ") != "a b c" || err != nil {
		t.Error(all, err)
	}
}

// TestDialGivesUp: a broker that cannot be spoken with keeps no connection.
func TestDialGivesUp(t *testing.T) {
	var left atomic.Int64
	c := &Client{o: Options{RequestTimeout: time.Minute, Dial: func(context.Context, string, string) (net.Conn, error) {
		cn, _ := answering(appendInt16(nil, 1), 0)
		left.Add(1)
		return &counted{Conn: cn.Conn, open: &left}, nil
	}}}
	if cn, err := c.dial(t.Context(), "there:9"); cn != nil || !isLost(err) || left.Load() != 0 {
		t.Errorf("%v, %v; %d connections are left", cn, err, left.Load())
	}
}

// TestCallVersions holds at which version a question is asked: the highest that both know, and none if they know none.
func TestCallVersions(t *testing.T) {
	const key = protocol.Metadata
	least, most := key.MinVersion(), key.MaxVersion()
	for _, x := range []struct {
		speaks map[protocol.ApiKey][2]int16
		asks   int16 // −1: nothing
	}{
		{map[protocol.ApiKey][2]int16{key: {most, most}}, most},
		{map[protocol.ApiKey][2]int16{key: {least, least}}, least},
		{map[protocol.ApiKey][2]int16{key: {least - 1, most + 1}}, most},
		{map[protocol.ApiKey][2]int16{key: {most - 1, most - 1}}, most - 1},
		{map[protocol.ApiKey][2]int16{key: {most + 1, most + 9}}, -1},
		{map[protocol.ApiKey][2]int16{key: {least - 9, least - 1}}, -1},
		{map[protocol.ApiKey][2]int16{protocol.Fetch: {least, most}}, -1}, {nil, -1},
	} {
		cn, asked := answering(nil, 0)
		cn.versions = x.speaks
		cn.corr = 6
		_, err := cn.call(&metadata.Request{})
		cn.Close()
		q, ok := <-asked
		switch {
		case err == nil || !errors.Is(err, stream.ErrUnavailable):
			t.Errorf("%v: %v", x.speaks, err)
		case ok != (x.asks >= 0), ok && (q.key != int16(key) || q.version != x.asks || q.corr != 7):
			t.Errorf("%v: asked %+v, %v; want version %d", x.speaks, q, ok, x.asks)
		}
	}
}

// TestIdleConnections holds how many connections a broker has that nobody uses, and that one that the broker has closed
// meanwhile is replaced.
func TestIdleConnections(t *testing.T) {
	k := fake(t)
	defer k.Close()
	var dials, left atomic.Int64
	count := counting(&left)
	c := client(t, k, Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return count(ctx, network, addr)
	}})
	open(t, c, "t", 1)
	p, addr := &place{Topic: "t"}, k.ListenAddrs()[0]
	dials.Store(0)
	for range 5 {
		if _, _, err := c.ends(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if dials.Load() > 0 {
		t.Errorf("%d connections are made for questions one after the other", dials.Load())
	}
	var all []*conn
	for range maxIdle + 1 {
		cn, err := c.dial(t.Context(), addr)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, cn)
	}
	for cn := c.cluster.grab(addr); cn != nil; cn = c.cluster.grab(addr) {
		cn.Close()
	}
	before := left.Load()
	for _, cn := range all {
		c.cluster.putBack(cn)
	}
	if n := len(c.cluster.idle[addr]); n != maxIdle || left.Load() != before-1 {
		t.Errorf("%d connections wait, %d were closed", n, before-left.Load())
	}
	if last := c.cluster.grab(addr); last != all[maxIdle-1] {
		t.Error("the one that waits for the shortest time is not taken")
	}
	bad, calls := errors.New("bad"), 0
	for _, x := range []struct {
		name  string
		errs  []error
		ends  bool // the context ends with the first call
		calls int
		want  error
	}{{"works", []error{nil}, false, 1, nil}, {"is closed", []error{&lostError{addr, io.EOF}, nil}, false, 2, nil},
		{"and the new one", []error{&lostError{addr, io.EOF}, bad}, false, 2, bad},
		{"fails", []error{bad}, false, 1, bad},
		{"is closed, and the context has ended", []error{&lostError{addr, io.EOF}, nil}, true, 1, io.EOF}} {
		ctx, cancel := context.WithCancel(t.Context())
		calls = 0
		var last *conn
		err := c.on(ctx, addr, func(cn *conn) error {
			last = cn
			if x.ends {
				cancel()
			}
			calls++
			return x.errs[calls-1]
		})
		cancel()
		if calls != x.calls || !errors.Is(err, x.want) || x.want == nil && err != nil {
			t.Errorf("a connection that %s: %d calls, %v", x.name, calls, err)
		}
		if kept := slices.Contains(c.cluster.idle[addr], last); kept != (x.want == nil) {
			t.Errorf("a connection that %s waits for the next question: %v", x.name, kept)
		}
	}
	if c.Close(); left.Load() != int64(1) { // the one that was taken
		t.Errorf("%d connections are left", left.Load())
	}
	c.cluster.putBack(all[maxIdle-1])
	if left.Load() != 0 {
		t.Errorf("a client that is closed keeps %d connections", left.Load())
	}
}

// TestUnreadable holds how long a partition is asked for that cannot be read, and that this is told once.
func TestUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := &Client{o: Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), RequestTimeout: time.Second,
			Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errGate }},
			ctx: t.Context(), patience: 2 * time.Second}
		c.cluster.init([]string{"a:1"})
		c.cluster.brokers[1], c.cluster.topics["t"] = "a:1", []int32{1}
		s := &leaderSource{line: line{c: c, p: place{Topic: "t"}}}
		began := time.Now()
		err := s.fetch(t.Context(), 0, &chunk{})
		if took := time.Since(began); !errors.Is(err, errGate) || took <= c.patience || took > c.patience+maxBackoff {
			t.Errorf("%v after %v", err, took)
		}
		if n := strings.Count(log.String(), "cannot be read now"); n != 1 {
			t.Errorf("told %d times:\n%s", n, &log)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/10)
		defer cancel()
		if err := s.fetch(ctx, 0, &chunk{}); !errors.Is(err, context.DeadlineExceeded) ||
			strings.Count(log.String(), "cannot") != 1 {
			t.Errorf("%v\n%s", err, &log)
		}
	})
}

// TestFetchDrops holds after which answers a reader asks on another connection: those after which another broker may
// lead.
func TestFetchDrops(t *testing.T) {
	k := fake(t)
	defer k.Close()
	c := client(t, k, Options{})
	defer c.Close()
	open(t, c, "t", 1)
	var code atomic.Int64
	k.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		if code.Load() < 0 {
			return nil, errDropped, true
		}
		part, topic := kmsg.NewFetchResponseTopicPartition(), kmsg.NewFetchResponseTopic()
		part.ErrorCode = int16(code.Load())
		topic.Topic, topic.Partitions = "t", append(topic.Partitions, part)
		answer := r.ResponseKind().(*kmsg.FetchResponse)
		answer.Topics = append(answer.Topics, topic)
		return answer, nil, true
	})
	for n, x := range map[int64]struct {
		drops bool
		err   error
	}{0: {false, nil}, 3: {true, errNoLeader}, 6: {true, stream.ErrUnavailable}, 29: {false, ErrAuthorization},
		1:  {false, stream.ErrUnavailable}, // the offset is there
		-1: {true, io.EOF}} {
		code.Store(n)
		s := &leaderSource{line: line{c: c, p: place{Topic: "t"}}}
		err := s.try(t.Context(), 0, &chunk{}, false)
		if !errors.Is(err, x.err) || x.err == nil && err != nil || (s.cn == nil) != x.drops {
			t.Errorf("code %d: %v, connected %v", n, err, s.cn != nil)
		}
		s.close()
	}
}

// TestDamageOnTheWay holds that a batch that is damaged is asked for three times more before that is told, each one.
func TestDamageOnTheWay(t *testing.T) {
	for damaged, want := range map[int64]error{3: nil, 4: ErrCorrupt} {
		k := fake(t)
		c := client(t, k, Options{})
		open(t, c, "t", 1)
		r, err := c.Log().Read(t.Context(), "t", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		var asked atomic.Int64
		k.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
			k.KeepControl()
			at := r.(*kmsg.FetchRequest).Topics[0].Partitions[0].FetchOffset
			if at == 3 {
				return nil, nil, false
			}
			b := encode(some(1), 1, 0, 0, 0)
			binary.BigEndian.PutUint64(b, uint64(at))
			if asked.Add(1)%(damaged+1) != 0 {
				b[len(b)-1] ^= 1
			}
			part, topic := kmsg.NewFetchResponseTopicPartition(), kmsg.NewFetchResponseTopic()
			part.RecordBatches, part.HighWatermark, part.LastStableOffset = b, 3, 3
			topic.Topic, topic.Partitions = "t", append(topic.Partitions, part)
			answer := r.ResponseKind().(*kmsg.FetchResponse)
			answer.Topics = append(answer.Topics, topic)
			return answer, nil, true
		})
		for at := int64(0); at < 3 && err == nil; at++ {
			var recs []stream.Record
			if recs, err = r.Next(t.Context(), nil); err == nil && (len(recs) != 1 || recs[0].Offset != at) {
				t.Errorf("%d damaged: %+v at %d", damaged, recs, at)
			}
		}
		if n := asked.Load(); !errors.Is(err, want) || want == nil && (err != nil || n != 12) || want != nil && n != 4 {
			t.Errorf("%d damaged: asked %d times, %v", damaged, asked.Load(), err)
		}
		r.Close()
		c.Close()
		k.Close()
	}
}
