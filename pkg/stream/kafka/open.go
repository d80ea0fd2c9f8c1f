package kafka

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/initproducerid"

	"hindsight/pkg/stream"
)

// ownerID is the producer id of the owners of a partition; when its epochs run out the next one takes over. Each
// partition has ids of its own, though Kafka keeps epochs by partition: kfake keeps them by producer id only. (Brokers
// count the ids that they give from 0.)
func ownerID(topic string, partition int) int64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", topic, partition)
	return 0x48<<56 | int64(h.Sum64()>>24)<<16
}

const (
	ownerIDs  = 1 << 16       // that many ids are ours
	lastEpoch = math.MaxInt16 // closes a producer id: no owner has it
	maxOpens  = 100           // tries of one Open
)

// owner is a producer id and an epoch of it. Owners are ordered, by id first.
type owner struct {
	id    int64 // 0: none
	epoch int16
}

// isOurs reports whether o is an owner of the partition whose ids begin with first.
func (o owner) isOurs(first int64) bool { return o.id >= first && o.id < first+ownerIDs }

func (o owner) before(x owner) bool {
	return o.id < x.id || o.id == x.id && o.epoch < x.epoch
}

// next is the owner after o, or one that skips some.
func (o owner) next(first int64, skip int) owner {
	if !o.isOurs(first) {
		return owner{first, int16(skip) + 1} // so that there is one before it, by which the fence is tried
	}
	if o.epoch == lastEpoch {
		return owner{o.id + 1, int16(skip)}
	}
	return owner{o.id, int16(min(int(o.epoch)+1+skip, lastEpoch))}
}

// errOpenAgain is why an Open has to try with another epoch.
var errOpenAgain = errors.New("another owner opened with the same or a later epoch")

// Open implements [stream.Log].
func (l *Log) Open(ctx context.Context, topic string, partition int, o stream.OpenOptions) (_ stream.Appender,
	tail stream.Tail, err error) {
	a, err := l.newAppender(ctx, topic, partition, o.Ack)
	defer a.sender.p.Locate("open", -1, &err)
	if err != nil {
		return nil, tail, err
	}
	defer context.AfterFunc(l.c.ctx, a.sender.close)()
	stop := context.AfterFunc(ctx, a.sender.close)
	tail, err = a.own(ctx, o)
	if !stop() && err == nil {
		err = fmt.Errorf("%w: %w", stream.ErrUnknown, ctx.Err())
	}
	if err == nil {
		err = a.start() // not after the client has ended: its log was closed before
	}
	if err != nil {
		a.sender.close()
		return nil, stream.Tail{}, err
	}
	return a, tail, nil
}

// own makes a the owner of its partition.
func (a *appender) own(ctx context.Context, o stream.OpenOptions) (stream.Tail, error) {
	c, p := a.log.c, &a.sender.p
	var tried owner
	taken := 0 // probes
	id := ownerID(p.Topic, p.Partition)
	for try := range maxOpens {
		last, first, err := c.lastOwner(ctx, p)
		if err != nil {
			return stream.Tail{}, err
		}
		skip := 0
		if !last.isOurs(id) || last.before(tried) { // someone is there whom we do not see
			last, skip = tried, 1<<min(try, 12)>>1
		}
		me := last.next(id, skip)
		tried = me
		at, err := a.fence(ctx, me, o)
		if errors.Is(err, errOpenAgain) || err == nil && me.epoch == lastEpoch {
			continue // a closed id is followed by the next one
		}
		if err != nil {
			return stream.Tail{}, err
		}
		err = a.tryFence(ctx, me, o)
		if taken++; errors.Is(err, errNoFence) && taken < maxTaken {
			continue
		}
		if err != nil {
			return stream.Tail{}, err
		}
		a.producer, a.epoch, a.sequence, a.sender.search, a.stirred = me.id, me.epoch, 1, at+1, wallClock()
		return stream.Tail{First: min(first, at), Open: at, Next: at + 1}, nil
	}
	return stream.Tail{}, fmt.Errorf("%w: %w, %d times", stream.ErrUnavailable, errOpenAgain, maxOpens)
}

