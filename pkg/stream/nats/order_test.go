package nats

import (
	"context"
	"errors"
	"testing"
	"time"

	"hindsight/pkg/stream"
)

// Of refusals that overtake acknowledgements the one of the first record counts, in whichever order
// they come.
func TestRefusalsOvertake(t *testing.T) {
	const wrong = `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 9"},"stream":"x_0","seq":0}`
	for _, order := range [][2]int{{4, 2}, {2, 4}} {
		a, f, answer, _ := silentStream(t, Options{}, true)
		a.replicated, a.window = true, leap
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for range 5 {
			if _, err := a.Append(ctx, &stream.Record{Value: []byte("v")}); err != nil {
				t.Fatal(err)
			}
		}
		answer(order[0], wrong)
		answer(order[1], wrong)
		answer(0, `{"stream":"x_0","seq":2}`)
		answer(1, `{"stream":"x_0","seq":3}`)
		if err := a.Flush(ctx); !errors.Is(err, stream.ErrFenced) {
			t.Errorf("%v: %v", order, err)
		}
		f.mu.Lock()
		if len(f.errs) != 5 || f.errs[0] != nil || f.errs[1] != nil || f.offsets[1] != 3 {
			t.Errorf("%v: told %v at %v", order, f.errs, f.offsets)
		}
		for _, err := range f.errs[min(2, len(f.errs)):] {
			if !errors.Is(err, stream.ErrFenced) {
				t.Errorf("%v: %v", order, err)
			}
		}
		f.mu.Unlock()
		_ = a.Close()
	}
}

// An owner that has nothing on its way when appending is held goes on afterwards.
func TestIdleOwnerIsHeld(t *testing.T) {
	_, l := topicX(t, Options{})
	ctx := t.Context()
	a, _, err := l.Open(ctx, "x", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	appendOne := func() error {
		if _, err := a.Append(ctx, &stream.Record{Value: []byte("v")}); err != nil {
			return err
		}
		return a.Flush(ctx)
	}
	if err := appendOne(); err != nil {
		t.Fatal(err)
	}
	l.Hold(errors.New("held"))
	l.Resume()
	if err := appendOne(); err != nil {
		t.Errorf("an idle owner is dead: %v", err)
	}
}

// A record that was lost on its way once comes again, and is no gap.
func TestLostOnTheWay(t *testing.T) {
	s, _ := runServer(t, t.TempDir(), -1)
	l := dialTest(t, s.ClientURL(), Options{}).Log()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := l.Create(ctx, "x", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := writeFrom(ctx, l, 0, 5); err != nil {
		t.Fatal(err)
	}
	r, err := l.Read(ctx, "x", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.(*reader).pull(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.(*reader).msgs:
		r.(*reader).outstanding--
	case <-ctx.Done():
		t.Fatal("nothing comes")
	}
	if _, err := readTo(ctx, r, 0, 5); err != nil {
		t.Error(err)
	}
}
