package logs

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"hindsight/internal/loop"
	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

// rows decodes a CSV file: a row is an event.
type rows struct {
	*scan.CSV
	*table
	bad error // of the header; returned once
}

// newRows returns the rows of a file; those after the first must have its header.
func (r *Reader) newRows(in *input, format string) (decoder, error) {
	d := &rows{CSV: scan.NewCSV(in.name, in.r), table: r.table}
	if d.table == nil {
		d.table = &table{o: &r.o, m: r.o.Mapping, ids: r.events, actions: map[string]struct{}{}, last: scan.NoTime}
		d.Schema = Schema{Format: format, File: in.name, Actions: r.o.Actions, Items: r.o.items}
		if err := d.open(d.CSV); err != nil {
			return nil, err
		}
		r.table = d.table
		return d, nil
	}
	header, err := d.Row()
	switch {
	case errors.Is(err, io.EOF): // and the rows end, too
	case err != nil:
		d.bad = err
	case !slices.Equal(header, d.header):
		d.bad = d.Errorf(1, "", "the header differs from that of the first file: %s", strings.Join(d.header, ", "))
	}
	return d, nil
}

func (d *rows) raw() []byte { return d.Raw() }

func (d *rows) next(r *Record) (class class, reason string, err error) {
	if err, d.bad = d.bad, nil; err != nil {
		return 0, "", unlessOfLine(err)
	}
	row, err := d.Row()
	if err != nil {
		return 0, "", unlessOfLine(err)
	}
	r.Line = d.Line(0)
	if len(row) != len(d.header) {
		return 0, "", d.Errorf(r.Line, "", "%d cells, but the header has %d columns", len(row), len(d.header))
	}
	if d.id >= 0 {
		before, again, err := d.rowID(r, row[d.id])
		if err != nil {
			return 0, "", err
		}
		if again {
			r.Line = d.Line(d.id)
			return isDuplicate, fmt.Sprintf("the id %q is that of line %d, too", r.ID, before), nil
		}
	}
	known, err := d.rowAction(r, row)
	if err == nil && d.Format != Labelled {
		err = d.rowOutcome(r, row)
	}
	if err == nil {
		err = d.rowFeatures(r, row)
	}
	if err != nil {
		return 0, "", err
	}
	if !known {
		d.actions[strings.Clone(r.Action)] = struct{}{}
	}
	if r.Time != scan.NoTime {
		d.last = r.Time
	}
	return isEvent, "", nil
}

// unlessOfLine says that an error ends the file, unless it is one of a line.
func unlessOfLine(err error) error {
	if asLineError(err) != nil {
		return err
	}
	return ended{err}
}

// rowOutcome reads what a row says of the action besides its name.
func (d *rows) rowOutcome(r *Record, row []string) error {
	if err := d.rowPropensity(r, row); err != nil {
		return err
	}
	if err := d.rowValue(r, row); err != nil {
		return err
	}
	if err := d.rowTimes(r, row); err != nil {
		return err
	}
	return d.rowOutcomes(r, row)
}

// rowOutcomes reads named outcomes: an empty cell says that none came, null that it was withdrawn.
func (d *rows) rowOutcomes(r *Record, row []string) (err error) {
	for i := range d.outcomes {
		o := &d.outcomes[i]
		cell := strings.TrimSpace(row[o.at])
		if cell == "" {
			continue
		}
		v := codec.TimedValue{Value: codec.Value{Name: o.name, Withdrawn: cell == "null"}, Time: scan.NoTime}
		if !v.Withdrawn {
			var ok bool
			if v.X, ok = number(cell); !ok {
				return d.errorf(o.at, d.header[o.at], "%q is not a finite number; leave the cell empty where no "+
					"outcome came, and write null where it was withdrawn", cell)
			}
		}
		if o.time >= 0 && row[o.time] != "" {
			if v.Time, err = scan.ParseTimeOrSeconds(row[o.time]); err != nil {
				return d.errorf(o.time, d.header[o.time], "%v", err)
			}
		}
		r.Outcome, r.Values = codec.Named, append(r.Values, v)
	}
	return nil
}

