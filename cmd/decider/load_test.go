package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"hindsight/internal/check"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/nats"
)

// load is what the users of a system do while it is killed: they write contexts,
// ask for decisions, read what was decided, and report outcomes. What they were not
// told the fate of they do again.
type load struct {
	t    testing.TB
	dir  string
	name string

	quit     context.Context // the users must give up
	stopping context.Context // the users begin nothing new
	leave    func()
	group    sync.WaitGroup // of those who begin things
	carriers sync.WaitGroup // of those who carry outcomes

	mu      sync.Mutex
	at      *link
	changed chan struct{}
	replies []check.Reply
	asked   map[string][]byte // contexts that were answered, by id
	ids     []string          // their ids

	contexts, outcomes, reports outbox
}

// link is a connection to one life of the system.
type link struct {
	ctx context.Context // ends with it
	log stream.Log      // of the service's user
	bus stream.Bus      // of a user without a name
	end func()
}

// item is a record that must arrive.
type item struct {
	id     string // "": it is not sent again if its fate is unknown
	record stream.Record
	stored []int64 // offsets that were acknowledged
}

// outbox holds records that wait to be sent.
type outbox struct {
	mu     sync.Mutex
	wait   []*item
	sent   []*item
	closed bool
}

func (o *outbox) push(items ...*item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wait = append(o.wait, items...)
}

// take returns the next item, nil if there is none now; open says whether there may
// be one later.
func (o *outbox) take() (it *item, open bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.wait) == 0 {
		return nil, !o.closed
	}
	it, o.wait = o.wait[0], o.wait[1:]
	return it, true
}

func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

func newLoad(t testing.TB, dir, name string, seed uint64) *load {
	quit, cancel := context.WithCancel(context.Background())
	stopping, leave := context.WithCancel(quit)
	l := &load{t: t, dir: dir, name: name, quit: quit, stopping: stopping, leave: leave, changed: make(chan struct{}), asked: map[string][]byte{}}
	t.Cleanup(func() {
		cancel()
		l.detach()
		l.group.Wait()
		l.carriers.Wait()
	})
	l.group.Go(func() { l.write(rand.New(rand.NewPCG(seed, 1))) })
	l.group.Go(func() { l.carry(&l.contexts, name+".contexts") })
	for i := range 4 {
		l.group.Go(func() { l.ask(i, rand.New(rand.NewPCG(seed, uint64(2+i)))) })
	}
	l.group.Go(func() { l.watch(rand.New(rand.NewPCG(seed, 100))) })
	l.carriers.Go(func() { l.carry(&l.outcomes, name+".outcomes") })
	l.carriers.Go(l.report)
	return l
}

// attach connects the users to a process that is ready.
func (l *load) attach(url string) {
	l.t.Helper()
	service, err := dial(l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	user, err := nats.Dial(url, "load", nats.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.set(&link{ctx, service.Log(), user.Bus(), func() {
		cancel()
		service.Close()
		user.Close()
	}})
}

// detach tells the users that the process is gone.
func (l *load) detach() {
	if k := l.set(nil); k != nil {
		k.end()
	}
}

func (l *load) set(k *link) (was *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, l.at = l.at, k
	close(l.changed)
	l.changed = make(chan struct{})
	return was
}

// link returns the connection there is, waiting for one; nil if the users give up.
func (l *load) link() *link {
	for {
		l.mu.Lock()
		k, changed := l.at, l.changed
		l.mu.Unlock()
		if k != nil {
			return k
		}
		select {
		case <-changed:
		case <-l.quit.Done():
			return nil
		}
	}
}

// pause lets some time pass between two actions of a user, and reports whether
// there is to be another.
func (l *load) pause(tick <-chan time.Time) bool {
	select {
	case <-tick:
		return true
	case <-l.stopping.Done():
	}
	return false
}

// stop lets the users finish what they began: everything that they know the
// system has is settled when it returns.
func (l *load) stop() {
	l.leave()
	l.contexts.close()
	l.within("the requests and contexts", &l.group)
	l.outcomes.close()
	l.reports.close()
	l.within("the outcomes", &l.carriers)
}

func (l *load) within(what string, g *sync.WaitGroup) {
	l.t.Helper()
	done := make(chan struct{})
	go func() { g.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * patience):
		l.t.Fatalf("%s were not answered within %v", what, 2*patience)
	}
}

// write makes contexts for the topic.
func (l *load) write(r *rand.Rand) {
	tick := time.NewTicker(4 * time.Millisecond)
	defer tick.Stop()
	for n := 0; l.pause(tick.C); {
		for range r.IntN(5) {
			n++
			it := &item{id: fmt.Sprintf("c%d", n)}
			it.record = stream.Record{Key: []byte(it.id), Value: context1(r, it.id)}
			switch r.IntN(40) {
			case 0:
				it.id, it.record = "", stream.Record{Value: context1(r, "")}
			case 1:
				it.id, it.record.Value = "", []byte(`{"actions":`)
			}
			l.contexts.push(it)
		}
	}
}

// context1 makes a context, as JSON or as MessagePack.
func context1(r *rand.Rand, id string) []byte {
	c := codec.Context{ID: id, Features: []codec.Feature{
		{Name: "hour", Kind: codec.Number, Value: float64(r.IntN(24))},
		{Name: "country", Kind: codec.Text, Text: []string{"DE", "FR", "IT"}[r.IntN(3)]},
	}}
	for _, a := range []string{"red", "green", "blue", "black"}[:2+r.IntN(3)] {
		c.Actions = append(c.Actions, codec.Action{Name: a})
	}
	if r.IntN(3) == 0 {
		return codec.AppendContext(nil, &c)
	}
	return codec.AppendContextJSON(nil, &c)
}

// carry sends an outbox to a topic, what got lost on the way again.
func (l *load) carry(o *outbox, topic string) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for k := l.link(); k != nil && !l.carryOver(k, o, topic, tick.C); k = l.link() {
		<-tick.C
	}
}

