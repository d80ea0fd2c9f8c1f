package logs

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
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
	for _, text := range []string{"label,n_a\nx,1\nx,", "label,n_a\nx,1\n\"x\",2\nx,"} {
		r, err := Open(Stdin, Options{Stdin: io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)),
			Labelled: true})
		var rec Record
		for err == nil {
			err = r.Next(&rec)
		}
		if !errors.Is(err, broken) {
			t.Errorf("error is %v", err)
		}
	}
}
