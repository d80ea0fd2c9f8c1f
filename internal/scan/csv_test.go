package scan

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestTimesOfTables(t *testing.T) {
	at := func(y int, mo time.Month, d, h, mi, s, ns int) int64 {
		return time.Date(y, mo, d, h, mi, s, ns, time.UTC).UnixNano()
	}
	for text, want := range map[string]int64{
		"2013-01-01T11:10:00Z":             at(2013, 1, 1, 11, 10, 0, 0),
		"2013-01-01T11:10:00.25+01:00":     at(2013, 1, 1, 10, 10, 0, 25e7),
		"2019-11-24 00:01:03.979311+00:00": at(2019, 11, 24, 0, 1, 3, 979311000),
		"2013-01-01 11:10:00":              at(2013, 1, 1, 11, 10, 0, 0),
		" 1357038600 ":                     at(2013, 1, 1, 11, 10, 0, 0),
		"1357038600.123456789":             at(2013, 1, 1, 11, 10, 0, 123456789),
		"-1.5":                             -15e8,
		"0":                                0,
	} {
		if got, err := ParseTimeOrSeconds(text); err != nil || got != want {
			t.Errorf("%q is %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "1.", "1.x", "1e9", "11:10", "2013-13-01 00:00:00", "1357038600000",
		"99999999999999999999", "0001-01-01T00:00:00Z"} {
		if got, err := ParseTimeOrSeconds(text); err == nil || !strings.Contains(err.Error(), "expected a time") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

// FuzzRows reads any bytes as rows, a byte at a time, as encoding/csv alone reads them.
func FuzzRows(f *testing.F) {
	for _, s := range []string{
		"label,n_a,c_b\nx,1,u\ny,-0.5,\nx,,v\n", "label,n_a\r\nx,1\r\n\r\n\nx,2\r\r\nx,3\r",
		"label,n_a\nx,1\n\"x\",2\nx,\"3\nx,4\n",
		"label,n_a\nx,1\nx,2\"\nx,3", "label,n_a,c_b\nx,-0.5,\xac¬,é,é,é,-,.+\n",
		"a\n\"b\nc\",\"d\"\n\ne\n", "\ufefflabel\nx\nx\n", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, want := NewCSV("t.csv", iotest.OneByteReader(bytes.NewReader(text))), NewCSV("t.csv",
			bytes.NewReader(text))
		if want.lines.N = 1; bytes.HasPrefix(text, []byte("\ufeff")) {
			text = text[3:]
		}
		want.lines.r.Reset(bytes.NewReader(text))
		want.quoted(nil)
		want.before = -1 // quoted puts an empty line before the text
		for {
			row, err := got.Row()
			wrow, werr := want.Row()
			if (err == nil) != (werr == nil) || err != nil && err.Error() != werr.Error() {
				t.Fatalf("error is %v, not %v", err, werr)
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && (!reflect.DeepEqual(row, wrow) || got.Line(0) != want.Line(0)) {
				t.Fatalf("line %d: %q, not %d: %q", got.Line(0), row, want.Line(0), wrow)
			}
		}
	})
}
