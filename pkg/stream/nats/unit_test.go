package nats

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// TestEncode holds what a record and its fence are on the wire.
func TestEncode(t *testing.T) {
	key := []byte("k")
	for _, c := range []struct {
		name               string
		fenced, replicated bool
		r                  stream.Record
		seq                uint64
		want               natsgo.Header
	}{
		{"bare", false, false, stream.Record{}, 1, natsgo.Header{}},
		{"type", false, false, stream.Record{Type: "t"}, 1, natsgo.Header{stream.HeaderType: {"t"}}},
		{"key", false, false, stream.Record{Key: key}, 1, natsgo.Header{stream.HeaderKey: {"k"}}},
		{"header", false, false, stream.Record{Headers: []stream.Header{{Key: "h", Value: "v"}}}, 1,
			natsgo.Header{"h": {"v"}}},
		{"chain", true, false, stream.Record{Key: key}, 11, natsgo.Header{stream.HeaderKey: {"k"},
			headerMsgID: {"1.a-11"}, headerExpectedID: {"1.a-10"}}},
		{"sequence, the first", true, true, stream.Record{}, 1, natsgo.Header{headerExpectedSeq: {"29"}}},
		{"sequence", true, true, stream.Record{}, 11, natsgo.Header{headerExpectedSeq: {"39"}}},
		{"a writer where owners are fenced by sequence", false, true, stream.Record{}, 11, natsgo.Header{}},
	} {
		a := &appender{fenced: c.fenced, replicated: c.replicated, header: natsgo.Header{"old": {"x"}}, first: 30,
			prefix: "1.a-", lastID: "1.a-10", ids: [2][]string{{""}, {""}}}
		a.replies[c.seq] = "reply"
		c.r.Value = []byte("v")
		if err := a.encode(&c.r, c.seq); err != nil || !reflect.DeepEqual(a.header, c.want) || a.msg.Reply != "reply" ||
			string(a.msg.Data) != "v" {
			t.Errorf("%s: %v, want %v; %+v, %v", c.name, a.header, c.want, a.msg, err)
		}
	}
}

// TestRecordSize holds what a record takes, by hand.
func TestRecordSize(t *testing.T) {
	for _, c := range []struct {
		r    stream.Record
		want int
	}{
		{stream.Record{}, 0},
		{stream.Record{Value: make([]byte, 7), Type: "ty"}, 9},
		{stream.Record{Key: make([]byte, 1)}, 2},
		{stream.Record{Key: make([]byte, 3)}, 4},
		{stream.Record{Key: make([]byte, 4)}, 6},
		{stream.Record{Headers: []stream.Header{{Key: "ab", Value: "cde"}, {Key: "f"}}}, 14},
	} {
		if got := recordSize(&c.r); got != c.want {
			t.Errorf("%+v: %d bytes, want %d", c.r, got, c.want)
		}
	}
}

// TestLimitsOfAppend holds the largest record and the most headers that are taken.
func TestLimitsOfAppend(t *testing.T) {
	a, _, _, _ := silentStream(t, Options{}, false)
	for _, c := range []struct {
		value, headers int
		fits           bool
	}{{1000, 0, true}, {1001, 0, false}, {0, maxHeaders, true}, {0, maxHeaders + 1, false}} {
		a.maxBytes = 1000 + c.headers
		r := &stream.Record{Value: make([]byte, c.value)}
		if c.headers > 0 {
			r.Headers = []stream.Header{{Key: "h", Value: strings.Repeat("v", c.headers-5)}}
		}
		n, err := a.Append(t.Context(), r)
		if errors.Is(err, stream.ErrTooLarge) == c.fits || (n > 0) != c.fits || c.fits && err != nil {
			t.Errorf("a value of %d bytes, headers of %d: %d, %v", c.value, c.headers, n, err)
		}
	}
	if n, err := a.Append(t.Context(), &stream.Record{Type: "a\nb"}); n != 0 || !errors.Is(err, stream.ErrUnfit) {
		t.Errorf("a type of two lines: %d, %v", n, err)
	}
}

