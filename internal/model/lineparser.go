package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// lineParser reads one line of JSON token by token, and knows at which column it is.
type lineParser struct {
	file string
	line int
	body []byte
	dec  *json.Decoder
}

func newLineParser(file string, line int, text []byte) *lineParser {
	p := &lineParser{file: file, line: line, body: text, dec: json.NewDecoder(bytes.NewReader(text))}
	p.dec.UseNumber()
	return p
}

// errorf returns an error at a column, which counts bytes from 1.
func (p *lineParser) errorf(column int, format string, args ...any) error {
	return &Error{File: p.file, Line: p.line, Column: column, Msg: fmt.Sprintf(format, args...)}
}

// column returns where the next token begins.
func (p *lineParser) column() int {
	at := int(p.dec.InputOffset())
	for at < len(p.body) && bytes.IndexByte([]byte(" \t\r,:"), p.body[at]) >= 0 {
		at++
	}
	return at + 1
}

// next returns the next token.
func (p *lineParser) next() (json.Token, error) {
	at := p.column()
	t, err := p.dec.Token()
	switch {
	case err == nil:
		return t, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, p.errorf(at, "%v", errLineEnds)
	}
	return nil, p.errorf(at, "not JSON: %v", err)
}

// expect reads a token that must be d.
func (p *lineParser) expect(d json.Delim, what string) error {
	at := p.column()
	t, err := p.next()
	if err == nil && t != d {
		err = p.errorf(at, "expected %s, found %v", what, describeToken(t))
	}
	return err
}

func describeToken(t json.Token) string {
	switch v := t.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(t)
}

// object reads an object; f reads the value of each key, and is told where that is.
func (p *lineParser) object(f func(key string, at int) error) error {
	if err := p.expect('{', "an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		at := p.column()
		t, err := p.next()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return p.errorf(at, "expected a key, found %v", describeToken(t))
		}
		if seen[key] {
			return p.errorf(at, "the key %q is there twice", key)
		}
		seen[key] = true
		if err := f(key, at); err != nil {
			return err
		}
	}
	_, err := p.next()
	return err
}

// array reads an array; f reads each element, and is told where it is.
func (p *lineParser) array(f func(at int) error) error {
	if err := p.expect('[', "a list"); err != nil {
		return err
	}
	return p.rest(f)
}

// rest reads an array whose bracket is read.
func (p *lineParser) rest(f func(at int) error) error {
	for p.dec.More() {
		if err := f(p.column()); err != nil {
			return err
		}
	}
	_, err := p.next()
	return err
}

func (p *lineParser) text() (string, error) {
	at := p.column()
	t, err := p.next()
	s, ok := t.(string)
	if err == nil && !ok {
		err = p.errorf(at, "expected a text, found %v", describeToken(t))
	}
	return s, err
}

func (p *lineParser) number() (float64, error) {
	at := p.column()
	t, err := p.next()
	if err != nil {
		return 0, err
	}
	n, ok := t.(json.Number)
	if !ok {
		return 0, p.errorf(at, "expected a number, found %v", describeToken(t))
	}
	return p.finite(n, at)
}

// end fails if something follows the value of the line.
func (p *lineParser) end() error {
	at := p.column()
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return p.errorf(at, "more than one JSON object on the line")
	}
	return nil
}
