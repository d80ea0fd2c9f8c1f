package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/metadata"

	"hindsight/pkg/stream"
)

const (
	maxIdle        = 4                      // connections kept for each broker
	firstBackoff   = 5 * time.Millisecond   // before the second try; doubled each time
	maxBackoff     = 250 * time.Millisecond // so that a new leader is found within a second
	newTopicPeriod = 10 * time.Second       // for how long a broker may not know of a topic we made
)

// cluster is what is known of the brokers, and the connections for short questions.
type cluster struct {
	mu         sync.Mutex
	seeds      []string
	brokers    map[int32]string // address by id
	controller int32
	topics     map[string][]int32   // leaders by partition; −1: none
	created    map[string]time.Time // topics that we made
	idle       map[string][]*conn   // by address
	good       string               // address of the broker that answered last
	closed     bool
}

func (k *cluster) init(seeds []string) {
	k.seeds = slices.Clone(seeds)
	k.brokers, k.topics = map[int32]string{}, map[string][]int32{}
	k.created, k.idle = map[string]time.Time{}, map[string][]*conn{}
}

func (k *cluster) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, conns := range k.idle {
		for _, cn := range conns {
			_ = cn.Close()
		}
	}
}

// grab returns an idle connection, nil if there is none.
func (k *cluster) grab(addr string) *conn {
	k.mu.Lock()
	defer k.mu.Unlock()
	conns := k.idle[addr]
	if len(conns) == 0 {
		return nil
	}
	cn := conns[len(conns)-1]
	k.idle[addr] = conns[:len(conns)-1]
	return cn
}

func (k *cluster) putBack(cn *conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || len(k.idle[cn.addr]) >= maxIdle {
		_ = cn.Close()
		return
	}
	k.idle[cn.addr] = append(k.idle[cn.addr], cn)
}

// on runs f on a connection to a broker. An idle connection may have been closed by
// the broker meanwhile; then f runs again on a new one, so f must be repeatable.
func (c *Client) on(ctx context.Context, addr string, f func(*conn) error) error {
	if c.ctx.Err() != nil {
		return stream.ErrClosed
	}
	if cn := c.cluster.grab(addr); cn != nil {
		err := c.use(ctx, cn, f)
		if err == nil || !isLost(err) || ctx.Err() != nil {
			return err
		}
	}
	cn, err := c.dial(ctx, addr)
	if err != nil {
		return err
	}
	return c.use(ctx, cn, f)
}

func (c *Client) use(ctx context.Context, cn *conn, f func(*conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.RequestTimeout)
	defer cancel()
	stop, stopToo := until(ctx, cn), context.AfterFunc(c.ctx, func() { _ = cn.Close() })
	err := f(cn)
	stop()
	if !stopToo() {
		return stream.ErrClosed
	}
	if err != nil || ctx.Err() != nil {
		_ = cn.Close()
	} else {
		c.cluster.putBack(cn)
	}
	return err
}

// ask asks a broker with a message of kafka-go's.
func (c *Client) ask(ctx context.Context, addr string, m protocol.Message) (answer protocol.Message, err error) {
	err = c.on(ctx, addr, func(cn *conn) error {
		answer, err = cn.call(m)
		return err
	})
	return answer, err
}

// addresses returns where to ask: first the broker that answered last, then the others that are known.
func (k *cluster) addresses() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.Sorted(maps.Values(k.brokers))
	for _, a := range k.seeds {
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	if i := slices.Index(all, k.good); i > 0 {
		all = slices.Insert(slices.Delete(all, i, i+1), 0, k.good)
	}
	return all
}

// metadata asks any broker about topics: nil means all, none means brokers only.
func (c *Client) metadata(ctx context.Context, topics []string) (*metadata.Response, error) {
	m, err := c.askAny(ctx, func() protocol.Message {
		return &metadata.Request{TopicNames: topics}
	}, func(protocol.Message) error { return nil })
	if err != nil {
		if errors.Is(err, io.EOF) && c.o.SASL == nil {
			err = fmt.Errorf("%w (does it expect SASL?)", err)
		}
		return nil, err
	}
	r := m.(*metadata.Response)
	c.cluster.learn(r)
	return r, nil
}

// learn remembers an answer.
func (k *cluster) learn(r *metadata.Response) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(r.Brokers) > 0 {
		clear(k.brokers)
	}
	for _, b := range r.Brokers {
		k.brokers[b.NodeID] = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
	}
	k.controller = r.ControllerID
	for i := range r.Topics {
		t := &r.Topics[i]
		if t.ErrorCode != 0 {
			delete(k.topics, t.Name)
			continue
		}
		leaders := slices.Repeat([]int32{-1}, len(t.Partitions))
		for _, p := range t.Partitions {
			if i := int(p.PartitionIndex); i >= 0 && i < len(leaders) &&
				(p.ErrorCode == 0 || kafkago.Error(p.ErrorCode) == kafkago.ReplicaNotAvailable) {
				leaders[i] = p.LeaderID
			}
		}
		k.topics[t.Name] = leaders
	}
}