// carryOver carries over one connection. It reports true when everything is stored
// and nothing more will come.
func (l *load) carryOver(k *link, o *outbox, topic string, tick <-chan time.Time) (done bool) {
	var mu sync.Mutex
	var sent []*item // by sequence
	var told int
	w, err := k.log.Writer(k.ctx, topic, 0, func(seq uint64, offset int64, err error) {
		mu.Lock()
		defer mu.Unlock()
		told = int(seq)
		if err == nil {
			sent[seq-1].stored = append(sent[seq-1].stored, offset)
		}
	})
	for open := true; err == nil && open; {
		var it *item
		if it, open = o.take(); it == nil {
			select {
			case <-tick:
			case <-k.ctx.Done():
				err = k.ctx.Err()
			}
			continue
		}
		mu.Lock()
		sent = append(sent, it)
		mu.Unlock()
		if _, err = w.Append(k.ctx, &it.record); err != nil {
			mu.Lock()
			sent = sent[:len(sent)-1]
			mu.Unlock()
			o.push(it)
		}
	}
	if err == nil {
		err = w.Flush(k.ctx)
	}
	if w != nil {
		w.Close()
	}
	if err != nil && k.ctx.Err() == nil && !stream.IsRetryable(err) && !errors.Is(err, stream.ErrClosed) {
		l.t.Errorf("write %s: %v", topic, err)
	}
	for i, it := range sent {
		if len(it.stored) == 0 && it.id != "" {
			o.push(it)
		}
		o.mu.Lock()
		if len(it.stored) > 0 || i < told {
			o.sent = append(o.sent, it)
		}
		o.mu.Unlock()
	}
	return err == nil
}

// watch reads the decisions and reports what they were worth, after some more of
// them, twice, or never.
func (l *load) watch(r *rand.Rand) {
	from, n := stream.Earliest, 0
	due := map[int][]*item{}
	for {
		k := l.link()
		if k == nil {
			return
		}
		ctx, cancel := context.WithCancel(k.ctx)
		detach := context.AfterFunc(l.stopping, cancel)
		decisions, err := k.log.Read(ctx, l.name+".decisions", 0, from)
		var batch []stream.Record
		for err == nil {
			if batch, err = decisions.Next(ctx, batch[:0]); err != nil {
				break
			}
			for i := range batch {
				from = batch[i].Offset + 1
				if batch[i].Type != "" {
					continue
				}
				n++
				l.judge(r, batch[i].Value, due, n)
				for _, it := range due[n] {
					l.send(r, it)
				}
				delete(due, n)
			}
		}
		if decisions != nil {
			decisions.Close()
		}
		detach()
		cancel()
		if l.stopping.Err() != nil {
			for _, items := range due {
				l.outcomes.push(items...)
			}
			return
		}
		if k.ctx.Err() == nil && !stream.IsRetryable(err) && !errors.Is(err, stream.ErrClosed) {
			l.t.Errorf("read decisions: %v", err)
			return
		}
	}
}

// judge plans the outcomes of a decision.
func (l *load) judge(r *rand.Rand, value []byte, due map[int][]*item, n int) {
	var d codec.Decision
	if err := codec.ParseDecision(&d, value); err != nil {
		l.t.Errorf("a decision that users cannot read: %v", err)
		return
	}
	o := codec.Outcome{ID: strings.Clone(d.ID), Kind: codec.Loss, Value: float64(r.IntN(5)) / 4, OutcomeID: fmt.Sprintf("o%d", n)}
	switch r.IntN(30) {
	case 0, 1, 2:
		return // never
	case 3:
		o.Kind, o.Value = codec.Withdrawn, 0
	case 4:
		o.Action = "brown"
	case 5:
		o.ID = "nobody-" + o.ID
	case 6:
		o.Value = 7
	}
	for range 1 + r.IntN(8)/7 {
		at := n + int(r.ExpFloat64()*8)
		due[at] = append(due[at], &item{id: o.OutcomeID, record: stream.Record{Key: []byte(o.ID), Value: codec.AppendOutcomeJSON(nil, &o)}})
	}
}

