package logs

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"hindsight/pkg/codec"
)

// row is a record in Parquet. Features and actions are JSON as in our events, so that the
// columns are the same whatever a log holds and it can be written without knowing all of it.
type row struct {
	Kind         string    `parquet:"kind,dict"` // event or outcome
	ID           string    `parquet:"id"`
	Time         *int64    `parquet:"time,optional,timestamp(nanosecond)"`
	Features     string    `parquet:"features,json"`       // {name: value}
	Actions      string    `parquet:"actions,json"`        // [name | {name, features}], or "" where they are not known
	Action       string    `parquet:"action,dict"`         // played
	Propensity   *float64  `parquet:"propensity,optional"` // of it
	Propensities []float64 `parquet:"propensities,list"`   // aligned with actions; empty: not known
	Outcome      string    `parquet:"outcome,dict"`        // loss, reward, withdrawn, or ""
	Value        *float64  `parquet:"value,optional"`      // of a loss or reward
	OutcomeTime  *int64    `parquet:"outcome_time,optional,timestamp(nanosecond)"`
	Weight       float64   `parquet:"weight"`
	Baseline     []int32   `parquet:"baseline,list"` // indices into actions
	Inactive     bool      `parquet:"inactive"`
	Defaulted    bool      `parquet:"defaulted"`
	Activated    bool      `parquet:"activated"`
}

// rowsPerGroup bounds what a file of Parquet holds in memory while it is written.
const rowsPerGroup = 20_000

type parquetWriter struct {
	w    *parquet.GenericWriter[row]
	rows []row
	ctx  codec.Context
	buf  []byte
	n    int // rows of the group
}

// rowsAtOnce are handed to the library together.
const rowsAtOnce = 256

func newParquetWriter(w io.Writer) *parquetWriter {
	return &parquetWriter{w: parquet.NewGenericWriter[row](w,
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.PageBufferSize(64<<10), parquet.CreatedBy("hindsight", "replayer convert", ""))}
}

func (p *parquetWriter) Write(r *Record) error {
	x := row{Kind: "event", ID: strings.Clone(r.ID), Time: timeOrNil(r.Time), OutcomeTime: timeOrNil(r.OutcomeTime),
		Weight: r.Weight,
		Action: strings.Clone(r.Action), Inactive: r.Flags&Inactive != 0, Defaulted: r.Flags&Defaulted != 0, Activated: r.Flags&Activation != 0}
	if r.Kind == Outcome {
		x.Kind = "outcome"
	}
	if r.Propensity > 0 {
		v := r.Propensity
		x.Propensity = &v
	}
	if x.Outcome = outcomeNames[r.Outcome]; r.Outcome == codec.Loss || r.Outcome == codec.Reward {
		v := r.Value
		x.Value = &v
	}
	x.Propensities = append([]float64(nil), r.Propensities...)
	for _, a := range r.Baseline {
		x.Baseline = append(x.Baseline, int32(a))
	}
	p.ctx = codec.Context{Features: r.Features}
	if p.buf = codec.AppendContextJSON(p.buf[:0], &p.ctx); len(p.buf) > 2 {
		x.Features = string(p.buf[len(`{"features":`) : len(p.buf)-1])
	} else {
		x.Features = "{}"
	}
	if len(r.Actions) > 0 {
		p.ctx = codec.Context{Actions: r.Actions}
		p.buf = codec.AppendContextJSON(p.buf[:0], &p.ctx)
		x.Actions = string(p.buf[len(`{"actions":`) : len(p.buf)-1])
	}
	if p.rows = append(p.rows, x); len(p.rows) == rowsAtOnce {
		return p.flush()
	}
	return nil
}

var outcomeNames = map[codec.OutcomeKind]string{0: "", codec.Loss: "loss", codec.Reward: "reward",
	codec.Withdrawn: "withdrawn"}

func timeOrNil(ns int64) *int64 {
	if ns == NoTime {
		return nil
	}
	return &ns
}

func (p *parquetWriter) flush() error {
	if _, err := p.w.Write(p.rows); err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	p.n += len(p.rows)
	if p.rows = p.rows[:0]; p.n >= rowsPerGroup {
		p.n = 0
		if err := p.w.Flush(); err != nil {
			return fmt.Errorf("parquet: %w", err)
		}
	}
	return nil
}

func (p *parquetWriter) Close() error {
	if err := p.flush(); err != nil {
		return err
	}
	if err := p.w.Close(); err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	return nil
}

// parquetReader reads what [NewWriter] writes as Parquet.
type parquetReader struct {
	r    *parquet.GenericReader[row]
	rows []row
	at   int
	n    int64
	text []byte
	ev   rounds
	o    codec.Round
}