// topic returns the leaders of a topic's partitions, asking if they are not known or fresh is set.
func (c *Client) topic(ctx context.Context, name string, fresh bool) ([]int32, error) {
	if c.ctx.Err() != nil {
		return nil, stream.ErrClosed
	}
	k := &c.cluster
	for backoff := firstBackoff; ; {
		k.mu.Lock()
		leaders, known := k.topics[name]
		isNew := time.Since(k.created[name]) < newTopicPeriod
		k.mu.Unlock()
		if known && !fresh {
			return leaders, nil
		}
		r, err := c.metadata(ctx, []string{name})
		if err != nil {
			return nil, err
		}
		if len(r.Topics) != 1 {
			return nil, fmt.Errorf("%w: asked about topic %q, the broker tells of %d", stream.ErrUnavailable, name,
				len(r.Topics))
		}
		switch code := kafkago.Error(r.Topics[0].ErrorCode); {
		case code == 0:
			fresh = false
			continue
		case code == kafkago.LeaderNotAvailable, code == kafkago.UnknownTopicOrPartition && isNew:
		default:
			return nil, classify(int16(code))
		}
		if err := c.pause(ctx, &backoff); err != nil {
			return nil, err
		}
	}
}

// pause waits, unless the context ends or the client is closed, and makes the next pause twice as long.
func (c *Client) pause(ctx context.Context, d *time.Duration) error {
	select {
	case <-time.After(*d):
		*d = min(2**d, maxBackoff)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return stream.ErrClosed
	}
}

// again calls try, with growing pauses, until it says that its error is final (nil is) or the request timeout is over,
// and returns its last error, or the one before if the last try had no time left.
func (c *Client) again(ctx context.Context, try func(ctx context.Context) (final bool, err error)) error {
	limited, cancel := context.WithTimeout(ctx, c.o.RequestTimeout)
	defer cancel()
	var last error
	for backoff := firstBackoff; ; {
		final, err := try(limited)
		if err == nil || final && limited.Err() == nil {
			return err
		}
		if last == nil || limited.Err() == nil {
			last = err
		}
		if err := c.pause(limited, &backoff); errors.Is(err, stream.ErrClosed) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", ctx.Err(), last)
		}
		if limited.Err() != nil {
			return last
		}
	}
}

// leader returns the address of a partition's leader; fresh asks again.
func (c *Client) leader(ctx context.Context, p *place, fresh bool) (string, error) {
	leaders, err := c.topic(ctx, p.Topic, fresh)
	if err == nil && p.Partition >= len(leaders) && !fresh { // there may be more by now
		leaders, err = c.topic(ctx, p.Topic, true)
	}
	if err != nil {
		return "", err
	}
	if p.Partition < 0 || p.Partition >= len(leaders) {
		return "", stream.ErrNotFound
	}
	k := &c.cluster
	k.mu.Lock()
	defer k.mu.Unlock()
	addr, ok := k.brokers[leaders[p.Partition]]
	if !ok {
		return "", errNoLeader
	}
	return addr, nil
}

var errNoLeader = fmt.Errorf("%w: the partition has no leader now", stream.ErrUnavailable)

// atLeader runs f, which must be repeatable, on a connection to the partition's leader, again while the leader moves or
// cannot be reached, but no longer than the request timeout.
func (c *Client) atLeader(ctx context.Context, p *place, f func(*conn) (code int16, err error)) error {
	fresh := false
	return c.again(ctx, func(ctx context.Context) (bool, error) {
		addr, err := c.leader(ctx, p, fresh)
		fresh = true
		if err == nil {
			err = c.atAddress(ctx, addr, f)
		}
		return !isTransient(err), err
	})
}

// atAddress runs f at a broker, for a part of the time that atLeader has: a leader that hangs may have been replaced.
func (c *Client) atAddress(ctx context.Context, addr string, f func(*conn) (code int16, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.RequestTimeout/4)
	defer cancel()
	return c.on(ctx, addr, func(cn *conn) error {
		code, err := f(cn)
		if err != nil {
			return err
		}
		if kafkago.Error(code) == kafkago.UnknownTopicOrPartition {
			return errNoLeader // the metadata says that it exists: this broker does not know yet
		}
		return classify(code)
	})
}
