package nats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// The end of a replicated stream.
//
// What the leader of a replicated stream tells of it is what most replicas have. A record gets its time before that,
// and while replicas are slow it would be missed: a round could be closed over an outcome that came in time. So the end
// is told only when it has reached all that the leader had taken when it was asked.
//
// A leader that was paused or cut off from the others does not know at once that they have chosen another. Its answer
// counts only if most replicas have spoken to it so lately that they cannot have done so.

// freshLimit is how long ago a replica may have spoken to its leader. Replicas choose another after 4 s of silence at
// the earliest, and speak every second; half a second is left for what was said to arrive.
const freshLimit = 3500 * time.Millisecond

// Pauses between questions for an end that is not settled.
const (
	minEndPause = time.Millisecond
	maxEndPause = 128 * time.Millisecond
)

// Bounds implements [stream.Log]. It asks the stream's leader for its state. Reading the last and the first record
// directly would take two thirds of the time, but a follower may answer that, and it says nothing about an empty
// stream. On a replicated stream it also needs the right to publish there, although nothing is ever stored.
func (l *Log) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	p, err := l.place(topic, partition)
	defer p.Locate("bounds", -1, &err)
	if err != nil {
		return 0, 0, err
	}
	return l.bounds(ctx, l.boundsConn, &p)
}

func (l *Log) bounds(ctx context.Context, conn *natsgo.Conn, p *place) (first, next int64, err error) {
	var i streamInfo
	if l.o.State != nil {
		var ok bool
		if i.State.FirstSeq, i.State.LastSeq, ok = l.o.State(p.stream); ok {
			first, next = i.bounds()
			return first, next, ctx.Err()
		}
	}
	reply, err := l.ask(ctx, conn, l.o.APIPrefix+".STREAM.INFO."+p.stream, nil)
	if err != nil {
		return 0, 0, err
	}
	if single(reply.Data) {
		var ok bool
		if i.State.FirstSeq, i.State.LastSeq, ok = scanState(reply.Data); ok {
			first, next = i.bounds()
			return first, next, nil
		}
	}
	if err := parseAnswer(reply.Data, &i); err != nil {
		return 0, 0, contractError(err)
	}
	if i.replicated() {
		return l.settle(ctx, conn, p, &i)
	}
	first, next = i.bounds()
	return first, next, nil
}

// settle returns the bounds of a replicated stream once most replicas have all that its
// leader had taken by now. i is an answer of before.
func (l *Log) settle(ctx context.Context, conn *natsgo.Conn, p *place, i *streamInfo) (first, next int64, err error) {
	limit := time.After(l.o.APITimeout)
	taken := int64(math.MaxInt64)
	for wait := minEndPause; ; wait = min(2*wait, maxEndPause) {
		t, err := l.taken(ctx, conn, p)
		if err != nil {
			return 0, 0, err
		}
		taken = min(taken, t) // less: a new leader has dropped what no reader could get
		if first, next = i.bounds(); next > taken && i.fresh() {
			return first, next, nil
		}
		select {
		case <-time.After(wait):
		case <-limit:
			return 0, 0, fmt.Errorf("%w: for %v the leader of %s has had records up to %d, and most replicas up to "+
				"%d; or it hears from too few of them", stream.ErrUnavailable, l.o.APITimeout, p.stream, taken, next-1)
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		}
		if i, err = l.info(ctx, conn, p); err != nil {
			return 0, 0, err
		}
	}
}

// never is a sequence that no stream reaches.
const never = 1 << 62

// taken returns the sequence of the last record that the leader of a replicated stream
// has taken, whether or not replicas have it. The leader tells it when it refuses a
// record for having been sent after another one than it expects.
func (l *Log) taken(ctx context.Context, conn *natsgo.Conn, p *place) (int64, error) {
	own, cancel := context.WithTimeout(ctx, l.o.APITimeout)
	defer cancel()
	m := &natsgo.Msg{Subject: p.subject, Header: natsgo.Header{headerExpectedSeq: {strconv.Itoa(never)},
		stream.HeaderType: {typeFill}}}
	reply, err := conn.RequestMsgWithContext(own, m)
	switch {
	case err == nil:
		return takenIn(reply.Data)
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case own.Err() != nil:
		return 0, fmt.Errorf("%w: no answer from %s within %v: its leader is away, or this user may not publish there",
			stream.ErrUnavailable, p.subject, l.o.APITimeout)
	}
	return 0, classify(err)
}

// takenIn returns the sequence in a refusal, "wrong last sequence: 17".
func takenIn(data []byte) (int64, error) {
	p, err := parseAck(data)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: %w", stream.ErrUnavailable, err)
	case p.Error == nil:
		return 0, errors.New("a record that must be refused was stored: the server does not check expected sequences")
	case p.Error.ErrCode != codeWrongLastSequence:
		return 0, p.Error.class()
	}
	_, text, _ := strings.Cut(p.Error.Description, ": ")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("refusal %q: expected a sequence at its end: %w", p.Error.Description, err)
	}
	return n, nil
}

// fresh reports whether there is a leader, and most replicas spoke to it of late.
func (i *streamInfo) fresh() bool {
	if i.Cluster == nil || i.Cluster.Leader == "" { // the server that answers may lag behind
		return false
	}
	heard := 1
	for _, r := range i.Cluster.Replicas {
		if r.Active > 0 && r.Active < freshLimit {
			heard++
		}
	}
	return 2*heard > i.Config.Replicas
}
