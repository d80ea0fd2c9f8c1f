package embedded_test

import (
	"context"
	"testing"
	"time"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
)

func TestSmoke(t *testing.T) {
	ctx := context.Background()
	e, err := embedded.Open(ctx, embedded.Options{Dir: t.TempDir(), Port: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	t.Log(e.URL())
	l := e.Log()
	if err := l.Create(ctx, "shop.contexts", 2, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	n, err := l.Partitions(ctx, "shop.contexts")
	t.Log(n, err)
	for _, fenced := range []bool{false, true} {
		var a stream.Appender
		if fenced {
			a, _, err = l.Open(ctx, "shop.contexts", 0, stream.OpenOptions{Owner: "x"})
		} else {
			a, err = l.Writer(ctx, "shop.contexts", 1, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		t0 := time.Now()
		const N = 200000
		v := make([]byte, 200)
		for range N {
			if _, err := a.Append(ctx, &stream.Record{Value: v}); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		t.Logf("fenced %v: %.0f/s", fenced, N/time.Since(t0).Seconds())
		p := 1
		if fenced {
			p = 0
		}
		t0 = time.Now()
		r, err := l.Read(ctx, "shop.contexts", p, 1)
		if err != nil {
			t.Fatal(err)
		}
		var recs []stream.Record
		calls := 0
		for r.Position() <= N {
			recs, err = r.Next(ctx, recs[:0])
			if err != nil {
				t.Fatal(err)
			}
			calls++
		}
		t.Logf("read %.0f/s, %d calls", N/time.Since(t0).Seconds(), calls)
		t0 = time.Now()
		for range 2000 {
			if _, _, err := l.Bounds(ctx, "shop.contexts", p); err != nil {
				t.Fatal(err)
			}
		}
		t.Log("bounds", time.Since(t0)/2000)
		r.Close()
		a.Close()
	}
}
