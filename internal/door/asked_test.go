package door

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"hindsight/internal/engine"
	"hindsight/internal/service"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/nats"
)

// TestMessagePack holds that MessagePack is answered in MessagePack, and errors as problems all the same.
func TestMessagePack(t *testing.T) {
	w := open(t, setting{})
	const kind = "Content-Type: application/msgpack"
	asked := codec.AppendContext(nil, &codec.Context{ID: "a", Actions: []codec.Action{{Name: "x"}, {Name: "y"}}})
	got := w.call("POST", "/v1/decide", string(asked), kind)
	var d struct {
		ID     string `msgpack:"id"`
		Action string `msgpack:"action"`
	}
	if err := msgpack.Unmarshal(got.body, &d); err != nil || got.status != 200 || d.ID != "a" || d.Action == "" ||
		got.header.Get("Content-Type") != typePack {
		t.Errorf("%v: %d %v %q", err, got.status, got.header, got.body)
	}
	told := codec.AppendOutcome(nil, &codec.Outcome{ID: "a", Kind: codec.Loss, Value: 0.5})
	if got := w.call("POST", "/v1/outcome", string(told), kind); got.status != 202 ||
		len(w.records("shop.outcomes")) != 1 {
		t.Errorf("%d %q", got.status, got.body)
	}
	other := codec.AppendContext(nil, &codec.Context{ID: "a", Actions: []codec.Action{{Name: "x"}}})
	if p := w.call("POST", "/v1/decide", string(other), kind).problem(t); p.Status != 409 ||
		p.ID != "a" || !strings.Contains(p.Detail, "in round 1 of partition 0") {
		t.Errorf("%+v", p)
	}
}

// TestGzip holds that bodies may be compressed, and that long answers are for those who take that.
func TestGzip(t *testing.T) {
	w := open(t, setting{})
	var asked strings.Builder
	for i := range 200 {
		fmt.Fprintf(&asked, `,"action %d"`, i)
	}
	body := `{"id":"a","actions":[` + asked.String()[1:] + `]}`
	got := w.call("POST", "/v1/decide", zipped(t, []byte(body)), "Content-Encoding: gzip", "Accept-Encoding: gzip")
	if got.header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%d %v", got.status, got.header)
	}
	plain := w.call("POST", "/v1/decide", body, "Accept-Encoding: identity")
	if want := bytes.Replace(inflated(t, got.body), []byte(`"duplicate":false`), []byte(`"duplicate":true`),
		1); !bytes.Equal(want, plain.body) || plain.header.Get("Content-Encoding") != "" {
		t.Errorf("%s\nand\n%s", want, plain.body)
	}
	if got := w.call("POST", "/v1/decide", context1, "Accept-Encoding: gzip"); got.header.Get(
		"Content-Encoding") != "" {
		t.Errorf("a short answer: %v", got.header)
	}
}

// TestCloudEvents holds that both modes of CloudEvents are taken.
func TestCloudEvents(t *testing.T) {
	w := open(t, setting{})
	const event = `{"specversion":"1.0","id":"s","source":"/web","type":"context","data":{"actions":["x","y"]}}`
	if d := w.decide(event, "Content-Type: application/cloudevents+json; charset=utf-8"); d.ID != "s" {
		t.Errorf("%+v", d)
	}
	if d := w.decide(`{"actions":["x","y"]}`, "ce-specversion: 1.0", "ce-id: b", "ce-source: /web",
		"ce-type: context"); d.ID != "b" {
		t.Errorf("%+v", d)
	}
}

// TestHTTP2 holds that HTTP/2 without TLS is spoken to those who begin with it.
func TestHTTP2(t *testing.T) {
	w := open(t, setting{})
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	w.client.Transport.(*http.Transport).Protocols = protocols
	r, err := http.NewRequestWithContext(t.Context(), "POST", w.url+"/v1/decide", strings.NewReader(context1))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", typeJSON)
	got, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if got.ProtoMajor != 2 || got.StatusCode != 200 {
		t.Errorf("%s %d", got.Proto, got.StatusCode)
	}
}

// TestClientRate holds that --client-rate counts the requests of a client, and that refusals are counted.
func TestClientRate(t *testing.T) {
	w := open(t, setting{clientRate: 1})
	var got reply
	for range 1000 {
		if got = w.call("POST", "/v1/decide", context1); got.status != 200 {
			break
		}
	}
	if p := got.problem(t); p.Status != 429 || got.header.Get("Retry-After") != "1" ||
		!strings.Contains(p.Detail, "too often") {
		t.Errorf("%+v", p)
	}
	w.call("POST", "/v1/decide", context1, "Content-Type: text/plain")
	refused := w.refused("decide")
	if refused["429"] != 1 || refused["other"] != 1 {
		t.Errorf("refused %v", refused)
	}
}

// TestClientRateOfKeys holds that clients with keys are counted by their names.
func TestClientRateOfKeys(t *testing.T) {
	file, keys := keyFile(t, "web decide", "till decide")
	w := open(t, setting{clientRate: 1, flags: []string{"--keys", file}})
	for range 1000 {
		if got := w.call("POST", "/v1/decide", context1, "Authorization: Bearer "+keys["web"]); got.status == 429 {
			break
		}
	}
	w.decide(context1, "Authorization: Bearer "+keys["till"])
}

