package logs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

// Writer writes records in a format. Nothing in a record is kept by it.
type Writer interface {
	// Write writes a record. An error that wraps [*UnwritableError] says that the format
	// cannot hold this record, which is then left out; any other ends the file.
	Write(r *Record) error
	// Close writes what is left; it does not close the file below.
	Close() error
}

// WriteFormats returns the names of the formats that are written.
func WriteFormats() []string { return []string{JSONL, Msgpack, Dsjson, Parquet} }

// NewWriter returns a writer of a format.
func NewWriter(w io.Writer, format string) (Writer, error) {
	out := bufio.NewWriterSize(w, scan.BufferBytes)
	switch format {
	case JSONL:
		return &eventWriter{w: out, append: func(dst []byte, o *codec.Round) []byte {
			return append(codec.AppendRoundJSON(dst, o), '\n')
		}}, nil
	case Msgpack:
		return &eventWriter{w: out, append: codec.AppendRound}, nil
	case Dsjson:
		return &dsjsonWriter{w: out}, nil
	case Parquet:
		return newParquetWriter(w), nil
	}
	return nil, fmt.Errorf("format %q cannot be written: expected one of %s", format, strings.Join(WriteFormats(),
		", "))
}

// UnwritableError says why a format cannot hold a record.
type UnwritableError struct {
	File string
	Line int64
	Msg  string
}

