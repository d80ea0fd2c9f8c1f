package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"hindsight/pkg/stream"
)

// undone tells the batches of aborted transactions from others. A broker names with each answer the transactions that
// it bears on, by their first offset, and a transaction ends with a marker.
type undone struct {
	coming []aborted
	now    []int64 // producers
}

// skips reports whether the next batch is of an aborted transaction.
func (u *undone) skips(s *stored) bool {
	u.coming = slices.DeleteFunc(u.coming, func(a aborted) bool {
		if a.first < s.next {
			u.now = append(u.now, a.producer)
			return true
		}
		return false
	})
	if s.attrs&transactionBit == 0 || !slices.Contains(u.now, s.pid) {
		return false
	}
	if s.isControl() {
		u.now = slices.DeleteFunc(u.now, func(p int64) bool { return p == s.pid })
	}
	return true
}

// longestTransaction is what brokers let a transaction take by default (transaction.max.timeout.ms).
// Until then it is nothing unusual: stream processors end theirs with each checkpoint.
const longestTransaction = 15 * time.Minute

// noteOpen names the producer of a transaction that holds up all readers.
func (s *leaderSource) noteOpen(ctx context.Context, r *fetched) {
	switch {
	case len(r.batches) > 0 || r.stable >= r.high:
		if !s.waits.IsZero() {
			s.waits = time.Time{}
			s.c.log.hold(s.p, nil)
		}
	case s.waits.IsZero():
		s.waits = time.Now()
	case time.Since(s.waits) > s.c.hangs:
		if s.c.log.hold(s.p, s.c.openTransaction(ctx, &s.p, r.stable)) {
			s.c.o.Logger.Error("an open transaction is waited for", "error", s.c.log.Held())
		}
	}
}

// openTransaction says whose transaction begins at an offset, and how to end it.
func (c *Client) openTransaction(ctx context.Context, p *place, from int64) error {
	who := "a producer"
	_ = c.atLeader(ctx, p, func(cn *conn) (int16, error) {
		known, code, err := cn.producers(p)
		for _, k := range known {
			if k.open == from {
				who = fmt.Sprintf("producer %d (epoch %d)", k.id, k.epoch)
			}
		}
		return code, err
	})
	return &stream.Error{Op: "read", Topic: p.Topic, Partition: p.Partition, Offset: from, Err: fmt.Errorf(
		"the transaction of %s is open, and what lies behind is read when it ends; if that producer is dead: "+
			"kafka-transactions.sh --bootstrap-server %s abort --topic %s --partition %d --start-offset %d",
		who, strings.Join(c.o.Brokers, ","), p.Topic, p.Partition, from)}
}

// hold notes what a partition waits for, nil for nothing, and reports whether that is news.
func (l *Log) hold(p place, why error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.held[p]
	if delete(l.held, p); why != nil {
		l.held[p] = why
	}
	return why != nil && !known
}

// Held implements [stream.Holder].
func (l *Log) Held() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, why := range l.held {
		return why
	}
	return nil
}
