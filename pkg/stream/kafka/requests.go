package kafka

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// Versions of the requests that are written by hand. None has tagged fields.
const (
	produceVersion       = 8
	fetchVersion         = 11
	listOffsetsVersion   = 5
	deleteRecordsVersion = 1
)

// leastKafka is the oldest that is meant to work.
const leastKafka = "2.8"

// needed is what a broker must speak.
var needed = map[protocol.ApiKey]int16{
	protocol.Produce:     produceVersion,
	protocol.Fetch:       fetchVersion,
	protocol.ListOffsets: listOffsetsVersion,
}

// describeProducers lists the producers of a partition; kafka-go does not have it.
const describeProducers protocol.ApiKey = 61

// Times that ListOffsets takes for the ends of a partition.
const (
	latest   = -1
	earliest = -2
)

// produced is the answer to a Produce request for one partition.
type produced struct {
	code    int16
	base    int64 // offset of the first record of the batch
	message string
}

// produce sends a batch and reads the answer. After an error the broker may have it.
func (cn *conn) produce(p *place, timeoutMillis int32, batch []byte) (r produced, err error) {
	cn.begin(protocol.Produce, produceVersion)
	b := appendInt16(cn.out, -1)                       // no transaction
	b = appendInt32(appendInt16(b, -1), timeoutMillis) // acks from all in-sync replicas
	b = appendString(appendInt32(b, 1), p.Topic)
	b = appendInt32(appendInt32(b, 1), int32(p.Partition))
	cn.out = append(appendInt32(b, int32(len(batch))), batch...)
	f, err := cn.exchange()
	if err != nil {
		return r, err
	}
	if !f.partition(p) {
		return r, cn.lost(errShort)
	}
	r.code, r.base = f.int16(), f.int64()
	f.take(8 + 8) // time of appending, first offset kept
	for range max(0, f.int32()) {
		f.int32()
		if m := f.stringBytes(); r.message == "" {
			r.message = string(m)
		}
		if f.bad {
			break
		}
	}
	if m := f.stringBytes(); r.message == "" {
		r.message = string(m)
	}
	if f.bad {
		return r, cn.lost(errShort)
	}
	return r, nil
}

// exchange sends the question in out and returns the answer.
func (cn *conn) exchange() (f fields, err error) {
	if err = cn.send(); err == nil {
		f.b, err = cn.receive(cn.corr)
	}
	return f, err
}

// partition reads the head of an answer about topics down to its first partition, which must be p.
func (f *fields) partition(p *place) bool {
	if f.int32() != 1 || string(f.stringBytes()) != p.Topic || f.int32() != 1 {
		return false
	}
	return f.int32() == int32(p.Partition) && !f.bad
}

// fetched is the answer to a Fetch request for one partition.
type fetched struct {
	code    int16
	high    int64 // high watermark: the next offset to be read by anyone
	stable  int64 // last stable offset: where the first transaction that is open begins; high if none is
	aborted []aborted
	batches []byte
}

// aborted is a transaction that was aborted, of which batches may hold records.
type aborted struct{ producer, first int64 }

// isolation says whether a reader waits for the end of transactions.
type isolation byte

const (
	uncommitted isolation = iota
	committed
)

// fetch asks for batches from an offset on, waiting for the first. batches is valid
// until the next use of the connection.
func (cn *conn) fetch(p *place, offset int64, waitMillis, maxBytes int32, read isolation) (r fetched, err error) {
	cn.begin(protocol.Fetch, fetchVersion)
	b := appendInt32(cn.out, -1)                   // we are no replica
	b = appendInt32(appendInt32(b, waitMillis), 1) // at least 1 byte
	b = append(appendInt32(b, maxBytes), byte(read))
	b = appendInt32(appendInt32(b, 0), -1)       // no session
	b = appendString(appendInt32(b, 1), p.Topic) //
	b = appendInt32(appendInt32(b, 1), int32(p.Partition))
	b = appendInt64(appendInt32(b, -1), offset) // any epoch of the leader
	b = appendInt32(appendInt64(b, -1), maxBytes)
	cn.out = appendInt16(appendInt32(b, 0), 0) // nothing forgotten, no rack
	f, err := cn.exchange()
	if err != nil {
		return r, err
	}
	f.int32() // throttled for
	if r.code = f.int16(); r.code != 0 {
		return r, nil
	}
	f.int32() // session
	if !f.partition(p) {
		return r, cn.lost(errShort)
	}
	r.code, r.high, r.stable = f.int16(), f.int64(), f.int64()
	f.int64() // first offset kept
	for range max(0, f.int32()) {
		if r.aborted = append(r.aborted, aborted{f.int64(), f.int64()}); f.bad {
			break
		}
	}
	f.int32() // preferred replica
	if r.batches = f.bytes(); f.bad {
		return r, cn.lost(errShort)
	}
	return r, nil
}

