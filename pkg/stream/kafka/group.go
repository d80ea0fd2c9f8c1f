package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"hindsight/pkg/stream/lease"
)

// Defaults of [GroupOptions].
const (
	DefaultHeartbeat = time.Second
	DefaultSession   = 10 * time.Second
	DefaultRebalance = 10 * time.Second
	DefaultBackoff   = 500 * time.Millisecond
)

// GroupOptions are the times of a group. The brokers bound Session: by default they refuse less than 6 s.
type GroupOptions struct {
	Partitions int // shared, of the topic's: the first; 0: all
	// from one sign of life to the next; 0: DefaultHeartbeat, or a sixth of Session if that is less
	Heartbeat time.Duration
	Session   time.Duration // after so long without one a member counts as dead; 0: DefaultSession
	Rebalance time.Duration // how long members have to join again; 0: DefaultRebalance
	Backoff   time.Duration // from a failed attempt to join to the next; 0: DefaultBackoff
}

func (o *GroupOptions) complete() {
	o.Session = cmp.Or(o.Session, DefaultSession)
	o.Heartbeat = cmp.Or(o.Heartbeat, min(DefaultHeartbeat, o.Session/6))
	o.Rebalance = cmp.Or(o.Rebalance, DefaultRebalance)
	o.Backoff = cmp.Or(o.Backoff, DefaultBackoff)
}

// Group shares the partitions of a topic among processes by a consumer group: it says who works on what, and nothing
// else. Positions are committed for tools that show lags, and never read; the log's own tail is what counts. Like a
// lease it gives liveness, not safety: that is the fence's ([stream.Log.Open]).
type Group struct {
	access      Options
	name, topic string
	o           GroupOptions
	log         *Log // has positions; nil: none
	reports     []string
}

// Group returns the group of that name, whose members share the partitions of topic.
// logger gets the assignments; it may be nil.
func (c *Client) Group(name, topic string, o GroupOptions, logger *slog.Logger) *Group {
	a := c.o
	a.Brokers, a.Logger = c.cluster.addresses(), logger
	g := newGroup(a, name, topic, o)
	g.log = c.log
	return g
}

func newGroup(a Options, name, topic string, o GroupOptions) *Group {
	o.complete()
	return &Group{access: a.withDefaults(), name: name, topic: topic, o: o}
}

// Reporting has the group commit the positions in these topics that the log is told ([Log.Report]).
func (g *Group) Reporting(topics ...string) *Group {
	g.reports = topics
	return g
}

// Run takes part in the group until ctx ends or a run fails, and returns that error. It calls run in a goroutine of its
// own for each partition that is assigned to this process. The run's context ends when the partition is to be given up,
// with [lease.ErrLost] as its cause if another process may have it already; the partition is free for others when run
// returns. A rebalance does not touch the partitions that stay.
func (g *Group) Run(ctx context.Context, run func(ctx context.Context, partition int) error) error {
	eg, ctx := errgroup.WithContext(ctx)
	m := &groupMember{g: g, log: g.access.Logger.With("group", g.name), run: run, eg: eg, ctx: ctx, generation: -1,
		hands: map[int]*groupHand{}, mine: map[int]bool{}, link: newGroupLink(g.access.Dial)}
	dialer := &kafkago.Dialer{ClientID: g.access.ClientID, Timeout: g.o.Session / 2, TLS: g.access.TLS,
		SASLMechanism: g.access.SASL, DialFunc: m.link.Dial}
	group, err := kafkago.NewConsumerGroup(kafkago.ConsumerGroupConfig{
		ID: g.name, Brokers: g.access.Brokers, Dialer: dialer, Topics: []string{g.topic},
		GroupBalancers:    []kafkago.GroupBalancer{&sticky{topic: g.topic, partitions: g.o.Partitions, claim: m.claim}},
		HeartbeatInterval: g.o.Heartbeat, SessionTimeout: g.o.Session, RebalanceTimeout: g.o.Rebalance,
		JoinGroupBackoff: g.o.Backoff, Timeout: g.o.Session / 2,
	})
	if err != nil {
		return fmt.Errorf("group %s: %w", g.name, err)
	}
	eg.Go(func() error { return m.follow(group) })
	eg.Go(m.watch)
	eg.Go(m.commit)
	err = eg.Wait() // the runs have stopped: what was ours is free when we leave
	m.leave(group)
	return err
}

// groupMember is this process in a group.
type groupMember struct {
	g    *Group
	log  *slog.Logger
	run  func(ctx context.Context, partition int) error
	eg   *errgroup.Group
	ctx  context.Context // of all runs
	link *groupLink

	mu         sync.Mutex
	id         string // as the coordinator knows us
	generation int32  // of the last assignment; -1: none
	of         *kafkago.Generation
	over       time.Time
	mine       map[int]bool       // assigned to us
	hands      map[int]*groupHand // at work, or stopping
	rejoin     chan struct{}      // ends the generation
	told       string
}

// groupHand is one run at work.
type groupHand struct {
	stop     context.CancelCauseFunc
	stopping bool
}

// claim says what we work on.
func (m *groupMember) claim() claim {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := claim{Generation: m.generation, Own: []int{}}
	for p := range m.hands {
		c.Own = append(c.Own, p)
	}
	return c
}

