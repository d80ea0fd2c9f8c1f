package logs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"hindsight/internal/scan"
	"hindsight/internal/thrift"
	"hindsight/pkg/codec"
)

// row is a record in Parquet. Features and actions are lists, so that the columns are the same
// whatever a log holds, and it can be written without knowing all of it.
type row struct {
	Kind         string    `parquet:"kind,dict"` // event or outcome
	ID           string    `parquet:"id"`
	Time         *int64    `parquet:"time,optional,timestamp(nanosecond)"`
	Features     []cell    `parquet:"features,list"`
	Actions      []choice  `parquet:"actions,list"`        // empty where they are not known
	Action       string    `parquet:"action,dict"`         // played
	Propensity   *float64  `parquet:"propensity,optional"` // of it
	Propensities []float64 `parquet:"propensities,list"`   // aligned with actions; empty: not known
	Outcome      string    `parquet:"outcome,dict"`        // loss, reward, withdrawn, named, or ""
	Value        *float64  `parquet:"value,optional"`      // of a loss or reward
	OutcomeTime  *int64    `parquet:"outcome_time,optional,timestamp(nanosecond)"`
	Weight       float64   `parquet:"weight"`
	Baseline     []int32   `parquet:"baseline,list"` // indices into actions
	Inactive     bool      `parquet:"inactive"`
	Defaulted    bool      `parquet:"defaulted"`
	Activated    bool      `parquet:"activated"`
	Outcomes     []came    `parquet:"outcomes,list"` // named ones that came
	Arms         []arm     `parquet:"arms,list"`     // what each action would have brought
	Unit         string    `parquet:"unit"`          // whom or what it is about
}

// came is a named outcome.
type came struct {
	Name  string   `parquet:"name,dict"`
	Value *float64 `parquet:"value,optional"` // null: it was withdrawn
	Time  *int64   `parquet:"time,optional,timestamp(nanosecond)"`
}

// arm is an action with the named outcomes that it would have had.
type arm struct {
	Action   string `parquet:"action,dict"`
	Outcomes []came `parquet:"outcomes,list"`
}

// cell is a feature: one of number, text and bool is there.
type cell struct {
	Name   string   `parquet:"name,dict"`
	Number *float64 `parquet:"number,optional"`
	Text   *string  `parquet:"text,optional"`
	Bool   *bool    `parquet:"bool,optional"`
}

// choice is an action that could have been played.
type choice struct {
	Name     string `parquet:"name,dict"`
	Features []cell `parquet:"features,list"`
}

// jsonRow is a record as earlier versions wrote it: features and actions are JSON as in our events.
type jsonRow struct {
	Kind         string    `parquet:"kind,dict"`
	ID           string    `parquet:"id"`
	Time         *int64    `parquet:"time,optional,timestamp(nanosecond)"`
	Features     string    `parquet:"features,json"` // {name: value}
	Actions      string    `parquet:"actions,json"`  // [name | {name, features}], or ""
	Action       string    `parquet:"action,dict"`
	Propensity   *float64  `parquet:"propensity,optional"`
	Propensities []float64 `parquet:"propensities,list"`
	Outcome      string    `parquet:"outcome,dict"`
	Value        *float64  `parquet:"value,optional"`
	OutcomeTime  *int64    `parquet:"outcome_time,optional,timestamp(nanosecond)"`
	Weight       float64   `parquet:"weight"`
	Baseline     []int32   `parquet:"baseline,list"`
	Inactive     bool      `parquet:"inactive"`
	Defaulted    bool      `parquet:"defaulted"`
	Activated    bool      `parquet:"activated"`
}

// rowsPerGroup bounds what a file of Parquet holds in memory while it is written.
const rowsPerGroup = 20_000

type parquetWriter struct {
	w    *parquet.GenericWriter[row]
	rows []row
	n    int // rows of the group

	vector string // the name of a feature that is one; "": none was
}

// rowsAtOnce are handed to the library together.
const rowsAtOnce = 256

func newParquetWriter(w io.Writer) *parquetWriter {
	return &parquetWriter{w: parquet.NewGenericWriter[row](w,
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.PageBufferSize(64<<10), parquet.CreatedBy("hindsight", "replayer convert", ""))}
}

