package replay

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/logs"
	"hindsight/pkg/codec"
)

// Multiclass is a labelled CSV as a bandit: the actions are the labels, in byte
// order; the loss is 0 for the row's label and 1 for the others. That is also the
// truth. Columns: label first, then numbers (n_…) and categories (c_…); an empty
// cell is an absent feature, "?" a category like any other.
type Multiclass struct {
	name       string
	labels     []string
	rows       []int32 // row → label
	columns    []csvColumn
	d          int             // expanded columns, the constant included
	numbers    chunks[float64] // of a row
	categories chunks[int32]   // index into values of the column; -1 absent
	intake     *Intake
}

type csvColumn struct {
	name    string
	numeric bool
	at      int      // index within the numbers or categories of a row
	values  []string // categories
}

var _ Environment = (*Multiclass)(nil)

// OpenMulticlass reads a labelled CSV from a file, or from those of a folder, one after
// the other.
func OpenMulticlass(path string) (*Multiclass, error) {
	t, err := logs.OpenTables(path, nil)
	if err != nil {
		return nil, fmt.Errorf("labelled CSV: %w", err)
	}
	return MulticlassOfTables(t, nil)
}

// MulticlassOfTables reads a labelled CSV from tables, and closes them. A ledger that is
// not strict takes the account of malformed rows; without one the first ends it.
func MulticlassOfTables(t *logs.Tables, ledger *logs.Ledger) (*Multiclass, error) {
	defer t.Close()
	f, err := openTables(t)
	if err != nil {
		return nil, err
	}
	return readMulticlass(f, ledger)
}

// ReadMulticlass reads a labelled CSV; file is its name in errors, which are
// [*CSVError] but for those of r.
func ReadMulticlass(file string, r io.Reader) (*Multiclass, error) {
	return readMulticlass(newCSVFile(file, r), nil)
}

func readMulticlass(f *csvFile, ledger *logs.Ledger) (*Multiclass, error) {
	f.keepAccount(ledger, "multiclass")
	p := &csvParser{csvFile: f, m: &Multiclass{name: filepath.Base(f.file)}}
	return p.read()
}

type csvParser struct {
	*csvFile
	m      *Multiclass
	labels map[string]int32
	values []map[string]int32 // by column

	numbers    []float64 // of the row at hand
	categories []int32
}

func (p *csvParser) read() (*Multiclass, error) {
	p.labels = map[string]int32{}
	if err := p.header(); err != nil {
		return nil, err
	}
	took := logs.Record{Time: noTime}
	for {
		if p.plainRow() {
			p.ledger.Took(&took)
			continue
		}
		row, err := p.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = p.row(row)
		}
		if err != nil {
			if err := p.leave(err, logs.IsMalformed); err != nil {
				return nil, err
			}
			p.undo()
			continue
		}
		p.ledger.Took(&took)
	}
	if len(p.m.rows) == 0 {
		return nil, p.noRows()
	}
	p.finish()
	p.m.intake = p.intake(len(p.m.rows), len(p.m.labels))
	return p.m, nil
}

// undo forgets what of a row was kept before it turned out to be wrong.
func (p *csvParser) undo() {
	p.m.numbers.cut(len(p.m.rows))
	p.m.categories.cut(len(p.m.rows))
}

const headerHint = "; the first line is for example: label,n_age,c_country"

func (p *csvParser) header() error {
	row, err := p.head()
	if errors.Is(err, io.EOF) {
		return p.errorf(1, "", "the file is empty%s", headerHint)
	}
	if err != nil {
		return err
	}
	line := p.line(0)
	if row[0] != "label" {
		return p.errorf(line, row[0], "the first column must be label%s; for a bandit log name its columns by --action-column, --reward-column or --loss-column, --features and others: there are %s", headerHint, strings.Join(row, ", "))
	}
	if len(row)-1 > codec.MaxFeatures {
		return p.errorf(line, "", "%d columns, at most %d are allowed", len(row), codec.MaxFeatures+1)
	}
	seen := map[string]bool{}
	for _, name := range row[1:] {
		c := csvColumn{name: strings.Clone(name), numeric: strings.HasPrefix(name, "n_")}
		switch {
		case !c.numeric && !strings.HasPrefix(name, "c_"):
			return p.errorf(line, strconv.Quote(name), "a column's name begins with n_ (number) or c_ (category)%s", headerHint)
		case !isText(name, codec.MaxNameBytes):
			return p.errorf(line, strconv.Quote(name), "a column's name is UTF-8 of at most %d bytes without control characters", codec.MaxNameBytes)
		case seen[name]:
			return p.errorf(line, name, "the column is there twice")
		}
		seen[name] = true
		width := &p.m.categories.width
		if c.numeric {
			width = &p.m.numbers.width
		}
		c.at = *width
		*width++
		p.m.columns = append(p.m.columns, c)
		p.values = append(p.values, map[string]int32{})
	}
	return nil
}

func (p *csvParser) row(row []string) error {
	line := p.line(0)
	if len(row) != len(p.m.columns)+1 {
		return p.errorf(line, "", "%d cells, but the header has %d columns", len(row), len(p.m.columns)+1)
	}
	if row[0] == "" {
		return p.errorf(line, "label", "the label is missing")
	}
	if !isText(row[0], codec.MaxNameBytes) {
		return p.errorf(line, "label", "a label is UTF-8 of at most %d bytes without control characters", codec.MaxNameBytes)
	}
	label, ok := p.labels[row[0]]
	if !ok && len(p.labels) == codec.MaxActions {
		return p.errorf(line, "label", "more than %d different labels", codec.MaxActions)
	}
	p.numbers, p.categories = p.m.numbers.add(), p.m.categories.add()
	for i, cell := range row[1:] {
		if err := p.cell(i, cell); err != nil {
			return p.errorf(p.line(i+1), p.m.columns[i].name, "%v", err)
		}
	}
	if !ok {
		label = int32(len(p.labels))
		p.labels[strings.Clone(row[0])] = label
	}
	p.m.rows = append(p.m.rows, label)
	return nil
}