func (e *UnwritableError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// eventWriter writes our events: a round a record, an outcome a record.
type eventWriter struct {
	w      *bufio.Writer
	append func(dst []byte, o *codec.Round) []byte
	round  codec.Round
	names  []string
	base   []string
	buf    []byte
}

func (e *eventWriter) Write(r *Record) error {
	o := &e.round
	*o = codec.Round{Context: codec.Context{ID: r.ID, Unit: r.Unit}, Time: scan.NoTime,
		OutcomeTime: r.OutcomeTime, Kind: r.Outcome, Value: r.Value, Values: r.Values}
	if o.Activated = r.Flags&Activation != 0; r.Kind == Outcome {
		o.Action = r.Action
	} else {
		e.event(r)
	}
	e.buf = e.append(e.buf[:0], o)
	_, err := e.w.Write(e.buf)
	return err
}

func (e *eventWriter) event(r *Record) {
	o := &e.round
	o.Features, o.Actions, o.Arms = r.Features, nil, r.Arms
	o.Decided = r.Arms == nil
	o.Time, o.Action, o.Propensity, o.Weight = r.Time, r.Action, r.Propensity, r.Weight
	o.Inactive, o.Defaulted = r.Flags&Inactive != 0, r.Flags&Defaulted != 0
	e.names, e.base = e.names[:0], e.base[:0]
	if len(r.Actions) > 0 {
		o.Actions = r.Actions
		for i := range r.Propensities {
			e.names = append(e.names, r.Actions[i].Name)
		}
		for _, a := range r.Baseline {
			e.base = append(e.base, r.Actions[a].Name)
		}
	}
	o.LawActions, o.Propensities, o.Baseline = e.names, r.Propensities, e.base
}

func (e *eventWriter) Close() error { return e.w.Flush() }

// dsjsonWriter writes decision-service JSON. A loss becomes its negative as reward;
// features are grouped in namespaces by what stands before the first dot of their names.
type dsjsonWriter struct {
	w   *bufio.Writer
	buf []byte
}

func (d *dsjsonWriter) Close() error { return d.w.Flush() }

func (d *dsjsonWriter) Write(r *Record) error {
	d.buf = append(d.buf[:0], '{')
	var err error
	if len(r.Values)+len(r.Arms) > 0 {
		err = errors.New("named outcomes have no place there; write --to " + JSONL)
	} else if r.Kind == Outcome {
		d.outcome(r)
	} else {
		err = d.event(r)
	}
	if err != nil {
		return &UnwritableError{r.File, r.Line, "dsjson cannot hold this event: " + err.Error()}
	}
	d.buf = append(d.buf, '}', '\n')
	_, err = d.w.Write(d.buf)
	return err
}

func (d *dsjsonWriter) outcome(r *Record) {
	if v, ok := reward(r); ok {
		d.number("RewardValue", v)
	}
	if r.OutcomeTime != scan.NoTime {
		d.time("EnqueuedTimeUtc", r.OutcomeTime)
	}
	d.text("EventId", r.ID)
	d.key("Observations")
	d.observations(r)
}

// reward returns the outcome as a reward.
func reward(r *Record) (float64, bool) {
	switch r.Outcome {
	case codec.Reward:
		return r.Value, true
	case codec.Loss:
		return 0 - r.Value, true
	}
	return 0, false
}

func (d *dsjsonWriter) observations(r *Record) {
	d.buf = append(d.buf, '[', '{')
	if v, ok := reward(r); ok {
		d.number("v", v)
	}
	if r.ID != "" {
		d.text("EventId", r.ID)
	}
	if r.Flags&Activation != 0 {
		d.key("ActionTaken")
		d.buf = append(d.buf, "true"...)
	}
	if r.Kind == Event && r.OutcomeTime != scan.NoTime {
		d.time("EnqueuedTimeUtc", r.OutcomeTime)
	}
	d.buf = append(d.buf, '}', ']')
}

func (d *dsjsonWriter) event(r *Record) error {
	k := r.Chosen + 1
	if len(r.Actions) == 0 {
		var err error
		if k, err = strconv.Atoi(r.Action); err != nil || k < 1 || k > codec.MaxActions || ordinal(k) != r.Action {
			return fmt.Errorf("the actions are not known, and the one played, %q, is not a number from 1 to %d",
				r.Action, codec.MaxActions)
		}
	}
	if v, ok := reward(r); ok {
		d.number("_label_cost", 0-v)
	}
	if r.Propensity > 0 {
		d.number("_label_probability", r.Propensity)
	}
	d.number("_label_Action", float64(k))
	d.number("_labelIndex", float64(k-1))
	if r.observed() && r.Outcome != codec.Withdrawn {
		d.key("o")
		d.observations(r)
	}
	if r.Flags&Inactive != 0 || r.Outcome == codec.Withdrawn {
		d.key("_skipLearn")
		d.buf = append(d.buf, "true"...)
	}
	if r.Time != scan.NoTime {
		d.time("Timestamp", r.Time)
	}
	d.text("Version", "1")
	if r.ID != "" {
		d.text("EventId", r.ID)
	}
	d.ranks(r, k)
	if r.Weight > 1 {
		d.number("pdrop", 1-1/r.Weight)
	}
	return d.context(r)
}

// ranks writes the actions with their probabilities, the one played first.
func (d *dsjsonWriter) ranks(r *Record, k int) {
	n := max(len(r.Actions), 1)
	other := func(i int) int { // the i-th of all, 1-based: k first, then the others in order
		switch {
		case i == 0:
			return k
		case i < k:
			return i
		}
		return i + 1
	}
	d.list("a", n, func(i int) float64 { return float64(other(i)) })
	if len(r.Propensities) > 0 {
		d.list("p", n, func(i int) float64 { return r.Propensities[other(i)-1] })
	}
	if len(r.Baseline) > 0 {
		d.list("_ba", len(r.Baseline), func(i int) float64 { return float64(r.Baseline[i] + 1) })
	}
}

func (d *dsjsonWriter) context(r *Record) error {
	d.key("c")
	d.buf = append(d.buf, '{')
	if err := d.features(r.Features); err != nil {
		return err
	}
	if len(r.Actions) > 0 {
		d.key("_multi")
		d.buf = append(d.buf, '[')
		for i := range r.Actions {
			a := &r.Actions[i]
			d.comma()
			d.buf = append(d.buf, '{')
			d.text("_tag", a.Name)
			if err := d.features(a.Features); err != nil {
				return err
			}
			d.buf = append(d.buf, '}')
		}
		d.buf = append(d.buf, ']')
	}
	d.buf = append(d.buf, '}')
	return nil
}

// features writes features that follow one another in one namespace as one object.
func (d *dsjsonWriter) features(features []codec.Feature) error {
	for i := 0; i < len(features); {
		ns, rest, _ := strings.Cut(features[i].Name, ".")
		if ns == "" || ns[0] == '_' || rest == "" || rest[0] == '_' {
			if features[i].Name[0] == '_' {
				return fmt.Errorf("keys that begin with _, as %q, are no features there", features[i].Name)
			}
			d.feature(features[i].Name, &features[i])
			i++
			continue
		}
		d.key(ns)
		d.buf = append(d.buf, '{')
		for ; i < len(features); i++ {
			name, ok := strings.CutPrefix(features[i].Name, ns)
			if !ok || len(name) < 2 || name[0] != '.' || name[1] == '_' {
				break
			}
			d.feature(name[1:], &features[i])
		}
		d.buf = append(d.buf, '}')
	}
	return nil
}

func (d *dsjsonWriter) feature(name string, f *codec.Feature) {
	switch {
	case f.Kind == codec.Text:
		d.text(name, f.Text)
	case f.Kind == codec.Number:
		d.number(name, f.Value)
	case f.Kind == codec.Vector:
		d.key(name)
		d.buf = append(d.buf, '[')
		for i := range f.Len() {
			d.comma()
			d.buf = strconv.AppendFloat(d.buf, f.At(i), 'g', -1, 64)
		}
		d.buf = append(d.buf, ']')
	default:
		d.key(name)
		d.buf = strconv.AppendBool(d.buf, f.Value != 0)
	}
}

func (d *dsjsonWriter) comma() {
	if c := d.buf[len(d.buf)-1]; c != '{' && c != '[' {
		d.buf = append(d.buf, ',')
	}
}

func (d *dsjsonWriter) key(k string) {
	d.comma()
	d.buf = append(codec.AppendJSONText(d.buf, k), ':')
}

func (d *dsjsonWriter) text(key, s string) {
	d.key(key)
	d.buf = codec.AppendJSONText(d.buf, s)
}

func (d *dsjsonWriter) number(key string, x float64) {
	d.key(key)
	d.buf = appendNumber(d.buf, x)
}

func (d *dsjsonWriter) time(key string, ns int64) {
	d.key(key)
	d.buf = append(scan.AppendTime(append(d.buf, '"'), ns), '"')
}

func (d *dsjsonWriter) list(key string, n int, x func(i int) float64) {
	d.key(key)
	d.buf = append(d.buf, '[')
	for i := range n {
		d.comma()
		d.buf = appendNumber(d.buf, x(i))
	}
	d.buf = append(d.buf, ']')
}

// appendNumber appends the shortest text of a finite number that reads as it.
func appendNumber(dst []byte, x float64) []byte { return strconv.AppendFloat(dst, x, 'g', -1, 64) }
