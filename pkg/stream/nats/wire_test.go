package nats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"hindsight/pkg/stream"
)

func TestParseAck(t *testing.T) {
	tests := []struct {
		data      string
		seq       uint64
		duplicate bool
		code      int
		bad       bool
	}{
		{data: `{"stream":"shop_contexts_0","seq":17}`, seq: 17},
		{data: `{"stream":"shop_contexts_0", "seq": 17}`, seq: 17},
		{data: `{"stream":"s","domain":"hub","seq":999999999999999999}`, seq: 999999999999999999},
		{data: `{"stream":"s","seq":17,"duplicate": true}`, seq: 17, duplicate: true},
		{data: `{"error":{"code":400,"err_code":10070,"description":"wrong last msg ID: 1.a-2"},"stream":"s","seq":0}`,
			code: 10070},
		{data: `{"stream":"s","seq":0}`, bad: true},
		{data: `{"stream":"s"}`, bad: true},
		{data: `"seq":5}`, seq: 5}, // not looked at more closely
		{data: ``, bad: true},
		{data: `}`, bad: true},
		{data: `{"stream":"s","seq":99999999999999999999}`, bad: true},
	}
	for _, tt := range tests {
		a, err := parseAck([]byte(tt.data))
		code := 0
		if a.Error != nil {
			code = a.Error.ErrCode
		}
		if (err != nil) != tt.bad || a.Sequence != tt.seq || a.Duplicate != tt.duplicate || code != tt.code {
			t.Errorf("%s: %+v, %v", tt.data, a, err)
		}
	}
}

// The quick paths agree with the JSON parser.
func FuzzParseAck(f *testing.F) {
	f.Add([]byte(`{"stream":"s","seq":17}`))
	f.Add([]byte(`{"error":{"code":400,"err_code":10070},"stream":"s","seq":0}`))
	f.Add([]byte(`{"state":{"first_seq":3,"last_seq":9}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseAck(data)
		var want pubAck
		if err == nil && json.Unmarshal(data, &want) == nil && want.Sequence != a.Sequence {
			t.Errorf("%q: sequence %d, JSON says %d", data, a.Sequence, want.Sequence)
		}
		first, last, ok := scanState(data)
		var i streamInfo
		if ok && json.Unmarshal(data, &i) == nil && i.State.LastSeq != 0 && (i.State.FirstSeq != first ||
			i.State.LastSeq != last) {
			t.Errorf("%q: %d, %d, JSON says %+v", data, first, last, i.State)
		}
	})
}

func TestParseReply(t *testing.T) {
	tests := []struct {
		reply     string
		seq, time int64
		ok        bool
	}{
		{"$JS.ACK.shop_contexts_0.abc.1.42.7.1700000000000000000.9", 42, 1700000000000000000, true},
		{"$JS.ACK._.hash.shop_contexts_0.abc.1.42.7.1700000000000000000.9", 42, 1700000000000000000, true},
		{"$JS.ACK.hub.hash.shop_contexts_0.abc.1.42.7.1700000000000000000.9.token", 42, 1700000000000000000, true},
		{"$JS.ACK.shop_contexts_0.abc.1.42.7.1700000000000000000", 0, 0, false},
		{"$JS.ACK.shop_contexts_0.abc.1.x.7.1.9", 0, 0, false},
		{"$JS.ACK.shop_contexts_0.abc.1.-2.7.1.9", 0, 0, false},
		{"$JS.ACK.shop_contexts_0.abc.1.9223372036854775808.7.1.9", 0, 0, false},
		{"$JS.ACK.shop_contexts_0.abc.1.2.7.9223372036854775808.9", 0, 0, false},
		{"_INBOX.a.b.c.d.e.f.g.h", 0, 0, false},
		{"", 0, 0, false},
	}
	for _, tt := range tests {
		seq, time, ok := parseReply(tt.reply)
		if ok != tt.ok || ok && (seq != tt.seq || time != tt.time) {
			t.Errorf("%s: %d, %d, %v", tt.reply, seq, time, ok)
		}
	}
	n := testing.AllocsPerRun(100, func() { _, _, _ = parseReply(tests[0].reply) })
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseReply(f *testing.F) {
	f.Add("$JS.ACK.shop_contexts_0.abc.1.42.7.1700000000000000000.9")
	f.Add("$JS.ACK.hub.hash.shop_contexts_0.abc.1.42.7.1700000000000000000.9.token")
	f.Fuzz(func(t *testing.T, reply string) {
		if seq, time, ok := parseReply(reply); ok && (seq < 0 || time < 0) {
			t.Errorf("%q: %d, %d", reply, seq, time)
		}
	})
}

// What setHeaders takes, getHeaders gives back, after a trip through the wire
// format.
func TestHeadersRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := stream.Record{
			Type: rapid.StringMatching(`[a-z]{0,8}`).Draw(t, "type"),
			Key:  rapid.SliceOf(rapid.Byte()).Draw(t, "key"),
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "headers") {
			r.Headers = append(r.Headers,
				stream.Header{Key: fmt.Sprint("h", i), Value: rapid.StringMatching(`([!-~]([ -~]*[!-~])?)?`).Draw(t,
					"value")})
		}
		h := natsgo.Header{headerMsgID: {"1.a-1"}, headerExpectedID: {"1.a-0"}}
		if err := setHeaders(h, &r); err != nil {
			t.Fatal(err)
		}
		wire := []byte("NATS/1.0\r\n")
		for k, vs := range h {
			for _, v := range vs {
				wire = fmt.Appendf(wire, "%s: %s\r\n", k, v)
			}
		}
		back, err := natsgo.DecodeHeadersMsg(append(wire, "\r\n"...))
		if err != nil {
			t.Fatal(err)
		}
		var got stream.Record
		getHeaders(&got, back)
		if got.Type != r.Type || !bytes.Equal(got.Key, r.Key) || fmt.Sprint(got.Headers) != fmt.Sprint(r.Headers) {
			t.Fatalf("%+v became %+v", r, got)
		}
	})
}

func TestPlaces(t *testing.T) {
	p, err := newPlace("shop.contexts", 3)
	if err != nil || p.stream != "shop_contexts_3" || p.subject != "shop.contexts.3" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, topic := range []string{"", ".", "a.", ".a", "a..b", "a b", "a*", "a.>", "a\r\nb", "ä"} {
		if _, err := newPlace(topic, 0); err == nil {
			t.Errorf("topic %q was taken", topic)
		}
	}
}
