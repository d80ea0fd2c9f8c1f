package scan

import "strconv"

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
	place := e.File
	for _, n := range []int64{e.Line, e.Column} {
		if n > 0 {
			place += ":" + strconv.FormatInt(n, 10)
		}
	}
	return place + ": " + e.Text()
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