func (p *parquetWriter) Write(r *Record) error {
	x := row{Kind: "event", ID: strings.Clone(r.ID), Time: timeOrNil(r.Time),
		OutcomeTime: timeOrNil(r.OutcomeTime), Weight: r.Weight, Action: strings.Clone(r.Action),
		Unit:     strings.Clone(r.Unit),
		Inactive: r.Flags&Inactive != 0, Defaulted: r.Flags&Defaulted != 0, Activated: r.Flags&Activation != 0,
		Features: p.cells(r.Features)}
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
	for i := range r.Actions {
		a := &r.Actions[i]
		x.Actions = append(x.Actions, choice{strings.Clone(a.Name), p.cells(a.Features)})
	}
	for i := range r.Values {
		x.Outcomes = append(x.Outcomes, cameOf(&r.Values[i].Value, r.Values[i].Time))
	}
	for i := range r.Arms {
		a := arm{Action: strings.Clone(r.Arms[i].Action)}
		for j := range r.Arms[i].Values {
			a.Outcomes = append(a.Outcomes, cameOf(&r.Arms[i].Values[j], scan.NoTime))
		}
		x.Arms = append(x.Arms, a)
	}
	if p.vector != "" {
		return fmt.Errorf("the feature %q is a vector, which files of Parquet do not have; write --to %s",
			p.vector, JSONL)
	}
	if p.rows = append(p.rows, x); len(p.rows) == rowsAtOnce {
		return p.flush()
	}
	return nil
}

func cameOf(v *codec.Value, at int64) came {
	c := came{Name: strings.Clone(v.Name), Time: timeOrNil(at)}
	if x := v.X; !v.Withdrawn {
		c.Value = &x
	}
	return c
}

// value does the reverse.
func (c *came) value() codec.Value {
	if c.Value == nil {
		return codec.Value{Name: c.Name, Withdrawn: true}
	}
	return codec.Value{Name: c.Name, X: *c.Value}
}

// cells copies features.
func (p *parquetWriter) cells(features []codec.Feature) []cell {
	out := make([]cell, 0, len(features))
	for i := range features {
		f := &features[i]
		c := cell{Name: strings.Clone(f.Name)}
		switch f.Kind {
		case codec.Text:
			text := strings.Clone(f.Text)
			c.Text = &text
		case codec.Vector:
			p.vector = strings.Clone(f.Name)
		case codec.Bool:
			is := f.Value != 0
			c.Bool = &is
		default:
			number := f.Value
			c.Number = &number
		}
		out = append(out, c)
	}
	return out
}

// appendFeatures does the reverse.
func appendFeatures(dst []codec.Feature, cells []cell) ([]codec.Feature, error) {
	for _, c := range cells {
		f := codec.Feature{Name: c.Name}
		switch {
		case c.Number != nil && c.Text == nil && c.Bool == nil:
			f.Kind, f.Value = codec.Number, *c.Number
		case c.Number == nil && c.Text != nil && c.Bool == nil:
			f.Kind, f.Text = codec.Text, *c.Text
		case c.Number == nil && c.Text == nil && c.Bool != nil:
			f.Kind = codec.Bool
			if *c.Bool {
				f.Value = 1
			}
		default:
			return nil, fmt.Errorf("feature %q: expected one of number, text and bool", c.Name)
		}
		dst = append(dst, f)
	}
	return dst, nil
}

var outcomeNames = map[codec.OutcomeKind]string{0: "", codec.Loss: "loss", codec.Reward: "reward",
	codec.Withdrawn: "withdrawn", codec.Named: "named"}

func timeOrNil(ns int64) *int64 {
	if ns == scan.NoTime {
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
	read func(rows []row) (int, error)
	rows []row
	at   int
	json []jsonRow // of a file whose features are JSON, aligned with rows
	n    int64
	text []byte
	ev   rounds
	o    codec.Round

	features []codec.Feature // used again
}

// openParquet opens a file, which the format wants whole: of what streams a copy is made in a temporary file.
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
	if err := thrift.CheckFooter(f, info.Size()); err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	if err := thrift.CheckPages(f, info.Size(), file.Metadata()); err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	for _, name := range [...]string{"kind", "features", "actions", "action"} {
		if !slices.ContainsFunc(file.Schema().Fields(), func(f parquet.Field) bool { return f.Name() == name }) {
			return nil, fmt.Errorf("%s: a Parquet file without the column %s; the columns are those that replayer "+
				"convert --to parquet writes", in.name, name)
		}
	}
	d = &parquetReader{rows: make([]row, 0, rowsAtOnce)}
	if column, ok := file.Schema().Lookup("features"); ok && column.Node.Leaf() {
		d.readJSON(parquet.NewGenericReader[jsonRow](file))
	} else {
		d.read = parquet.NewGenericReader[row](file).Read
	}
	return d, nil
}

