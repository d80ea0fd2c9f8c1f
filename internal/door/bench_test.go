package door

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"hindsight/internal/engine"
	"hindsight/pkg/stream"
)

// floor answers as many bytes as a decision has, after one append of as many as its record has to the same log.
type floor struct {
	out   stream.Appender
	acked chan error
	size  int // of a record
	reply []byte
}

// ServeHTTP implements [http.Handler].
func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if _, err := f.out.Append(r.Context(), &stream.Record{Value: make([]byte, f.size)}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if err := <-f.acked; err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", typeJSON)
	w.Write(f.reply)
}

// serveFloor serves a floor until the benchmark ends, and returns its address.
func serveFloor(b *testing.B, log stream.Log, size int, reply []byte) string {
	b.Helper()
	f := &floor{acked: make(chan error, 1), size: size, reply: reply}
	if err := log.Create(b.Context(), "floor", 1, stream.TopicOptions{}); err != nil {
		b.Fatal(err)
	}
	var err error
	if f.out, err = log.Writer(b.Context(), "floor", 0,
		func(_ uint64, _ int64, err error) { f.acked <- err }); err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: f, ReadHeaderTimeout: readHeader, ReadTimeout: readRequest,
		WriteTimeout: writeReply, IdleTimeout: idle, MaxHeaderBytes: maxHeader}
	go server.Serve(l)
	b.Cleanup(func() {
		server.Close()
		f.out.Close()
	})
	return "http://" + l.Addr().String() + "/v1/decide"
}

// askedBody is a context with 16 numbers and 10 actions.
func askedBody(n int) []byte {
	b := fmt.Appendf(nil, `{"id":"round-%08d","features":{`, n)
	for i := range 16 {
		b = fmt.Appendf(b, `"feature%02d":%.2f,`, i, float64((n*31+i*7)%101)/100)
	}
	b = append(b[:len(b)-1], `},"actions":["a0","a1","a2","a3","a4","a5","a6","a7","a8","a9"]}`...)
	return b
}

// onEmbedded serves on an embedded log, until the benchmark ends.
func onEmbedded(b *testing.B) (*world, *engine.Engine) {
	b.Helper()
	e, err := engine.Open(b.Context(), engine.Options{Log: "embedded:" + b.TempDir(), Listen: "127.0.0.1:0",
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close() })
	w := open(b, setting{log: e.Log, bus: e.Bus})
	b.Cleanup(w.stop)
	return w, e
}

// BenchmarkDecide measures the time from asking over keep-alive to the decision, which waits for the embedded log,
// beside a handler that does nothing but one append to the same log, turn by turn.
func BenchmarkDecide(b *testing.B) {
	w, e := onEmbedded(b)
	ask := func(url string, body []byte) (time.Duration, []byte) {
		start := time.Now()
		got, err := w.client.Post(url, typeJSON, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		defer got.Body.Close()
		reply, err := io.ReadAll(got.Body)
		if err != nil || got.StatusCode != 200 {
			b.Fatalf("%v: %d %s", err, got.StatusCode, reply)
		}
		return time.Since(start), reply
	}
	_, reply := ask(w.url+"/v1/decide", askedBody(0))
	under := serveFloor(b, e.Log, len(w.records("shop.decisions")[0]), reply)
	ask(under, askedBody(0))
	var decide, least []time.Duration
	n := 0
	for b.Loop() {
		n++
		body := askedBody(n)
		t, _ := ask(under, body)
		least = append(least, t)
		t, _ = ask(w.url+"/v1/decide", body)
		decide = append(decide, t)
	}
	p50 := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2].Nanoseconds())
	}
	b.ReportMetric(p50(decide), "decide-p50-ns")
	b.ReportMetric(p50(least), "floor-p50-ns")
	b.ReportMetric(p50(decide)/p50(least), "p50/floor")
}

// deaf takes an answer and keeps nothing.
type deaf struct{ header http.Header }

// Header implements [http.ResponseWriter].
func (d *deaf) Header() http.Header { return d.header }

// WriteHeader implements [http.ResponseWriter].
func (d *deaf) WriteHeader(int) {}

// Write implements [http.ResponseWriter].
func (d *deaf) Write(b []byte) (int, error) { return len(b), nil }

// TestAllocations holds what a request allocates between the server and who decides: its body.
func TestAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has pools forget what they hold")
	}
	f := Flags{}
	d := &Door{o: Options{Model: "shop"}, bus: newBus(nil), subjects: map[string]string{"decide": "shop.decide"}}
	var err error
	if d.guard, err = newGuard(f.origins); err != nil {
		t.Fatal(err)
	}
	answer := []byte(`{"id":"a"}`)
	if _, err := d.bus.Serve("shop.decide", "decider", func(m stream.Message) { m.Respond(answer) }); err != nil {
		t.Fatal(err)
	}
	h := d.routes()
	body := bytes.NewReader(askedBody(1))
	r, err := http.NewRequestWithContext(context.Background(), "POST", "http://127.0.0.1:8080/v1/decide", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", typeJSON)
	r.RemoteAddr = "127.0.0.1:1"
	w := &deaf{http.Header{}}
	if n := testing.AllocsPerRun(1000, func() {
		body.Seek(0, io.SeekStart)
		h.ServeHTTP(w, r)
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
