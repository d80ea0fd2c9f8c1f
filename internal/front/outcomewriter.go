package front

import (
	"context"
	"errors"
	"sync"
	"time"

	"hindsight/pkg/stream"
)

// outcomeWriter appends the outcomes of one partition and answers each request at its acknowledgement.
type outcomeWriter struct {
	log       stream.Log
	topic     string
	partition int

	mu    sync.Mutex // guards the appender and late
	out   stream.Appender
	late  []lateOutcome // they wait for room, in their order
	later sync.WaitGroup

	waiting struct {
		sync.Mutex
		tickets []func(offset int64, err error)
		most    int
	}
	freed chan struct{} // signalled when a ticket is gone
}

// lateOutcome is an outcome that waits for room.
type lateOutcome struct {
	r     *stream.Record
	until time.Time
	done  func(offset int64, err error)
}

// maxOutcomesInFlight bounds the outcomes that wait for their acknowledgement.
const maxOutcomesInFlight = 1024

// MostInFlight returns how many records may be on their way to a log, most or less, so that its
// Append does not block: that would hold up other records, and ends after a second. Two are left,
// for a mark, and for a record whose acknowledgement is just told.
func MostInFlight(out stream.Appender, most int) int {
	if w, ok := out.(stream.Windowed); ok {
		return max(1, min(most, w.Window()-2))
	}
	return most
}

// errNoRoom reports that a log did not take an outcome in time.
var errNoRoom = errors.New("overloaded: send it again")

func newOutcomeWriter(log stream.Log, topic string, partition int) *outcomeWriter {
	return &outcomeWriter{log: log, topic: topic, partition: partition, freed: make(chan struct{}, 1)}
}

// open opens an appender if there is none. One goroutine at a time does.
func (w *outcomeWriter) open(ctx context.Context) error {
	w.mu.Lock()
	there := w.out != nil
	w.mu.Unlock()
	if there {
		return nil
	}
	out, err := w.log.Writer(ctx, w.topic, w.partition, w.ack)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting.Lock()
	defer w.waiting.Unlock()
	w.out, w.waiting.most = out, MostInFlight(out, maxOutcomesInFlight)
	return nil
}

// close ends the writer when nothing is late any more.
func (w *outcomeWriter) close() {
	w.later.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.out != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		w.out.Flush(ctx)
		w.out.Close()
		w.out = nil
	}
}

func (w *outcomeWriter) ack(_ uint64, offset int64, err error) {
	w.waiting.Lock()
	done := w.waiting.tickets[0]
	w.waiting.tickets = w.waiting.tickets[1:]
	w.waiting.Unlock()
	Signal(w.freed)
	done(offset, err)
}

// room reports whether another outcome may be sent.
func (w *outcomeWriter) room() bool {
	w.waiting.Lock()
	defer w.waiting.Unlock()
	return len(w.waiting.tickets) < w.waiting.most
}

// append sends one outcome; done is called when its fate is known, with errNoRoom if as many as the log takes at once
// are on their way until the time is over. Whoever appends does not wait for that, so that the outcomes of other
// partitions are not held up: what is late waits here, and is bounded by what the gate lets in. One goroutine appends;
// it opens an appender where one died only if nothing is late.
func (w *outcomeWriter) append(r *stream.Record, until time.Time, done func(offset int64, err error)) {
	w.mu.Lock()
	late, there := len(w.late) > 0 || !w.room(), w.out != nil
	w.mu.Unlock()
	if !late && !there {
		if err := w.reopen(); err != nil {
			done(-1, err)
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !late {
		w.send(r, done)
		return
	}
	o := lateOutcome{r, until, done}
	if w.late = append(w.late, o); len(w.late) == 1 {
		w.later.Go(func() { w.catchUp(o) })
	}
}

// reopen opens an appender if there is none, within a second.
func (w *outcomeWriter) reopen() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return w.open(ctx)
}

// catchUp sends what is late, o first, until nothing is.
func (w *outcomeWriter) catchUp(o lateOutcome) {
	for more := true; more; {
		w.awaitRoom(o.until)
		var err error
		if time.Now().Before(o.until) {
			err = w.reopen()
		}
		w.mu.Lock()
		told := 1
		switch {
		case err != nil: // each of those behind would wait as long to hear the same
			for _, o := range w.late {
				o.done(-1, err)
			}
			told = len(w.late)
		case time.Now().Before(o.until) && w.room():
			w.send(o.r, o.done)
		default:
			o.done(-1, errNoRoom)
		}
		clear(w.late[:told])
		if w.late = w.late[told:]; len(w.late) > 0 {
			o = w.late[0]
		} else {
			w.late, more = nil, false
		}
		w.mu.Unlock()
	}
}

// awaitRoom waits until another outcome may be sent or the time is over. One goroutine at a time waits.
func (w *outcomeWriter) awaitRoom(until time.Time) {
	for over := time.After(time.Until(until)); !w.room(); {
		select {
		case <-w.freed:
		case <-over:
			return
		}
	}
}

// send sends one outcome. mu is held, and there is an appender.
func (w *outcomeWriter) send(r *stream.Record, done func(offset int64, err error)) {
	brief := NewBrief()
	defer brief.End()
	w.waiting.Lock()
	w.waiting.tickets = append(w.waiting.tickets, done)
	w.waiting.Unlock()
	switch _, err := w.out.Append(brief, r); {
	case err == nil:
	case errors.Is(err, stream.ErrTooLarge), errors.Is(err, stream.ErrUnfit): // the appender lives on
		w.withdraw()
		done(-1, err)
	case brief.Err() != nil && errors.Is(err, brief.Err()): // and here
		w.withdraw()
		done(-1, errNoRoom)
	default:
		w.out.Close() // a dead appender: the next outcome has another opened
		w.out = nil
		w.abandon(err)
	}
}

// withdraw takes back the last ticket, of a record that was not sent.
func (w *outcomeWriter) withdraw() {
	w.waiting.Lock()
	defer w.waiting.Unlock()
	w.waiting.tickets = w.waiting.tickets[:len(w.waiting.tickets)-1]
}

func (w *outcomeWriter) abandon(err error) {
	w.waiting.Lock()
	tickets := w.waiting.tickets
	w.waiting.tickets = nil
	w.waiting.Unlock()
	Signal(w.freed)
	for _, done := range tickets {
		done(-1, err)
	}
}

// Signal wakes the goroutine that waits on a channel of capacity 1.
func Signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
