package service

import (
	"context"

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

// poll makes a batch available if there is one without waiting.
func (in *input) poll(ctx context.Context) error {
	if len(in.batch) > 0 {
		return nil
	}
	if in.pump == nil {
		_, end, err := in.log.Bounds(ctx, in.topic, in.partition)
		if err != nil || in.next >= end {
			return err
		}
		return in.await(ctx)
	}
	in.release()
	select {
	case b, ok := <-in.pump.batches:
		return in.received(b, ok)
	default:
		return nil
	}
}

// await waits for the next batch of an input that is not pumped.
func (in *input) await(ctx context.Context) error {
	b, err := in.reader.Next(ctx, in.buf[:0])
	in.buf = b
	if err != nil {
		return err
	}
	return in.received(parcel{b, in.reader.Position()}, true)
}

func (in *input) received(b parcel, ok bool) error {
	if !ok {
		return in.pump.err
	}
	in.batch, in.held, in.next = b.records, in.pump != nil, b.next
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
