package replay

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CSVError says where a CSV file is wrong. Line counts from 1; Column is "" where the
// whole line is meant.
type CSVError struct {
	File   string
	Line   int
	Column string
	Msg    string
}

func (e *CSVError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	}
	return fmt.Sprintf("%s:%d: column %s: %s", e.File, e.Line, e.Column, e.Msg)
}

// csvFile reads a CSV file, whose first line may begin with a byte order mark.
type csvFile struct {
	file string
	csv  *csv.Reader
}

func newCSVFile(file string, r io.Reader) *csvFile {
	buffered := bufio.NewReader(r)
	if mark, err := buffered.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = buffered.Discard(3) // they are buffered: it cannot fail
	}
	f := &csvFile{file, csv.NewReader(buffered)}
	f.csv.ReuseRecord, f.csv.FieldsPerRecord = true, -1
	return f
}

func (f *csvFile) errorf(line int, column, format string, args ...any) error {
	return &CSVError{File: f.file, Line: line, Column: column, Msg: fmt.Sprintf(format, args...)}
}

// next returns the cells of the next row that is not blank, or io.EOF.
func (f *csvFile) next() ([]string, error) {
	row, err := f.csv.Read()
	var bad *csv.ParseError
	switch {
	case errors.As(err, &bad):
		return nil, f.errorf(bad.Line, "", "not CSV: %v", bad.Err)
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.file, err)
	}
	return row, nil
}

// line returns the line of a cell of the row last read.
func (f *csvFile) line(cell int) int {
	line, _ := f.csv.FieldPos(cell)
	return line
}

// isText reports whether codec accepts s in an event.
func isText(s string, most int) bool {
	return len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
