// Package intake reads the partitions of a log, each in batches, for whoever takes what is there and does
// not wait.
package intake

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"hindsight/pkg/stream"
)

// Input reads one partition in batches. Without a pump it reads when it is asked, so that a simulation
// is a function of its seed. With one a goroutine reads ahead and wakes the owner. The records of a
// batch are valid until the next batch is in hand.
type Input struct {
	Topic     string
	Partition int
	Batch     []stream.Record           // in hand, not yet taken; who takes records cuts them off
	Next      int64                     // the reader's position behind what it has read
	Believe   func(*stream.Record) bool // whether the log time of a record is believed; nil: always

	log    stream.Log
	reader stream.Reader
	rest   []stream.Record // read, behind those in hand
	fresh  int             // of those in hand, the last, are valid only until the next batch is read
	end    int64           // of the partition, as last fetched

	pump *pump
	held bool // the pump waits until its last batch is taken
	buf  []stream.Record
}

// pumped is a batch and the reader's position behind it, which passes holes in the numbering.
type pumped struct {
	records []stream.Record
	next    int64
}

// pump is the goroutine of an input.
type pump struct {
	batches chan pumped
	taken   chan struct{}
	err     error // set before batches is closed
	cancel  context.CancelFunc
	done    chan struct{}
}

// Open opens a partition at the lowest offset that is to be read.
func Open(ctx context.Context, log stream.Log, topic string, partition int, from int64) (*Input, error) {
	if from == 0 {
		from = stream.Earliest
	}
	r, err := log.Read(ctx, topic, partition, from)
	if err != nil {
		return nil, err
	}
	return &Input{Topic: topic, Partition: partition, Next: r.Position(), log: log, reader: r}, nil
}

// OnDemand says whether the log is to send records only when they are asked for, if it can.
func (in *Input) OnDemand(on bool) {
	if r, ok := in.reader.(interface{ OnDemand(on bool) }); ok {
		r.OnDemand(on)
	}
}

