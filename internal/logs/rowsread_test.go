package logs

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

// TestRowsAllocateNothing: what a row of a labelled CSV says lies in memory that is used again.
func TestRowsAllocateNothing(t *testing.T) {
	text := "label,n_a,c_b\n" + strings.Repeat("x,0.25,u\ny,-17,v\n", 1000)
	r, err := Open(Stdin, Options{Stdin: strings.NewReader(text), Labelled: true})
	if err != nil {
		t.Fatal(err)
	}
	var rec Record
	next := func() {
		if err := r.Next(&rec); err != nil {
			t.Fatal(err)
		}
	}
	next() // labels are new
	next()
	if n := testing.AllocsPerRun(500, next); n > 0 {
		t.Errorf("%v allocations a row", n)
	}
}

func TestReadingEndsWithTheErrorOfTheFile(t *testing.T) {
	broken := errors.New("broken")
	long := "label,n_a\n" + strings.Repeat("x,1\n", 2*scan.BufferBytes/4) // more than is looked at to know the format
	var packed bytes.Buffer
	if w, err := NewWriter(&packed, Msgpack); err != nil {
		t.Fatal(err)
	} else {
		for packed.Len() < 2*scan.BufferBytes {
			_ = w.Write(&Record{Kind: Event, Action: "x", Propensity: 1, Time: scan.NoTime, OutcomeTime: scan.NoTime})
		}
	}
	for _, text := range []string{"label,n_a\nx,1\nx,", "label,n_a\nx,1\n\"x\",2\nx,", long,
		strings.Repeat(oneEvent, 2*scan.BufferBytes/len(oneEvent)),
		strings.Repeat("0:1:1 | a\n\n", 2*scan.BufferBytes/11), packed.String(), packed.String()[:packed.Len()-1]} {
		r, err := Open(Stdin, Options{Stdin: io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)),
			Labelled: true})
		var rec Record
		for err == nil {
			err = r.Next(&rec)
		}
		if named := strings.HasPrefix(err.Error(), "standard input: "); !errors.Is(err, broken) ||
			len(text) > scan.BufferBytes && !named {
			t.Errorf("%.20q: error is %v", text, err)
		}
	}
}

// TestMost: as many actions as a context may have are read, in each format that lists them, and one more is refused.
func TestMost(t *testing.T) {
	for _, c := range []struct{ format, first, each, last string }{
		{Dsjson, `{"_label_Action":1,"_label_cost":0,"c":{"_multi":[{}`, ",{}", "]}}\n"},
		{CBADF, "0:1:1 |\n", "|\n", "\n"},
		{CCB, "ccb action |\n", "ccb action |\n", "ccb slot 0:1:1 |\n\n"},
	} {
		for more := range 2 {
			r := openText(t, c.first+strings.Repeat(c.each, codec.MaxActions-1+more)+c.last, Options{Format: c.format})
			all, err := readAll(t, r)
			a := r.Account()
			if err != nil || len(all) != 1-more || more > 0 && !strings.Contains(a.Errors()[0],
				"more than 10000 actions") {
				t.Errorf("%s, %d more: %d events, %v, %q", c.format, more, len(all), err, a.Errors())
			}
		}
	}
	text := []byte("a,l\n")
	for i := range codec.MaxActions + 1 {
		text = append(strconv.AppendInt(text, int64(i), 10), ",1\n"...)
	}
	r := openText(t, string(text)+"0,1\n", Options{Mapping: Mapping{Action: "a", Loss: "l"}})
	all, err := readAll(t, r)
	if got := r.Account().Errors(); err != nil || len(all) != codec.MaxActions+1 || len(got) != 1 ||
		!strings.Contains(got[0], ":10002: column a: more than 10000 different actions") {
		t.Errorf("%d rows, %v, %q", len(all), err, got)
	}
	for n, want := range map[int]string{maxColumns: "must be label", maxColumns + 1: "has 131073 columns"} {
		_, err := Open(Stdin, Options{Format: Labelled, Stdin: strings.NewReader(strings.Repeat(",", n-1) + "\n")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d columns: %.100v", n, err)
		}
	}
	_, err = Open(Stdin, Options{Format: Labelled, Stdin: strings.NewReader("label" + strings.Repeat(",n_",
		codec.MaxFeatures+1) + "\n")})
	if err == nil || !strings.Contains(err.Error(), "65538 columns, at most 65537") {
		t.Errorf("a feature too many: %.100v", err)
	}
}
