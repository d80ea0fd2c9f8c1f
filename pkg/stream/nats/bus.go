package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// Bus is a [stream.Bus] on a connection, which stays the caller's.
type Bus struct {
	conn *natsgo.Conn
	life atomic.Pointer[spell] // between two losses of the connection

	logger    *slog.Logger                         // logs refused requests; nil: disabled
	onRefused atomic.Pointer[func(subject string)] // called for each; nil: disabled
}

var (
	_ stream.Bus     = (*Bus)(nil)
	_ stream.Refuser = (*Bus)(nil)
)

// NewBus returns a bus on a connection. Give the connection ReconnectBufSize(-1):
// requests then fail at once while the server is away.
func NewBus(conn *natsgo.Conn) *Bus {
	b := &Bus{conn: conn}
	b.life.Store(newSpell())
	go b.follow(conn.StatusChanged(natsgo.RECONNECTING, natsgo.CLOSED))
	return b
}

// follow ends a life whenever the connection breaks, until it is closed.
func (b *Bus) follow(changes chan natsgo.Status) {
	for range changes {
		b.life.Swap(newSpell()).end(nil)
		if b.conn.IsClosed() {
			b.conn.RemoveStatusListener(changes)
			return
		}
	}
}

// Serve implements [stream.Bus]. Requests that want their reply elsewhere than in an inbox are not handed to h.
func (b *Bus) Serve(subject, queue string, h func(stream.Message)) (stop func(), err error) {
	handle := func(m *natsgo.Msg) {
		if !isInbox(m.Reply) {
			b.refuse(m)
			return
		}
		from := client(m)
		h(stream.Message{Data: m.Data, Headers: fromHeader(m.Header), From: from, Respond: b.responder(m.Reply)})
	}
	var sub *natsgo.Subscription
	if queue == "" {
		sub, err = b.conn.Subscribe(subject, handle)
	} else {
		sub, err = b.conn.QueueSubscribe(subject, queue, handle)
	}
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", subject, classify(err))
	}
	drained := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(drained) })
	if err := b.conn.Flush(); err != nil { // from here on requests find us
		_ = sub.Unsubscribe()
		return nil, fmt.Errorf("serve %s: %w", subject, classify(err))
	}
	return func() { b.drain(sub, drained) }, nil
}

// accountReply begins the subject that stands for an inbox in another account.
const accountReply = "_R_."

// Where replies may be sent. The client chooses the subject of the reply, and servers do not check whether it may
// publish there, but we may publish to the topics and to the API of the store: a reply there would be ours.
var inboxes = []string{
	natsgo.InboxPrefix[:len(natsgo.InboxPrefix)-1], // also _INBOX_name, the prefix of one user
	// of servers, which stand for an inbox in another account or cluster, and which no client may use
	accountReply, "_GR_.", "$GR.",
}

// isInbox reports whether a reply may be sent to a subject. None at all is fine.
func isInbox(reply string) bool {
	return reply == "" || slices.ContainsFunc(inboxes, func(prefix string) bool {
		return strings.HasPrefix(reply, prefix)
	})
}

// OnRefused implements [stream.Refuser].
func (b *Bus) OnRefused(f func(subject string)) { b.onRefused.Store(&f) }

// refuse tells of a request that gets no reply.
func (b *Bus) refuse(m *natsgo.Msg) {
	if f := b.onRefused.Load(); f != nil {
		(*f)(m.Subject)
	}
	if b.logger == nil {
		return
	}
	token, _, _ := strings.Cut(m.Reply, ".")
	b.logger.Warn("request refused: its reply subject is no inbox; inboxes begin with _INBOX, such as "+
		"_INBOX_name", "subject", m.Subject, "reply", token[:min(len(token), 64)])
}

// drain ends a subscription after the requests that had arrived. Without a connection they are gone, and so must be the
// subscription, at once: one that is being drained is made again by a reconnect and then forgotten here only, and the
// server would go on to send requests that no handler gets. Where a reconnect came in between all the same, another one
// ends what the server has.
func (b *Bus) drain(sub *natsgo.Subscription, drained <-chan struct{}) {
	lives := b.conn.Stats().Reconnects
	if !b.conn.IsConnected() || sub.Drain() != nil {
		_ = sub.Unsubscribe()
		<-drained
		return
	}
	<-drained
	if b.conn.Stats().Reconnects != lives {
		_ = b.conn.ForceReconnect() // closed: nothing is left
	}
}