// errNoFence reports a broker that takes what it must refuse.
var errNoFence = errors.New("this broker takes records of an owner that another has replaced: without that fence two " +
	"processes could write to one partition")

// maxTaken is how many probes in a row prove that a broker has no fence. One does not: a broker also
// takes the probe if it forgot the owner since its open record, because producers expire there faster
// than this process got on. The owner must open again then, since the broker remembers the probe.
const maxTaken = 3

// tryFence checks once that the broker refuses the epoch before the owner's: the fence of a service is
// not believed untested. The probe is an open record, which no reader minds if it is stored.
func (a *appender) tryFence(ctx context.Context, me owner, o stream.OpenOptions) error {
	if me.epoch == 0 || a.log.fences.Load() {
		return nil
	}
	b, _, err := a.openBatch(o)
	if err != nil {
		return err
	}
	b.seal(me.id, me.epoch-1, 0, time.Now().UnixMilli())
	p, c := &a.sender.p, a.log.c
	return c.atLeader(ctx, p, func(cn *conn) (int16, error) {
		answer, err := cn.produce(p, int32(c.o.RequestTimeout/time.Millisecond), b.b)
		switch code := kafkago.Error(answer.code); {
		case err != nil:
			return 0, err
		case code == 0:
			return 0, errNoFence
		case code == kafkago.InvalidProducerEpoch, code == kafkago.ProducerFenced:
			a.log.fences.Store(true)
		case isTransientCode(code):
			return answer.code, nil
		}
		return 0, nil
	})
}

// fence stores an open record as the first of an owner's epoch, and reads it back: the
// offset in the answer may be that of another owner with the same epoch.
func (a *appender) fence(ctx context.Context, me owner, o stream.OpenOptions) (int64, error) {
	b, nonce, err := a.openBatch(o)
	if err != nil {
		return 0, err
	}
	b.seal(me.id, me.epoch, 0, time.Now().UnixMilli())
	answer, err := a.sender.deliver(ctx, b.b)
	var code *codeError
	switch {
	case errors.As(err, &code) && (errors.Is(code, stream.ErrFenced) || errors.Is(code, stream.ErrUnknown)):
		return 0, errOpenAgain
	case err != nil:
		return 0, err
	case me.epoch == lastEpoch: // the id is closed, by this process or another
		return answer.base, nil
	}
	found, err := a.log.c.nonceAt(ctx, &a.sender.p, answer.base)
	if err == nil && found != nonce || errors.Is(err, errTrimmed) { // that of another, perhaps long ago
		err = errOpenAgain
	}
	return answer.base, err
}

// openBatch returns a batch of one open record, not sealed yet, and its random number.
func (a *appender) openBatch(o stream.OpenOptions) (b *batch, nonce string, err error) {
	r := o.Record()
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	nonce = hex.EncodeToString(random[:])
	b = new(batch)
	b.reset()
	b.add(r, append(slices.Clip(a.more(r)), stream.Header{Key: headerNonce, Value: nonce}))
	if len(b.b) > a.hard {
		err = fmt.Errorf("%w: %d bytes, the limit is %d", stream.ErrTooLarge, len(b.b), a.hard)
	}
	return b, nonce, err
}

// lastOwner finds the last owner of a partition: by what its leader remembers of
// producers, which it does for a day, and by the record at the end.
func (c *Client) lastOwner(ctx context.Context, p *place) (last owner, first int64, err error) {
	note := func(o owner) {
		if o.isOurs(ownerID(p.Topic, p.Partition)) && last.before(o) {
			last = o
		}
	}
	first, next, err := c.ends(ctx, p)
	if err != nil {
		return last, 0, err
	}
	if next > first {
		if err := c.batchAt(ctx, p, next-1, func(s *stored) error {
			note(owner{s.pid, s.epoch})
			return nil
		}); err != nil && !errors.Is(err, errTrimmed) {
			return last, 0, err
		}
	}
	var known []producer
	err = c.atLeader(ctx, p, func(cn *conn) (code int16, err error) {
		known, code, err = cn.producers(p)
		return code, err
	})
	for _, k := range known {
		note(owner{k.id, int16(k.epoch)})
	}
	return last, first, err
}