// position is a fetch offset for one partition and one kind of caller.
type position struct {
	replica int32 // -1: a client
	time    int64
	read    isolation
}

// The positions that there are use for.
var (
	firstKept    = position{-1, earliest, uncommitted}
	nextReadable = position{-1, latest, uncommitted} // the high watermark: what every in-sync replica has
	nextStable   = position{-1, latest, committed}   // the last stable offset: no transaction before it is open
	// nextWritten is where the leader writes next. It tells replicas only, and any number will do for one.
	nextWritten = position{math.MaxInt32, latest, uncommitted}
)

// offsets asks for positions of a partition in one trip, in their order.
func (cn *conn) offsets(p *place, of []position, at []int64) (code int16, err error) {
	if err := cn.askOffsets(p, of); err != nil {
		return 0, err
	}
	return cn.toldOffsets(p, at)
}

func (cn *conn) askOffsets(p *place, of []position) error {
	for _, q := range of {
		cn.begin(protocol.ListOffsets, listOffsetsVersion)
		b := append(appendInt32(cn.out, q.replica), byte(q.read))
		b = appendString(appendInt32(b, 1), p.Topic)
		b = appendInt32(appendInt32(b, 1), int32(p.Partition))
		cn.out = appendInt64(appendInt32(b, -1), q.time)
		if err := cn.send(); err != nil {
			return err
		}
	}
	return nil
}

// toldOffsets reads the answers to as many questions as at has places, the last ones.
func (cn *conn) toldOffsets(p *place, at []int64) (code int16, err error) {
	for i := range at {
		body, err := cn.receive(cn.corr - int32(len(at)-1-i))
		if err != nil {
			return 0, err
		}
		f := fields{b: body}
		f.int32() // throttled for
		if !f.partition(p) {
			return 0, cn.lost(errShort)
		}
		if c := f.int16(); c != 0 {
			code = c
		}
		f.int64() // time
		if at[i] = f.int64(); f.bad {
			return 0, cn.lost(errShort)
		}
	}
	return code, nil
}

// settledOffsets is offsets, of all that has a time by now. A leader (4.3's UnifiedLog) gives a record its time, and
// then its offset, holding a lock that it does not need to tell offsets: a record on the way between the two has a time
// that is over, and is in no offset yet. To tell producers it does need the lock, so that question waits for that
// record, and the others for that question's answer. What it is does not matter.
func (cn *conn) settledOffsets(p *place, of []position, at []int64) (code int16, err error) {
	_, tells := cn.versions[describeProducers]
	if tells {
		if err := cn.askProducers(p); err != nil {
			return 0, err
		}
	}
	if err := cn.askOffsets(p, of); err != nil {
		return 0, err
	}
	if tells {
		if _, err := cn.receive(cn.corr - int32(len(of))); err != nil {
			return 0, err
		}
	}
	return cn.toldOffsets(p, at)
}

// bounds asks for both ends of what can be read of a partition.
func (cn *conn) bounds(p *place) (first, next int64, code int16, err error) {
	var at [2]int64
	code, err = cn.offsets(p, []position{firstKept, nextReadable}, at[:])
	return at[0], at[1], code, err
}

