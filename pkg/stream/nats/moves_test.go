package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/lease"
)

// TestDies holds what an appender that dies tells: of what is on its way the one error, later the other, and that only
// the first death counts.
func TestDies(t *testing.T) {
	rest, dead := stream.ErrUnknown, stream.ErrFenced
	for acked, want := range map[uint64]error{1: rest, 3: dead} {
		f := &fates{}
		a := &appender{ack: f.ack}
		a.waitFor.Store(notWaiting)
		a.sent.Store(3)
		a.acked.Store(acked)
		a.kill(rest, dead)
		a.kill(stream.ErrFull, stream.ErrFull)
		if len(f.errs) != int(3-acked) || len(f.errs) > 0 && (!errors.Is(f.errs[0], rest) || f.offsets[0] != 0) {
			t.Errorf("%d of 3 known: told %v at %v", acked, f.errs, f.offsets)
		}
		if err := a.Flush(t.Context()); !errors.Is(err, want) {
			t.Errorf("%d of 3 known: flush says %v, want %v", acked, err, want)
		}
		if n, err := a.Append(t.Context(), &stream.Record{}); !errors.Is(err, dead) || n != 0 {
			t.Errorf("%d of 3 known: append says %d, %v", acked, n, err)
		}
	}
}

// TestConnectionLost holds that what is on its way when the connection is lost is told to be unknown without waiting
// for it any longer, and that the appender takes nothing more.
func TestConnectionLost(t *testing.T) {
	a, f, _, _ := silentStream(t, Options{AckTimeout: time.Hour}, true)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := a.Append(ctx, &stream.Record{}); err != nil {
		t.Fatal(err)
	}
	if err := a.log.conn.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	if err := a.Flush(ctx); !errors.Is(err, stream.ErrUnknown) || len(f.errs) != 1 || f.errs[0] != err {
		t.Errorf("flush says %v, told %v", err, f.errs)
	}
	if n, err := a.Append(ctx, &stream.Record{}); n != 0 || !errors.Is(err, stream.ErrUnavailable) ||
		errors.Is(err, stream.ErrUnknown) {
		t.Errorf("append says %d, %v", n, err)
	}
}

// TestProgress holds when an appender is dead of old age: when the oldest append has waited for the limit, and no
// sooner, however long nothing was on its way before.
func TestProgress(t *testing.T) {
	const limit = time.Second
	start := time.Unix(1000, 0)
	a := &appender{}
	a.waitFor.Store(notWaiting)
	for i, c := range []struct {
		at          time.Duration
		sent, acked uint64
		dead        bool
	}{
		{0, 0, 0, false}, {10 * limit, 0, 0, false}, // nothing is on its way
		{10*limit + 1, 1, 0, false}, {11*limit - 1, 1, 0, false}, // of the check before it is not known when it began
		{11*limit - 1, 2, 1, false}, {12*limit - 2, 2, 1, false}, {12*limit - 1, 2, 1, true},
	} {
		a.sent.Store(c.sent)
		a.acked.Store(c.acked)
		if a.checkProgress(start.Add(c.at), limit); (a.died() != nil) != c.dead {
			t.Fatalf("%d, after %v: %v", i, c.at, a.died())
		}
	}
	if !errors.Is(a.died(), stream.ErrUnknown) {
		t.Error(a.died())
	}
	b := &appender{}
	b.sent.Store(1)
	if b.checkProgress(start, limit); b.died() != nil { // the first check
		t.Error(b.died())
	}
}

// TestOvertook holds which answers overtake those to records before: refusals of records behind the next one.
func TestOvertook(t *testing.T) {
	const refusal, good = `{"error":{"code":400,"err_code":10071},"seq":0}`, `{"stream":"x_0","seq":7}`
	for _, c := range []struct {
		replicated bool
		reply      int
		text       string
		want       uint64 // the record that was refused
	}{
		{true, 1, refusal, 0}, {true, 2, refusal, 0}, {true, 3, refusal, 3}, {true, 5, refusal, 5}, {true, 6, refusal,
			0},
		{true, 3, good, 0}, {true, 3, "what?", 0}, {false, 3, refusal, 0},
	} {
		a := &appender{replicated: c.replicated}
		for i := range a.replies {
			a.replies[i] = fmt.Sprint(i)
		}
		a.sent.Store(5)
		m := &natsgo.Msg{Subject: fmt.Sprint(c.reply), Data: []byte(c.text)}
		if got := a.overtook(m, 2); got != (c.want > 0) || a.refused != c.want || got && a.refusal.ErrCode != 10071 {
			t.Errorf("%+v: %v, refused %d by %v", c, got, a.refused, a.refusal)
		}
	}
}

