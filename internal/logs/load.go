package logs

import (
	"errors"
	"io"
	"slices"
	"strings"

	"hindsight/pkg/codec"
)

// Loaded is a log in memory, its outcomes joined with their events.
type Loaded struct {
	Events    []Record // in the order of the log; what was not activated is left out
	Account   Account
	Joined    int64 // outcomes that became those of an event without one
	Extra     int64 // outcomes of events that have one: the first counts
	Unmatched int64 // outcomes whose event is not in the log
	Activated int64 // events that the log skips as not activated, and an outcome activates
}

// Load reads all records of r and closes it. Open it with [Options.Inactive], or events
// that are activated later are lost. Outcomes find their events whether they lie before
// or behind them.
func Load(r *Reader) (l *Loaded, err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	l = &Loaded{}
	at := map[string]int{}
	var outcomes []Record
	var rec Record
	for {
		err := r.Next(&rec)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		kept := rec.Clone()
		if kept.Kind == Outcome {
			outcomes = append(outcomes, kept)
			continue
		}
		if kept.ID != "" {
			at[kept.ID] = len(l.Events)
		}
		l.Events = append(l.Events, kept)
	}
	for i := range outcomes {
		e, ok := at[outcomes[i].ID]
		if !ok {
			l.Unmatched++
			continue
		}
		l.join(&l.Events[e], &outcomes[i])
	}
	l.Events = slices.DeleteFunc(l.Events, func(e Record) bool { return e.Flags&Inactive != 0 })
	l.Account = *r.Account()
	return l, nil
}

// join gives an event an outcome that came by itself.
func (l *Loaded) join(e, o *Record) {
	if o.Flags&Activation != 0 && e.Flags&Inactive != 0 {
		e.Flags &^= Inactive
		l.Activated++
	}
	switch {
	case o.Outcome == 0:
	case e.Observed():
		l.Extra++
	default:
		e.Outcome, e.Value, e.OutcomeTime = o.Outcome, o.Value, o.OutcomeTime
		e.Flags &^= Defaulted
		l.Joined++
	}
}

// Clone returns a copy of r that shares no memory with it.
func (r *Record) Clone() Record {
	c := *r
	c.ID, c.Action = strings.Clone(r.ID), strings.Clone(r.Action)
	c.Features = cloneFeatures(r.Features)
	c.Actions = nil
	for _, a := range r.Actions {
		c.Actions = append(c.Actions, codec.Action{Name: strings.Clone(a.Name), Features: cloneFeatures(a.Features)})
	}
	c.Baseline = append([]int(nil), r.Baseline...)
	c.Propensities = append([]float64(nil), r.Propensities...)
	return c
}

func cloneFeatures(in []codec.Feature) (out []codec.Feature) {
	for _, f := range in {
		f.Name, f.Text = strings.Clone(f.Name), strings.Clone(f.Text)
		out = append(out, f)
	}
	return out
}