// readJSON reads rows whose features and actions are JSON.
func (d *parquetReader) readJSON(r *parquet.GenericReader[jsonRow]) {
	d.json = make([]jsonRow, rowsAtOnce)
	d.read = func(rows []row) (int, error) {
		clear(d.json)
		n, err := r.Read(d.json)
		for i := range n {
			x := &d.json[i]
			rows[i] = row{Kind: x.Kind, ID: x.ID, Time: x.Time, Action: x.Action, Propensity: x.Propensity,
				Propensities: x.Propensities, Outcome: x.Outcome, Value: x.Value, OutcomeTime: x.OutcomeTime,
				Weight:   x.Weight,
				Baseline: x.Baseline, Inactive: x.Inactive, Defaulted: x.Defaulted, Activated: x.Activated}
		}
		return n, err
	}
}

func (d *parquetReader) raw() []byte { return d.text }

func (d *parquetReader) next(r *Record) (class class, reason string, err error) {
	if d.at == len(d.rows) {
		if err := d.fill(); err != nil {
			return 0, "", ended{err}
		}
	}
	x := &d.rows[d.at]
	if d.n++; d.json != nil {
		d.spell(&d.json[d.at])
	} else {
		err = d.spellLists(x)
	}
	d.at++
	r.Line = d.n
	if err == nil {
		class, err = d.record(x, r)
	}
	return class, "", err
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
	n, err := d.read(rows)
	d.rows, d.at = rows[:n], 0
	switch {
	case n > 0:
		return nil // an error comes again
	case err == nil:
		return io.ErrNoProgress
	}
	return err
}

// spell writes the context of a row as in our events.
func (d *parquetReader) spell(x *jsonRow) {
	d.text = append(d.text[:0], `{"features":`...)
	d.text = append(d.text, cmp.Or(x.Features, "{}")...)
	if x.Actions != "" {
		d.text = append(append(d.text, `,"actions":`...), x.Actions...)
	}
	d.text = append(d.text, '}')
}

// spellLists does so for a row whose features and actions are lists.
func (d *parquetReader) spellLists(x *row) (err error) {
	var c codec.Context
	if c.Features, err = appendFeatures(d.features[:0], x.Features); err != nil {
		return err
	}
	d.features = c.Features
	for _, a := range x.Actions {
		features, err := appendFeatures(nil, a.Features)
		if err != nil {
			return err
		}
		c.Actions = append(c.Actions, codec.Action{Name: a.Name, Features: features})
	}
	d.text = codec.AppendContextJSON(d.text[:0], &c)
	return nil
}

// record makes a record of a row, by way of the event that it stands for.
func (d *parquetReader) record(x *row, r *Record) (class, error) {
	if err := codec.ParseRound(&d.o, d.text); err != nil {
		return 0, err
	}
	o := &d.ev.round
	*o = codec.Round{Context: d.o.Context, Time: orNoTime(x.Time), OutcomeTime: orNoTime(x.OutcomeTime),
		Action: x.Action, Weight: x.Weight, Inactive: x.Inactive, Defaulted: x.Defaulted, Activated: x.Activated}
	o.ID, o.Unit = x.ID, x.Unit
	if x.Propensity != nil {
		o.Propensity = *x.Propensity
	}
	for kind, name := range outcomeNames {
		if x.Outcome == name {
			o.Kind = kind
		}
	}
	if outcomeNames[o.Kind] != x.Outcome {
		return 0, fmt.Errorf("outcome %q: expected loss, reward, withdrawn, named or nothing", x.Outcome)
	}
	finite := func(x *float64) bool { return x == nil || !math.IsNaN(*x) && !math.IsInf(*x, 0) }
	ok := finite(x.Value)
	for i := range x.Outcomes {
		c := &x.Outcomes[i]
		ok = ok && finite(c.Value)
		o.Values = append(o.Values, codec.TimedValue{Value: c.value(), Time: orNoTime(c.Time)})
	}
	for i := range x.Arms {
		a := codec.Arm{Action: x.Arms[i].Action}
		for j := range x.Arms[i].Outcomes {
			c := &x.Arms[i].Outcomes[j]
			ok = ok && c.Value != nil && finite(c.Value)
			a.Values = append(a.Values, c.value())
		}
		o.Arms = append(o.Arms, a)
	}
	if !ok {
		return 0, errCost
	}
	if x.Value != nil {
		o.Value = *x.Value
	}
	return d.kind(x, r)
}

func (d *parquetReader) kind(x *row, r *Record) (class, error) {
	o := &d.ev.round
	switch x.Kind {
	case "outcome":
		class, _, err := d.ev.outcome(r)
		return class, err
	case "event":
	default:
		return 0, fmt.Errorf("kind %q: expected event or outcome", x.Kind)
	}
	if len(o.Arms) > 0 {
		return isEvent, d.ev.arms(nil, r)
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
	return isEvent, d.ev.event(r)
}

func orNoTime(t *int64) int64 {
	if t == nil {
		return scan.NoTime
	}
	return *t
}