// Start gives the input a pump. It calls wake, which must not block, whenever a batch has come.
func (in *Input) Start(ctx context.Context, wake func()) {
	ctx, cancel := context.WithCancel(ctx)
	p := &pump{batches: make(chan pumped, 1), taken: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
	in.pump = p
	go func() {
		defer close(p.done)
		defer wake()
		defer close(p.batches)
		var buf []stream.Record
		for {
			var err error
			if buf, err = in.reader.Next(ctx, buf[:0]); err != nil {
				p.err = err
				return
			}
			p.batches <- pumped{buf, in.reader.Position()}
			wake()
			select {
			case <-p.taken:
			case <-ctx.Done():
				p.err = ctx.Err()
				return
			}
		}
	}()
}

func (in *Input) Close() {
	if p := in.pump; p != nil {
		p.cancel()
		<-p.done
	}
	in.reader.Close()
}

// Poll puts the next batch in hand if there is one. It waits for nothing.
func (in *Input) Poll(ctx context.Context) error {
	if len(in.Batch) > 0 {
		return nil
	}
	if len(in.rest) > 0 {
		in.hold(in.rest)
		return nil
	}
	if in.pump == nil {
		if err := in.FetchEnd(ctx); err != nil || in.Next >= in.end {
			return err
		}
		return in.Await(ctx)
	}
	in.release()
	select {
	case b, ok := <-in.pump.batches:
		return in.receive(b, ok)
	default:
		return nil
	}
}

// More puts what has come since behind what is in hand, unless that is too much, and has the pump read on. It waits for
// nothing.
func (in *Input) More(ctx context.Context) error {
	if in.pump == nil || bytesOf(in.Batch) >= mostInHand {
		return nil
	}
	had := in.keep()
	in.Batch = nil
	err := in.Poll(ctx)
	in.Batch = append(had, in.Batch...)
	in.keep()
	in.release()
	return err
}

// FetchEnd asks the log where the partition ends now.
func (in *Input) FetchEnd(ctx context.Context) (err error) {
	_, in.end, err = in.log.Bounds(ctx, in.Topic, in.Partition)
	return err
}

// Complete reports whether all that lies before the end last fetched is in hand.
func (in *Input) Complete() bool { return in.Next >= in.end && len(in.rest) == 0 }

// Behind returns how many offsets lie between what was read and the end last fetched.
func (in *Input) Behind() int64 { return in.end - in.Next }

// Expect waits for the next batch if nothing is in hand and the log holds more.
func (in *Input) Expect(ctx context.Context) error {
	if len(in.Batch) > 0 || in.Complete() {
		return nil
	}
	return in.Await(ctx)
}

// Fill reads on until all that lies before the end last fetched is in hand, unless that is too much or the
// log holds some back.
func (in *Input) Fill(ctx context.Context) error {
	size := bytesOf(in.Batch)
	for !in.Complete() && (len(in.Batch) == 0 ||
		len(in.rest) == 0 && size < mostInHand && len(in.Batch) < mostRecords) {
		had := in.keep()
		switch err := in.Await(ctx); {
		case errors.Is(err, ErrHeld) && len(had) > 0:
			return nil
		case err != nil:
			return err
		}
		if size += bytesOf(in.Batch); len(had) > 0 {
			in.Batch = append(had, in.Batch...)
		}
	}
	return nil
}

// mostInHand and mostRecords bound what a cut takes of a partition: the joiner makes feedback and rejects
// of all of it.
const (
	mostInHand  = 8 << 20 // bytes
	mostRecords = 10_000
)

func bytesOf(records []stream.Record) (size int) {
	for i := range records {
		size += len(records[i].Value)
	}
	return size
}

// keep copies what is in hand, so that the next batch may be read, and returns it.
func (in *Input) keep() []stream.Record {
	fresh := min(in.fresh, len(in.Batch))
	if fresh > 0 && fresh == len(in.Batch) {
		in.Batch = slices.Clone(in.Batch)
	}
	for i := len(in.Batch) - fresh; i < len(in.Batch); i++ {
		r := &in.Batch[i]
		r.Value, r.Key, r.Headers = bytes.Clone(r.Value), bytes.Clone(r.Key), slices.Clone(r.Headers)
	}
	in.fresh = 0
	return in.Batch
}

// hold puts records in hand, up to one whose log time is not believed, and not too many bytes.
func (in *Input) hold(records []stream.Record) {
	in.Batch, in.rest = records, nil
	defer func() { in.fresh = len(in.Batch) }()
	size := 0
	for i := range records {
		size += len(records[i].Value)
		if i > 0 && size > mostInHand || in.Believe != nil && !in.Believe(&records[i]) {
			in.Batch, in.rest = records[:i], records[i:]
			return
		}
	}
}

// HeldWait bounds the wait for records that the log holds back, those of an open transaction, and is how
// long the joiner waits where one is not believed. It does its other work meanwhile.
const HeldWait = time.Second

var ErrHeld = errors.New("the log holds records back")

// Await waits for the next batch.
func (in *Input) Await(ctx context.Context) error {
	if len(in.rest) > 0 {
		if in.hold(in.rest); len(in.Batch) == 0 {
			return ErrHeld
		}
		return nil
	}
	if in.pump == nil {
		b, err := in.reader.Next(ctx, in.buf[:0])
		in.buf = b
		if err != nil {
			return err
		}
		return in.receive(pumped{b, in.reader.Position()}, true)
	}
	in.release()
	limit := time.NewTimer(HeldWait)
	defer limit.Stop()
	select {
	case b, ok := <-in.pump.batches:
		return in.receive(b, ok)
	case <-limit.C:
		return ErrHeld
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (in *Input) receive(b pumped, ok bool) error {
	if !ok {
		return in.pump.err
	}
	in.hold(b.records)
	in.held, in.Next = in.pump != nil, b.next
	if len(b.records) == 0 {
		in.release()
	}
	return nil
}

// release lets the pump read on, unless records of its last batch lie behind those in hand.
func (in *Input) release() {
	if in.held && len(in.rest) == 0 {
		in.held = false
		in.pump.taken <- struct{}{}
	}
}

// Last returns the log time of the last record in hand, lifted to a time that the partition has
// reached, and whether anything is in hand.
func (in *Input) Last(reached int64) (int64, bool) {
	for i := range in.Batch {
		reached = max(reached, in.Batch[i].Time)
	}
	return reached, len(in.Batch) > 0
}

// Before returns how many records in hand have a lifted log time of at most limit.
func (in *Input) Before(reached, limit int64) int {
	for i := range in.Batch {
		if reached = max(reached, in.Batch[i].Time); reached > limit {
			return i
		}
	}
	return len(in.Batch)
}

// Consumed returns the lowest offset that was not taken.
func (in *Input) Consumed() int64 {
	for _, records := range [][]stream.Record{in.Batch, in.rest} {
		if len(records) > 0 {
			return records[0].Offset
		}
	}
	return in.Next
}

// Pumped reports whether the input has a pump.
func (in *Input) Pumped() bool { return in.pump != nil }
