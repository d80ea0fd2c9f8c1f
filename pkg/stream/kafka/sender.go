package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hindsight/pkg/stream"
)

// sender sends the batches of one producer, one at a time, to the partition's leader. A batch is sent again, the same
// bytes, until its fate is known: the leader recognises producer, epoch and sequence and stores it once.
type sender struct {
	line         // its mutex guards waiting and late too; its close makes deliver return soon
	search int64 // the batch in flight cannot be stored before this offset; −1: unknown

	waiting bool        // for the answer to a batch
	late    *time.Timer // calls doubt while waiting
}

// deliver sends a batch until its fate is known or the time for it is up. Of its errors
// only ErrUnknown, ErrClosed and the context's mean that the batch may be stored.
func (s *sender) deliver(ctx context.Context, batch []byte) (produced, error) {
	end := time.Now().Add(s.c.o.AckTimeout)
	maybe := false // the batch may be stored
	warned := false
	for backoff, fresh := firstBackoff, false; ; fresh = true {
		r, sent, err := s.try(ctx, batch, fresh)
		switch {
		case err == nil && r.code == 0:
			return r, nil
		case err == nil && isDecided(r.code):
			return s.decided(ctx, r, batch, maybe)
		case err == nil:
			err = refused(r)
			maybe = maybe || isAmbiguous(r.code)
		case sent:
			maybe = true
		case !isTransient(err) && ctx.Err() == nil: // what ends the context may also close the connection
			return r, s.undecided(err, maybe)
		}
		if ctx.Err() != nil {
			return r, s.undecided(ctx.Err(), maybe)
		}
		if backoff > 8*firstBackoff && !warned {
			warned = true
			s.c.o.Logger.Warn("append is being repeated", "topic", s.p.Topic, "partition", s.p.Partition, "error", err)
		}
		if err := s.c.pause(ctx, &backoff); err != nil {
			return r, s.undecided(err, maybe)
		}
		if time.Now().After(end) { // perhaps because this process was stopped
			return r, s.undecided(err, maybe)
		}
	}
}

// try sends a batch once. sent says that it may have arrived although err is not nil.
func (s *sender) try(ctx context.Context, batch []byte, fresh bool) (r produced, sent bool, err error) {
	cn, err := s.connection(ctx, fresh)
	if err != nil {
		return r, false, err
	}
	// The broker waits for its replicas at most as long as we wait for the broker.
	limit := s.c.o.RequestTimeout
	_ = cn.SetDeadline(time.Now().Add(limit + limit/4))
	s.wait(true)
	r, err = cn.produce(&s.p, int32(limit/time.Millisecond), batch)
	s.wait(false)
	if err != nil {
		s.drop(cn)
	} else if isTransientCode(kafkago.Error(r.code)) && !isAmbiguous(r.code) ||
		kafkago.Error(r.code) == kafkago.UnknownTopicOrPartition {
		s.drop(cn) // another broker leads
	}
	return r, true, err
}

// lateAfter is how long an answer may take before we ask whether another broker leads.
// The one that has the batch may hang.
const lateAfter = time.Second

func (s *sender) wait(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.waiting = yes; {
	case !yes:
		s.late.Stop()
	case s.late == nil:
		s.late = time.AfterFunc(lateAfter, s.doubt)
	default:
		s.late.Reset(lateAfter)
	}
}

// doubt gives up the connection if another broker leads by now, so that the batch is sent there.
func (s *sender) doubt() {
	s.mu.Lock()
	cn := s.cn
	s.mu.Unlock()
	if cn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.c.ctx, s.c.o.RequestTimeout)
	defer cancel()
	p := s.p
	if addr, err := s.c.leader(ctx, &p, true); err == nil && addr != cn.addr {
		s.drop(cn)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting && s.cn == cn {
		s.late.Reset(lateAfter)
	}
}

// refused is the error of a broker that may take the batch later.
func refused(r produced) error {
	err := classify(r.code)
	if r.message != "" {
		err = fmt.Errorf("%w: %s", err, r.message)
	}
	return err
}

// isAmbiguous reports answers after which the batch may be stored.
func isAmbiguous(code int16) bool {
	switch kafkago.Error(code) {
	case kafkago.RequestTimedOut, kafkago.NotEnoughReplicasAfterAppend, kafkago.Unknown, kafkago.NetworkException:
		return true
	}
	return false
}

// isDecided reports answers that another try would not change.
func isDecided(code int16) bool {
	k := kafkago.Error(code)
	return !isTransientCode(k) && k != kafkago.UnknownTopicOrPartition
}

// decided tells what a final answer means for a batch that may have been stored by an earlier try.
func (s *sender) decided(ctx context.Context, r produced, batch []byte, maybe bool) (produced, error) {
	err := refused(r)
	if kafkago.Error(r.code) == kafkago.DuplicateSequenceNumber {
		maybe = true
	}
	if !maybe {
		return r, err
	}
	base, found, findErr := s.find(ctx, batch)
	switch {
	case findErr != nil:
		return r, fmt.Errorf("%w: %w; looking for the records: %w", stream.ErrUnknown, err, findErr)
	case found:
		return produced{base: base}, nil
	}
	return r, err
}

// undecided is the error for a batch that was given up.
func (s *sender) undecided(err error, maybe bool) error {
	if !maybe {
		return err
	}
	return fmt.Errorf("%w: %w", stream.ErrUnknown, err)
}

// find looks for a batch in the log. It is called when the broker takes no more of the producer's epoch, so that what
// is not there now never will be. A leader says so as soon as it has the next owner's open record itself: both may wait
// for its replicas, and cannot be read yet.
func (s *sender) find(ctx context.Context, batch []byte) (base int64, found bool, err error) {
	first, next, err := s.c.settledEnds(ctx, &s.p)
	if err != nil {
		return 0, false, err
	}
	if s.search < first {
		return 0, false, errors.New("the log no longer has where they would be")
	}
	be := binary.BigEndian
	pid, epoch, sequence := int64(be.Uint64(batch[atProducer:])), int16(be.Uint16(batch[atEpoch:])),
		int32(be.Uint32(batch[atSequence:]))
	for at := s.search; at < next; {
		err := s.c.atLeader(ctx, &s.p, func(cn *conn) (int16, error) {
			r, err := cn.fetch(&s.p, at, 0, readBytes, uncommitted)
			if err != nil || r.code != 0 {
				return r.code, err
			}
			before := at
			for b := r.batches; !found; {
				x, rest, ok, err := cutBatch(b)
				if err != nil {
					return 0, err
				}
				if !ok {
					break
				}
				if x.pid == pid && x.epoch == epoch && x.sequence == sequence {
					base, found = x.base, true
				}
				at, b = max(at, x.next), rest
			}
			if at == before {
				return 0, cn.lost(errShort)
			}
			return 0, nil
		})
		if err != nil || found {
			return base, found, err
		}
	}
	return 0, false, nil
}