// errorf is [CSV.Errorf] of a cell.
func (d *rows) errorf(cell int, name, format string, args ...any) error {
	return d.Errorf(d.Line(cell), name, format, args...)
}

// errorAll is errorf for what more rows than one would say again: it ends the log.
func (d *rows) errorAll(cell int, name, format string, args ...any) error {
	return &scan.LineError{File: d.File, Line: d.Line(cell), Name: name, Msg: fmt.Sprintf(format, args...), Ends: true}
}

// rowID reads an id, and says whether and in which line it came before.
func (d *rows) rowID(r *Record, id string) (before int32, again bool, err error) {
	switch {
	case id == "":
		return 0, false, d.errorf(d.id, d.m.ID, "the id is missing")
	case codec.CheckText(id, codec.MaxIDBytes) != nil:
		return 0, false, d.errorf(d.id, d.m.ID, "an id is UTF-8 of at most %d bytes without control characters",
			codec.MaxIDBytes)
	}
	r.ID = id
	d.key = append(d.key[:0], id...)
	before, again = d.ids.Get(0, d.key)
	return before, again, nil
}

// rowAction reads the action, and says whether an earlier row has it, too.
func (d *rows) rowAction(r *Record, row []string) (known bool, err error) {
	if r.Actions = nil; d.action < 0 {
		return true, nil
	}
	r.Action = row[d.action]
	if _, known = d.actions[r.Action]; !known {
		if err := d.newAction(r.Action); err != nil {
			return false, err
		}
	}
	if len(d.items) > 0 {
		r.Actions = d.items
		r.Chosen = slices.IndexFunc(d.items, func(a codec.Action) bool { return a.Name == r.Action })
	}
	return known, nil
}

// newAction checks an action that no row had.
func (d *rows) newAction(name string) error {
	what, column := "an action", d.m.Action
	if d.Format == Labelled {
		what, column = "a label", "label"
	}
	switch {
	case name == "":
		return d.errorf(d.action, column, "the %s is missing", strings.Fields(what)[1])
	case codec.CheckText(name, codec.MaxNameBytes) != nil:
		return d.errorf(d.action, column, "%s is UTF-8 of at most %d bytes without control characters", what,
			codec.MaxNameBytes)
	case d.Format == OpenBandit && !isItem(name, len(d.Actions)):
		return d.errorf(d.action, column, "%s", itemHint(name, len(d.Actions)))
	case d.Format == Bandit && d.Actions != nil && !slices.Contains(d.Actions, name):
		return d.errorAll(d.action, column, "the model does not list the action %q", name)
	case len(d.actions) == codec.MaxActions:
		return d.errorf(d.action, column, "more than %d different %ss", codec.MaxActions, strings.Fields(what)[1])
	}
	return nil
}

func (d *rows) rowPropensity(r *Record, row []string) error {
	if d.propensity < 0 {
		return nil
	}
	cell := strings.TrimSpace(row[d.propensity])
	if cell == "" {
		return d.errorAll(d.propensity, d.m.Propensity, "the propensity of the action is missing")
	}
	v, err := strconv.ParseFloat(cell, 64)
	switch {
	case err != nil:
		return d.errorAll(d.propensity, d.m.Propensity, "%q is not a number", cell)
	case v == 0:
		return d.errorAll(d.propensity, d.m.Propensity, "the action was played with propensity 0: that cannot be")
	case !(v > 0 && v <= 1):
		return d.errorAll(d.propensity, d.m.Propensity, "the propensity %v is not in (0, 1]", v)
	}
	r.Propensity = v
	return nil
}

