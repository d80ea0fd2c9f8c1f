package replay

import (
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

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
	dedup int
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
	if o.Mapping.IsZero() {
		r = &TableReader{t: t, items: items, dedup: dedup}
		r.p, err = openBanditHeader(f, items, o)
	} else {
		r = &TableReader{t: t, dedup: dedup}
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
	p, b := r.p, r.p.log
	rec.Reset()
	rec.File, rec.Line = p.file, int64(p.line(0))
	if b.ids != nil {
		rec.ID = b.ids[0]
	}
	if p.time >= 0 {
		rec.Time = b.decided[0]
	}
	if p.outcomeTime >= 0 {
		rec.OutcomeTime = b.came[0]
	}
	if p.propensity >= 0 {
		rec.Propensity = b.props[0]
	}
	if v := b.value[0]; !math.IsNaN(v) {
		rec.Outcome, rec.Value = b.kind, v
	}
	rec.Action = p.name(b.action[0])
	for i, v := range b.cells {
		if v >= 0 {
			rec.Features = append(rec.Features, cellFeature(&b.columns[i], b.columns[i].values[v]))
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

// cellFeature reads a cell.
func cellFeature(c *logColumn, cell string) codec.Feature {
	if !c.text {
		v, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
		if err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			return codec.Feature{Name: c.name, Kind: codec.Number, Value: v}
		}
	}
	return codec.Feature{Name: c.name, Kind: codec.Text, Text: cell}
}

// forgetEvery is after how many rows the texts of cells are forgotten.
const forgetEvery = 4096

// forget drops the row, and now and then what was kept to share texts and find repeats.
func (r *TableReader) forget() {
	p, b := r.p, r.p.log
	p.rows = 0
	b.ids, b.action, b.props = b.ids[:0], b.action[:0], b.props[:0]
	b.value, b.decided, b.came, b.cells = b.value[:0], b.decided[:0], b.came[:0], b.cells[:0]
	if r.since++; r.since < forgetEvery {
		return
	}
	r.since = 0
	for i := range p.values {
		clear(p.values[i])
		b.columns[i].values = b.columns[i].values[:0]
	}
	if len(p.ids) > r.dedup {
		clear(p.ids)
		p.ledger.Forgotten = true
	}
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
