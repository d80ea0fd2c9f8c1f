package logs

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

// Tables are the CSV files of a path, decompressed, one after the other. What their
// columns mean is for the caller to know.
type Tables struct {
	stdin io.Reader
	paths []string // still to come
	in    *input   // the next, if it is open already
	now   *input
	files int
	bytes int64
}

// TableError is an [ErrCSV] with the tables, from their first byte on. Whoever does not
// take them closes them.
type TableError struct {
	File   string
	Tables *Tables
}

func (e *TableError) Error() string { return e.File + ": " + ErrCSV.Error() }

// Unwrap returns [ErrCSV].
func (e *TableError) Unwrap() error { return ErrCSV }

// OpenTables opens the files of a path: of a file, a folder, or [Stdin], which reads
// stdin, or if that is nil the process's.
func OpenTables(path string, stdin io.Reader) (*Tables, error) {
	paths, err := Files(path)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	if stdin == nil {
		stdin = os.Stdin
	}
	t := &Tables{stdin: stdin, paths: paths}
	return t, t.open()
}

func (t *Tables) open() (err error) {
	if t.in, err = openInput(t.paths[0], t.stdin); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	t.paths = t.paths[1:]
	return nil
}

// Peek returns the name and the first bytes of the next file.
func (t *Tables) Peek() (name string, head []byte, err error) {
	if t.in == nil {
		return "", nil, io.EOF
	}
	head, err = t.in.r.Peek(detectBytes)
	if len(head) > 0 || err == io.EOF {
		err = nil
	}
	return t.in.name, head, err
}

// Next returns the name and the content of the next file, or io.EOF. It closes the one
// before.
func (t *Tables) Next() (name string, r *bufio.Reader, err error) {
	t.leave()
	if t.in == nil {
		if len(t.paths) == 0 {
			return "", nil, io.EOF
		}
		if err := t.open(); err != nil {
			return "", nil, err
		}
	}
	t.now, t.in = t.in, nil
	t.files++
	head, err := t.now.head()
	if err == nil {
		err = foreign(head)
	}
	if err != nil {
		return "", nil, fmt.Errorf("log: %s: %w", t.now.name, err)
	}
	return t.now.name, t.now.r, nil
}

func (t *Tables) leave() {
	if t.now != nil {
		t.bytes += t.now.bytes
		t.now.close()
		t.now = nil
	}
}

// Read returns how many files and bytes were read, after decompression.
func (t *Tables) Read() (files int, bytes int64) {
	if t.now != nil {
		return t.files, t.bytes + t.now.bytes
	}
	return t.files, t.bytes
}

// Close closes what is open.
func (t *Tables) Close() {
	t.leave()
	if t.in != nil {
		t.in.close()
		t.in = nil
	}
}
