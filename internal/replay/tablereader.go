package replay

import (
	"errors"
	"io"
	"math"
	"strconv"

	"hindsight/internal/logs"
	"hindsight/pkg/codec"
)

// TableReader streams the rows of a bandit log in CSV as events, in memory that does not
// grow with the log. What a model needs all rows for is told by each row alone: a feature
// whose column has no type is a number where its cell is one.
type TableReader struct {
	p     *logParser
	t     *logs.Tables
	items [][]codec.Feature
	since int // rows since values were forgotten
	err   error
}

// NewTableReader reads tables, which Close closes: Open Bandit data if the columns are
// not named, whose items are nil where they are not known.
func NewTableReader(t *logs.Tables, items [][]codec.Feature, o LogOptions, dedup int) (r *TableReader, err error) {
	f, err := openTables(t)
	if err != nil {
		t.Close()
		return nil, err
	}
	o.Range.Min, o.Range.Max = math.Inf(-1), math.Inf(1)
	o.Dedup = dedup
	if o.Mapping.IsZero() {
		r = &TableReader{t: t, items: items}
		r.p, err = openBanditHeader(f, items, o)
	} else {
		r = &TableReader{t: t}
		r.p, err = banditHeader(f, o)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return r, nil
}

// Next reads the next event. The error is io.EOF at the end.
func (r *TableReader) Next(rec *logs.Record) error {
	for r.err == nil {
		row, err := r.p.next()
		if errors.Is(err, io.EOF) {
			r.err = err
			break
		}
		if err == nil {
			err = r.p.row(row)
		}
		if err != nil {
			r.err = r.p.pass(err)
			continue
		}
		r.p.took()
		r.record(rec)
		r.forget()
		return nil
	}
	return r.err
}

// record makes an event of the one row that the log holds.
func (r *TableReader) record(rec *logs.Record) {
	p, b := r.p, &r.p.kept
	rec.Reset()
	rec.File, rec.Line = p.file, int64(p.line(0))
	if p.id >= 0 {
		rec.ID = b.ids.at(0)
	}
	if p.time >= 0 {
		rec.Time = b.decided.s[0]
	}
	if p.outcomeTime >= 0 {
		rec.OutcomeTime = b.came.s[0]
	}
	if p.propensity >= 0 {
		rec.Propensity = b.props.s[0]
	}
	if v := b.value.s[0]; !math.IsNaN(v) {
		rec.Outcome, rec.Value = p.log.kind, v
	}
	rec.Action = p.name(b.action.s[0])
	for i, v := range b.cells.s {
		if v != absent {
			rec.Features = append(rec.Features, p.featureOf(i, v))
		}
	}
	rec.Actions = rec.Actions[:0]
	for a, features := range r.items {
		action := codec.Action{Name: strconv.Itoa(a), Features: features}
		if rec.Actions = append(rec.Actions, action); action.Name == rec.Action {
			rec.Chosen = a
		}
	}
	if len(r.items) == 0 {
		rec.Actions = nil
	}
}

// featureOf reads the cell of column i.
func (p *logParser) featureOf(i int, v cell) codec.Feature {
	c := &p.log.columns[i]
	if c.number {
		return codec.Feature{Name: c.name, Kind: codec.Number, Value: v.number()}
	}
	text := v.text(c.values, p.kept.long.s)
	if x, ok := parseNumber(text); ok && !c.text {
		return codec.Feature{Name: c.name, Kind: codec.Number, Value: x}
	}
	return codec.Feature{Name: c.name, Kind: codec.Text, Text: text}
}

// forgetEvery is after how many rows the texts of cells are forgotten.
const forgetEvery = 4096

// forget drops the row, and now and then what was kept to share texts and find repeats.
func (r *TableReader) forget() {
	p := r.p
	p.rows = 0
	p.cut(0)
	if r.since++; r.since < forgetEvery {
		return
	}
	r.since = 0
	p.kept.long.cut(0)
	for i := range p.values {
		clear(p.values[i])
		p.log.columns[i].values = p.log.columns[i].values[:0]
	}
	p.ledger.Forgotten = p.ids.Forgot()
}

// Account returns what became of the rows read so far.
func (r *TableReader) Account() *logs.Account {
	a := r.p.ledger.Account
	a.Files, a.Bytes = r.t.Read()
	return &a
}

// Close closes the tables and writes all rejects.
func (r *TableReader) Close() error {
	r.t.Close()
	return r.p.ledger.Close()
}
