package verify

import (
	"context"

	"hindsight/pkg/stream"
)

// overlook looks over decisions and feedback while they are read, for what those who
// look over them first know from the beginning. If that would have mattered, the
// verification begins again.
type overlook struct {
	v      *verification
	end    int64 // of feedback
	models *modelReader
	losses losses // of feedback
}

// lookOver looks over the logs, or returns what does so on the way.
func (v *verification) lookOver(ctx context.Context, d *decisionCheck) (*overlook, error) {
	switch {
	case !v.once:
		if err := v.readModels(ctx, d.feedback.end); err != nil {
			return nil, err
		}
		return nil, v.readLosses(ctx, d.lanes)
	case d.feedback.cut(): // where recomputing begins has to be found
		v.again()
		return nil, errTwice
	}
	o := &overlook{v: v, end: d.feedback.end}
	o.models = newModelReader(v, d.feedback, &o.losses)
	return o, nil
}

// feedback returns what sees the records of feedback.
func (o *overlook) feedback() func(r *stream.Record) error {
	if o == nil {
		return nil
	}
	return func(r *stream.Record) error {
		if r.Offset >= o.end {
			return nil
		}
		if err := o.models.take(r); err != nil {
			return err
		}
		o.lost(&o.losses)
		return nil
	}
}

// decisions returns what sees the records of a partition of decisions.
func (o *overlook) decisions(c *logCursor) func(r *stream.Record) error {
	if o == nil {
		return nil
	}
	var l losses
	return func(r *stream.Record) error {
		if r.Offset < c.end {
			l.readDecisions(c.partition, r)
			o.lost(&l)
		}
		return nil
	}
}

// lost begins again if something was lost.
func (o *overlook) lost(l *losses) {
	if l.any() {
		o.v.again()
	}
}

// finish looks at what only the end of the log tells.
func (o *overlook) finish(lanes []*decisionLane) {
	from, _ := o.v.start(false)
	last := o.v.survey.now().lastN
	for _, l := range lanes {
		if from == nil || l.marked > last && last > 0 {
			o.v.again()
		}
	}
}