// client tells clients apart by their inboxes: the client libraries make one for each connection, _INBOX.CONNECTION,
// and a subject below it for each request. One that makes an inbox for each request cannot be told apart. Those of
// other accounts are told apart by these, which the server names in a header of its own.
func client(m *natsgo.Msg) string {
	reply := m.Reply
	if strings.HasPrefix(reply, accountReply) {
		var who struct {
			Account string `json:"acc"`
		}
		if json.Unmarshal([]byte(m.Header.Get(headerRequestInfo)), &who) == nil && who.Account != "" {
			m.Header.Del(headerRequestInfo)
			return accountReply + who.Account
		}
	}
	if i := strings.LastIndexByte(reply, '.'); strings.IndexByte(reply, '.') < i {
		return reply[:i]
	}
	return ""
}

var errResponded = errors.New("respond: this request has its reply already")

// responder returns the Respond of one message. Without a reply subject nobody listens, which is no error.
func (b *Bus) responder(subject string) func([]byte, ...stream.Header) error {
	var used atomic.Bool
	return func(data []byte, headers ...stream.Header) error {
		if used.Swap(true) {
			return errResponded
		}
		if subject == "" {
			return nil
		}
		var err error
		if len(headers) == 0 {
			err = b.conn.Publish(subject, data)
		} else {
			err = b.conn.PublishMsg(&natsgo.Msg{Subject: subject, Header: toHeader(headers), Data: data})
		}
		if err != nil {
			used.Store(false)
			return fmt.Errorf("respond: %w", classify(err))
		}
		return nil
	}
}

// Request implements [stream.Bus]. While the connection is away it fails at once, and
// when it breaks before the reply, for that would not find us any more.
func (b *Bus) Request(ctx context.Context, subject string, data []byte, headers ...stream.Header) ([]byte,
	[]stream.Header, error) {
	life := b.life.Load()
	if !b.conn.IsConnected() && !b.conn.IsClosed() {
		return nil, nil, fmt.Errorf("request %s: %w: not connected", subject, stream.ErrUnavailable)
	}
	inLife, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(life.ctx, cancel)()
	m, err := b.request(inLife, subject, data, headers)
	switch {
	case err == nil:
		return m.Data, fromHeader(m.Header), nil
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case errors.Is(err, natsgo.ErrNoResponders):
		return nil, nil, fmt.Errorf("request %s: %w", subject, stream.ErrNoResponder)
	case inLife.Err() != nil && !b.conn.IsClosed():
		return nil, nil, fmt.Errorf("request %s: %w: the connection broke before the reply; whether the request "+
			"arrived is unknown", subject, stream.ErrUnavailable)
	}
	return nil, nil, fmt.Errorf("request %s: %w", subject, classify(err))
}

func (b *Bus) request(ctx context.Context, subject string, data []byte, headers []stream.Header) (*natsgo.Msg, error) {
	if len(headers) == 0 {
		return b.conn.RequestWithContext(ctx, subject, data)
	}
	return b.conn.RequestMsgWithContext(ctx, &natsgo.Msg{Subject: subject, Header: toHeader(headers), Data: data})
}

func toHeader(headers []stream.Header) natsgo.Header {
	h := make(natsgo.Header, len(headers))
	for _, x := range headers {
		h[x.Key] = append(h[x.Key], x.Value)
	}
	return h
}

// fromHeader returns headers in the order of their names.
func fromHeader(h natsgo.Header) []stream.Header {
	if len(h) == 0 {
		return nil
	}
	headers := make([]stream.Header, 0, len(h))
	for k, values := range h {
		for _, v := range values {
			headers = append(headers, stream.Header{Key: k, Value: v})
		}
	}
	slices.SortStableFunc(headers, func(a, b stream.Header) int { return strings.Compare(a.Key, b.Key) })
	return headers
}