// refused returns the requests that were answered with an error, by code.
func (w *world) refused(subject string) map[string]float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "hindsight_requests_refused_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["subject"] == subject {
				out[labels["code"]] = m.GetCounter().GetValue()
			}
		}
	}
	return out
}

// heldLog tells of what is appended by its owners only while hold can be had.
type heldLog struct {
	stream.Log
	hold sync.RWMutex
}

type heldAppender struct {
	stream.Appender
	told sync.WaitGroup
	acks chan func()
}

func (l *heldLog) Open(ctx context.Context, topic string, p int, o stream.OpenOptions) (stream.Appender, stream.Tail,
	error) {
	a := &heldAppender{acks: make(chan func(), 1024)}
	ack := o.Ack
	if o.Ack != nil {
		o.Ack = func(seq uint64, offset int64, err error) {
			a.told.Add(1)
			a.acks <- func() { ack(seq, offset, err); a.told.Done() }
		}
	}
	inner, tail, err := l.Log.Open(ctx, topic, p, o)
	go func() {
		for f := range a.acks {
			l.hold.RLock()
			f()
			l.hold.RUnlock()
		}
	}()
	a.Appender = inner
	return a, tail, err
}

func (a *heldAppender) Flush(ctx context.Context) error {
	err := a.Appender.Flush(ctx)
	a.told.Wait()
	return err
}

func (a *heldAppender) Close() error {
	err := a.Appender.Close()
	a.told.Wait()
	close(a.acks)
	return err
}