func (l *load) send(r *rand.Rand, it *item) {
	if r.IntN(3) == 0 {
		l.reports.push(it)
	} else {
		l.outcomes.push(it)
	}
}

// report sends outcomes by request, each until it is stored.
func (l *load) report() {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		it, open := l.reports.take()
		if it == nil && !open {
			return
		}
		if it == nil {
			select {
			case <-tick.C:
			case <-l.quit.Done():
				return
			}
			continue
		}
		if _, code := l.request(".outcome", it.record.Value); code != 0 {
			l.t.Errorf("the outcome %s was refused with %d", it.record.Value, code)
		}
		it.stored = append(it.stored, -1)
		l.reports.mu.Lock()
		l.reports.sent = append(l.reports.sent, it)
		l.reports.mu.Unlock()
	}
}

// request asks until there is an answer that is not about now: data, or an error's
// code.
func (l *load) request(verb string, data []byte) (reply []byte, code int) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		k := l.link()
		if k == nil {
			return nil, 0
		}
		ctx, cancel := context.WithTimeout(k.ctx, 2*time.Second)
		reply, headers, err := k.bus.Request(ctx, l.name+verb, data)
		cancel()
		switch code = errorCode(headers); {
		case err == nil && code != 503:
			return reply, code
		case err == nil, k.ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, stream.ErrNoResponder),
			errors.Is(err, stream.ErrUnavailable), errors.Is(err, stream.ErrClosed):
		default:
			l.t.Errorf("request %s%s: %v", l.name, verb, err)
			return nil, 0
		}
		select {
		case <-tick.C:
		case <-l.quit.Done():
			return nil, 0
		}
	}
}

func errorCode(headers []stream.Header) (code int) {
	for _, h := range headers {
		if h.Key == "Nats-Service-Error-Code" {
			fmt.Sscan(h.Value, &code)
		}
	}
	return code
}

// ask asks for decisions, some twice at once, some again much later, some with a
// used id for another context.
func (l *load) ask(user int, r *rand.Rand) {
	tick := time.NewTicker(6 * time.Millisecond)
	defer tick.Stop()
	for n := 0; l.pause(tick.C); {
		id := fmt.Sprintf("q%d-%d", user, n)
		old, data := l.earlier(r)
		switch k := r.IntN(20); {
		case k == 0 && old != "":
			l.decide(old, data)
		case k == 1 && old != "":
			l.refused(fmt.Sprintf(`{"id":%q,"features":{"hour":99},"actions":["red"]}`, old), 409)
			l.refused(fmt.Sprintf(`{"id":%q,"features":`, old), 400)
		case k == 2: // what may be in contexts too, by two ways at once
			n++
			it := &item{id: id, record: stream.Record{Key: []byte(id), Value: context1(r, id)}}
			l.contexts.push(it)
			l.decide(id, it.record.Value)
		case k < 6:
			n++
			data := context1(r, id)
			var twice sync.WaitGroup
			twice.Go(func() { l.decide(id, data) })
			l.decide(id, data)
			twice.Wait()
		default:
			n++
			l.decide(id, context1(r, id))
		}
	}
}

// refused asks for what must be refused.
func (l *load) refused(data string, want int) {
	if reply, code := l.request(".decide", []byte(data)); code != want && l.quit.Err() == nil {
		l.t.Errorf("the request %s was answered with %d %s, want %d", data, code, reply, want)
	}
}

// earlier returns a request that was answered.
func (l *load) earlier(r *rand.Rand) (id string, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ids) == 0 {
		return "", nil
	}
	id = l.ids[r.IntN(len(l.ids))]
	return id, l.asked[id]
}

// decide asks until there is a decision.
func (l *load) decide(id string, data []byte) {
	reply, code := l.request(".decide", data)
	if l.quit.Err() != nil {
		return
	}
	if code != 0 {
		l.t.Errorf("the request %s was refused with %d: %s", id, code, reply)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replies = append(l.replies, check.Reply{ID: id, Data: reply})
	if l.asked[id] == nil {
		l.asked[id] = data
		l.ids = append(l.ids, id)
	}
}

// told is what a reply says.
type told struct {
	ID     string `json:"id" msgpack:"id"`
	Action string `json:"action" msgpack:"action"`
	N      int64  `json:"n" msgpack:"n"`
}

func parseReply(b []byte) (r told, err error) {
	if codec.IsJSON(b) {
		return r, json.Unmarshal(b, &r)
	}
	return r, msgpack.Unmarshal(b, &r)
}

// dial connects as a part of the service.
func dial(dir string) (*nats.Client, error) { return attach.Dial(dir, "test", nats.Options{}) }