// What batchAt may find instead of a batch.
var (
	errTrimmed = errors.New("the record has been dropped")
	errNotYet  = fmt.Errorf("%w: the record is not readable yet", stream.ErrUnavailable)
)

// batchAt gives the batch with an offset to f.
func (c *Client) batchAt(ctx context.Context, p *place, offset int64, f func(*stored) error) error {
	return c.atLeader(ctx, p, func(cn *conn) (int16, error) {
		r, err := cn.fetch(p, offset, 0, 1, uncommitted) // brokers send the first batch whole
		if err != nil {
			return 0, err
		}
		if r.code != 0 {
			if kafkago.Error(r.code) == kafkago.OffsetOutOfRange {
				return 0, c.outOfRange(ctx, p, offset)
			}
			return r.code, nil
		}
		s, _, ok, err := cutBatch(r.batches)
		if err == nil && !ok {
			err = errNotYet // a new leader learns slowly what is committed
		}
		if err == nil {
			err = s.check()
		}
		if err != nil {
			return 0, err
		}
		return 0, f(&s)
	})
}

// outOfRange says why there is no record at an offset.
func (c *Client) outOfRange(ctx context.Context, p *place, offset int64) error {
	first, _, err := c.ends(ctx, p)
	if err == nil && offset < first {
		err = errTrimmed
	}
	if err == nil {
		err = errNotYet
	}
	return err
}

// nonceAt returns the random number of the open record at an offset, "" if there is no such record.
func (c *Client) nonceAt(ctx context.Context, p *place, offset int64) (nonce string, err error) {
	err = c.batchAt(ctx, p, offset, func(s *stored) (err error) {
		nonce, err = s.nonce(offset)
		return err
	})
	return nonce, err
}

// nonce is nonceAt of the batch with the offset.
func (s *stored) nonce(offset int64) (nonce string, err error) {
	if err := s.inflate(); err != nil || s.count == 0 {
		return "", err
	}
	d := decoder{keepNonce: true}
	d.start(*s)
	var r stream.Record
	if err := d.record(&r); err != nil || r.Offset != offset || r.Type != stream.TypeOpen {
		return "", err
	}
	for _, h := range r.Headers {
		if h.Key == headerNonce {
			nonce = h.Value
		}
	}
	return nonce, nil
}

// Writer implements [stream.Log].
func (l *Log) Writer(ctx context.Context, topic string, partition int, ack stream.AckFunc) (_ stream.Appender,
	err error) {
	a, err := l.newAppender(ctx, topic, partition, ack)
	defer a.sender.p.Locate("writer", -1, &err)
	if err != nil {
		return nil, err
	}
	if _, a.sender.search, err = l.c.ends(ctx, &a.sender.p); err == nil {
		a.producer, a.epoch, err = l.c.newProducer(ctx)
	}
	if err == nil {
		err = a.start()
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// newProducer asks for a producer id.
func (c *Client) newProducer(ctx context.Context) (id int64, epoch int16, err error) {
	err = c.again(ctx, func(ctx context.Context) (bool, error) {
		m, err := c.askAny(ctx, func() protocol.Message {
			return &initproducerid.Request{ProducerID: -1, ProducerEpoch: -1}
		},
			func(m protocol.Message) error { return classify(m.(*initproducerid.Response).ErrorCode) })
		if err != nil {
			return !isTransient(err), err
		}
		r := m.(*initproducerid.Response)
		id, epoch = r.ProducerID, r.ProducerEpoch
		return true, nil
	})
	return id, epoch, err
}
