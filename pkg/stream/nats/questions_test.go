package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// TestTopicsByPage holds that all streams are asked for, page by page and no more often than needed, and that topics
// are told in order.
func TestTopicsByPage(t *testing.T) {
	s, _ := runServer(t, t.TempDir(), -1)
	player := connect(t, s.ClientURL())
	l := dialTest(t, s.ClientURL(), Options{APIPrefix: "fake"}).Log()
	for total, want := range map[int]int{5: 2, 9: 3} { // the server forgets some meanwhile
		asked := 0
		answers := hear(t, player, "fake.STREAM.NAMES", func(m *natsgo.Msg) {
			page := map[string]string{`{"offset":0}`: `"s_x_0","_x_0","x_0","b_x_0"`,
				`{"offset":4}`: `"a_x_0"`}[string(m.Data)]
			asked++
			_ = m.Respond(fmt.Appendf(nil, `{"total":%d,"streams":[%s]}`, total, page))
		})
		topics, err := l.Topics(t.Context())
		if fmt.Sprint(topics) != "[a.x b.x s.x]" || err != nil || asked != want {
			t.Errorf("%d streams: topics %v, asked %d times, %v", total, topics, asked, err)
		}
		_ = answers.Unsubscribe()
	}
}

// TestTwoCreate: of two that create a topic at once the second takes that of the first, if it is the same.
func TestTwoCreate(t *testing.T) {
	s, _ := runServer(t, t.TempDir(), -1)
	first, player := dialTest(t, s.ClientURL(), Options{}).Log(), dialTest(t, s.ClientURL(), Options{}).Log().conn
	partitions, inUse := 0, false
	hear(t, player, "late.>", func(m *natsgo.Msg) {
		subject := DefaultAPIPrefix + strings.TrimPrefix(m.Subject, "late")
		if strings.Contains(subject, "STREAM.CREATE") && partitions > 0 {
			if err := first.Create(t.Context(), "x", partitions, stream.TopicOptions{}); err != nil {
				t.Error(err)
			}
			partitions = 0
		}
		if inUse && strings.Contains(subject, "STREAM.CREATE") {
			_ = m.Respond([]byte(`{"error":{"code":400,"err_code":10058}}`))
			return
		}
		answer, err := player.Request(subject, m.Data, 10*time.Second)
		if err != nil {
			t.Error(err)
			return
		}
		_ = m.Respond(answer.Data)
	})
	l := dialTest(t, s.ClientURL(), Options{APIPrefix: "late"}).Log()
	for _, n := range []int{1, 2} {
		partitions = n
		if err := l.Create(t.Context(), "x", 1, stream.TopicOptions{}); errors.Is(err,
			stream.ErrPartitions) != (n == 2) ||
			n == 1 && err != nil {
			t.Errorf("the first made %d partitions: %v", n, err)
		}
		for i := range n {
			if err := first.call(t.Context(), first.conn, fmt.Sprint("STREAM.DELETE.x_", i), nil, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	inUse = true
	if err := l.Create(t.Context(), "x", 1, stream.TopicOptions{}); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("one that is there no more: %v", err)
	}
}

// TestNoJetStream: of a server that keeps no streams that is told.
func TestNoJetStream(t *testing.T) {
	s, _ := startServer(t, &server.Options{Port: -1})
	l := dialTest(t, s.ClientURL(), Options{}).Log()
	if _, _, err := l.Bounds(t.Context(), "x", 0); !errors.Is(err, stream.ErrUnavailable) ||
		!strings.Contains(err.Error(), "JetStream does not answer") {
		t.Error(err)
	}
}

// TestSilence holds what is made of questions that nobody answers: one for a stream is asked again, and what the leader
// has taken is not known.
func TestSilence(t *testing.T) {
	s, _ := runServer(t, t.TempDir(), -1)
	player := connect(t, s.ClientURL())
	asked := 0
	hear(t, player, "fake.STREAM.INFO.x_0", func(m *natsgo.Msg) {
		if asked++; asked == 2 {
			_ = m.Respond([]byte(`{"state":{"last_seq":7}}`))
		}
	})
	if _, err := player.SubscribeSync("x.0"); err != nil {
		t.Fatal(err)
	}
	if err := player.Flush(); err != nil {
		t.Fatal(err)
	}
	l := dialTest(t, s.ClientURL(), Options{APIPrefix: "fake", APITimeout: 200 * time.Millisecond}).Log()
	p, err := newPlace("x", 0)
	if err != nil {
		t.Fatal(err)
	}
	if i, err := l.info(t.Context(), l.conn, &p); err != nil || i.State.LastSeq != 7 {
		t.Errorf("asked again: %+v, %v", i, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	nobody := place{subject: "nobody"}
	for _, c := range []struct {
		ctx  context.Context
		p    *place
		want error
		says string
	}{
		{t.Context(), &p, stream.ErrUnavailable, "no answer from x.0"},
		{t.Context(), &nobody, stream.ErrUnavailable, "no responders"}, {ended, &p, context.Canceled, "canceled"},
	} {
		if n, err := l.taken(c.ctx, l.conn, c.p); n != 0 || !errors.Is(err, c.want) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %d, %v, want %s", c.p.subject, n, err, c.says)
		}
	}
}

// TestReaderWaits: a reader whose stream has no leader for a while makes its consumer when there is one, and tells all
// else at once.
func TestReaderWaits(t *testing.T) {
	s, _ := runServer(t, t.TempDir(), -1)
	player := connect(t, s.ClientURL())
	var answers []string
	play(t, player, "fake.STREAM.INFO.x_0", func() string {
		answer := answers[0]
		answers = answers[1:]
		return answer
	})
	const good, away = `{"state":{"first_seq":1,"last_seq":2}}`, `{"error":{"code":503,"err_code":10008}}`
	refusals := 0
	play(t, player, "fake.CONSUMER.CREATE.x_0", func() string {
		if refusals--; refusals >= 0 {
			return away
		}
		return `{"name":"c"}`
	})
	l := dialTest(t, s.ClientURL(), Options{APIPrefix: "fake"}).Log()
	answers = []string{good}
	x, err := l.Read(t.Context(), "x", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := x.(*reader)
	defer r.Close()
	for _, c := range []struct {
		first, last string
		refusals    int
		want        error
	}{{away, good, 0, nil}, {good, good, 1, nil}, {away, `{"error":{"code":404,"err_code":10059}}`, 0,
		stream.ErrNotFound}} {
		r.release()
		r.kick() // so that it does not wait for long
		answers, refusals = []string{c.first, c.last}, c.refusals
		if err := r.ready(t.Context()); !errors.Is(err, c.want) || len(answers) > 0 || (r.sub != nil) != (err == nil) {
			t.Errorf("%v, %d answers left, subscribed %v", err, len(answers), r.sub != nil)
		}
	}
	_ = r.Close() // while it connects
	answers = []string{good}
	if err := r.connect(t.Context()); !errors.Is(err, stream.ErrClosed) || r.sub != nil {
		t.Errorf("closed meanwhile: %v, subscribed %v", err, r.sub != nil)
	}
}

// TestTold holds what is read of a leader's refusal, and of a stream's state however that is written.
func TestTold(t *testing.T) {
	for text, want := range map[string]int64{
		`{"error":{"err_code":10071,"description":"wrong last sequence: 17"},"seq":0}`: 17,
		`{"error":{"err_code":10071,"description":"wrong last sequence: x"},"seq":0}`:  -1,
		`{"error":{"err_code":10077,"description":"maximum: 17"},"seq":0}`:             -1,
		`{"stream":"x_0","seq":17}`: -1, `what?`: -1,
	} {
		if got, err := takenIn([]byte(text)); (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	s, _ := runServer(t, t.TempDir(), -1)
	player := connect(t, s.ClientURL())
	answer := ""
	play(t, player, "fake.STREAM.INFO.x_0", func() string { return answer })
	l := dialTest(t, s.ClientURL(), Options{APIPrefix: "fake"}).Log()
	for _, answer = range []string{
		`{"config":{"num_replicas":1,"x":1},"state":{"first_seq":3,"last_seq":17,"y":1}}`,
		`{"config":{"num_replicas":1,"x":1},"state": {"first_seq": 3, "last_seq": 17}}`,
		`{"config":{"num_replicas": 1},"state":{"first_seq":3,"last_seq":17}}`,
	} {
		if first, next, err := l.Bounds(t.Context(), "x", 0); first != 3 || next != 18 || err != nil {
			t.Errorf("%s: %d to %d, %v", answer, first, next, err)
		}
	}
}
