package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/nats"
)

// span is one span as a collector gets it.
type span struct {
	service, name, trace, id, parent, link string
	about                                  map[string]string
}

// collector takes spans by OTLP over HTTP.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []span
}

func newCollector(t *testing.T) *collector {
	c := new(collector)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		var got collectorpb.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(b, &got) != nil {
			t.Errorf("%s: %v %.100q", r.URL.Path, err, b)
		}
		c.take(&got)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) take(got *collectorpb.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range got.ResourceSpans {
		service := attributes(r.Resource.Attributes)["service.name"]
		for _, scope := range r.ScopeSpans {
			for _, s := range scope.Spans {
				x := span{service, s.Name, hex.EncodeToString(s.TraceId), hex.EncodeToString(s.SpanId),
					hex.EncodeToString(s.ParentSpanId), "", attributes(s.Attributes)}
				for _, l := range s.Links {
					x.link = hex.EncodeToString(l.TraceId) + "-" + hex.EncodeToString(l.SpanId)
				}
				c.spans = append(c.spans, x)
			}
		}
	}
}

func attributes(all []*commonpb.KeyValue) map[string]string {
	m := map[string]string{}
	for _, kv := range all {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			m[kv.Key] = v.StringValue
		case *commonpb.AnyValue_DoubleValue:
			m[kv.Key] = fmt.Sprint(v.DoubleValue)
		}
	}
	return m
}

// of returns the spans of a name and a round.
func (c *collector) of(name, round string) []span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.spans), func(s span) bool {
		return s.name != name || s.about["hindsight.round"] != round
	})
}

// below returns the names of the spans right below one.
func (c *collector) below(s span) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.spans {
		if x.trace == s.trace && x.parent == s.id {
			names = append(names, x.name)
		}
	}
	return names
}

// traced gives a command the environment in which its spans go to an endpoint.
func traced(cmd *exec.Cmd, endpoint string, more ...string) *exec.Cmd {
	cmd.Env = append(append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint), more...)
	return cmd
}

// ask sends a request by HTTP with a traceparent.
func (p *process) ask(path, traceparent, body string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), "POST", p.http()+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Traceparent": {traceparent}}
	got, err := (&http.Client{Timeout: patience}).Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer got.Body.Close()
	if said, err := io.ReadAll(got.Body); err != nil || got.StatusCode >= 300 {
		p.t.Fatalf("%v %d %s", err, got.StatusCode, said)
	}
}

