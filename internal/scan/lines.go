package scan

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
)

// MaxLineBytes is the longest line that is read; what is longer is malformed and passed in constant memory.
const MaxLineBytes = 64 << 20

// ErrTooLong says of a line that it is too long.
var ErrTooLong = "a line of more than " + strconv.Itoa(MaxLineBytes>>20) + " MiB"

// BufferBytes is read at once.
const BufferBytes = 256 << 10

// Lines splits a file into lines.
type Lines struct {
	r    *bufio.Reader
	N    int64 // of the line last read, from 1
	long []byte
}

func NewLines(r *bufio.Reader) *Lines { return &Lines{r: r} }

// Next returns the next line without its end, valid until the next call; tooLong says that it is only the beginning.
// The error is io.EOF behind the last line, or the reader's.
func (l *Lines) Next() (line []byte, tooLong bool, err error) {
	line, err = l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, tooLong, err = l.nextLong(line)
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
		return nil, false, err
	}
	l.N++
	if l.N == 1 {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, tooLong, nil
}

// nextLong collects a line that is longer than the buffer.
func (l *Lines) nextLong(first []byte) (line []byte, tooLong bool, err error) {
	l.long = append(l.long[:0], first...)
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.long)+len(part) > MaxLineBytes {
			tooLong = true
		} else if !tooLong {
			l.long = append(l.long, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.long, tooLong, err
		}
	}
}
