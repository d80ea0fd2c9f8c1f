package replay

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hindsight/internal/logs"
	"hindsight/pkg/codec"
)

// CSVError says where a CSV file is wrong. Line counts from 1; Column is "" where the
// whole line is meant.
type CSVError struct {
	File   string
	Line   int
	Column string
	Msg    string

	whole bool // it is not this row alone that cannot be read
}

func (e *CSVError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	}
	return fmt.Sprintf("%s:%d: column %s: %s", e.File, e.Line, e.Column, e.Msg)
}

// csvFile reads a CSV file, whose first line may begin with a byte order mark.
type csvFile struct {
	file   string
	comma  byte      // what separates columns: a comma, a semicolon or a tab
	lines  *csvLines // up to the first quote; then nil, and
	csv    *csv.Reader
	tap    tap
	before csvLines // where csv begins
	cells  []string
	tables *logs.Tables // the files that follow; nil: none
	heads  []string     // the header of the first
	ledger *logs.Ledger
	alone  bool // nobody asked for the account: the first row that is wrong, or a repeat, ends it
}

// tap keeps what was read and not yet forgotten.
type tap struct {
	r    io.Reader
	kept []byte
	from int64 // offset of kept
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.kept = append(t.kept, p[:n]...)
	return n, err
}

// forget drops what lies before an offset.
func (t *tap) forget(before int64) {
	t.kept = t.kept[:copy(t.kept, t.kept[before-t.from:])]
	t.from = before
}

func newCSVFile(file string, r io.Reader) *csvFile {
	f := &csvFile{}
	f.read(file, r)
	return f
}

// openTables reads the files of a path, whose headers must be the same.
func openTables(t *logs.Tables) (*csvFile, error) {
	f := &csvFile{tables: t}
	name, r, err := t.Next()
	if err != nil {
		return nil, err
	}
	f.read(name, r)
	return f, nil
}

func (f *csvFile) read(file string, r io.Reader) {
	buffered, ok := r.(*bufio.Reader)
	if !ok {
		buffered = bufio.NewReader(r)
	}
	if mark, err := buffered.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = buffered.Discard(3) // they are buffered: it cannot fail
	}
	start, _ := buffered.Peek(headerBytes) // an error comes again when it is read
	header, _, _ := bytes.Cut(bytes.TrimLeft(start, "\r\n"), []byte("\n"))
	if f.comma = logs.Separator(header); f.comma == 0 {
		f.comma = ','
	}
	f.file, f.lines = file, newCSVLines(buffered)
}

// headerBytes of a file say what separates its columns.
const headerBytes = 4 << 10

// quoted leaves the rest of the file to encoding/csv.
func (f *csvFile) quoted() {
	f.before = csvLines{number: f.lines.number, offset: f.lines.offset}
	f.tap = tap{r: f.lines.rest()}
	f.csv = csv.NewReader(&f.tap)
	f.csv.Comma = rune(f.comma)
	f.csv.ReuseRecord, f.csv.FieldsPerRecord = true, -1
	f.lines = nil
}

// offset returns how much of the file was read as rows.
func (f *csvFile) offset() int64 {
	if f.lines != nil {
		return f.lines.offset
	}
	return f.before.offset + f.csv.InputOffset()
}

// raw returns the bytes of the row last read, without its end.
func (f *csvFile) raw() []byte {
	if f.lines != nil {
		return f.lines.line
	}
	return bytes.TrimRight(f.tap.kept[:f.csv.InputOffset()-f.tap.from], "\r\n")
}

// keepAccount gives the file the ledger of its rows: that of whoever asks, or else
// one that stops at the first row that is wrong.
func (f *csvFile) keepAccount(ledger *logs.Ledger, format string) {
	if f.ledger, f.alone = ledger, ledger == nil; f.alone {
		f.ledger = logs.NewLedger(format, nil, true)
	}
	f.ledger.Format = format
}