// TestSettle holds what becomes of an append that was not sent.
func TestSettle(t *testing.T) {
	away := errors.New("away")
	for _, c := range []struct {
		name        string
		acked       uint64 // of 3
		dead        error
		cause       error
		seq, sent   uint64
		err         error
		lives       bool
		afterwards  error
		inFlight    int
		firstFlight error
	}{
		{name: "its fate was told", acked: 3, cause: away, seq: 3, sent: 3, lives: true},
		{name: "dead before", acked: 1, dead: stream.ErrFenced, sent: 2, err: stream.ErrFenced,
			afterwards: stream.ErrFenced},
		{name: "too large", acked: 2, cause: natsgo.ErrMaxPayload, sent: 2, err: stream.ErrTooLarge, lives: true},
		{name: "unfit", acked: 2, cause: natsgo.ErrBadHeaderMsg, sent: 2, err: stream.ErrUnfit, lives: true},
		{name: "not connected", acked: 1, cause: away, sent: 2, err: stream.ErrUnavailable,
			afterwards: stream.ErrUnavailable, inFlight: 1, firstFlight: stream.ErrUnknown},
	} {
		f := &fates{}
		a := &appender{ack: f.ack}
		a.waitFor.Store(notWaiting)
		a.sent.Store(3)
		a.acked.Store(c.acked)
		if c.dead != nil {
			a.dead.Store(&c.dead)
		}
		seq, err := a.settle(3, c.cause)
		if seq != c.seq || !errors.Is(err, c.err) || a.sent.Load() != c.sent {
			t.Errorf("%s: %d, %v; %d sent", c.name, seq, err, a.sent.Load())
		}
		if d := a.dead.Load(); (d == nil) != c.lives || d != nil && !errors.Is(*d, c.afterwards) {
			t.Errorf("%s: afterwards %v", c.name, d)
		}
		if len(f.errs) != c.inFlight || c.inFlight > 0 && !errors.Is(f.errs[0], c.firstFlight) {
			t.Errorf("%s: told %v", c.name, f.errs)
		}
	}
}

// TestWrongPlaceAlone holds that an owner's record at another place, and one that was there already, are not
// believed, without a later answer that shows it.
func TestWrongPlaceAlone(t *testing.T) {
	for _, text := range []string{`{"stream":"x_0","seq":3}`, `{"stream":"x_0","seq":1}`, `what?`, ``,
		`{"stream":"x_0","seq":2,"duplicate": true}`} {
		f := &fates{}
		a := &appender{ack: f.ack, fenced: true, first: 2}
		a.waitFor.Store(notWaiting)
		a.sent.Store(1)
		a.replies[1] = "r"
		a.onAck(&natsgo.Msg{Subject: "r", Data: []byte(text)})
		if len(f.errs) != 1 || !errors.Is(f.errs[0], stream.ErrUnknown) || a.dead.Load() == nil {
			t.Errorf("%s: told %v", text, f.errs)
		}
		if at := (*stream.Error)(nil); !errors.As(a.died(), &at) || at.Op != "append" {
			t.Errorf("%s: it does not say where: %v", text, a.died())
		}
	}
}

// TestFirstRefusalStays holds that of two refusals of one record the first counts.
func TestFirstRefusalStays(t *testing.T) {
	a := &appender{replicated: true}
	a.sent.Store(3)
	a.replies[2] = "r"
	for _, code := range []int{codeWrongSequence, codeStoreFailed} {
		m := &natsgo.Msg{Subject: "r", Data: fmt.Appendf(nil, `{"error":{"code":400,"err_code":%d},"seq":0}`, code)}
		if !a.overtook(m, 1) || a.refused != 2 || a.refusal.ErrCode != codeWrongSequence {
			t.Errorf("refused %d by %+v", a.refused, a.refusal)
		}
	}
}

