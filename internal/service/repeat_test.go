package service

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"hindsight/internal/front"
	"hindsight/pkg/stream"
)

// forget drops the bytes of decisions, and keeps none from here on: repeats are read back.
func (r *recent) forget() { r.most = 0 }

// TestRecent holds that the latest decisions are kept, as many as fit into the bytes and the
// rounds that there are, and of the others of these rounds where they lie.
func TestRecent(t *testing.T) {
	for _, c := range []struct {
		name                      string
		rounds, most, size        int
		kept, located, bytes, gap int
	}{
		{"all fit", 100, 1000, 10, 20, 20, 200, 0},
		{"at the limit", 100, 200, 10, 20, 20, 200, 0},
		{"one byte over it", 100, 199, 10, 19, 20, 190, 0},
		{"fewer rounds", 7, 1000, 10, 7, 7, 70, 0},
		{"larger than the limit", 100, 9, 10, 0, 20, 0, 0},
		{"numbers are left out", 100, 150, 10, 15, 20, 150, 30},
		{"more than there are", 7, 1000, 10, 1, 1, 10, 30},
	} {
		var r recent
		r.init(c.rounds, c.most)
		last := int64(19 + c.gap)
		for n := range last + 1 {
			if n > 9 && n < 10+int64(c.gap) && c.gap > 0 && c.kept > 1 || c.kept == 1 && n < last {
				continue
			}
			r.put(n, bytes.Repeat([]byte{byte(n)}, c.size))
			if _, _, ok := r.get(n); ok != (c.size <= c.most) {
				t.Errorf("%s: round %d before it has an offset: %v", c.name, n, ok)
			}
			r.stored(n, n+100)
		}
		kept, located, held := 0, 0, 0
		for n := range last + 1 {
			value, offset, ok := r.get(n)
			if ok {
				located++
			}
			if ok && offset != n+100 || value != nil && !bytes.Equal(value, bytes.Repeat([]byte{byte(n)}, c.size)) {
				t.Errorf("%s: round %d is %v at %d", c.name, n, value, offset)
			}
			held += len(value)
			if value != nil {
				kept++
			} else if kept > 0 && ok {
				t.Errorf("%s: round %d is gone, and an earlier one is not", c.name, n)
			}
		}
		if kept != c.kept || located != c.located || held != c.bytes {
			t.Errorf("%s: %d rounds and %d bytes are kept, %d located; want %d, %d, %d",
				c.name, kept, held, located, c.kept, c.bytes, c.located)
		}
	}
}

// TestRecentAllocates holds that a decision's bytes take the place of those that are forgotten.
func TestRecentAllocates(t *testing.T) {
	var r recent
	r.init(100, 1000)
	n, value := int64(0), make([]byte, 37)
	put := func() {
		n++
		r.put(n, value[:n%37+1])
	}
	for range 100 {
		put()
	}
	if got := testing.AllocsPerRun(1000, put); got != 0 {
		t.Errorf("%v allocations a decision", got)
	}
}

// An acknowledgement that comes after the round's place was given to a later one is not that
// one's: its decision would be looked for where another lies.
func TestRecentOvertaken(t *testing.T) {
	var r recent
	r.init(4, 1000)
	r.put(1, []byte("one"))
	r.put(5, []byte("five"))
	r.stored(1, 101)
	if _, offset, _ := r.get(5); offset != -1 {
		t.Errorf("round 5, which is not acknowledged, is at %d", offset)
	}
	if value, offset, ok := r.get(1); ok {
		t.Errorf("round 1 is gone, and is %q at %d", value, offset)
	}
}

// stalledLog counts its readers, and lets none begin until it is released.
type stalledLog struct {
	stream.Log
	topic   string
	release chan struct{}
	readers int
	open    chan struct{} // has room for one reader
}

func (l *stalledLog) Read(ctx context.Context, topic string, p int, from int64) (stream.Reader, error) {
	if topic == l.topic && l.release == nil {
		l.readers++
	} else if topic == l.topic {
		select {
		case l.open <- struct{}{}:
		default:
			return nil, stream.ErrUnavailable // two at once
		}
		<-l.release
		l.readers++
		<-l.open
	}
	return l.Log.Read(ctx, topic, p, from)
}

// TestReadBacks has thousands ask again for old decisions at once while the log is slow: one
// reader at a time serves all who wait for the same decision, as many wait as may, the rest
// are told at once when to ask again, and new requests are answered meanwhile.
func TestReadBacks(t *testing.T) {
	const old, asked = 50, 3000
	l := &stalledLog{open: make(chan struct{}, 1)}
	r := newRig(t, func(r *rig) { l.Log, l.topic, r.dc.Log = r.log, r.topics.Decisions, l })
	r.must(r.settle())
	context := func(n int) string { return fmt.Sprintf(`{"id":"old%d","actions":["a","b"]}`, n) }
	want := make([]string, old)
	for n := range old {
		want[n] = strings.Replace(r.request("%s", context(n)), `"duplicate":false`, `"duplicate":true`, 1)
	}
	l.readers = 0
	if got := r.request("%s", context(0)); got != want[0] || l.readers > 0 {
		t.Errorf("a repeat is answered with %s by %d readers, want %s from memory", got, l.readers, want[0])
	}
	r.d.recent.forget()
	l.readers = 0
	l.release = make(chan struct{})
	r.d.spawn = func(f func()) { go f() }
	r.d.gate = front.NewGate("decide", r.m, r.d.requestOf)
	defer r.d.gate.Close()
	answers := make(chan func(), asked)
	right, refused := 0, 0
	for i := range asked {
		n := i % old
		r.d.gate.Request(stream.Message{Data: []byte(context(n)),
			Respond: func(b []byte, headers ...stream.Header) error {
				reply, delay := string(b), headers
				answers <- func() {
					switch {
					case reply == want[n]:
						right++
					case len(delay) == 3 && delay[1].Value == "503" && delay[2] == (stream.Header{Key: "Retry-After",
						Value: "1"}):
						refused++
					default:
						t.Errorf("%s, %v", reply, delay)
					}
				}
				return nil
			}})
	}
	fresh := make(chan string, 1)
	for late := time.Now().Add(30 * time.Second); r.d.gate.Waiting() > 0; { // what is read back waits elsewhere
		if time.Now().After(late) {
			close(l.release)
			t.Fatal("repeats hold up requests")
		}
		runtime.Gosched()
	}
	asksAnew := []byte(`{"id":"new","actions":["a","b"]}`)
	r.d.gate.Request(stream.Message{Data: asksAnew, Respond: func(b []byte, _ ...stream.Header) error {
		fresh <- string(b)
		return nil
	}})
	if got := <-fresh; !strings.Contains(got, `"duplicate":false`) {
		t.Errorf("a new request meanwhile: %s", got)
	}
	close(l.release)
	for range asked {
		(<-answers)()
	}
	if right != 1024 || right+refused != asked || l.readers > 2*old {
		t.Errorf("%d repeats got their decision by %d readers, %d were refused", right, l.readers, refused)
	}
	room, share := &r.d.old.room, r.dc.recentShare()
	if !room.Take(2, 1) || !room.Take(share-2, share) { // only where there is no request, and no byte beside the 2
		t.Error("repeats wait for ever")
	}
}
