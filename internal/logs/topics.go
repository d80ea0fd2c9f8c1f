package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"hindsight/internal/loop"
	"hindsight/internal/scan"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Topics is the name of the format of a live system's topics.
const Topics = "topics"

// OpenTopics opens what a live system decided and what outcomes came, up to now, as one log in the order of log time: a
// decision is an event at the time at which it was stored, an outcome an observation on its own. What the joiner
// rejected as malformed, such as a reward out of the model's range, is malformed here. Line is the offset, and File
// names topic and partition. ctx ends the reading.
func OpenTopics(ctx context.Context, log stream.Log, decisions, outcomes, rejects string, o Options) (*Reader, error) {
	d := &topicReader{ctx: ctx, o: o, refused: map[loop.Place]string{}}
	d.in = &input{name: decisions, closers: []func(){d.close}}
	for _, topic := range [...]string{decisions, outcomes} {
		n, err := log.Partitions(ctx, topic)
		if err != nil {
			d.close()
			return nil, fmt.Errorf("topic %s: %w", topic, err)
		}
		for p := range n {
			if err := d.open(log, topic, p, topic == outcomes); err != nil {
				d.close()
				return nil, fmt.Errorf("topic %s, partition %d: %w", topic, p, err)
			}
		}
	}
	if err := d.rejects(log, rejects); err != nil {
		d.close()
		return nil, fmt.Errorf("topic %s: %w", rejects, err)
	}
	r := newReader(o, Topics)
	r.in, r.dec = d.in, d
	r.account.Files = len(d.lanes)
	return r, nil
}

// topicReader merges partitions by log time; of equal times decisions come first.
type topicReader struct {
	ctx   context.Context
	o     Options
	lanes []*lane
	in    *input
	value []byte // of the record last read

	dec     codec.Decision
	out     codec.Outcome
	asked   codec.Context     // of a decision
	draws   map[string]string // by unit: the id of its last draw
	repeats map[string]string // by id: the id of the draw that it repeats
	checked codec.Context
	refused map[loop.Place]string // outcomes that the joiner could not use, and why
}

// rejects notes which outcomes the joiner could not use.
func (d *topicReader) rejects(log stream.Log, topic string) error {
	n, err := log.Partitions(d.ctx, topic)
	for p := 0; p < n && err == nil; p++ {
		err = stream.Scan(d.ctx, log, topic, p, stream.Earliest, math.MaxInt64, func(r *stream.Record) error {
			if r.Type != "" {
				return nil
			}
			x, err := codec.ParseReject(r.Value)
			if err == nil && x.Topic == "outcomes" && x.Reason == codec.ReasonMalformed {
				d.refused[loop.Place{Partition: x.Partition, Offset: x.Offset}] = x.Detail
			}
			return err
		})
	}
	return err
}

// lane is one partition up to where it ended when it was opened.
type lane struct {
	name     string
	part     int
	outcomes bool
	r        stream.Reader
	next     int64
	batch    []stream.Record
	at       int // of the record to come
}

func (d *topicReader) open(log stream.Log, topic string, partition int, outcomes bool) error {
	first, next, err := log.Bounds(d.ctx, topic, partition)
	if err != nil || first == next {
		return err
	}
	r, err := log.Read(d.ctx, topic, partition, stream.Earliest)
	if err != nil {
		return err
	}
	d.lanes = append(d.lanes, &lane{name: fmt.Sprintf("%s[%d]", topic, partition), part: partition,
		outcomes: outcomes, r: r, next: next})
	return nil
}

func (d *topicReader) close() {
	for _, l := range d.lanes {
		_ = l.r.Close()
	}
}

func (d *topicReader) raw() []byte { return d.value }

// peek returns the record to come of a lane, nil at its end.
func (l *lane) peek(ctx context.Context) (*stream.Record, error) {
	for l.at == len(l.batch) {
		if l.r.Position() >= l.next {
			return nil, nil
		}
		var err error
		if l.batch, err = l.r.Next(ctx, l.batch[:0]); err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		l.at = 0
	}
	if rec := &l.batch[l.at]; rec.Offset < l.next {
		return rec, nil
	}
	return nil, nil
}

