// Package daily takes turns among checks that are too dear for every run.
package daily

import (
	"iter"
	"os"
	"strconv"
	"testing"
	"time"
)

// Turn reports whether part i of what is checked is at turn where one in n is checked a day, by
// the calendar or by HINDSIGHT_DAY; all are if that is "all", or with HINDSIGHT_LONG.
func Turn(t testing.TB, i, n int) bool {
	if os.Getenv("HINDSIGHT_LONG") != "" || os.Getenv("HINDSIGHT_DAY") == "all" {
		return true
	}
	day := int(time.Now().Unix() / (24 * 60 * 60))
	if text := os.Getenv("HINDSIGHT_DAY"); text != "" {
		var err error
		if day, err = strconv.Atoi(text); err != nil {
			t.Fatalf("HINDSIGHT_DAY: %v", err)
		}
	}
	if i == 0 {
		t.Logf("one in %d is checked: HINDSIGHT_DAY=%d", n, day)
	}
	return i%n == day%n
}

// Seeds returns those of the seeds below count that are at turn where one in n is checked a day.
func Seeds(t testing.TB, count, n int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := range count {
			if Turn(t, i, n) && !yield(uint64(i)) {
				return
			}
		}
	}
}