// TestHold holds that what is on its way when appending is held is unknown, at once, and that nothing is
// appended until it is resumed.
func TestHold(t *testing.T) {
	a, f, _, conn := silentStream(t, Options{}, true)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := a.Append(ctx, &stream.Record{}); err != nil {
		t.Fatal(err)
	}
	why, l := fmt.Errorf("%w: full disk", stream.ErrUnavailable), a.log
	idle := &appender{place: a.place, log: l, maxBytes: 1000}
	if err := idle.start(); err != nil {
		t.Fatal(err)
	}
	opens, err := conn.SubscribeSync("open")
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		_, err := l.askOpen(ctx, &natsgo.Msg{Subject: "open"})
		opened <- err
	}()
	if _, err := opens.NextMsg(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	l.Hold(why)
	select {
	case err := <-opened:
		if !errors.Is(err, stream.ErrUnknown) || !strings.Contains(err.Error(), "full disk") {
			t.Errorf("an open record on its way: %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("an open record on its way is waited for")
	}
	if _, err := l.askOpen(ctx, &natsgo.Msg{Subject: "open"}); err != why {
		t.Errorf("an open record: %v", err)
	}
	if err := a.Flush(ctx); !errors.Is(err, stream.ErrUnknown) || len(f.errs) != 1 ||
		!errors.Is(f.errs[0], stream.ErrUnknown) {
		t.Errorf("on its way: %v; told %v", err, f.errs)
	}
	if _, err := a.Append(ctx, &stream.Record{}); !errors.Is(err, why) {
		t.Errorf("afterwards: %v", err)
	}
	if err := l.Held(); !errors.Is(err, why) {
		t.Errorf("held by %v", err)
	}
	if n, err := idle.Append(ctx, &stream.Record{}); n != 0 || !errors.Is(err, why) || idle.sent.Load() != 0 {
		t.Errorf("one that has nothing on its way: %d, %v", n, err)
	}
	b := &appender{place: a.place, log: l}
	if err := b.start(); !errors.Is(err, why) {
		t.Errorf("one that starts: %v", err)
	}
	l.Resume()
	if err := b.start(); err != nil || l.Held() != nil {
		t.Errorf("resumed: %v, %v", err, l.Held())
	}
}

// TestCloseGivesBack holds that a closed appender and a closed log keep nothing.
func TestCloseGivesBack(t *testing.T) {
	a, f, _, _ := silentStream(t, Options{}, true)
	l := a.log
	b := &appender{place: a.place, log: l, ack: f.ack}
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	if a.sub == nil || !a.sub.IsValid() {
		t.Error("nobody listens to acknowledgements")
	}
	if err := a.Close(); err != nil || a.sub.IsValid() || len(l.allAppenders()) != 1 {
		t.Errorf("closed: %v; subscribed %v, %d appenders", err, a.sub.IsValid(), len(l.allAppenders()))
	}
	if err := a.Flush(t.Context()); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("closed: flush says %v", err)
	}
	b.sent.Store(1)
	if err := l.Close(); err != nil || b.sub.IsValid() || len(l.allAppenders()) != 0 {
		t.Errorf("log closed: %v; subscribed %v, %d appenders", err, b.sub.IsValid(), len(l.allAppenders()))
	}
	if len(f.errs) != 1 || !errors.Is(f.errs[0], stream.ErrUnknown) || !errors.Is(f.errs[0], stream.ErrClosed) {
		t.Errorf("told %v", f.errs)
	}
	before := l.conn.NumSubscriptions()
	late := &appender{place: a.place, log: l}
	if err := late.start(); !errors.Is(err, stream.ErrClosed) || l.conn.NumSubscriptions() != before ||
		len(l.allAppenders()) != 0 {
		t.Errorf("one that starts: %v, %d appenders", err, len(l.allAppenders()))
	}
}

// TestStored holds what is read of headers as they are stored.
func TestStored(t *testing.T) {
	line := func(key, value string) string { return key + ": " + value + "\r\n" }
	for _, c := range []struct {
		headers string
		shown   bool
		want    stream.Record
	}{
		{"", true, stream.Record{}},
		{line(stream.HeaderKey, "k") + line(stream.HeaderType, "t"), true, stream.Record{Key: []byte("k"), Type: "t"}},
		{line(stream.HeaderType, "t") + line(headerMsgID, "1.a-1") + line(headerExpectedID, "1.a-0"), true,
			stream.Record{Type: "t"}},
		{line(stream.HeaderType, typeFill) + line(headerBatchID, "b"), false, stream.Record{Type: typeFill}},
		{line(stream.HeaderKey, "k") + line(headerExpectedSeq, "7"), true, stream.Record{Key: []byte("k")}},
		{line(headerBinaryKey, "AAE="), true, stream.Record{Key: []byte{0, 1}}},
		{line("b", "2") + line("a", "1") + line(stream.HeaderType, "t"), true, stream.Record{Type: "t",
			Headers: []stream.Header{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}}},
		{line(stream.HeaderKey, "k") + line(stream.HeaderKey, "l"), true, stream.Record{Key: []byte("k")}},
		{line(stream.HeaderType, "t") + line(stream.HeaderType, "u"), true, stream.Record{Type: "t"}},
		{line("a", "") + line(stream.HeaderKey, "k"), true, stream.Record{Key: []byte("k"),
			Headers: []stream.Header{{Key: "a"}}}},
		{stream.HeaderKey + ":k\r\n", true, stream.Record{Key: []byte("k")}},
		{stream.HeaderKey + ":  k\r\n", true, stream.Record{Key: []byte("k")}},
		{stream.HeaderKey + ": \nk: v\r\n", true, stream.Record{Key: []byte{}, Headers: []stream.Header{{Key: "k",
			Value: "v"}}}},
	} {
		var r stream.Record
		headers := "NATS/1.0\r\n" + c.headers + "\r\n"
		if c.headers == "" {
			headers = ""
		}
		shown, err := Stored(&r, []byte(headers))
		if err != nil || shown != c.shown || !reflect.DeepEqual(r, c.want) {
			t.Errorf("%q: %v, %+v, %v; want %+v", c.headers, shown, r, err, c.want)
		}
	}
	quick := []byte("NATS/1.0\r\n" + line(stream.HeaderKey, "k") + line(stream.HeaderType, "t") +
		line(headerMsgID, "1.a-1") + line(headerExpectedID, "1.a-0") + "\r\n")
	if n := testing.AllocsPerRun(100, func() {
		var r stream.Record
		if shown, err := Stored(&r, quick); !shown || err != nil || len(r.Key) != 1 {
			t.Fatal(r, err)
		}
	}); n > 1 { // its type
		t.Errorf("%v allocations for a record of an owner", n)
	}
	for _, bad := range []string{"x", "NATS/1.0\r\nno colon\r\n\r\n"} {
		if shown, err := Stored(new(stream.Record), []byte(bad)); err == nil || shown {
			t.Errorf("%q was read", bad)
		}
	}
}

// TestPlainKeys holds which keys stand in a header as they are.
func TestPlainKeys(t *testing.T) {
	for key, want := range map[string]bool{"a": true, "a b": true, "~": true, "!": true, " ": false, " a": false,
		"a ": false, "\x1f": false, "\x7f": false, "é": false} {
		if got := plain([]byte(key)); got != want {
			t.Errorf("%q: %v", key, got)
		}
	}
}

// TestScanState holds that the quick path takes both bounds or none.
func TestScanState(t *testing.T) {
	for text, want := range map[string]bool{
		`{"state":{"messages":7,"first_seq":3,"x":1,"last_seq":9,"y":2}}`: true,
		`{"state":{"last_seq":9,"first_seq":3,"x":1}}`:                    true,
		`{"stat":{"first_seq":3,"last_seq":9,"x":1}}`:                     false,
		`{"state":{"first_seq":3,"last_seq":9,"x":1`:                      false,
		`{"state":{"first_seq":3,"x":1},"last_seq":9,"y":2}`:              false,
		`{"state":{"last_seq":9,"x":1},"first_seq":3,"y":2}`:              false,
		`{"state":{"first_seq":-3,"last_seq":9,"x":1}}`:                   false,
		`{"state":{"first_seq":3,"last_seq":x,"x":1}}`:                    false,
		`{"state":{"first_seq":3,"last_seq":9223372036854775808,"x":1}}`:  false,
		`{}`: false,
	} {
		first, last, ok := scanState([]byte(text))
		if ok != want || ok && (first != 3 || last != 9) {
			t.Errorf("%s: %d, %d, %v", text, first, last, ok)
		}
	}
}

// TestClasses holds which error of the contract each error of the server is.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		e    apiError
		want error
	}{
		{apiError{Code: 400, ErrCode: codeWrongLastMessageID}, stream.ErrFenced},
		{apiError{Code: 400, ErrCode: codeWrongLastSequence}, stream.ErrFenced},
		{apiError{Code: 400, ErrCode: codeWrongSequence}, stream.ErrFenced},
		{apiError{Code: 400, ErrCode: codeAccountResources}, stream.ErrFull},
		{apiError{Code: 503, ErrCode: codeInsufficient}, stream.ErrFull},
		{apiError{Code: 500, ErrCode: codeMemoryResources}, stream.ErrFull},
		{apiError{Code: 500, ErrCode: codeStorageResources}, stream.ErrFull},
		{apiError{Code: 503, ErrCode: codeStoreFailed, Description: "maximum bytes exceeded"}, stream.ErrFull},
		{apiError{Code: 503, ErrCode: codeStoreFailed, Description: "disk"}, stream.ErrUnknown},
		{apiError{Code: 400, ErrCode: codeMessageTooLarge}, stream.ErrTooLarge},
		{apiError{Code: 404, ErrCode: codeStreamNotFound}, stream.ErrNotFound},
		{apiError{Code: 429, ErrCode: codeTooManyRequests}, stream.ErrUnavailable},
		{apiError{Code: 503, ErrCode: 1}, stream.ErrUnavailable},
	} {
		if err := c.e.class(); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.e, err, c.want)
		}
	}
	for _, code := range []int{400, 502, 504} {
		if err := (&apiError{Code: code, ErrCode: 1}).class(); errors.Is(err, stream.ErrUnavailable) {
			t.Errorf("code %d: %v", code, err)
		}
	}
}

