package replay

import (
	"bytes"
	"io"
)

// csvLines are the lines of a CSV file up to the first with a quote: until there a line is a
// row and a comma, or what stands for it, ends a cell, which takes no package to see. What
// it takes for a line, a blank one and the end of a file is what encoding/csv does.
type csvLines struct {
	r    io.Reader
	buf  []byte
	i, j int   // buf[i:j] is what was read and not taken
	err  error // of r, to be returned behind it

	seen   int    // bytes of the line at i that have no end of line in them
	line   []byte // the last that was taken, without its end
	number int    // of it, from 1
	offset int64  // behind it
}

const csvBuffer = 64 << 10

func newCSVLines(r io.Reader) *csvLines { return &csvLines{r: r, buf: make([]byte, csvBuffer)} }

// peek returns the next line that is not blank, without its end, and how many bytes it
// takes; it is valid until the next call. The error is io.EOF, or one of reading.
func (l *csvLines) peek() (line []byte, size int, err error) {
	for {
		unread := l.buf[l.i:l.j]
		n := bytes.IndexByte(unread[l.seen:], '\n')
		switch {
		case n >= 0:
			size = l.seen + n + 1
			line = unread[:size-1]
		case l.err == nil:
			l.seen = len(unread)
			l.fill()
			continue
		case l.err != io.EOF || len(unread) == 0:
			return nil, 0, l.err
		default: // the last line has no end
			size, line = len(unread), unread
		}
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if l.seen = 0; len(line) > 0 {
			return line, size, nil
		}
		l.take(line, size)
	}
}

// take takes the line that peek returned.
func (l *csvLines) take(line []byte, size int) {
	l.line, l.i, l.number, l.offset = line, l.i+size, l.number+1, l.offset+int64(size)
}

// fill reads on behind what is not taken.
func (l *csvLines) fill() {
	if l.i > 0 {
		l.j = copy(l.buf, l.buf[l.i:l.j])
		l.i = 0
	}
	if l.j == len(l.buf) {
		l.buf = append(l.buf, make([]byte, len(l.buf))...)
	}
	n := 0
	n, l.err = l.r.Read(l.buf[l.j:])
	l.j += n
}

// rest returns what was not taken.
func (l *csvLines) rest() io.Reader {
	unread := bytes.NewReader(l.buf[l.i:l.j])
	if l.err == nil {
		return io.MultiReader(unread, l.r)
	}
	return io.MultiReader(unread, failing{l.err})
}

// failing is a reader that returns an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// splitCells appends the cells of a line without quotes to dst.
func splitCells(dst []string, line string, comma byte) []string {
	from := 0
	for i := 0; i < len(line); i++ {
		if line[i] == comma {
			dst = append(dst, line[from:i])
			from = i + 1
		}
	}
	return append(dst, line[from:])
}
