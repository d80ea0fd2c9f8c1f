package scan

import "fmt"

// LineError says where a file is wrong. Line and Column count from 1; Column counts
// bytes, and is 0 where the whole record is meant, or the column that Name names.
type LineError struct {
	File         string
	Line, Column int64
	Name         string
	Msg          string

	Ends bool // it is not this record alone that cannot be read
}

func (e *LineError) Error() string {
	switch {
	case e.Name != "":
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text())
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Msg)
}

// Text is what is wrong, with the column's name.
func (e *LineError) Text() string {
	if e.Name == "" {
		return e.Msg
	}
	return "column " + e.Name + ": " + e.Msg
}

// NoRows is the error of a file in CSV without a row.
func NoRows(file string) error {
	return &LineError{File: file, Line: 2, Msg: "there are no rows below the header"}
}