// follow takes one assignment after the other.
func (m *groupMember) follow(group *kafkago.ConsumerGroup) error {
	for {
		generation, err := group.Next(m.ctx)
		switch {
		case err == nil:
			m.assigned(generation)
		case m.ctx.Err() != nil:
			return nil
		case errors.Is(err, kafkago.RebalanceInProgress):
		case errors.Is(err, kafkago.UnknownMemberId):
			m.lose("the group has given up on this process")
		case errors.Is(err, kafkago.InvalidSessionTimeout):
			return fmt.Errorf("group %s: the brokers refuse a session of %v: see group.min.session.timeout.ms there: "+
				"%w", m.g.name, m.g.o.Session, err)
		case errors.Is(err, kafkago.InconsistentGroupProtocol):
			m.tell("another kind of consumer is in the group; retrying", err)
		case errors.Is(err, kafkago.GroupAuthorizationFailed):
			m.tell(fmt.Sprintf("this user may not join: it needs the ACL operation Read on the group %s; retrying",
				m.g.name), err)
		default:
			m.tell("the group's coordinator does not answer; retrying", err)
		}
	}
}

// tell logs what was not the last thing told.
func (m *groupMember) tell(text string, err error) {
	if now := fmt.Sprint(text, err); m.told != now {
		m.told = now
		m.log.Warn(text, "error", err)
	}
}

// assigned gives up what is not ours any more, and begins what is.
func (m *groupMember) assigned(generation *kafkago.Generation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = ""
	m.of = generation
	m.id, m.generation, m.over = generation.MemberID, generation.ID, time.Time{}
	clear(m.mine)
	for _, a := range generation.Assignments[m.g.topic] {
		m.mine[a.ID] = true
	}
	for p, h := range m.hands {
		if !m.mine[p] && !h.stopping {
			m.log.Info("handing a partition to another process", "partition", p)
			h.stopping = true
			h.stop(nil)
		}
	}
	for p := range m.mine {
		if m.hands[p] == nil {
			m.begin(p)
		}
	}
	if len(m.hands) == 0 {
		m.log.Info("standing by", "topic", m.g.topic)
	}
	rejoin := make(chan struct{}, 1)
	m.rejoin = rejoin
	generation.Start(func(ctx context.Context) { // its end is that of the generation
		select {
		case <-ctx.Done():
		case <-rejoin:
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.over = time.Now()
	})
}

// begin sets a run to work. The caller holds mu.
func (m *groupMember) begin(p int) {
	ctx, stop := context.WithCancelCause(m.ctx)
	m.hands[p] = &groupHand{stop: stop}
	m.log.Info("partition taken", "partition", p)
	m.eg.Go(func() error {
		err := m.run(ctx, p)
		stop(nil)
		m.ended(p)
		return err
	})
}

// ended notes that a run has stopped: its partition is free, or ours again.
func (m *groupMember) ended(p int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.hands, p)
	if m.ctx.Err() != nil {
		return
	}
	if m.mine[p] {
		m.begin(p)
		return
	}
	for _, h := range m.hands {
		if h.stopping {
			return
		}
	}
	m.joinAgain()
}

// joinAgain ends the generation, so that the group learns what we work on. The caller holds mu.
func (m *groupMember) joinAgain() {
	select {
	case m.rejoin <- struct{}{}:
	default: // it has ended, or there was none
	}
}

// watch notices that the brokers have not heard of us for so long that others may have
// what is ours; and that we cannot join again though some broker answers.
func (m *groupMember) watch() error {
	limit := max(m.g.o.Session, m.g.o.Rebalance)
	waits := m.g.o.Session + m.g.o.Rebalance // while a coordinator may be waiting for others to join
	tick := time.NewTicker(m.g.o.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return nil
		case <-tick.C:
		}
		if silent := m.link.silent(); silent > limit && (silent > waits || !m.link.waits()) {
			m.lose(fmt.Sprintf("no broker has answered for %v", silent.Round(time.Second)))
			continue
		}
		m.mu.Lock()
		outside := !m.over.IsZero() && time.Since(m.over) > 3*limit
		m.mu.Unlock()
		if outside {
			m.lose(fmt.Sprintf("the group could not be joined again for %v", 3*limit))
		}
	}
}

// lose stops everything that another process may have by now.
func (m *groupMember) lose(why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.mine) == 0 {
		return
	}
	clear(m.mine)
	for p, h := range m.hands {
		if !h.stopping {
			m.log.Warn("stopped: "+lease.ErrLost.Error()+": "+why, "partition", p)
			h.stopping = true
			h.stop(fmt.Errorf("%w: %s", lease.ErrLost, why))
		}
	}
	m.joinAgain() // should the group still count on us, it must give us our part anew
}

// leaveLimit bounds how long leaving a group takes.
const leaveLimit = 2 * time.Second

// leave gives the membership back, so that the others need not wait for its end.
func (m *groupMember) leave(group *kafkago.ConsumerGroup) {
	left := make(chan struct{})
	go func() {
		_ = group.Close()
		close(left)
	}()
	select {
	case <-left:
		m.link.cut()
		return
	case <-time.After(leaveLimit / 2): // it waits for others to join
	}
	m.link.cut()
	<-left
	if m.id == "" {
		return
	}
	a := &m.g.access
	t := &kafkago.Transport{Dial: a.Dial, TLS: a.TLS, SASL: a.SASL, ClientID: a.ClientID}
	defer t.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), leaveLimit/2)
	defer cancel()
	c := kafkago.Client{Addr: kafkago.TCP(a.Brokers...), Transport: t}
	// else the session ends
	_, _ = c.LeaveGroup(ctx, &kafkago.LeaveGroupRequest{GroupID: m.g.name, Members: []kafkago.LeaveGroupRequestMember{
		{ID: m.id}}})
}
