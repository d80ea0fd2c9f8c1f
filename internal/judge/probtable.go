package judge

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/bounded"
	"hindsight/internal/logs"
	"hindsight/internal/scan"
)

// probTable is a saved table of probabilities: what a policy that was computed elsewhere
// would have played in each row of a log.
//
// CSV: a header and a row a round. A column `id` says which round of a log with ids, a column `row` which row of the
// file, counted from 1; without either the rows are in the order of the log. All other columns are actions, and their
// cells probabilities; an empty cell is 0, as is an action without a column.
//
// JSON lines: {"id":"8f3a","propensities":{"a":0.2,"b":0.8}}, or "row" instead of "id",
// or neither: a saved decision of ours is such a line. Other keys are passed over.
//
// What is in the table for rounds that the log does not have is not used.
type probTable struct {
	file    string
	actions []string
	byID    map[string]int32
	byRow   map[int64]int32
	probs   []float64 // [rows][K]
	sha256  string    // of the file
}

// openProbTable reads a table over these actions.
func openProbTable(file string, actions []string) (*probTable, error) {
	f, err := bounded.Open(file, bounded.Any)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	t, err := readProbTable(file, io.TeeReader(f, h), actions)
	if err != nil {
		return nil, err
	}
	t.sha256 = hex.EncodeToString(h.Sum(nil))
	return t, nil
}

// readProbTable reads a table; errors of its content are [*scan.LineError].
func readProbTable(file string, r io.Reader, actions []string) (*probTable, error) {
	t := &probTable{file: file, actions: actions, byID: map[string]int32{}, byRow: map[int64]int32{}}
	b := bufio.NewReader(r)
	first, _ := b.Peek(1)
	read := t.readCSV
	if len(first) > 0 && first[0] == '{' {
		read = t.readLines
	}
	if err := read(b); err != nil {
		return nil, err
	}
	if len(t.probs) == 0 {
		return nil, &scan.LineError{File: file, Line: 1, Msg: "there are no rows of probabilities in it"}
	}
	return t, nil
}

// add makes room for a round and returns its probabilities, all 0. Without id and row it is the next in order.
func (t *probTable) add(id string, row int64) ([]float64, error) {
	k := len(t.actions)
	at := int32(len(t.probs) / k)
	if row == 0 {
		row = int64(at) + 1
	}
	_, twice := t.byRow[row]
	if id != "" {
		_, twice = t.byID[id]
		t.byID[id] = at
	} else {
		t.byRow[row] = at
	}
	if twice {
		return nil, errors.New("the round is there twice")
	}
	t.probs = append(t.probs, make([]float64, k)...)
	return t.probs[int(at)*k:], nil
}

// checkLaw reports what cannot be probabilities of a policy.
func checkLaw(probs []float64) error {
	sum := 0.0
	for _, p := range probs {
		sum += p
	}
	if math.Abs(sum-1) > logs.Printed {
		return fmt.Errorf("the probabilities sum to %v, not to 1", sum)
	}
	return nil
}

func checkProbability(p float64) error {
	if !(p >= 0 && p <= 1) {
		return fmt.Errorf("%v is no probability", p)
	}
	return nil
}

func (t *probTable) unknown(name string) error {
	return fmt.Errorf("the log has no action %q; it has %s", name, strings.Join(t.actions, ", "))
}

func (t *probTable) readCSV(r io.Reader) error {
	f := scan.NewCSV(t.file, r)
	header, err := f.Row()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return f.Errorf(1, "", "the file is empty")
		}
		return err
	}
	columns := make([]int, len(header)) // index of an action; idColumn, rowColumn
	for i, name := range header {
		columns[i] = slices.Index(t.actions, name)
		switch {
		case columns[i] >= 0:
		case name == "id":
			columns[i] = idColumn
		case name == "row":
			columns[i] = rowColumn
		default:
			return f.Errorf(1, strconv.Quote(name), "expected id, row or an action: %v", t.unknown(name))
		}
	}
	for {
		cells, err := f.Row()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(cells) != len(columns) {
			return f.Errorf(f.Line(0), "", "%d cells, but the header has %d columns", len(cells), len(columns))
		}
		if err := t.csvRow(f, cells, columns); err != nil {
			return err
		}
	}
}