func (d *rows) rowValue(r *Record, row []string) error {
	if d.value < 0 {
		return nil
	}
	cell := strings.TrimSpace(row[d.value])
	if cell == "" {
		return nil
	}
	v, ok := number(cell)
	if !ok {
		return d.errorf(d.value, d.m.value(),
			"%q is not a finite number; leave the cell empty where no outcome came", cell)
	}
	if g := d.o.Range; g != (loop.Range{}) && !g.Clip && (v < g.Min || v > g.Max) {
		key := map[codec.OutcomeKind]string{codec.Loss: "loss", codec.Reward: "reward"}[d.Kind]
		return d.errorAll(d.value, d.m.value(),
			"%v is not in [%v, %v]; a model file may give another range, for example %s: {min: 0, max: "+
				"100}", v, g.Min, g.Max, key)
	}
	r.Outcome, r.Value = d.Kind, v
	return nil
}

func (d *rows) rowTimes(r *Record, row []string) (err error) {
	if d.time < 0 {
		return nil
	}
	if r.Time, err = scan.ParseTimeOrSeconds(row[d.time]); err != nil {
		return d.errorf(d.time, d.m.Time, "%v", err)
	}
	if r.Time < d.last {
		if d.Format != OpenBandit {
			return d.errorAll(d.time, d.m.Time, "%q is before the time of the row above: sort the rows by %s",
				row[d.time], d.m.Time)
		}
		r.Time = d.last // it stands still
	}
	if d.outcomeTime < 0 {
		return nil
	}
	observed := d.value < 0 || r.Outcome != 0
	switch cell := strings.TrimSpace(row[d.outcomeTime]); {
	case cell == "" && d.value >= 0 && observed:
		return d.errorf(d.outcomeTime, d.m.OutcomeTime,
			"the outcome has no time; leave %s empty, too, where none came", d.m.value())
	case cell != "" && !observed:
		return d.errorf(d.value, d.m.value(),
			"the outcome is missing, but it has a time; leave %s empty, too, where none came", d.m.OutcomeTime)
	case cell != "":
		if r.OutcomeTime, err = scan.ParseTimeOrSeconds(cell); err != nil {
			return d.errorf(d.outcomeTime, d.m.OutcomeTime, "%v", err)
		}
	}
	return nil
}

func (d *rows) rowFeatures(r *Record, row []string) error {
	r.Features = slices.Grow(r.Features, len(d.Columns))
	for i := range d.Columns {
		c, text := &d.Columns[i], row[d.at[i]]
		if text == "" {
			continue
		}
		r.Features = r.Features[:len(r.Features)+1]
		f := &r.Features[len(r.Features)-1]
		f.Name, f.Kind, f.Text = c.Name, codec.Number, ""
		ok := false
		if c.Type < textColumn {
			f.Value, ok = number(text)
		}
		if ok {
			continue
		}
		if err := d.rowText(i, text); err != nil {
			return err
		}
		f.Kind, f.Value, f.Text = codec.Text, 0, text
	}
	return nil
}

// rowText checks that the text of column i of features may be one.
func (d *rows) rowText(i int, text string) error {
	c := &d.Columns[i]
	long := c.Type == Ngrams || c.Type != Number && d.o.Long != nil && d.o.Long(c.Name)
	switch {
	case long && len(text) <= codec.MaxRecordBytes && utf8.ValidString(text):
		return nil
	case long:
		return d.errorf(d.at[i], c.Name, "a text is UTF-8 of at most %d bytes", codec.MaxRecordBytes)
	case c.Type != Number && codec.CheckText(text, codec.MaxTextBytes) == nil:
		return nil
	}
	what, otherwise := "a text", "name the feature "+c.Name+":text"
	if d.Format == Labelled {
		what, otherwise = "a category", "name the column c_…"
	}
	if c.Type == Number {
		return d.errorf(d.at[i], c.Name,
			"%q is not a finite number; leave the cell empty where there is none, or %s", text, otherwise)
	}
	return d.errorf(d.at[i], c.Name, "%s is UTF-8 of at most %d bytes without control characters", what,
		codec.MaxTextBytes)
}

// number returns the finite number that a text is, rounded to the nearest float64.
func number(text string) (x float64, ok bool) {
	if x, n := codec.Decimal(text); n == len(text) {
		return x, !math.IsInf(x, 0)
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}
