package service

import (
	"context"
	"errors"
	"time"

	"hindsight/pkg/stream"
)

// input reads one partition in batches. It works in two ways: directly, where poll
// asks the log for its end and reads what is there, and pumped, where a goroutine
// reads ahead and wakes its owner. The records of a batch are valid until the
// next poll or await.
type input struct {
	log       stream.Log
	topic     string
	partition int
	reader    stream.Reader

	batch []stream.Record // not yet consumed
	next  int64           // the reader's position behind the batch
	time  int64           // running maximum of the log times consumed
	read  uint64          // stamp of the batch's arrival
	clear uint64          // stamp of the last time that the input was known to be empty

	pump *pump
	held bool // the pump waits until its last batch is consumed
	buf  []stream.Record
}

// parcel is a batch and the reader's position behind it, which passes holes in the
// numbering.
type parcel struct {
	records []stream.Record
	next    int64
}

// pump is the goroutine side of an input.
type pump struct {
	batches chan parcel
	taken   chan struct{}
	err     error // set before batches is closed
	cancel  context.CancelFunc
	done    chan struct{}
}

// openInput opens a partition at an offset. time is the log time reached there.
func openInput(ctx context.Context, log stream.Log, topic string, partition int, from, time int64) (*input, error) {
	r, err := log.Read(ctx, topic, partition, from)
	if err != nil {
		return nil, err
	}
	return &input{log: log, topic: topic, partition: partition, reader: r, next: r.Position(), time: time}, nil
}

// start makes the input pumped. wake is called whenever a batch waits; it must not
// block.
func (in *input) start(ctx context.Context, wake func()) {
	ctx, cancel := context.WithCancel(ctx)
	p := &pump{batches: make(chan parcel, 1), taken: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
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
			p.batches <- parcel{buf, in.reader.Position()}
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

func (in *input) close() {
	if p := in.pump; p != nil {
		p.cancel()
		<-p.done
	}
	in.reader.Close()
}

// poll makes a batch available if there is one without waiting. stamp marks the
// moment of the call.
func (in *input) poll(ctx context.Context, stamp uint64) error {
	if len(in.batch) > 0 {
		return nil
	}
	if in.pump == nil {
		return in.check(ctx, stamp)
	}
	in.release()
	select {
	case b, ok := <-in.pump.batches:
		return in.received(b, ok, stamp)
	default:
		return nil
	}
}

// check finds out whether an input without a batch is empty at this moment, and
// waits for its next batch if it is not. It asks the log unless the reader has heard
// of more already.
func (in *input) check(ctx context.Context, stamp uint64) error {
	if came, err := in.awaitKnown(ctx, stamp); came || err != nil {
		return err
	}
	_, end, err := in.log.Bounds(ctx, in.topic, in.partition)
	if err != nil {
		return err
	}
	if in.next >= end {
		in.clear = stamp
		return nil
	}
	if in.pump == nil {
		return in.await(ctx, stamp)
	}
	came, err := in.awaitFor(ctx, stamp, heldWait)
	if err == nil && !came {
		err = errHeld
	}
	return err
}

// heldWait bounds the wait for records that the log holds back: those of a transaction that is open.
// Whoever waits does what else there is to do meanwhile.
const heldWait = time.Second

var errHeld = errors.New("the log holds records back")

// knownWait bounds the wait for records that a reader has heard of: a log that was
// damaged may not have them any more.
const knownWait = 100 * time.Millisecond

// awaitKnown waits for the next batch if the pump's reader has heard of records in it,
// and reports whether it has come.
func (in *input) awaitKnown(ctx context.Context, stamp uint64) (bool, error) {
	r, ok := in.reader.(stream.Informed)
	if !ok || in.pump == nil || r.Known() <= in.next {
		return false, nil
	}
	return in.awaitFor(ctx, stamp, knownWait)
}

// awaitFor waits for the pump's next batch, but no longer than limit, and reports whether it has come.
func (in *input) awaitFor(ctx context.Context, stamp uint64, most time.Duration) (bool, error) {
	in.release()
	limit := time.NewTimer(most)
	defer limit.Stop()
	select {
	case b, ok := <-in.pump.batches:
		return true, in.received(b, ok, stamp)
	case <-limit.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// await waits for the next batch of an input that is not pumped.
func (in *input) await(ctx context.Context, stamp uint64) error {
	b, err := in.reader.Next(ctx, in.buf[:0])
	in.buf = b
	if err != nil {
		return err
	}
	return in.received(parcel{b, in.reader.Position()}, true, stamp)
}

func (in *input) received(b parcel, ok bool, stamp uint64) error {
	if !ok {
		return in.pump.err
	}
	in.batch, in.read, in.held, in.next = b.records, stamp, in.pump != nil, b.next
	if len(in.batch) == 0 {
		in.release()
	}
	return nil
}

// release lets the pump read on.
func (in *input) release() {
	if in.held {
		in.held = false
		in.pump.taken <- struct{}{}
	}
}

// head returns the next record and its log time, made monotone; nil if none waits.
func (in *input) head() (*stream.Record, int64) {
	if len(in.batch) == 0 {
		return nil, 0
	}
	r := &in.batch[0]
	return r, max(in.time, r.Time)
}

// headTime returns the log time of the head, which must be there.
func (in *input) headTime() int64 {
	_, t := in.head()
	return t
}

// take consumes the head.
func (in *input) take() {
	in.time = max(in.time, in.batch[0].Time)
	in.batch = in.batch[1:]
}

// consumed returns the lowest offset that was not taken.
func (in *input) consumed() int64 {
	if len(in.batch) > 0 {
		return in.batch[0].Offset
	}
	return in.next
}
