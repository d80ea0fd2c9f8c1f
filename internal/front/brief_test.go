package front

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestBrief: a brief context ends a second after it was first waited for, not before, and is as new after End. Where
// nothing waits for it, it costs nothing.
func TestBrief(t *testing.T) {
	b := NewBrief()
	if n := testing.AllocsPerRun(100, func() {
		if b.Err() != nil {
			t.Error(b.Err())
		}
		b.End()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	synctest.Test(t, func(t *testing.T) {
		for range 2 {
			time.Sleep(time.Hour) // of the bubble's clock
			start := time.Now()
			if b.Err() != nil {
				t.Fatal("it ended before it was waited for:", b.Err())
			}
			<-b.Done()
			if took := time.Since(start); took != time.Second || b.Err() != context.DeadlineExceeded {
				t.Fatalf("%v after %v", b.Err(), took)
			}
			b.End()
		}
	})
}