func (p *csvParser) cell(i int, cell string) error {
	c := &p.m.columns[i]
	if c.numeric {
		v := math.NaN() // absent
		if cell != "" {
			var err error
			v, err = strconv.ParseFloat(strings.TrimSpace(cell), 64)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%q is not a finite number; leave the cell empty where there is none, or name the column c_…", cell)
			}
		}
		p.numbers[c.at] = v
		return nil
	}
	value := int32(-1)
	if cell != "" {
		if !isText(cell, codec.MaxTextBytes) {
			return fmt.Errorf("a category is UTF-8 of at most %d bytes without control characters", codec.MaxTextBytes)
		}
		var ok bool
		if value, ok = p.values[i][cell]; !ok {
			value = int32(len(c.values))
			cell = strings.Clone(cell)
			p.values[i][cell] = value
			c.values = append(c.values, cell)
		}
	}
	p.categories[c.at] = value
	return nil
}

// finish sorts the labels and counts expanded columns.
func (p *csvParser) finish() {
	m := p.m
	for label := range p.labels {
		m.labels = append(m.labels, label)
	}
	slices.Sort(m.labels)
	sorted := make([]int32, len(m.labels))
	for i, label := range m.labels {
		sorted[p.labels[label]] = int32(i)
	}
	for t, label := range m.rows {
		m.rows[t] = sorted[label]
	}
	m.d = 1
	for _, c := range m.columns {
		if c.numeric {
			m.d++
		}
		m.d += len(c.values)
	}
}

// Name implements [Environment].
func (m *Multiclass) Name() string { return m.name }

// Len implements [Environment].
func (m *Multiclass) Len() int { return len(m.rows) }

// Actions implements [Environment].
func (m *Multiclass) Actions() []string { return m.labels }

// Columns implements [Environment]: a column a number, one a category that
// occurs, and the constant.
func (m *Multiclass) Columns() int { return m.d }

// Context implements [Environment].
func (m *Multiclass) Context(dst *codec.Context, t int) {
	*dst = codec.Context{Features: dst.Features[:0], Actions: appendActions(dst.Actions[:0], m.labels)}
	dst.Features = m.features(dst.Features, t)
}

// again is features into what it returned for another row, or nil.
func (m *Multiclass) again(dst []codec.Feature, row int) []codec.Feature {
	if len(dst) != m.numbers.width || m.categories.width > 0 {
		return m.features(dst[:0], row)
	}
	for i, v := range m.numbers.row(row) { // there are all columns, and all are numbers
		if v != v {
			return m.features(dst[:0], row)
		}
		dst[i].Value = v
	}
	return dst
}

// features appends the features of a row to dst.
func (m *Multiclass) features(dst []codec.Feature, row int) []codec.Feature {
	numbers, categories := m.numbers.row(row), m.categories.row(row)
	for i := range m.columns {
		c := &m.columns[i]
		if c.numeric {
			if v := numbers[c.at]; v == v { // NaN: absent
				dst = append(dst, codec.Feature{Name: c.name, Kind: codec.Number, Value: v})
			}
		} else if v := categories[c.at]; v >= 0 {
			dst = append(dst, codec.Feature{Name: c.name, Kind: codec.Text, Text: c.values[v]})
		}
	}
	return dst
}

// drop lets the system take the memory of the rows that are in a file.
func (m *Multiclass) drop() {
	m.numbers.pages.drop()
	m.categories.pages.drop()
}

// fits reports whether all rounds surely fit into records: names, texts, actions and room for
// what is written with each.
func (m *Multiclass) fits() bool {
	const room = 64
	size := 1 << 14
	for i := range m.columns {
		text := 0
		for _, v := range m.columns[i].values {
			text = max(text, len(v))
		}
		size += len(m.columns[i].name) + text + room
	}
	for _, label := range m.labels {
		size += 3*len(label) + room
	}
	return size <= codec.MaxRecordBytes
}

// multiclassOf returns the labelled CSV beneath env, which may be in another row order, cut
// off or twisted, and the rows of its rounds, nil if round t is row t; m is nil if env is
// something else. Contexts of env are those of the rows.
func multiclassOf(env Environment) (m *Multiclass, rows []int32) {
	for {
		switch e := env.(type) {
		case *Multiclass:
			return e, rows
		case *head:
			env = e.Environment
		case *permuted:
			env = e.Environment
		case *noisy:
			env = e.Environment
		case *ordered:
			if rows != nil {
				return nil, nil
			}
			env, rows = e.Environment, e.rows
		default:
			return nil, nil
		}
	}
}

// Label returns the index of the action without loss in round t.
func (m *Multiclass) Label(t int) int { return int(m.rows[t]) }

// Truth implements [Environment].
func (m *Multiclass) Truth(dst []float64, t int) bool {
	for a := range dst {
		dst[a] = 1
	}
	dst[m.rows[t]] = 0
	return true
}

// Loss implements [Environment].
func (m *Multiclass) Loss(t, a int) float64 {
	if int(m.rows[t]) == a {
		return 0
	}
	return 1
}
