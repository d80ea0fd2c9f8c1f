package front

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
)

// A record that cannot be encoded, wherever it came from, is refused, and the outcomes that
// are on their way with it are stored: its appender lives on.
func TestUnfitOutcome(t *testing.T) {
	e, err := embedded.Open(t.Context(), embedded.Options{Dir: t.TempDir(), DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Log().Create(t.Context(), "m.outcomes", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	w := newOutcomeWriter(e.Log(), "m.outcomes", 0)
	if err := w.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer w.close()
	out := w.out
	var mu sync.Mutex
	var told sync.WaitGroup
	var failed []error
	say := func(headers ...stream.Header) {
		told.Add(1)
		r := &stream.Record{Value: []byte("{}"), Headers: headers}
		w.append(r, time.Now().Add(time.Minute), func(_ int64, err error) {
			defer told.Done()
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
		})
	}
	for range 10 {
		say()
		say(stream.Header{Key: "a b", Value: "1"})
		say(stream.Header{Key: "h", Value: strings.Repeat("x", 1<<16)})
		say(stream.Header{Key: "h", Value: strings.Repeat("x", maxHeaderBytes)})
	}
	told.Wait()
	unfit, large := 0, 0
	for _, err := range failed {
		if errors.Is(err, stream.ErrUnfit) {
			unfit++
		} else if errors.Is(err, stream.ErrTooLarge) {
			large++
		}
	}
	if unfit != 10 || large != 10 || len(failed) != 20 || w.out != out {
		t.Errorf("of 40 outcomes %d were unfit, %d too large, %d not stored; another appender: %v",
			unfit, large, len(failed), w.out != out)
	}
	if _, next, err := e.Log().Bounds(t.Context(), "m.outcomes", 0); err != nil || fmt.Sprint(next) != "21" {
		t.Errorf("%d records, %v", next-1, err)
	}
}