// TestOpenedAt holds what each answer to an open record says.
func TestOpenedAt(t *testing.T) {
	for _, c := range []struct {
		text string
		at   uint64
		err  error
	}{
		{`{"stream":"x_0","seq":7}`, 7, nil},
		{`{"stream":"x_0","seq":7,"duplicate":true}`, 0, errOpenAgain},
		{`what?`, 0, stream.ErrUnknown},
		{fmt.Sprintf(`{"error":{"err_code":%d}}`, codeWrongLastSequence), 0, errOpenAgain},
		{fmt.Sprintf(`{"error":{"err_code":%d}}`, codeWrongSequence), 0, errOpenAgain},
		{fmt.Sprintf(`{"error":{"err_code":%d}}`, codeBatchIncomplete), 0, errOpenAgain},
		{fmt.Sprintf(`{"error":{"err_code":%d}}`, codeWrongLastMessageID), 0, stream.ErrFenced},
		{fmt.Sprintf(`{"error":{"err_code":%d}}`, codeStorageResources), 0, stream.ErrFull},
	} {
		at, err := openedAt(&natsgo.Msg{Data: []byte(c.text)})
		if at != c.at || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v; want %d, %v", c.text, at, err, c.at, c.err)
		}
	}
}

// TestReplicate holds which streams are fenced by sequences, and how many records are on their way there.
func TestReplicate(t *testing.T) {
	for _, c := range []struct {
		replicas   int
		atomic     bool
		window     int
		replicated bool
		want       int
	}{{1, false, 500, false, 0}, {2, false, 500, true, leap}, {1, true, 500, true, leap}, {3, true, 7, true, 7}} {
		var i streamInfo
		i.Config.Replicas, i.Config.AllowAtomicPublish = c.replicas, c.atomic
		a := &appender{log: &Log{o: Options{Window: c.window}}}
		if a.replicate(&i); a.replicated != c.replicated || a.window != c.want {
			t.Errorf("%+v: replicated %v, a window of %d", c, a.replicated, a.window)
		}
	}
}