// Columns of a table that are no action.
const (
	idColumn  = -2
	rowColumn = -3
)

func (t *probTable) csvRow(f *scan.CSV, cells []string, columns []int) (err error) {
	id, row := "", int64(0)
	for i, c := range columns {
		switch c {
		case idColumn:
			id = strings.Clone(cells[i])
		case rowColumn:
			if row, err = strconv.ParseInt(cells[i], 10, 64); err != nil || row < 1 {
				return f.Errorf(f.Line(i), "row", "%q is no row of the log: they count from 1", cells[i])
			}
		}
	}
	probs, err := t.add(id, row)
	if err != nil {
		return f.Errorf(f.Line(0), "", "%v", err)
	}
	for i, c := range columns {
		if c < 0 || cells[i] == "" {
			continue
		}
		probs[c], err = strconv.ParseFloat(cells[i], 64)
		if err == nil {
			err = checkProbability(probs[c])
		}
		if err != nil {
			return f.Errorf(f.Line(i), t.actions[c], "%q is no probability", cells[i])
		}
	}
	if err := checkLaw(probs); err != nil {
		return f.Errorf(f.Line(0), "", "%v", err)
	}
	return nil
}

func (t *probTable) readLines(r io.Reader) error {
	d := json.NewDecoder(r)
	for n := int64(1); ; n++ {
		var l struct {
			ID           string             `json:"id"`
			Row          int64              `json:"row"`
			Propensities map[string]float64 `json:"propensities"`
		}
		err := d.Decode(&l)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = t.object(l.ID, l.Row, l.Propensities)
		}
		if err != nil {
			return &scan.LineError{File: t.file, Line: n, Msg: err.Error()}
		}
	}
}

func (t *probTable) object(id string, row int64, law map[string]float64) error {
	if row < 0 {
		return fmt.Errorf("row %d: they count from 1", row)
	}
	if law == nil {
		return errors.New(`no "propensities"; for example {"id":"8f3a","propensities":{"a":0.2,"b":0.8}}`)
	}
	probs, err := t.add(id, row)
	if err != nil {
		return err
	}
	for name, p := range law {
		a := slices.Index(t.actions, name)
		if a < 0 {
			return t.unknown(name)
		}
		if err := checkProbability(p); err != nil {
			return err
		}
		probs[a] = p
	}
	return checkLaw(probs)
}

// of returns the probabilities of a row of the log, counted from 0; nil: it has none.
func (t *probTable) of(id string, row int) []float64 {
	at, ok := t.byID[id]
	if !ok {
		if at, ok = t.byRow[int64(row)+1]; !ok {
			return nil
		}
	}
	k := len(t.actions)
	return t.probs[int(at)*k : int(at)*k+k]
}

// table plays the probabilities of a file.
func (o *OffPolicy) table(file string) (*target, error) {
	log := o.log
	table, err := openProbTable(file, log.Actions)
	if err != nil {
		return nil, err
	}
	named := log.HasIDs()
	if len(table.byID) > 0 && !named {
		return nil, fmt.Errorf("%s names rounds by id, and this log has none: name their column (--id-column), or "+
			"give row", file)
	}
	var missing error
	return &target{failed: func() error { return missing }, madeOf: table.sha256, law: func(dst []float64, t int) {
		row := o.row(t)
		id := ""
		if named {
			id = log.ID(row)
		}
		probs := table.of(id, row)
		if probs == nil {
			if missing == nil {
				missing = fmt.Errorf("%s has no probabilities for row %d of the log %s", file, row+1, id)
			}
			dst[0] = 1
			return
		}
		copy(dst, probs)
	}}, nil
}
