package join

import (
	"context"
	"errors"
	"time"

	"hindsight/pkg/stream"
)

// input reads one partition in batches. Without a pump it reads when it is asked, so that a simulation
// is a function of its seed. With one a goroutine reads ahead and wakes the owner. The records of a
// batch are valid until the next batch is in hand.
type input struct {
	log       stream.Log
	topic     string
	partition int
	reader    stream.Reader
	batch     []stream.Record           // in hand, not yet taken
	rest      []stream.Record           // read, behind those in hand
	believe   func(*stream.Record) bool // nil: all
	next      int64                     // the reader's position behind the batch
	end       int64                     // of the partition, as last fetched

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

// openInput opens a partition at the lowest offset that is to be read.
func openInput(ctx context.Context, log stream.Log, topic string, partition int, from int64) (*input, error) {
	if from == 0 {
		from = stream.Earliest
	}
	r, err := log.Read(ctx, topic, partition, from)
	if err != nil {
		return nil, err
	}
	return &input{log: log, topic: topic, partition: partition, reader: r, next: r.Position()}, nil
}

// start gives the input a pump. It calls wake, which must not block, whenever a batch has come.
func (in *input) start(ctx context.Context, wake func()) {
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

func (in *input) close() {
	if p := in.pump; p != nil {
		p.cancel()
		<-p.done
	}
	in.reader.Close()
}

// poll puts the next batch in hand if there is one. It waits for nothing.
func (in *input) poll(ctx context.Context) error {
	if len(in.batch) > 0 {
		return nil
	}
	if len(in.rest) > 0 {
		in.hold(in.rest)
		return nil
	}
	if in.pump == nil {
		if err := in.fetchEnd(ctx); err != nil || in.next >= in.end {
			return err
		}
		return in.await(ctx)
	}
	in.release()
	select {
	case b, ok := <-in.pump.batches:
		return in.receive(b, ok)
	default:
		return nil
	}
}

// fetchEnd asks the log where the partition ends now.
func (in *input) fetchEnd(ctx context.Context) (err error) {
	_, in.end, err = in.log.Bounds(ctx, in.topic, in.partition)
	return err
}

// complete reports whether all that lies before the end last fetched is in hand. If the log holds more
// and nothing is in hand, it waits for the next batch.
func (in *input) complete(ctx context.Context) (bool, error) {
	if len(in.batch) == 0 && len(in.rest) > 0 {
		if in.hold(in.rest); len(in.batch) == 0 {
			return false, errHeld
		}
	}
	if len(in.batch) == 0 && in.next < in.end {
		if err := in.await(ctx); err != nil {
			return false, err
		}
	}
	return in.next >= in.end && len(in.rest) == 0, nil
}

// mostInHand bounds what a cut takes of a partition: the joiner makes feedback and rejects of all of it.
const mostInHand = 8 << 20

// hold puts records in hand, up to one whose log time is not believed, and not too many bytes.
func (in *input) hold(records []stream.Record) {
	in.batch, in.rest = records, nil
	bytes := 0
	for i := range records {
		bytes += len(records[i].Value)
		if i > 0 && bytes > mostInHand || in.believe != nil && !in.believe(&records[i]) {
			in.batch, in.rest = records[:i], records[i:]
			return
		}
	}
}

// heldWait bounds the wait for records that the log holds back, those of an open transaction, and is how
// long the joiner waits where one is not believed. It does its other work meanwhile.
const heldWait = time.Second

var errHeld = errors.New("the log holds records back")

// await waits for the next batch.
func (in *input) await(ctx context.Context) error {
	if in.pump == nil {
		b, err := in.reader.Next(ctx, in.buf[:0])
		in.buf = b
		if err != nil {
			return err
		}
		return in.receive(pumped{b, in.reader.Position()}, true)
	}
	in.release()
	limit := time.NewTimer(heldWait)
	defer limit.Stop()
	select {
	case b, ok := <-in.pump.batches:
		return in.receive(b, ok)
	case <-limit.C:
		return errHeld
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (in *input) receive(b pumped, ok bool) error {
	if !ok {
		return in.pump.err
	}
	in.hold(b.records)
	in.held, in.next = in.pump != nil, b.next
	if len(b.records) == 0 {
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

// last returns the log time of the last record in hand, lifted to a time that the partition has
// reached, and whether anything is in hand.
func (in *input) last(reached int64) (int64, bool) {
	for i := range in.batch {
		reached = max(reached, in.batch[i].Time)
	}
	return reached, len(in.batch) > 0
}

// before returns how many records in hand have a lifted log time of at most limit.
func (in *input) before(reached, limit int64) int {
	for i := range in.batch {
		if reached = max(reached, in.batch[i].Time); reached > limit {
			return i
		}
	}
	return len(in.batch)
}
