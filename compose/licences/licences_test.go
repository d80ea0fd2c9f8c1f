package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLicences holds that everything that the programs link has a licence that asks for
// nothing but to be told, and that the list names it.
func TestLicences(t *testing.T) {
	parts, err := collect("../..", []string{"./cmd/..."})
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) < 10 {
		t.Errorf("only %d parts", len(parts))
	}
	for _, p := range parts {
		if err := p.judge(); err != nil {
			t.Error(err)
		}
	}
	var out bytes.Buffer
	if err := write(&out, parts); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"github.com/nats-io/nats-server/v2", "Apache-2.0", "github.com/segmentio/kafka-go",
		"the Go standard library", "uPlot", "Redistribution and use in source and binary forms"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the list", want)
		}
	}
}

// TestBill holds that the bill of materials names each part once, by its package URL and licences.
func TestBill(t *testing.T) {
	parts, err := collect("../..", []string{"./internal/style", "./internal/chart"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := writeBill(&out, "v1", parts); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"pkg:npm/uplot@1.6.32"`, `"pkg:golang/gonum.org/v1/plot@v`, `"pkg:golang/std@1.`,
		`"id": "MIT"`, `"specVersion": "1.6"`, `"version": "v1"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
	for _, p := range parts {
		if n := strings.Count(out.String(), `"purl": "`+p.purl+`"`); n != 1 {
			t.Errorf("%s is there %d times", p.name, n)
		}
	}
}

// TestJudge holds that a part without a licence, or with one that asks for more, is
// found.
func TestJudge(t *testing.T) {
	gpl := "This program is free software: you can redistribute it and/or modify it under the terms of the GNU " +
		"General Public License as published by the Free Software Foundation, either version 3 of the License, or " +
		"(at your option) any later version."
	mit := `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and ` +
		`associated documentation files (the "Software"), to deal in the Software without restriction, including without ` +
		`limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the ` +
		`Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of ` +
		`the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO ` +
		`THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE ` +
		`AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF ` +
		`CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER ` +
		`DEALINGS IN THE SOFTWARE.`
	for _, c := range []struct{ name, text, want string }{
		{"LICENSE", mit, ""},
		{"COPYING.txt", gpl, "GPL"},
		{"LICENSE", "Ask us.", "no licence that is recognised, in 1 files"},
		{"readme", mit, "no licence that is recognised, in 0 files"},
	} {
		dir := t.TempDir()
		inner := filepath.Join(dir, "a", "b")
		if err := os.MkdirAll(inner, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a", c.name), []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		files, err := above(dir, []string{inner})
		if err != nil {
			t.Fatal(err)
		}
		err = part{name: "x", files: files}.judge()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %.20q: %v, want %q", c.name, c.text, err, c.want)
		}
	}
}