// TestTraces follows rounds from requests by HTTP and by NATS through the decider and a joiner in another process to a
// collector, which gets the spans at the latest when the processes stop. Rounds wait while one joiner follows another.
func TestTraces(t *testing.T) {
	dir, c := t.TempDir(), newCollector(t)
	model := writeModel(t, dir, strings.Replace(shop, "300ms", "1h", 1))
	const late = "OTEL_BSP_SCHEDULE_DELAY=3600000"
	d := start(t, traced(decider(t, "--log", "embedded:"+dir, "--listen", "127.0.0.1:0", "--model", model,
		"--joiner=false"), c.URL, late))
	url := asService(d.reached(dir))
	eventually(t, "the topics are there", func() bool { return hasTopics(t, dir) })
	startJoiner := func() *process {
		return start(t, traced(feedbackJoiner(t, "--log", "embedded:"+dir, "--model", model), c.URL, late)).ready()
	}
	j := startJoiner()
	d.ready()
	bus, err := (&nats.Access{URL: url}).Dial("test", nats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	parents := map[string]string{"http": "00-" + strings.Repeat("a", 32) + "-" + strings.Repeat("1", 16) + "-01",
		"nats": "00-" + strings.Repeat("b", 32) + "-" + strings.Repeat("2", 16) + "-01", "invalid": "00-x",
		"unsampled": "00-" + strings.Repeat("c", 32) + "-" + strings.Repeat("3", 16) + "-00"}
	joined := func(want int) {
		t.Helper()
		eventually(t, "the rounds are joined", func() bool {
			n := 0
			scan(t, bus.Log(), "shop.feedback", 0, func(r *stream.Record) error {
				if r.Type == "" {
					n++
				}
				return nil
			})
			return n == want
		})
	}
	send := func(id, call, body string) {
		t.Helper()
		if id != "nats" {
			d.ask("/v1/"+call, parents[id], body)
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, headers, err := bus.Bus().Request(ctx, "shop."+call, []byte(body),
			stream.Header{Key: "traceparent", Value: parents[id]})
		if err != nil || errorCode(headers) != 0 {
			t.Fatal(err, headers)
		}
	}
	decide := func(id string) { send(id, "decide", fmt.Sprintf(`{"id":%q,"actions":["x","y"]}`, id)) }
	outcome := func(id string) { send(id, "outcome", fmt.Sprintf(`{"id":%q,"loss":0.5}`, id)) }
	for _, id := range []string{"nats", "invalid", "unsampled", "http"} {
		decide(id)
	}
	outcome("http")
	joined(1) // and the joiner has taken the other decisions, which are earlier
	j.stop(patience)
	j = startJoiner()
	for _, id := range []string{"nats", "invalid", "unsampled"} {
		outcome(id)
	}
	joined(4)
	bus.Close()
	j.stop(patience)
	d.stop(patience)
	for id, parent := range parents {
		c.check(t, id, parent)
	}
}

// check holds that the spans of a round are those of its requests.
func (c *collector) check(t *testing.T, id, parent string) {
	t.Helper()
	decides, outcomes, joins := c.of("decide", id), c.of("outcome", id), c.of("join", id)
	if id == "unsampled" {
		if len(decides)+len(outcomes)+len(joins) > 0 {
			t.Errorf("%s: %v %v %v", id, decides, outcomes, joins)
		}
		return
	}
	if len(decides) != 1 || len(outcomes) != 1 || len(joins) != 1 {
		t.Fatalf("%s: %v %v %v", id, decides, outcomes, joins)
	}
	decide, outcome, join := decides[0], outcomes[0], joins[0]
	for _, s := range []span{decide, outcome} {
		above := "00-" + s.trace + "-" + s.parent + "-01"
		if (above != parent) != (id == "invalid") || (s.parent == "") != (id == "invalid") || s.service != "decider" {
			t.Errorf("%s: %+v", id, s)
		}
		if got := c.below(s); !slices.Equal(got, []string{"append", "reply"}) {
			t.Errorf("%s: below %s are %v", id, s.name, got)
		}
	}
	if a := decide.about; len(a) != 3 || !strings.Contains("x y", a["hindsight.action"]) ||
		!strings.HasPrefix(a["hindsight.propensity"], "0.") {
		t.Errorf("%s: %v", id, a)
	}
	want := maps.Clone(decide.about)
	want["hindsight.fate"] = "observed"
	if join.service != "feedback-joiner" || join.link != decide.trace+"-"+decide.id || join.trace == decide.trace ||
		join.parent != "" || !maps.Equal(join.about, want) {
		t.Errorf("%s: %+v of %+v", id, join, decide)
	}
}

// TestTracesCollectorHangs holds that decisions do not wait for a collector that takes spans and never answers, nor
// does the end of the process.
func TestTracesCollectorHangs(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer hung.Close()
	defer close(over)
	p := start(t, traced(decider(t, "--log", "embedded:"+t.TempDir(), "--listen", "127.0.0.1:0"), hung.URL,
		"OTEL_BSP_SCHEDULE_DELAY=1", "OTEL_BSP_MAX_QUEUE_SIZE=8", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=4",
		"OTEL_EXPORTER_OTLP_TIMEOUT=3600000")).ready()
	for i := range 100 {
		p.ask("/v1/decide", "", fmt.Sprintf(`{"id":"%d","actions":["x","y"]}`, i))
	}
	p.stop(patience)
	if !strings.Contains(p.log(), "the last spans are lost") {
		t.Error("the log does not say that spans are lost")
	}
}

// TestTracesRefused holds that a protocol that is not spoken is named at the start.
func TestTracesRefused(t *testing.T) {
	got := finish(t, traced(decider(t, "--log", "mem:", "--listen", "127.0.0.1:0"), "http://127.0.0.1:4317",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc"))
	if got.code != 2 || !strings.Contains(got.stderr, "only http/protobuf is spoken") {
		t.Errorf("%+v", got)
	}
}
