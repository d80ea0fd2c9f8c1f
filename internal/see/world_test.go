package see

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/explain"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/service"
	_ "hindsight/internal/testkit/roomy"
	"hindsight/internal/topics"
	"hindsight/internal/watch"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// planted is in every feature and every secret that the tests give in.
const planted = "planted-secret"

// world is a whole system in memory with its pages, and someone who asks it.
type world struct {
	t   testing.TB
	log *mem.Log
	see *See
	url string
}

func newWorld(t testing.TB, yaml string) *world { return newWorldOf(t, yaml, nil) }

// newWorldOf is newWorld for a model that names files.
func newWorldOf(t testing.TB, yaml string, files map[string][]byte) *world {
	t.Helper()
	m, err := model.Parse("model", []byte("name: shop\nversion: 1\n"+yaml))
	if err != nil {
		t.Fatal(err)
	}
	source, err := modelfile.Source(m, files)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, log: mem.New(mem.Options{Clock: func() int64 { return time.Now().UnixNano() }})}
	if err := topics.Create(t.Context(), w.log, "shop", 1, topics.Retention{}); err != nil {
		t.Fatal(err)
	}
	health, insight, reg := watch.NewHealth(watch.RoleDecider), service.NewInsight(), prometheus.NewRegistry()
	control := &service.Control{}
	w.see = New(Options{Program: "decider", Version: "test", Model: "shop", Health: health, Insight: insight,
		Control: control})
	mux := http.NewServeMux()
	for _, p := range w.see.Pages() {
		mux.HandleFunc("GET "+p.Path, p.Answer)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	w.url = server.URL
	metrics := watch.NewMetrics(reg, health)
	ctx, cancel := context.WithCancel(t.Context())
	w.see.Watch(ctx, reg, metrics.Scope())
	seed := []byte(planted)
	w.see.Explain(explain.Config{Log: w.log, Name: "shop", Seed: seed, Build: model.Epoch, Features: true})
	stop, err := service.Start(ctx, service.SystemConfig{Log: w.log, Bus: w.log, Name: "shop", Source: source,
		Build: model.Epoch, Seed: seed, Partitions: 1, Owner: planted, Logger: slog.New(slog.DiscardHandler),
		Metrics: metrics, Health: health, Insight: insight, Control: control})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// ask asks for a decision and returns its id and action.
func (w *world) ask(r *rand.Rand) (id, action string) {
	w.t.Helper()
	body := fmt.Sprintf(`{"features":{"hour":%d,%q:%q},"actions":["red","green","blue","none"]}`, r.IntN(24),
		planted, planted)
	reply, _, err := w.log.Request(w.t.Context(), "shop.decide", []byte(body))
	if w.t.Context().Err() != nil { // the test has ended
		return "", ""
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var d struct{ ID, Action string }
	if err := json.Unmarshal(reply, &d); err != nil || d.ID == "" {
		w.t.Fatalf("%v in %s", err, reply)
	}
	return d.ID, d.Action
}

func (w *world) report(format string, args ...any) {
	w.t.Helper()
	if _, _, err := w.log.Request(w.t.Context(), "shop.outcome", fmt.Appendf(nil, format, args...)); err != nil &&
		w.t.Context().Err() == nil {
		w.t.Fatal(err)
	}
}

// put writes a context to the topic.
func (w *world) put(format string, args ...any) {
	w.t.Helper()
	out, err := w.log.Writer(w.t.Context(), "shop.contexts", 0, nil)
	if err == nil {
		_, err = out.Append(w.t.Context(), &stream.Record{Value: fmt.Appendf(nil, format, args...)})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// play plays n rounds; of each outcome some come late, twice, or not at all.
func (w *world) play(n int, seed uint64) (last string) {
	w.t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	worth := map[string]float64{"red": .8, "green": .2, "blue": .6, "none": .7}
	var waiting [][2]string
	for range n {
		id, action := w.ask(r)
		if id == "" {
			return last
		}
		last = id
		waiting = append(waiting, [2]string{id, action})
		for len(waiting) > 0 && r.IntN(3) > 0 {
			i := r.IntN(len(waiting))
			x := waiting[i]
			waiting = append(waiting[:i], waiting[i+1:]...)
			switch r.IntN(30) {
			case 0:
			case 1:
				w.report(`{"id":%q,"withdrawn":true}`, x[0])
			case 2:
				w.report(`{"id":"nobody-%s","loss":1}`, x[0])
			default:
				w.report(`{"id":%q,"loss":%v}`, x[0], min(1, max(0, worth[x[1]]+.2*(r.Float64()-.5))))
			}
		}
	}
	return last
}

// until waits until something is so.
func (w *world) until(what string, f func(s *state) bool) *state {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		s := w.state()
		if f(s) {
			return s
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("waiting for %s: %+v", what, s)
		case <-tick.C:
		}
	}
}

func (w *world) get(path string) (code int, body string) {
	w.t.Helper()
	a, err := http.Get(w.url + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return a.StatusCode, string(b)
}

func (w *world) state() *state {
	w.t.Helper()
	code, body := w.get("/state")
	var s state
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil || code != 200 {
		w.t.Fatalf("%d, %v: %s", code, err, body)
	}
	return &s
}

// load plays rounds until the test ends.
func (w *world) load() {
	ctx, cancel := context.WithCancel(w.t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for seed := uint64(100); ; seed++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.play(3, seed)
			}
		}
	})
	w.t.Cleanup(func() { cancel(); done.Wait() })
}
