package daemon

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"unicode/utf8"
)

// Visible passes text on with what a terminal would obey, control characters and overrides of
// the direction, written as \u009b: names come from outside. JSON means the same afterwards.
type Visible struct {
	w    io.Writer
	mu   sync.Mutex
	rest []byte // the beginning of a character, of which the rest is still to come
}

// Write implements [io.Writer].
func (v *Visible) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	b := append(v.rest, p...)
	out := make([]byte, 0, len(b))
	for len(b) > 0 && (utf8.FullRune(b)) {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1 && b[0] < 0xa0:
			out = fmt.Appendf(out, `\u%04x`, b[0])
		case obeyed(r):
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	v.rest = append([]byte(nil), b...)
	if _, err := v.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// obeyed reports whether a terminal does something else with r than to show it.
func obeyed(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\r': // the last is how a bar is drawn again
		return false
	case r < ' ', r >= 0x7f && r < 0xa0:
		return true
	}
	return r == 0x61c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// File returns the file that text on w ends up in, nil if that is none.
func File(w io.Writer) *os.File {
	if v, ok := w.(*Visible); ok {
		w = v.w
	}
	f, _ := w.(*os.File)
	return f
}

// Raw returns where bytes that are no text for people are written to: w without [Visible], unless people look at it.
func Raw(w io.Writer, terminal bool) io.Writer {
	if v, ok := w.(*Visible); ok && !terminal {
		return v.w
	}
	return w
}

// Lines makes a line of the log from each line of text, where the log is JSON.
type Lines struct {
	log  *slog.Logger
	mu   sync.Mutex
	rest []byte
}

// Write implements [io.Writer].
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, ended := bytes.Cut(l.rest, []byte{'\n'})
		if !ended {
			return len(p), nil
		}
		if len(line) > 0 {
			l.log.Info(string(line))
		}
		l.rest = rest
	}
}