// openParquet opens a file, which the format wants whole: of what streams a copy is made
// in a temporary file.
func openParquet(in *input) (d *parquetReader, err error) {
	f := in.file
	if f == nil {
		if f, err = unnamed("hindsight-*.parquet", in.r); err != nil {
			return nil, fmt.Errorf("%s: %w", in.name, err)
		}
		in.closers = append(in.closers, func() { f.Close() })
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	in.bytes = info.Size()
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("%s: not Parquet that can be read: %v", in.name, x)
		}
	}()
	if err := checkFooter(f, info.Size()); err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	if err := checkPages(f, info.Size(), file.Metadata()); err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	for _, name := range [...]string{"kind", "features", "actions", "action"} {
		if _, ok := file.Schema().Lookup(name); !ok {
			return nil, fmt.Errorf("%s: a Parquet file without the column %s; the columns are those that replayer "+
				"convert --to parquet writes", in.name, name)
		}
	}
	return &parquetReader{r: parquet.NewGenericReader[row](file), rows: make([]row, 0, rowsAtOnce)}, nil
}

func (d *parquetReader) raw() []byte { return d.text }

func (d *parquetReader) next(r *Record) (class Class, reason string, err error) {
	if d.at == len(d.rows) {
		if err := d.fill(); err != nil {
			return 0, "", err
		}
	}
	x := &d.rows[d.at]
	d.at++
	d.n++
	r.Line = d.n
	if class, err = d.record(x, r); err != nil {
		return 0, "", &LineError{Line: d.n, Msg: err.Error()}
	}
	return class, "", nil
}

// fill reads more rows. The library may panic on damaged bytes.
func (d *parquetReader) fill() (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("row %d and behind cannot be read: %v", d.n+1, x)
		}
	}()
	rows := d.rows[:cap(d.rows)]
	clear(rows)
	n, err := d.r.Read(rows)
	d.rows, d.at = rows[:n], 0
	switch {
	case n > 0:
		return nil // an error comes again
	case err == nil:
		return io.ErrNoProgress
	}
	return err
}

// record makes a record of a row, by way of the event that it stands for.
func (d *parquetReader) record(x *row, r *Record) (Class, error) {
	d.text = append(d.text[:0], `{"features":`...)
	if x.Features == "" {
		x.Features = "{}"
	}
	d.text = append(d.text, x.Features...)
	if x.Actions != "" {
		d.text = append(append(d.text, `,"actions":`...), x.Actions...)
	}
	d.text = append(d.text, '}')
	if err := codec.ParseRound(&d.o, d.text); err != nil {
		return 0, err
	}
	o := &d.ev.round
	*o = codec.Round{Context: d.o.Context, Time: orNoTime(x.Time), OutcomeTime: orNoTime(x.OutcomeTime),
		Action: x.Action,
		Weight: x.Weight, Inactive: x.Inactive, Defaulted: x.Defaulted, Activated: x.Activated}
	o.ID = x.ID
	if x.Propensity != nil {
		o.Propensity = *x.Propensity
	}
	switch x.Outcome {
	case "loss":
		o.Kind = codec.Loss
	case "reward":
		o.Kind = codec.Reward
	case "withdrawn":
		o.Kind = codec.Withdrawn
	case "":
	default:
		return 0, fmt.Errorf("outcome %q: expected loss, reward, withdrawn or nothing", x.Outcome)
	}
	if x.Value != nil {
		o.Value = *x.Value
	}
	if math.IsNaN(o.Value) || math.IsInf(o.Value, 0) {
		return 0, errCost
	}
	return d.kind(x, r)
}

func (d *parquetReader) kind(x *row, r *Record) (Class, error) {
	o := &d.ev.round
	switch x.Kind {
	case "outcome":
		class, _, err := d.ev.outcome(r)
		return class, err
	case "event":
	default:
		return 0, fmt.Errorf("kind %q: expected event or outcome", x.Kind)
	}
	if x.Action == "" {
		return 0, errors.New("an event without the action that was played")
	}
	if len(x.Propensities) > 0 {
		if len(x.Propensities) != len(o.Actions) {
			return 0, errLawOfWhat
		}
		o.Propensities = x.Propensities
		for i := range o.Actions {
			o.LawActions = append(o.LawActions, o.Actions[i].Name)
		}
	}
	for _, a := range x.Baseline {
		if a < 0 || int(a) >= len(o.Actions) {
			return 0, errors.New("baseline names an action that is not there")
		}
		o.Baseline = append(o.Baseline, o.Actions[a].Name)
	}
	return IsEvent, d.ev.event(r)
}

func orNoTime(t *int64) int64 {
	if t == nil {
		return NoTime
	}
	return *t
}