func (d *topicReader) next(r *Record) (class, string, error) {
	var from *lane
	var first *stream.Record
	for _, l := range d.lanes {
		rec, err := l.peek(d.ctx)
		if err != nil {
			return 0, "", ended{err}
		}
		if rec != nil && (first == nil || rec.Time < first.Time) {
			from, first = l, rec
		}
	}
	if first == nil {
		return 0, "", ended{io.EOF}
	}
	from.at++
	d.value = first.Value
	d.in.bytes += int64(len(first.Value))
	r.Line, r.File = first.Offset, from.name
	var class class
	var err error
	switch {
	case first.Type != "":
		return isSkipped, "control record", nil
	case !from.outcomes && d.o.To != 0 && (first.Time < d.o.From || first.Time >= d.o.To):
		return isSkipped, "decided at another time", nil
	case from.outcomes:
		if why, ok := d.refused[loop.Place{Partition: from.part, Offset: first.Offset}]; ok {
			return 0, "", fmt.Errorf("the joiner rejected it: %s", why)
		}
		class, err = d.outcome(r, first)
	default:
		class, err = isEvent, d.decision(r, first)
		switch {
		case err == nil && d.dec.Unknown == codec.UnknownLaw:
			return isSkipped, AssignedBare, nil
		case err == nil && d.repeat():
			return isSkipped, "repeat of a unit's draw", nil
		}
	}
	return class, "", err
}

// AssignedBare is why a decision of another system is no event.
const AssignedBare = "assigned without a propensity"

// repeat notes what the decision at hand is to its unit, and reports whether it repeats a draw, whose outcomes count
// for the draw.
func (d *topicReader) repeat() bool {
	o := &d.dec
	if o.Unit == "" || o.Mode == codec.External {
		return false
	}
	if d.draws == nil {
		d.draws, d.repeats = map[string]string{}, map[string]string{}
	}
	if o.First.N > 0 {
		d.repeats[strings.Clone(o.ID)] = d.draws[o.Unit]
		return true
	}
	d.draws[strings.Clone(o.Unit)] = strings.Clone(o.ID)
	return false
}

// decision makes an event.
func (d *topicReader) decision(r *Record, rec *stream.Record) error {
	o := &d.dec
	if err := codec.ParseDecision(o, rec.Value); err != nil {
		return err
	}
	if o.Action < 0 || o.Action >= len(o.Actions) || len(o.Propensities) != len(o.Actions) {
		return errors.New("a decision whose actions and propensities do not fit each other")
	}
	if err := codec.ParseContext(&d.asked, o.Context); err != nil {
		return fmt.Errorf("context: %w", err)
	}
	r.ID, r.Time, r.Unit = o.ID, rec.Time, d.asked.Unit
	r.Features = append(r.Features, d.asked.Features...)
	r.Features = appendVector(r.Features, d.asked.Vector)
	// those that the model masks are no actions of the decision; the others are in their order
	listed := d.asked.Actions
	for _, name := range o.Actions {
		a := r.another(name)
		if at := slices.IndexFunc(listed, func(c codec.Action) bool { return c.Name == name }); at >= 0 {
			a.Features = append(a.Features, listed[at].Features...)
			listed = listed[at+1:]
		}
	}
	if b := d.asked.Baseline; len(b) == 1 { // of a law no single action is the best
		if i := slices.Index(o.Actions, b[0].Name); i >= 0 {
			r.Baseline = append(r.Baseline, i)
		}
	}
	r.Chosen, r.Action = o.Action, o.Actions[o.Action]
	r.Learned = o.Mode == codec.Live && o.LearnedThrough > 0
	if o.Unknown == 0 {
		r.Propensities = append(r.Propensities, o.Propensities...)
	}
	if r.Propensity = o.Propensities[o.Action]; !(r.Propensity > 0 && r.Propensity <= 1) {
		return errNoLawful
	}
	return validate(&d.checked, r)
}

// outcome makes an observation. That a decision was shown is one, too.
func (d *topicReader) outcome(r *Record, rec *stream.Record) (class, error) {
	if err := codec.ParseOutcome(&d.out, rec.Value); err != nil {
		return 0, err
	}
	r.Kind, r.ID, r.Action, r.OutcomeTime = Outcome, d.out.ID, d.out.Action, rec.Time
	if draw := d.repeats[r.ID]; draw != "" {
		r.ID = draw
	} else if r.ID == "" {
		r.ID = d.draws[d.out.Unit]
	}
	if r.ID == "" {
		return 0, errors.New("an outcome without id, or of a unit that has no draw in this log")
	}
	if d.out.Kind == codec.Activated {
		r.Flags |= Activation
		return isDangling, nil
	}
	r.Outcome, r.Value = d.out.Kind, d.out.Value
	for _, v := range d.out.Values {
		r.Values = append(r.Values, codec.TimedValue{Value: v, Time: scan.NoTime})
	}
	return isDangling, validate(&d.checked, r)
}