// TestStreamOptions holds what is asked of the server for a partition, and that of streams only those that
// Create made are topics.
func TestStreamOptions(t *testing.T) {
	s, _ := runServer(t, t.TempDir(), -1)
	l, ctx := dialTest(t, s.ClientURL(), Options{MaxStore: 1 << 20}).Log(), t.Context()
	for n, c := range []struct {
		o    stream.TopicOptions
		want string
	}{
		{stream.TopicOptions{}, "age 0, bytes -1, full old, purge false"},
		{stream.TopicOptions{MaxAge: 1, MaxBytes: 1, RejectWhenFull: true, Trimmable: true},
			"age 100000000, bytes 1, full new, purge true"},
		{stream.TopicOptions{MaxAge: int64(time.Hour), MaxBytes: 9},
			"age 3600000000000, bytes 9, full old, purge false"},
	} {
		topic := "b" + strconv.Itoa(9-n) + ".x"
		if err := l.Create(ctx, topic, 2, c.o); err != nil {
			t.Fatal(err)
		}
		var i struct{ Config map[string]any }
		if err := l.call(ctx, l.conn, "STREAM.INFO.b"+strconv.Itoa(9-n)+"_x_1", nil, &i); err != nil {
			t.Fatal(err)
		}
		m := i.Config
		got := fmt.Sprintf("age %.0f, bytes %.0f, full %v, purge %v", m["max_age"], m["max_bytes"], m["discard"],
			m["deny_purge"] != true)
		rest := fmt.Sprint(m["max_msgs"], m["max_msgs_per_subject"], m["max_msg_size"], m["max_consumers"],
			m["num_replicas"], m["duplicate_window"], m["allow_direct"], m["deny_delete"], m["allow_atomic"])
		if got != c.want || rest != "-1 -1 -1 -1 1 1e+08 true true <nil>" {
			t.Errorf("%+v: %s, want %s; %s", c.o, got, c.want, rest)
		}
		if err := l.Create(ctx, "one"+topic, 1, c.o); err != nil {
			t.Fatal(err)
		}
		if n, err := l.Partitions(ctx, "one"+topic); n != 1 || err != nil {
			t.Errorf("one partition: %d, %v", n, err)
		}
		if err := l.Create(ctx, topic, 3, c.o); !errors.Is(err, stream.ErrPartitions) {
			t.Errorf("created again with other partitions: %v", err)
		}
	}
	foreign := map[string]any{"name": "foreign_x_0", "subjects": []string{"foreign.x.0"}}
	if err := l.call(ctx, l.conn, "STREAM.CREATE.foreign_x_0", foreign, nil); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Partitions(ctx, "foreign.x"); err == nil || n != 0 {
		t.Errorf("a foreign stream is a topic of %d partitions", n)
	}
	topics, err := l.Topics(ctx)
	if want := []string{"b7.x", "b8.x", "b9.x", "foreign.x", "oneb7.x", "oneb8.x", "oneb9.x"}; err != nil ||
		!reflect.DeepEqual(topics, want) {
		t.Errorf("topics %v, %v", topics, err)
	}
	if _, err := l.conn.RequestWithContext(ctx, "b9.x.0", make([]byte, 700)); err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"b9.x", "b8.x"} {
		held, limit, err := l.Fill(ctx, topic)
		both, _, again := l.Fill(ctx, topic, "b9.x")
		if err != nil || again != nil || limit != 1<<20 || (held > 700) != (topic == "b9.x") || both < 700 ||
			held > both {
			t.Errorf("%s: %d of %d bytes, %v; with b9.x %d, %v", topic, held, limit, err, both, again)
		}
	}
	l.o.MaxStore = 0
	if held, limit, err := l.Fill(ctx, "b9.x"); held != 0 || limit != 0 || err != nil {
		t.Errorf("of a store whose limit is not known: %d of %d, %v", held, limit, err)
	}
}