// TestStop holds that requests under way at the stop are answered, and that no others are taken.
func TestStop(t *testing.T) {
	log := &heldLog{Log: newLog()}
	w := open(t, setting{log: log})
	log.hold.Lock()
	const asked = 5
	answers := make(chan reply, asked)
	for i := range asked {
		go func() { answers <- w.call("POST", "/v1/decide", fmt.Sprintf(`{"id":"%d","actions":["x","y"]}`, i)) }()
	}
	eventually(t, "all are in the log", func() bool { return len(w.records("shop.decisions")) == asked })
	stopped := make(chan struct{})
	go func() { w.stop(); close(stopped) }()
	eventually(t, "nobody listens", func() bool {
		r, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(w.url + "/")
		if err == nil {
			r.Body.Close()
		}
		return err != nil
	})
	select {
	case a := <-answers:
		t.Fatalf("answered before it is in the log: %d %s", a.status, a.body)
	default:
	}
	log.hold.Unlock()
	for range asked {
		if a := <-answers; a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	<-stopped
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); {
		if time.Since(began) > time.Minute {
			t.Fatalf("not within a minute: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// TestGone holds that one who goes away is nobody whose answer harms another.
func TestGone(t *testing.T) {
	log := &heldLog{Log: newLog()}
	w := open(t, setting{log: log})
	log.hold.Lock()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", w.url+"/v1/decide", strings.NewReader(context1))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", typeJSON)
	gone := make(chan error, 1)
	go func() {
		_, err := w.client.Do(r)
		gone <- err
	}()
	eventually(t, "it is in the log", func() bool { return len(w.records("shop.decisions")) == 1 })
	cancel()
	if <-gone == nil {
		t.Error("answered")
	}
	log.hold.Unlock()
	for i := range 20 {
		id := fmt.Sprint("after ", i)
		if d := w.decide(fmt.Sprintf(`{"id":%q,"actions":["x","y"]}`, id)); d.ID != id || d.Duplicate {
			t.Errorf("%s was told %+v", id, d)
		}
	}
	if d := w.decide(context1); !d.Duplicate || d.N != 1 {
		t.Errorf("asked again: %+v", d)
	}
}

// played is what a world decided and learned, without times and offsets.
type played struct {
	decisions []codec.Decision
	feedback  []codec.Feedback
}

// play asks for rounds one after the other, each when the one before is learned.
func (w *world) play(rounds int, learned func(int64), ask func(subject, body string)) (p played) {
	w.t.Helper()
	for i := range rounds {
		ask("decide", fmt.Sprintf(`{"id":"round-%d","features":{"hour":%d},"actions":["x","y","z"]}`, i, i%24))
		ask("outcome", fmt.Sprintf(`{"id":"round-%d","loss":%g}`, i, float64(i%7)/7))
		learned(int64(i) + 1)
	}
	for _, b := range w.records("shop.decisions") {
		var d codec.Decision
		if err := codec.ParseDecision(&d, bytes.Clone(b)); err != nil {
			w.t.Fatal(err)
		}
		d.Time, d.ContextsThrough = 0, 0
		p.decisions = append(p.decisions, d)
	}
	for _, b := range w.records("shop.feedback") {
		var f codec.Feedback
		if err := codec.ParseFeedback(&f, bytes.Clone(b)); err != nil {
			w.t.Fatal(err)
		}
		f.Time, f.ClosedAt, f.OutcomeOffset = 0, 0, 0
		p.feedback = append(p.feedback, f)
	}
	return p
}

// TestSameWorld holds that the same world, asked over NATS and over HTTP, has equal decisions and feedback.
func TestSameWorld(t *testing.T) {
	const rounds = 100
	run := func(byHTTP bool) played {
		e, err := engine.Open(t.Context(), engine.Options{Log: "mem:", Listen: "127.0.0.1:0",
			Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		through := make(chan int64, 4*rounds)
		w := open(t, setting{log: e.Log, bus: e.Bus, change: func(c *service.SystemConfig) {
			c.Learned = func(_ int, n int64) { through <- n }
		}})
		defer w.stop()
		client, err := nats.Dial(e.URL, "test", nats.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		return w.play(rounds, func(n int64) {
			for <-through < n {
			}
		}, func(subject, body string) {
			if byHTTP {
				if got := w.call("POST", "/v1/"+subject, body); got.status >= 300 {
					t.Fatalf("%d %s", got.status, got.body)
				}
				return
			}
			if b, h, err := client.Bus().Request(t.Context(), "shop."+subject, []byte(body)); err != nil || len(h) > 0 {
				t.Fatalf("%v %s", err, b)
			}
		})
	}
	a, b := run(false), run(true)
	if len(a.decisions) != rounds || len(a.feedback) != rounds || fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
		t.Errorf("%d and %d decisions, %d and %d feedbacks; NATS\n%+v\nHTTP\n%+v", len(a.decisions), len(b.decisions),
			len(a.feedback), len(b.feedback), a, b)
	}
	if a.decisions[rounds-1].LearnedThrough != rounds-1 {
		t.Errorf("the last of them had learned %d", a.decisions[rounds-1].LearnedThrough)
	}
}

// TestPartitions holds that a retry finds its round in whichever partition that is.
func TestPartitions(t *testing.T) {
	w := open(t, setting{partitions: 3})
	seen := map[int]bool{}
	for i := range 30 {
		body := fmt.Sprintf(`{"id":"%d","actions":["x","y"]}`, i)
		first, again := w.decide(body), w.decide(body)
		if first.Duplicate || !again.Duplicate || first.N != again.N || first.Partition != again.Partition {
			t.Errorf("%+v, then %+v", first, again)
		}
		seen[first.Partition] = true
	}
	if len(seen) != 3 {
		t.Errorf("partitions %v", seen)
	}
}

// TestForwarded holds that a request for a round of another process is answered by it, over the bus between them.
func TestForwarded(t *testing.T) {
	log := newLog()
	between := log.(stream.Bus)
	owner := func(p int) func(*service.SystemConfig) {
		return func(c *service.SystemConfig) {
			if c.Owned, c.BusApart = []int{p}, false; p > 0 {
				c.Source = nil // the joiner is the other process
			}
		}
	}
	a := open(t, setting{log: log, bus: between, partitions: 2, change: owner(0)})
	b := open(t, setting{log: log, bus: between, partitions: 2, change: owner(1)})
	standby := open(t, setting{log: log, bus: between, partitions: 2, change: func(c *service.SystemConfig) {
		c.Owned, c.Source, c.BusApart = []int{}, nil, false
	}})
	for i := range 20 {
		body := fmt.Sprintf(`{"id":"%d","actions":["x","y"]}`, i)
		first := a.decide(body)
		for _, other := range []*world{b, standby} {
			if again := other.decide(body); first.Duplicate || !again.Duplicate || first.N != again.N {
				t.Errorf("%+v, then %+v", first, again)
			}
		}
	}
	seen := map[int]bool{}
	for range 4 {
		seen[standby.decide(`{"actions":["x","y"]}`).Partition] = true
	}
	if len(seen) != 2 {
		t.Errorf("without an id a process that owns no partition asks those of %v", seen)
	}
	b.stop()
	refused := 0
	for i := range 20 {
		got := a.call("POST", "/v1/decide", fmt.Sprintf(`{"id":"later %d","actions":["x","y"]}`, i))
		if got.status == 503 && strings.Contains(got.problem(t).Detail, "no decider owns partition 1") {
			refused++
		} else if got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if refused == 0 || refused == 20 {
		t.Errorf("%d of 20 are refused while the other process is away", refused)
	}
}

// TestReplyIsCopied holds that a reply is what it was when it was given, though its bytes are used again.
func TestReplyIsCopied(t *testing.T) {
	b := newBus(nil)
	stop, err := b.Serve("a", "", func(m stream.Message) {
		reply := []byte("first")
		if err := m.Respond(reply); err != nil {
			t.Error(err)
		}
		copy(reply, "other")
	})
	if err != nil {
		t.Fatal(err)
	}
	e := exchanges.Get().(*exchange)
	if !b.hand("a", e) || !e.await(t.Context(), time.Minute) || string(e.reply) != "first" {
		t.Errorf("%q", e.reply)
	}
	stop()
	if b.hand("a", e) {
		t.Error("handed over after the stop")
	}
}
