package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/scan"
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

// lineReader reads one line of JSON, whose bytes texts may share. After its first error it reads nothing more.
type lineReader struct {
	scan.JSON
	file string
	line int
	body []byte
	err  error // of what JSON alone does not tell
}

// fail keeps the first error, at a column that counts bytes from 1.
func (r *lineReader) fail(column int, format string, args ...any) {
	if r.Ok() {
		r.err = &Error{File: r.file, Line: int64(r.line), Column: int64(column), Msg: fmt.Sprintf(format, args...)}
		r.Fail("said")
	}
}

// column returns where the next token begins.
func (r *lineReader) column() int {
	r.Peek()
	return r.Place() + 1
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
	seen := map[string]bool{}
	for first := r.Open('{'); r.More(&first, '}'); {
		at := r.column()
		key := r.Key()
		if seen[key] {
			r.fail(at, "the key %q is there twice", key)
		}
		if seen[key] = true; r.Ok() {
			f(key, at)
		}
	}
}

// list reads a list. f reads an element and is told where it is.
func (r *lineReader) list(f func(at int)) {
	for first := r.Open('['); r.More(&first, ']'); {
		f(r.column())
	}
}

// end returns the first error, which may be that something follows the value of the line.
func (r *lineReader) end() error {
	if at := r.column(); r.Ok() && at <= len(r.body) {
		r.fail(at, "more than one JSON object on the line")
	}
	if r.err != nil || r.Ok() {
		return r.err
	}
	e := &Error{File: r.file, Line: int64(r.line), Column: int64(r.At) + 1, Msg: errLineEnds.Error()}
	if rest := string(r.body[r.At:]); rest != "" {
		e.Msg = r.Msg + ", found " + rest[:1+max(0, strings.IndexAny(rest[1:]+",", ",:]} \t"))]
	}
	return e
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