// leave counts a row that cannot be read, and returns an error that ends the file, or nil.
func (f *csvFile) leave(err error, class logs.Class) error {
	var bad *CSVError
	if f.alone || !errors.As(err, &bad) || bad.whole {
		return err
	}
	raw := f.raw()
	if class == logs.IsDuplicate {
		return f.ledger.Leave(class, logs.Reject{File: bad.File, Line: int64(bad.Line), Reason: bad.Msg}, nil, raw)
	}
	line := &logs.LineError{File: bad.File, Line: int64(bad.Line), Msg: bad.Msg}
	if bad.Column != "" {
		line.Msg = "column " + bad.Column + ": " + bad.Msg
	}
	if f.ledger.Leave(class, logs.Reject{}, line, raw) != nil {
		return bad
	}
	return nil
}

// intake returns the account of all that was read; rows are replayed.
func (f *csvFile) intake(rows, actions int) *Intake {
	in := &Intake{Account: f.ledger.Account, FirstMalformed: f.ledger.Errors(), Rows: int64(rows), Actions: actions}
	if in.Files = 1; f.tables != nil {
		in.Files, in.Bytes = f.tables.Read()
	} else {
		in.Bytes = f.offset()
	}
	return in
}

// follow goes on with the next file, whose header must be that of the first. The error is
// io.EOF behind the last.
func (f *csvFile) follow() error {
	if f.tables == nil {
		return io.EOF
	}
	name, r, err := f.tables.Next()
	if err != nil {
		return err
	}
	f.read(name, r)
	row, err := f.row()
	if err == nil && !slices.Equal(row, f.heads) {
		err = f.errorf(1, "", "the header differs from that of the first file: %s", strings.Join(f.heads, ", "))
	}
	if errors.Is(err, io.EOF) {
		return f.follow() // an empty file
	}
	return err
}

func (f *csvFile) errorf(line int, column, format string, args ...any) error {
	return &CSVError{File: f.file, Line: line, Column: column, Msg: fmt.Sprintf(format, args...)}
}

// noRows is the error of a file without a row that can be used.
func (f *csvFile) noRows() error {
	if f.ledger != nil {
		if bad := f.ledger.Errors(); len(bad) > 0 {
			return f.errorf(2, "", "there is no row below the header that can be read; the first says: %s", bad[0])
		}
	}
	return f.errorf(2, "", "there are no rows below the header")
}

// errorAll is errorf for what more rows than one would say again.
func (f *csvFile) errorAll(line int, column, format string, args ...any) error {
	return &CSVError{File: f.file, Line: line, Column: column, Msg: fmt.Sprintf(format, args...), whole: true}
}

// maxColumns of a file leave room for those that are no features.
const maxColumns = 2 * codec.MaxFeatures

// head returns the header.
func (f *csvFile) head() ([]string, error) {
	row, err := f.row()
	if err == nil && len(row) > maxColumns {
		return nil, f.errorf(1, "", "the header has %d columns, at most %d are allowed", len(row), maxColumns)
	}
	f.heads = slices.Clone(row)
	return f.heads, err
}

// next returns the cells of the next row that is not blank, of whichever file, or io.EOF.
func (f *csvFile) next() ([]string, error) {
	row, err := f.row()
	for errors.Is(err, io.EOF) {
		if err = f.follow(); err != nil {
			return nil, err
		}
		row, err = f.row()
	}
	return row, err
}

// row returns the cells of the next row of this file.
func (f *csvFile) row() ([]string, error) {
	if f.lines != nil {
		line, size, err := f.lines.peek()
		switch {
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case err != nil:
			return nil, fmt.Errorf("%s: %w", f.file, err)
		case bytes.IndexByte(line, '"') < 0:
			f.lines.take(line, size)
			f.cells = splitCells(f.cells[:0], string(line), f.comma)
			return f.cells, nil
		}
		f.quoted()
	}
	f.tap.forget(f.csv.InputOffset())
	row, err := f.csv.Read()
	var bad *csv.ParseError
	switch {
	case errors.As(err, &bad):
		return nil, f.errorf(f.before.number+bad.Line, "", "not CSV: %v", bad.Err)
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.file, err)
	}
	return row, nil
}

// line returns the line of a cell of the row last read.
func (f *csvFile) line(cell int) int {
	if f.lines != nil {
		return f.lines.number
	}
	line, _ := f.csv.FieldPos(cell)
	return f.before.number + line
}

// isText reports whether codec accepts s in an event.
func isText(s string, most int) bool {
	return len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