// TestAccessExcludes holds which secrets exclude each other.
func TestAccessExcludes(t *testing.T) {
	for _, c := range []struct {
		a    Access
		want string
	}{
		{Access{User: "u", Creds: "f"}, "a user with a password"},
		{Access{User: "u", NKey: "f"}, "a user with a password"},
		{Access{Creds: "f", NKey: "f"}, "credentials and an nkey"},
		{Access{User: "u", URL: "nats://v:p@h"}, "names a user already"},
		{Access{User: "u"}, "<nil>"},
		{Access{URL: "nats://v:p@h"}, "<nil>"},
		{Access{Cert: "f"}, "go together"},
		{Access{Key: "f"}, "go together"},
		{Access{URL: "nats://h?x"}, errURL.Error()},
		{Access{URL: "nats://h#x"}, errURL.Error()},
		{Access{URL: "nats://h/x"}, errURL.Error()},
		{Access{URL: "nats://h/"}, "<nil>"},
	} {
		if c.a.URL == "" {
			c.a.URL = "nats://h"
		}
		if err := c.a.Check(); !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%+v: %v, want %s", c.a, err, c.want)
		}
	}
	file := filepath.Join(t.TempDir(), "large")
	for size, fits := range map[int64]bool{maxFile: true, maxFile + 1: false} {
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, size)); err != nil {
			t.Fatal(err)
		}
		if err := (&Access{URL: "nats://h", CA: file}).Check(); (err == nil) != fits {
			t.Errorf("a file of %d bytes: %v", size, err)
		}
	}
	o := natsgo.GetDefaultOptions()
	all, err := (&Access{User: "u", Password: "p"}).options()
	for _, set := range all {
		err = errors.Join(err, set(&o))
	}
	if err != nil || o.User != "u" || o.Password != "p" {
		t.Errorf("connects as %q with %q, %v", o.User, o.Password, err)
	}
}

