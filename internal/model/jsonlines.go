package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// jsonLines calls f with each line of a file that is not blank, and returns how many lines there are. The first one is
// a header, for example.
func jsonLines(name, what, example string, b []byte, f func(line int, text []byte) error) (int, error) {
	if len(b) > maxClassBytes {
		msg := fmt.Sprintf("the %s file has %d bytes, at most %d are allowed", what, len(b), maxClassBytes)
		return 0, &Error{File: name, Msg: msg}
	}
	line, empty := 0, true
	for text := range bytes.Lines(b) {
		line++
		if text = bytes.TrimSuffix(text, []byte{'\n'}); len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		empty = false
		if err := f(line, text); err != nil {
			return line, err
		}
	}
	if empty {
		msg := fmt.Sprintf("the %s file is empty; its first line is for example %s", what, example)
		return 0, &Error{File: name, Line: 1, Msg: msg}
	}
	return line, nil
}

var errLineEnds = errors.New("the line ends inside a JSON object")

// lineReader reads one line of JSON token by token. After its first error it reads nothing more.
type lineReader struct {
	file string
	line int
	body []byte
	dec  *json.Decoder
	err  error
}

func newLineReader(file string, line int, text []byte) *lineReader {
	r := &lineReader{file: file, line: line, body: text, dec: json.NewDecoder(bytes.NewReader(text))}
	r.dec.UseNumber()
	return r
}

// fail keeps the first error, at a column that counts bytes from 1.
func (r *lineReader) fail(column int, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{File: r.file, Line: r.line, Column: column, Msg: fmt.Sprintf(format, args...)}
	}
}

// column returns where the next token begins.
func (r *lineReader) column() int {
	at := int(r.dec.InputOffset())
	for at < len(r.body) && bytes.IndexByte([]byte(" \t\r,:"), r.body[at]) >= 0 {
		at++
	}
	return at + 1
}

// next returns the next token.
func (r *lineReader) next() json.Token {
	if r.err != nil {
		return nil
	}
	at := r.column()
	t, err := r.dec.Token()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		r.fail(at, "%v", errLineEnds)
	} else if err != nil {
		r.fail(at, "not JSON: %v", err)
	}
	return t
}

// token returns the next token, which must be a T.
func token[T json.Token](r *lineReader, what string) (v T) {
	at := r.column()
	t := r.next()
	v, ok := t.(T)
	if !ok {
		r.unexpected(at, what, t)
	}
	return v
}

func (r *lineReader) unexpected(at int, what string, t json.Token) {
	found := fmt.Sprint(t)
	if s, ok := t.(string); ok {
		found = strconv.Quote(s)
	} else if t == nil {
		found = "null"
	}
	r.fail(at, "expected %s, found %s", what, found)
}

func (r *lineReader) text() string { return token[string](r, "a text") }

func (r *lineReader) number() float64 {
	at := r.column()
	return r.finite(token[json.Number](r, "a number"), at)
}

func (r *lineReader) finite(n json.Number, at int) float64 {
	v, err := n.Float64()
	if err != nil || math.IsInf(v, 0) {
		r.fail(at, "%s is too large a number", n)
	}
	return v + 0
}

// open reads the bracket that a list or an object begins with.
func (r *lineReader) open(d json.Delim, what string) {
	at := r.column()
	if t := r.next(); t != d {
		r.unexpected(at, what, t)
	}
}

// member is a key of an object; read reads its value and is told where the key is.
type member struct {
	key  string
	read func(at int)
}

// object reads an object that may have some keys.
func (r *lineReader) object(known ...member) {
	r.members(func(key string, at int) {
		i := slices.IndexFunc(known, func(m member) bool { return m.key == key })
		if i < 0 {
			names := each(known, func(m *member) string { return m.key })
			r.fail(at, "unknown key %q; expected %s", key, strings.Join(names, ", "))
			return
		}
		known[i].read(at)
	})
}

// members reads an object. f reads the value of a key and is told where the key is.
func (r *lineReader) members(f func(key string, at int)) {
	r.open('{', "an object")
	seen := map[string]bool{}
	for r.err == nil && r.dec.More() {
		at := r.column()
		key := token[string](r, "a key")
		if seen[key] {
			r.fail(at, "the key %q is there twice", key)
		}
		if seen[key] = true; r.err == nil {
			f(key, at)
		}
	}
	r.next()
}

// list reads a list. f reads an element and is told where it is.
func (r *lineReader) list(f func(at int)) {
	r.open('[', "a list")
	r.rest(f)
}

// rest reads a list whose bracket has been read.
func (r *lineReader) rest(f func(at int)) {
	for r.err == nil && r.dec.More() {
		f(r.column())
	}
	r.next()
}

// end returns the first error, which may be that something follows the value of the line.
func (r *lineReader) end() error {
	at := r.column()
	if r.err != nil {
		return r.err
	}
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		r.fail(at, "more than one JSON object on the line")
	}
	return r.err
}

// appendList appends a JSON list whose elements one appends.
func appendList[T any](dst []byte, list []T, one func(dst []byte, v T) []byte) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one(dst, v)
	}
	return append(dst, ']')
}

func appendRows(dst []byte, rows [][]float64) []byte { return appendList(dst, rows, appendNumbers) }

func appendStrings(dst []byte, s []string) []byte { return appendList(dst, s, appendJSON) }

func appendNumbers(dst []byte, v []float64) []byte { return appendList(dst, v, appendNumber) }

func appendNumber(dst []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		panic("model: a class file cannot hold a number that is not finite")
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}

func appendJSON(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("model: a string has no JSON: " + err.Error())
	}
	return append(dst, b...)
}
