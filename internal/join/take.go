package join

import (
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// taker turns records into the events of a cut. Its memory is that of the next cut, too.
type taker struct {
	batches   []loop.Batch
	decisions [][]loop.DecisionEvent // by batch
	outcomes  [][]loop.OutcomeEvent
	hooks     *Hooks
	topics    *Topics
}

// take fills in the cut that was chosen, and returns its batches and how many records they have. They
// alias the records in hand.
func (t *taker) take(cut *codec.Cut, number int64, c *chooser) ([]loop.Batch, int, error) {
	*cut = codec.Cut{Cut: number, Time: c.time, Decisions: cut.Decisions[:0], Outcomes: cut.Outcomes[:0]}
	t.batches = t.batches[:0]
	total := 0
	for i, in := range c.inputs {
		n := c.take[i]
		if n == 0 {
			continue
		}
		total += n
		records, r := in.Batch[:n], codec.Range{Partition: in.Partition, Next: in.Batch[n-1].Offset + 1}
		var err error
		if i < c.partitions {
			r.Sum, err = t.takeDecisions(in.Partition, records)
			cut.Decisions = append(cut.Decisions, r)
		} else {
			r.Sum = t.takeOutcomes(records)
			cut.Outcomes = append(cut.Outcomes, r)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	return t.batches, total, nil
}

// reuse returns the slice of events of the next batch, empty.
func reuse[E any](all *[][]E, k int) []E {
	for len(*all) <= k {
		*all = append(*all, nil)
	}
	return (*all)[k][:0]
}

// grow appends an event, whose memory it reuses.
func grow[E any](events []E) ([]E, *E) {
	if len(events) < cap(events) {
		events = events[:len(events)+1]
	} else {
		var zero E
		events = append(events, zero)
	}
	return events, &events[len(events)-1]
}

func (t *taker) takeDecisions(partition int, records []stream.Record) (sum uint32, err error) {
	k := len(t.batches)
	events := reuse(&t.decisions, k)
	for i := range records {
		r := &records[i]
		sum = codec.Sum(sum, r.Offset, r.Time, r.Type, r.Value)
		var e *loop.DecisionEvent
		events, e = grow(events)
		e.Offset, e.Time = r.Offset, r.Time
		if err := e.Parse(r.Type, r.Value); err != nil {
			if !codec.Foreign(err) || t.hooks.Foreign == nil {
				return 0, &stream.Error{Op: "read", Topic: t.topics.Decisions, Partition: partition, Offset: r.Offset,
					Err: err}
			}
			if err := t.hooks.Foreign(t.topics.Decisions, partition, r, err); err != nil {
				return 0, err
			}
		}
		if t.hooks.Decision != nil {
			t.hooks.Decision(e, r)
		}
	}
	t.decisions[k] = events
	t.batches = append(t.batches, loop.Batch{Decisions: events})
	return sum, nil
}

func (t *taker) takeOutcomes(records []stream.Record) (sum uint32) {
	k := len(t.batches)
	events := reuse(&t.outcomes, k)
	for i := range records {
		r := &records[i]
		sum = codec.Sum(sum, r.Offset, r.Time, r.Type, r.Value)
		var e *loop.OutcomeEvent
		events, e = grow(events)
		e.Offset, e.Time = r.Offset, r.Time
		e.Parse(r.Type, r.Value, CloudEventID(r))
		if t.hooks.Outcome != nil {
			t.hooks.Outcome(e)
		}
	}
	t.outcomes[k] = events
	t.batches = append(t.batches, loop.Batch{Outcomes: events})
	return sum
}

// CloudEventID returns the id that the headers of a CloudEvent give a record, "" if they give none.
func CloudEventID(r *stream.Record) string {
	if len(r.Headers) == 0 {
		return ""
	}
	id, _ := codec.CloudEventID(func(key string) string {
		for _, h := range r.Headers {
			if h.Key == key {
				return h.Value
			}
		}
		return ""
	})
	return id
}