// deleteRecords drops what is before an offset.
func (cn *conn) deleteRecords(p *place, before int64, timeoutMillis int32) (code int16, err error) {
	cn.begin(protocol.DeleteRecords, deleteRecordsVersion)
	b := appendString(appendInt32(cn.out, 1), p.Topic)
	b = appendInt32(appendInt32(b, 1), int32(p.Partition))
	cn.out = appendInt32(appendInt64(b, before), timeoutMillis)
	f, err := cn.exchange()
	if err != nil {
		return 0, err
	}
	f.int32() // throttled for
	if !f.partition(p) {
		return 0, cn.lost(errShort)
	}
	f.int64() // the first offset kept
	if code = f.int16(); f.bad {
		return 0, cn.lost(errShort)
	}
	return code, nil
}

// producer is one writer that the leader of a partition knows.
type producer struct {
	id    int64
	epoch int32
	open  int64 // where its open transaction begins; -1: it has none
}

// producers asks which idempotent producers the leader remembers; none if it cannot say.
func (cn *conn) producers(p *place) (all []producer, code int16, err error) {
	if _, ok := cn.versions[describeProducers]; !ok {
		return nil, 0, nil
	}
	if err := cn.askProducers(p); err != nil {
		return nil, 0, err
	}
	body, err := cn.receive(cn.corr)
	if err != nil {
		return nil, 0, err
	}
	f := fields{b: body}
	f.tags()  // of the header
	f.int32() // throttled for
	if f.uvarint() != 2 || string(f.take(int(f.uvarint())-1)) != p.Topic || f.uvarint() != 2 ||
		f.int32() != int32(p.Partition) {
		return nil, 0, cn.lost(errShort)
	}
	code = f.int16()
	f.take(max(0, int(f.uvarint())-1)) // message
	for n := f.uvarint(); n > 1 && !f.bad; n-- {
		w := producer{id: f.int64(), epoch: f.int32()}
		f.take(4 + 8 + 4) // last sequence and time, coordinator's epoch
		w.open = f.int64()
		all = append(all, w)
		f.tags()
	}
	if f.bad {
		return nil, 0, cn.lost(errShort)
	}
	return all, code, nil
}

// askProducers sends that question. The layout is that of a version with tagged fields:
// lengths are varints, one too large.
func (cn *conn) askProducers(p *place) error {
	cn.begin(describeProducers, 0)
	b := append(cn.out, 0) // no tags in the header
	b = append(binary.AppendUvarint(append(b, 2), uint64(len(p.Topic)+1)), p.Topic...)
	b = appendInt32(append(b, 2), int32(p.Partition))
	cn.out = append(b, 0, 0)
	return cn.send()
}

// tags passes tagged fields.
func (f *fields) tags() {
	for n := f.uvarint(); n > 0 && !f.bad; n-- {
		f.uvarint()
		f.take(int(f.uvarint()))
	}
}

// ends returns the bounds of a partition.
func (c *Client) ends(ctx context.Context, p *place) (first, next int64, err error) {
	err = c.atLeader(ctx, p, func(cn *conn) (code int16, err error) {
		first, next, code, err = cn.bounds(p)
		return code, err
	})
	return first, next, err
}

// settledEnds returns the bounds of a partition when all can be read that was written
// before the call. A leader gives a record its time before the other replicas have it
// and any reader gets it: until then no caller may conclude that there is no record of that time.
func (c *Client) settledEnds(ctx context.Context, p *place) (first, next int64, err error) {
	written := int64(math.MaxInt64)
	err = c.atLeader(ctx, p, func(cn *conn) (int16, error) {
		for wait := time.Millisecond; ; {
			var at [3]int64
			if code, err := cn.settledOffsets(p, []position{nextWritten, firstKept, nextReadable}, at[:]); code != 0 ||
				err != nil {
				return code, err
			}
			written = min(written, at[0]) // less: a new leader has dropped what no reader could get
			if first, next = at[1], at[2]; next >= written {
				return 0, nil
			}
			if wait == maxBackoff {
				return int16(kafkago.OffsetNotAvailable), nil
			}
			if err := c.pause(ctx, &wait); err != nil {
				return 0, err
			}
		}
	})
	return first, next, err
}
