package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"hindsight/internal/check"
	"hindsight/internal/loop"
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
	o    loadOptions

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

	contexts, outcomes outboxes
	reports            outbox
}

// loadOptions say how much of what the users do. The zero value is one partition, at
// full speed.
type loadOptions struct {
	partitions int    // 0: 1
	slow       int    // times slower; 0: 1
	mute       bool   // nobody asks: contexts and outcomes come by their topics only
	prefix     string // of the ids
	scatter    bool   // contexts of the topic come under any key, in any partition
	named      bool   // outcomes are those of shopNamed
	lossy      bool   // what was acknowledged may be gone
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
	place  int    // its partition
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

// outboxes are those of a topic, one for each partition.
type outboxes []outbox

// push takes items to the partitions of their keys.
func (o outboxes) push(items ...*item) {
	for _, it := range items {
		o.pushTo(loop.PartitionOf(it.record.Key, len(o)), it)
	}
}

func (o outboxes) pushTo(partition int, it *item) {
	it.place = partition
	o[partition].push(it)
}

func (o outboxes) close() {
	for i := range o {
		o[i].close()
	}
}

// sent returns what was sent, when nothing more is.
func (o outboxes) sent() (all []*item) {
	for i := range o {
		all = append(all, o[i].sent...)
	}
	return all
}

func newLoad(t testing.TB, dir, name string, seed uint64) *load {
	return newLoadOf(t, dir, name, seed, loadOptions{})
}

func newLoadOf(t testing.TB, dir, name string, seed uint64, o loadOptions) *load {
	o.partitions, o.slow = max(o.partitions, 1), max(o.slow, 1)
	quit, cancel := context.WithCancel(context.Background())
	stopping, leave := context.WithCancel(quit)
	l := &load{t: t, dir: dir, name: name, o: o, quit: quit, stopping: stopping, leave: leave,
		changed: make(chan struct{}), asked: map[string][]byte{},
		contexts: make(outboxes, o.partitions), outcomes: make(outboxes, o.partitions)}
	t.Cleanup(func() {
		cancel()
		l.detach()
		l.group.Wait()
		l.carriers.Wait()
	})
	l.group.Go(func() { l.write(rand.New(rand.NewPCG(seed, 1))) })
	for i := range 4 {
		if !o.mute {
			l.group.Go(func() { l.ask(i, rand.New(rand.NewPCG(seed, uint64(2+i)))) })
		}
	}
	for p := range o.partitions {
		l.group.Go(func() { l.carry(&l.contexts[p], name+".contexts", p) })
		l.group.Go(func() { l.watch(p, rand.New(rand.NewPCG(seed, 100+uint64(p)))) })
		l.carriers.Go(func() { l.carry(&l.outcomes[p], name+".outcomes", p) })
	}
	l.carriers.Go(l.report)
	return l
}

// attach connects the users to a process that is ready: by NATS, and in turn by HTTP if its address is given.
func (l *load) attach(url string, byHTTP ...string) {
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
	bus := stream.Bus(user.Bus())
	if len(byHTTP) > 0 {
		bus = &inTurn{Bus: bus, url: byHTTP[0], name: l.name}
	}
	l.set(&link{ctx, service.Log(), bus, func() {
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

// every returns a ticker of a user who does something so often.
func (l *load) every(d time.Duration) *time.Ticker {
	return time.NewTicker(d * time.Duration(l.o.slow))
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
	tick := l.every(4 * time.Millisecond)
	defer tick.Stop()
	for n := 0; l.pause(tick.C); {
		for range r.IntN(5) {
			n++
			it := &item{id: fmt.Sprintf("%sc%d", l.o.prefix, n)}
			it.record = stream.Record{Key: []byte(it.id), Value: context1(r, it.id)}
			switch r.IntN(40) {
			case 0:
				it.id, it.record = "", stream.Record{Value: context1(r, "")}
				l.contexts.pushTo(r.IntN(l.o.partitions), it)
				continue
			case 1:
				it.id, it.record.Value = "", []byte(`{"actions":`)
			}
			if l.o.scatter {
				it.record.Key = [][]byte{nil, {}, []byte("DE"), it.record.Key}[r.IntN(4)]
				l.contexts.pushTo(r.IntN(l.o.partitions), it)
				continue
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

// carry sends an outbox to a partition, what got lost on the way again.
func (l *load) carry(o *outbox, topic string, partition int) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for k := l.link(); k != nil && !l.carryOver(k, o, topic, partition, tick.C); k = l.link() {
		<-tick.C
	}
}

// carryOver carries over one connection. It reports true when everything is stored
// and nothing more will come.
func (l *load) carryOver(k *link, o *outbox, topic string, partition int, tick <-chan time.Time) (done bool) {
	var mu sync.Mutex
	var sent []*item // by sequence
	var told int
	w, err := k.log.Writer(k.ctx, topic, partition, func(seq uint64, offset int64, err error) {
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
		l.t.Errorf("write %s[%d]: %v", topic, partition, err)
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

// dial connects as a part of the service.
func dial(dir string) (*nats.Client, error) { return attach.Dial(dir, "test", nats.Options{}) }
