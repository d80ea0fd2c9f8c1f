package replay

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"hindsight/internal/dataset"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/scan"
)

// logOptions say how a test reads a log in CSV.
type logOptions struct {
	logs.Options
	account bool // rows that cannot be read, and repeats, are counted; without it the first ends the log
	heap    int  // bytes of a column in memory
}

// readLog reads a log in CSV, whose file has that name in errors.
func readLog(file string, in io.Reader, o logOptions) (*Rounds, error) {
	var rejects strings.Builder
	if o.Stdin, o.Typed, o.Strict = in, true, !o.account; o.Strict {
		o.Rejects = &rejects
	}
	if o.Range == (loop.Range{}) {
		o.Range = loop.Range{Min: 0, Max: 1}
	}
	var b *dataset.Table
	r, err := logs.Open(logs.Stdin, o.Options)
	if err == nil {
		b, err = dataset.Read(file, r, dataset.Options{Range: o.Range, Dedup: o.Dedup, Heap: o.heap})
	}
	if err == nil && o.Strict && b.Intake.Duplicates > 0 {
		err = repeatIn(rejects.String(), o.Mapping.ID)
	}
	var at *scan.LineError
	if errors.As(err, &at) {
		at.File = file
	}
	if err != nil {
		return nil, err
	}
	b.Name = file
	return OfTable(b), nil
}

// repeatIn returns the first repeat of a file of rejects as an error.
func repeatIn(rejects, column string) error {
	var x logs.Reject
	if err := json.Unmarshal([]byte(strings.SplitN(rejects, "\n", 2)[0]), &x); err != nil {
		return err
	}
	return &scan.LineError{Line: x.Line, Name: column, Msg: x.Reason}
}

// readLabelled reads a labelled CSV.
func readLabelled(file string, in io.Reader) (*Rounds, error) {
	return readLog(file, in, logOptions{Options: logs.Options{Format: logs.Labelled}})
}

// openLog opens data of any format by itself.
func openLog(path string, o logs.Options) (*Rounds, error) {
	o.Typed, o.Labelled, o.Strict, o.Range = true, true, true, loop.Range{Min: 0, Max: 1}
	r, err := logs.Open(path, o)
	if err != nil {
		return nil, err
	}
	b, err := dataset.Read(path, r, dataset.Options{})
	if err != nil {
		return nil, err
	}
	return OfTable(b), nil
}
