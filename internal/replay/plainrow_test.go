package replay

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"hindsight/internal/logs"
)

// generalRows reads a labelled CSV with encoding/csv and strconv alone.
func generalRows(text []byte, rejects io.Writer) (*Multiclass, error) {
	f := newCSVFile("t.csv", bytes.NewReader(text))
	f.quoted()
	return readMulticlass(f, logs.NewLedger("", rejects, false))
}

// FuzzPlainRows reads any bytes as a labelled CSV in both ways.
func FuzzPlainRows(f *testing.F) {
	for _, s := range []string{
		"label,n_a,c_b\nx,1,u\ny,-0.5,\nx,,v\nx,1e3,u\ny,.5,v\nx,5.,u\nx,+1,u\nx,-0,u\n",
		"label,n_a\r\nx,1\r\n\r\n\nx,2\r\r\nx,3\r", "label,n_a\nx,1\nx,\nx,-\nx,.\nx, 1\nx,1 \nx,0x1\nx,1_0\nx,nan\nx,inf\nx\nx,1,2\n,1\n",
		"label,n_a\nx,1\n\"x\",2\nx,\"3\nx,4\n", "label,n_a\nx,1\nx,2\"\nx,3", "label,n_a\nx,123456789012345\nx,1234567890123456\nx,0.000000000000001\nx,0.0000000000000012\n",
		"\ufefflabel,c_a\nx,?\nx,\x01\nx,?\n", "label\nx\nx\n", "label,n_a\n", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var rejects, generalRejects bytes.Buffer
		want, werr := generalRows(text, &generalRejects)
		got, err := readMulticlass(newCSVFile("t.csv", iotest.OneByteReader(bytes.NewReader(text))), logs.NewLedger("", &rejects, false))
		if (err == nil) != (werr == nil) || err != nil && err.Error() != werr.Error() {
			t.Fatalf("error is %v, not %v", err, werr)
		}
		if err != nil {
			return
		}
		if got.intake.Bytes != want.intake.Bytes && !bytes.HasPrefix(text, []byte("\ufeff")) || !reflect.DeepEqual(got.intake.FirstMalformed, want.intake.FirstMalformed) {
			t.Errorf("intake is %+v, not %+v", got.intake, want.intake)
		}
		if g, w := rejects.String(), generalRejects.String(); !bytes.Contains(text, []byte("\n\n")) && !bytes.Contains(text, []byte("\r")) && g != w {
			t.Errorf("rejects are %q, not %q", g, w)
		}
		if !reflect.DeepEqual(got.labels, want.labels) || !reflect.DeepEqual(got.rows, want.rows) || !reflect.DeepEqual(got.columns, want.columns) || got.d != want.d {
			t.Fatalf("read %+v, not %+v", got, want)
		}
		for i := range got.rows {
			for j, v := range got.numbers.row(i) {
				if w := want.numbers.row(i)[j]; math.Float64bits(v) != math.Float64bits(w) && (v == v || w == w) {
					t.Errorf("row %d: %v, not %v", i, v, w)
				}
			}
			if !reflect.DeepEqual(got.categories.row(i), want.categories.row(i)) {
				t.Errorf("row %d: categories %v, not %v", i, got.categories.row(i), want.categories.row(i))
			}
		}
	})
}

func TestDecimalIsTheFloatNextToIt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 20000 {
		b := []byte(strconv.Itoa(rng.IntN(1 << rng.IntN(62))))
		if at := rng.IntN(len(b) + 1); rng.IntN(4) > 0 {
			b = append(b[:at:at], append([]byte{'.'}, b[at:]...)...)
		}
		if rng.IntN(2) == 0 {
			b = append([]byte{"+-"[rng.IntN(2)]}, b...)
		}
		want, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			t.Fatal(err)
		}
		v, n := decimal(append(b, ",7"...))
		if n < 0 {
			continue
		}
		if taken++; n != len(b) || math.Float64bits(v) != math.Float64bits(want) {
			t.Fatalf("%s is %v of %d bytes, not %v", b, v, n, want)
		}
	}
	if taken < 10000 {
		t.Errorf("%d of 20000 were taken", taken)
	}
}

func TestPlainRowsAllocateNothing(t *testing.T) {
	text := "label,n_a,c_b\n" + strings.Repeat("x,0.25,u\ny,-17,v\n", chunkRows/2)
	f := newCSVFile("t.csv", strings.NewReader(text))
	f.keepAccount(nil, "multiclass")
	p := &csvParser{csvFile: f, m: &Multiclass{}, labels: map[string]int32{}}
	if err := p.header(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // labels and categories are new
		row, err := p.next()
		if err == nil {
			err = p.row(row)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.m.rows = append(make([]int32, 0, 2*chunkRows), p.m.rows...)
	p.lines.peek() // what is read at once is in memory
	if n := testing.AllocsPerRun(500, func() {
		if !p.plainRow() {
			t.Fatal("a row is not plain")
		}
	}); n > 0 {
		t.Errorf("%v allocations a row", n)
	}
}

func TestReadingEndsWithTheErrorOfTheFile(t *testing.T) {
	broken := errors.New("broken")
	for _, text := range []string{"label,n_a\nx,1\nx,", "label,n_a\nx,1\n\"x\",2\nx,"} {
		_, err := ReadMulticlass("t.csv", io.MultiReader(strings.NewReader(text), failing{broken}))
		if !errors.Is(err, broken) {
			t.Errorf("error is %v", err)
		}
	}
}