// TestReplicas holds which streams have replicas, and which leaders have heard from most of them.
func TestReplicas(t *testing.T) {
	for replicas, want := range map[int]bool{0: false, 1: false, 2: true, 3: true} {
		i, o := streamInfo{}, Options{Replicas: replicas}
		if i.Config.Replicas = replicas; i.replicated() != want || o.replicated() != want {
			t.Errorf("%d replicas: %v", replicas, !want)
		}
	}
	for _, c := range []struct {
		replicas int
		leader   string
		heard    []time.Duration
		want     bool
	}{
		{3, "a", []time.Duration{1, 1}, true}, {3, "a", []time.Duration{1, freshLimit}, true},
		{3, "a", []time.Duration{freshLimit, freshLimit}, false}, {3, "a", []time.Duration{freshLimit - 1, 0}, true},
		{3, "a", nil, false}, {3, "", []time.Duration{1, 1}, false}, {4, "a", []time.Duration{1, 0, 0}, false},
		{4, "a", []time.Duration{1, 1, 0}, true}, {5, "a", []time.Duration{1, 0, 0, 0}, false}, {1, "a", nil, true},
	} {
		i := streamInfo{jetstream.StreamInfo{Cluster: &jetstream.ClusterInfo{Leader: c.leader}}}
		i.Config.Replicas = c.replicas
		for _, active := range c.heard {
			i.Cluster.Replicas = append(i.Cluster.Replicas, &jetstream.PeerInfo{Active: active})
		}
		if got := i.fresh(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if new(streamInfo).fresh() {
		t.Error("no leader is a fresh one")
	}
}

// TestStoreErrors holds which error of a lease store each error of the client library is.
func TestStoreErrors(t *testing.T) {
	for err, want := range map[error]error{
		jetstream.ErrKeyExists: lease.ErrTaken, jetstream.ErrKeyNotFound: lease.ErrNone,
		jetstream.ErrKeyDeleted: lease.ErrNone, &jetstream.APIError{ErrorCode: codeWrongLastSequence}: lease.ErrTaken,
		jetstream.ErrNoStreamResponse: stream.ErrUnavailable, context.DeadlineExceeded: stream.ErrUnavailable,
		natsgo.ErrConnectionClosed: stream.ErrClosed,
	} {
		if got := storeError(err); !errors.Is(got, want) {
			t.Errorf("%v: %v", err, got)
		}
	}
	other := &jetstream.APIError{ErrorCode: codeStoreFailed}
	if got := storeError(other); got != error(other) || storeError(nil) != nil {
		t.Errorf("%v: %v", other, got)
	}
}

// TestPull holds what a reader asks for: two batches at most, more when one has come, and on demand nothing while
// something is still to come. A message that is as large as may be fits.
func TestPull(t *testing.T) {
	s, _ := startServer(t, &server.Options{Port: -1, MaxPayload: 8 << 20})
	l := dialTest(t, s.ClientURL(), Options{Heartbeat: time.Second}).Log()
	asked, err := l.readConn.SubscribeSync("pull")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		outstanding, want int
		onDemand          bool
	}{
		{0, 200, false}, {99, 101, false}, {100, 100, false}, {101, 0, false}, {200, 0, false},
		{0, 200, true}, {1, 0, true}, {100, 0, true},
	} {
		r := &reader{log: l, conn: l.readConn, next: "pull", inbox: "inbox", batch: 100, outstanding: c.outstanding}
		r.OnDemand(c.onDemand)
		if err := errors.Join(r.pull(), l.readConn.Flush()); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Batch     int
			Expires   time.Duration
			Heartbeat time.Duration `json:"idle_heartbeat"`
			MaxBytes  int           `json:"max_bytes"`
			NoWait    bool          `json:"no_wait"`
		}
		if n, _, _ := asked.Pending(); n > 0 {
			m, err := asked.NextMsg(time.Second)
			if err != nil || m.Reply != "inbox" || json.Unmarshal(m.Data, &got) != nil {
				t.Fatalf("%s, %v", m.Data, err)
			}
			if got.Expires != pullExpires || got.Heartbeat != time.Second || got.MaxBytes != 16<<20 ||
				got.NoWait != c.onDemand {
				t.Errorf("%+v: %+v", c, got)
			}
		}
		if got.Batch != c.want || r.outstanding != c.outstanding+c.want {
			t.Errorf("%+v: asks for %d, %d to come", c, got.Batch, r.outstanding)
		}
	}
}

