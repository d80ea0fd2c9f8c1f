package door

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"hindsight/internal/daemon"
	"hindsight/internal/explain"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/see"
	"hindsight/internal/service"
	"hindsight/internal/topics"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a system whose requests come by HTTP, and by the bus that it is given.
type world struct {
	t        testing.TB
	log      stream.Log
	door     *Door
	url      string
	client   *http.Client
	registry *prometheus.Registry
	stop     func() // the process's signal; it waits for its end
}

// setting is what a world is made of; the zero value will do.
type setting struct {
	log        stream.Log // nil: in memory
	bus        stream.Bus
	flags      []string
	partitions int
	clientRate int
	slow       time.Duration
	now        func() time.Time
	model      string // lines of the model file
	files      map[string][]byte
	change     func(*service.SystemConfig)
}

func newLog() stream.Log {
	return mem.New(mem.Options{Clock: func() int64 { return time.Now().UnixNano() }})
}

// open starts a world.
func open(t testing.TB, s setting) *world {
	t.Helper()
	w := &world{t: t, log: s.log, registry: prometheus.NewRegistry(),
		client: &http.Client{Transport: &http.Transport{}}}
	if w.log == nil {
		w.log = newLog()
	}
	if s.partitions == 0 {
		s.partitions = 1
	}
	m, err := model.Parse("shop.yaml", []byte("name: shop\n"+s.model))
	if err != nil {
		t.Fatal(err)
	}
	source, err := modelfile.Source(m, s.files)
	if err != nil {
		t.Fatal(err)
	}
	if err := topics.Create(t.Context(), w.log, m.Name, s.partitions, topics.Retention{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	metrics := watch.NewMetrics(w.registry, nil)
	logger := slog.New(slog.DiscardHandler)
	health, insight, seed := watch.NewHealth(watch.RoleDecider), service.NewInsight(), []byte("a seed for tests")
	control := &service.Control{}
	sight := see.New(see.Options{Program: "decider", Version: "test", Model: m.Name, Health: health, Insight: insight,
		Control: control})
	sight.Watch(ctx, w.registry, metrics.Scope())
	sight.Explain(explain.Config{Log: w.log, Name: m.Name, Seed: seed, Build: model.Epoch})
	pages := append(sight.Pages(), daemon.Page{Path: "/certificate", Answer: insight.Certificate},
		daemon.Page{Path: "/models", Answer: insight.Models}, daemon.Page{Path: "/candidates",
			Answer: control.Candidates})
	w.door = w.listen(ctx, s, Options{Model: m.Name, Bus: s.bus, Requests: true, Pages: pages, Metrics: metrics,
		Logger: logger, Log: w.log, Definition: insight.Definition})
	config := service.SystemConfig{Log: w.log, Bus: w.door.Bus(), Name: m.Name, Source: source, Build: model.Epoch,
		Seed: seed, Health: health, Insight: insight, Control: control, Partitions: s.partitions, BusApart: true,
		ClientRate: s.clientRate,
		Metrics:    metrics, Logger: logger}
	if s.change != nil {
		s.change(&config)
	}
	stop, err := service.Start(ctx, config)
	w.stop = sync.OnceFunc(func() {
		cancel()
		if stop != nil {
			err = stop()
		}
		if err := errors.Join(err, w.door.Close()); err != nil {
			t.Error(err)
		}
		w.client.CloseIdleConnections()
	})
	t.Cleanup(w.stop)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// listen opens the door as flags say, at a free port.
func (w *world) listen(ctx context.Context, s setting, o Options) *Door {
	w.t.Helper()
	f := Flags{slow: s.slow, now: s.now}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Add(flags)
	if err := flags.Parse(append([]string{"--http", "127.0.0.1:0"}, s.flags...)); err != nil {
		w.t.Fatal(err)
	}
	if err := f.Check(); err != nil {
		w.t.Fatal(err)
	}
	d, err := f.Open(ctx, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.url = "http://" + d.Addr()
	return d
}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// problem returns the error that it is.
func (r reply) problem(t testing.TB) (p problem) {
	t.Helper()
	if err := json.Unmarshal(r.body, &p); err != nil || r.header.Get("Content-Type") != typeProblem {
		t.Errorf("%d %s is no problem: %s", r.status, r.header.Get("Content-Type"), r.body)
	}
	return p
}

// call asks, with headers as NAME: VALUE. JSON is the content type of a body unless they say otherwise.
func (w *world) call(method, path, body string, headers ...string) reply {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", typeJSON)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch name {
		case "":
		case "Host":
			r.Host = value
		default:
			r.Header.Set(name, value)
		}
	}
	return w.do(r)
}

func (w *world) do(r *http.Request) reply {
	w.t.Helper()
	got, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	out := reply{got.StatusCode, got.Header, b}
	plain := out
	if got.Header.Get("Content-Encoding") == "gzip" {
		plain.body = inflated(w.t, b)
	}
	promised().check(w.t, r, plain)
	return out
}

func inflated(t testing.TB, b []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// decision is the reply to a context.
type decision struct {
	ID            string
	Action        string
	Propensity    float64
	Propensities  map[string]float64
	N             int64
	Duplicate     bool
	Partition     int
	LearnedBefore int64 `json:"learned_through"`
}

// decide asks for a decision.
func (w *world) decide(body string, headers ...string) (d decision) {
	w.t.Helper()
	got := w.call("POST", "/v1/decide", body, headers...)
	if err := json.Unmarshal(got.body, &d); err != nil || got.status != 200 {
		w.t.Fatalf("%.99s: %d %s", body, got.status, got.body)
	}
	return d
}

// records returns the data that a topic holds.
func (w *world) records(topic string) [][]byte {
	w.t.Helper()
	return w.recordsOf(topic, 0)
}

func (w *world) recordsOf(topic string, partition int) (out [][]byte) {
	w.t.Helper()
	_, end, err := w.log.Bounds(w.t.Context(), topic, partition)
	if err != nil {
		w.t.Fatal(err)
	}
	err = stream.Scan(w.t.Context(), w.log, topic, partition, stream.Earliest, end, func(r *stream.Record) error {
		if r.Type == "" {
			out = append(out, bytes.Clone(r.Value))
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// TestDecide holds that a decision is the one in the log, and that one who asks again with the id gets it again.
func TestDecide(t *testing.T) {
	w := open(t, setting{})
	const asked = `{"id":"a","features":{"hour":14},"actions":["x","y"]}`
	first := w.decide(asked)
	var stored codec.Decision
	if all := w.records("shop.decisions"); len(all) != 1 || codec.ParseDecision(&stored, all[0]) != nil ||
		stored.ID != first.ID || stored.Actions[stored.Action] != first.Action ||
		stored.Propensities[stored.Action] != first.Propensity {
		t.Errorf("%d decisions in the log; %+v there, %+v here", len(all), stored, first)
	}
	again := w.decide(asked)
	if first.Duplicate || !again.Duplicate || again.Action != first.Action || again.N != first.N {
		t.Errorf("%+v, then %+v", first, again)
	}
	other := w.call("POST", "/v1/models/shop/decide", `{"id":"a","features":{"hour":15},"actions":["x","y"]}`)
	if p := other.problem(t); other.status != 409 || p.Status != 409 || p.ID != "a" || !strings.Contains(p.Detail,
		"this id was used for another context") {
		t.Errorf("%d %+v", other.status, p)
	}
	if n := len(w.records("shop.decisions")); n != 1 {
		t.Errorf("%d decisions in the log", n)
	}
}

// TestOutcome holds that 202 says that an outcome is in the log.
func TestOutcome(t *testing.T) {
	w := open(t, setting{})
	w.decide(`{"id":"a","actions":["x","y"]}`)
	const told = `{"id":"a","loss":0.25}`
	got := w.call("POST", "/v1/outcome", told)
	stored := w.records("shop.outcomes")
	if got.status != 202 || string(got.body) != `{"id":"a","stored":true}` || len(stored) != 1 ||
		string(stored[0]) != told {
		t.Errorf("%d %s; stored %q", got.status, got.body, stored)
	}
}
