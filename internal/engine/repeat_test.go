package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/internal/join"
	"hindsight/pkg/stream"
)

// repeats asks for the same rounds again and again, and checks what it is told.
type repeats struct {
	t       testing.TB
	conn    *natsgo.Conn
	subject string
	size    int // bytes of a context, about

	mu       sync.Mutex
	actions  map[int]string // of decided rounds
	again    int            // answers that were stored decisions
	refused  int            // answers that said when to ask again
	answered chan struct{}
}

func newRepeats(t testing.TB, s *system, size int) *repeats {
	t.Helper()
	conn, err := natsgo.Connect(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	r := &repeats{t: t, conn: conn, subject: s.name + ".decide", size: size,
		actions: map[int]string{}, answered: make(chan struct{}, 1<<20)}
	sub, err := conn.Subscribe("_INBOX.repeats.*", r.answer)
	if err == nil {
		err = sub.SetPendingLimits(-1, -1)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *repeats) ask(n int) {
	data := fmt.Appendf(nil, `{"id":"repeat%d","features":{"x":1},"unknown":"%s"}`, n, strings.Repeat("u", r.size))
	if err := r.conn.PublishRequest(r.subject, "_INBOX.repeats."+strconv.Itoa(n), data); err != nil {
		r.t.Error(err)
	}
}

func (r *repeats) answer(m *natsgo.Msg) {
	var a struct {
		Action    string
		Duplicate bool
	}
	n, _ := strconv.Atoi(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	code := m.Header.Get("Nats-Service-Error-Code")
	r.mu.Lock()
	defer r.mu.Unlock()
	switch was, ok := r.actions[n]; {
	case code == "503" && m.Header.Get("Retry-After") == "1":
		r.refused++
	case code != "" || json.Unmarshal(m.Data, &a) != nil:
		r.t.Errorf("round %d: %v %s", n, m.Header, m.Data)
	case !ok:
		r.actions[n] = a.Action
	case was == a.Action && a.Duplicate:
		r.again++
	default:
		r.t.Errorf("round %d was %s: %s", n, was, m.Data)
	}
	r.answered <- struct{}{}
}

// decide has so many rounds decided, a few at a time.
func (r *repeats) decide(rounds int) {
	for n := 0; n < rounds; {
		batch := min(100, rounds-n)
		for i := range batch {
			r.ask(n + i)
		}
		for range batch {
			<-r.answered
		}
		r.mu.Lock()
		for _, ok := r.actions[n]; ok; _, ok = r.actions[n] {
			n++
		}
		r.mu.Unlock()
	}
	r.again, r.refused = 0, 0
}

// TestManyRepeats asks again for thousands of decided rounds at once, of which memory holds
// a part: each repeat gets its decision or is told when to come again, another client is
// served meanwhile, the joiner joins, and whoever wants to read the log can.
func TestManyRepeats(t *testing.T) {
	const window = 100
	rounds, size, asked := 1500, 16<<10, 3000
	if os.Getenv("HINDSIGHT_LONG") != "" {
		rounds, size, asked = 50_000, 500, 100_000
	}
	s := startOn(t, open(t, t.TempDir()), benchSource(t, fmt.Sprint(window, " rounds")))
	defer s.stop()
	r := newRepeats(t, s, size)
	r.decide(rounds)
	began := time.Now()
	for i := range asked {
		r.ask(i % rounds)
	}
	other, err := natsgo.Connect(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	// insist asks as clients are told to, and returns how long that took.
	insist := func(verb, data string) time.Duration {
		began := time.Now()
		for {
			m, err := other.Request(s.name+"."+verb, []byte(data), 30*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if m.Header.Get("Nats-Service-Error-Code") == "" {
				return time.Since(began)
			}
		}
	}
	served := 0
	var longest time.Duration
	for len(r.answered) < asked || served < 2*window {
		id := fmt.Sprint("other", served)
		longest = max(longest, insist("decide", fmt.Sprintf(`{"id":%q}`, id)))
		longest = max(longest, insist("outcome", fmt.Sprintf(`{"id":%q,"loss":0.5}`, id)))
		served++
	}
	took := time.Since(began)
	r.mu.Lock()
	defer r.mu.Unlock()
	t.Logf("of %d repeats %d got their decision, %d were refused; another client had %d rounds decided and reported, "+
		"at most %v for one answer; %v",
		asked, r.again, r.refused, served, longest, took)
	if r.again < 300 || r.again+r.refused != asked {
		t.Errorf("of %d repeats %d got their decision, and %d were told when to come again", asked, r.again, r.refused)
	}
	topics := join.TopicsOf(s.name)
	for _, topic := range []string{topics.Decisions, topics.Outcomes, topics.Feedback} {
		in, err := s.Log.Read(t.Context(), topic, 0, stream.Earliest)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		for found := topic != topics.Feedback; !found; {
			records, err := in.Next(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, rec := range records {
				found = found || bytes.Contains(rec.Value, []byte("other0"))
			}
		}
	}
}