// TestDrain holds that a reader takes a batch at most, and passes fillers.
func TestDrain(t *testing.T) {
	message := func(seq int, kind string) *natsgo.Msg {
		return &natsgo.Msg{Reply: fmt.Sprintf("$JS.ACK.x_0.c.1.%d.1.9.0", seq),
			Header: natsgo.Header{stream.HeaderType: {kind}}}
	}
	r := &reader{batch: 2, pos: 1, outstanding: 9, msgs: make(chan *natsgo.Msg, 9)}
	for seq, kind := range []string{2: typeFill, 3: "b", 4: "c", 5: "d"} {
		if kind != "" {
			r.msgs <- message(seq, kind)
		}
	}
	recs, err := r.drain(make([]stream.Record, 1), message(1, "a"))
	if err != nil || len(recs) != 3 || recs[1].Type != "a" || recs[2].Type != "b" || len(r.msgs) != 2 || r.pos != 4 ||
		r.outstanding != 6 || r.suspect != 0 {
		t.Errorf("%+v, %d left, at %d, %d to come, %v", recs, len(r.msgs), r.pos, r.outstanding, err)
	}
	if recs, err = r.drain(recs, <-r.msgs); err != nil || len(recs) != 5 || recs[4].Offset != 5 || recs[4].Time != 9 {
		t.Errorf("%+v, %v", recs, err)
	}
	if recs, err = r.drain(nil, message(7, "e")); err != errAgain || len(recs) != 0 || r.pos != 6 || r.suspect != 6 ||
		r.hole {
		t.Errorf("behind a hole: %+v, at %d, %v", recs, r.pos, err)
	}
	if recs, err = r.drain(nil, message(5, "d")); err != nil || len(recs) != 0 || r.pos != 6 {
		t.Errorf("what was read already: %+v, at %d, %v", recs, r.pos, err)
	}
}

// TestStuck holds when a consumer is given up whose server lacks a record: when the stream's leader has it at two
// questions, each a while after the one before.
func TestStuck(t *testing.T) {
	s, _ := runServer(t, t.TempDir(), -1)
	player := connect(t, s.ClientURL())
	last, questions := 0, 0
	play(t, player, "fake.STREAM.INFO.x_0", func() string {
		questions++
		return fmt.Sprintf(`{"state":{"last_seq":%d}}`, last)
	})
	l := dialTest(t, s.ClientURL(), Options{APIPrefix: "fake"}).Log()
	p, err := newPlace("x", 0)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{place: p, log: l, conn: l.readConn, ctx: t.Context(), pos: 7}
	for i, c := range []struct {
		replicated bool
		askEvery   time.Duration
		last       int
		asks, gone bool
		missed     int64
	}{
		{false, 0, 7, false, false, 0},
		{true, 0, 6, true, false, 0}, // the leader does not have it either
		{true, 0, 7, true, false, 7}, {true, time.Hour, 7, false, false, 7}, {true, 0, 7, true, true, 0},
		{true, 0, 9, true, false, 7}, {true, 0, 6, true, false, 0}, {true, 0, 7, true, false, 7},
	} {
		r.replicated, r.askEvery, last = c.replicated, c.askEvery, c.last
		before := questions
		err := r.stuck()
		if questions-before != map[bool]int{true: 1}[c.asks] || (err == errAgain) != c.gone || err != nil && !c.gone ||
			r.missed != c.missed {
			t.Errorf("%d: %d questions, %v, misses %d", i, questions-before, err, r.missed)
		}
	}
}

// TestReaderGivesBack holds that a reader that is closed, that could not be made, or whose log is closed keeps nothing,
// and that a closed one says so.
func TestReaderGivesBack(t *testing.T) {
	_, l := topicX(t, Options{})
	ctx := t.Context()
	if _, err := l.ask(ctx, l.readConn, "x.0", nil); err != nil { // which subscribes to answers
		t.Fatal(err)
	}
	before := l.readConn.NumSubscriptions()
	kept := func(what string, readers int) {
		t.Helper()
		if n := len(l.allReaders()); n != readers || l.readConn.NumSubscriptions() != before+readers {
			t.Errorf("%s: %d readers, %d subscriptions more than before", what, n, l.readConn.NumSubscriptions()-before)
		}
	}
	if _, err := l.Read(ctx, "x", 0, 9); !errors.Is(err, stream.ErrAhead) {
		t.Error(err)
	}
	kept("not made", 0)
	var all []*reader
	for n := range 3 {
		r, err := l.Read(ctx, "x", 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.(*reader))
		kept("made", n+1)
	}
	r := all[0]
	if room := 2*DefaultMaxBatch + 12 + statusRoom; cap(r.msgs) != room { // what the server may send, heartbeats too
		t.Errorf("room for %d messages, and not %d", cap(r.msgs), room)
	}
	if _, err := r.got(nil, false); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("without its subscription: %v", err)
	}
	if l.Resume(); len(r.kicked) != 1 {
		t.Error("a reader does not start over when a log goes on")
	}
	<-r.kicked
	if err := l.readConn.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.kicked:
	case <-time.After(20 * time.Second):
		t.Error("a reader does not start over when its connection is back")
	}
	if err := r.Close(); err != nil || r.ctx.Err() == nil {
		t.Error("closed: ", err)
	}
	kept("closed", 2)
	if _, err := r.got(nil, false); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	kept("log closed", 0)
	for _, r := range all {
		if _, err := r.Next(ctx, nil); !errors.Is(err, stream.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	}
}