// TestDefaults holds that options which are not given have their defaults.
func TestDefaults(t *testing.T) {
	o := Options{Window: -1, MaxBatch: -1, AckTimeout: -1, APITimeout: -1, Heartbeat: -1, Replicas: -1}
	got := o.withDefaults()
	if got.Window != DefaultWindow || got.MaxBatch != DefaultMaxBatch || got.AckTimeout != DefaultAckTimeout ||
		got.APITimeout != DefaultAPITimeout || got.Heartbeat != DefaultHeartbeat || got.APIPrefix != DefaultAPIPrefix ||
		got.Replicas != 1 {
		t.Errorf("%+v", got)
	}
	for timeout, want := range map[time.Duration]time.Duration{time.Second: time.Second / 4, 1: time.Millisecond} {
		if got := (&Options{AckTimeout: timeout}).checkEvery(); got != want {
			t.Errorf("appenders that may wait for %v are looked at every %v", timeout, got)
		}
	}
}

// TestOpenRecord holds the largest open record, and where errors say that they come from.
func TestOpenRecord(t *testing.T) {
	o := stream.OpenOptions{Value: make([]byte, 500)}
	for most, fits := range map[int]bool{recordSize(o.Record()): true, recordSize(o.Record()) - 1: false} {
		if _, err := openMessage(&appender{maxBytes: most}, &o); errors.Is(err, stream.ErrTooLarge) == fits {
			t.Errorf("of at most %d bytes: %v", most, err)
		}
	}
	s, _ := runServer(t, t.TempDir(), -1)
	l, ctx := dialTest(t, s.ClientURL(), Options{}).Log(), t.Context()
	_, _, opened := l.Open(ctx, "x", 2, o)
	_, wrote := l.Writer(ctx, "x", 2, nil)
	_, _, bounds := l.Bounds(ctx, "x", 2)
	_, read := l.Read(ctx, "x", 2, 7)
	_, got := l.Get(ctx, "x", 2, 7)
	_, counted := l.Partitions(ctx, "x")
	for want, err := range map[stream.Error]error{{Op: "open", Partition: 2, Offset: -1}: opened,
		{Op: "writer", Partition: 2, Offset: -1}: wrote, {Op: "bounds", Partition: 2, Offset: -1}: bounds,
		{Op: "read", Partition: 2, Offset: 7}: read, {Op: "partitions", Offset: -1}: counted,
		{Op: "trim", Partition: 2, Offset: 9}: l.Trim(ctx, "x", 2, 9)} {
		var at *stream.Error
		if !errors.As(err, &at) || !errors.Is(err, stream.ErrNotFound) || at.Op != want.Op || at.Topic != "x" ||
			at.Partition != want.Partition || at.Offset != want.Offset {
			t.Errorf("%+v: %+v", want, err)
		}
	}
	if at := (*stream.Error)(nil); !errors.As(got, &at) || at.Op != "read" || at.Offset != 7 {
		t.Errorf("get: %v", got)
	}
}
