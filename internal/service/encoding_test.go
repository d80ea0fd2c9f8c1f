package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"hindsight/internal/envelope"
	"hindsight/internal/follow"
	"hindsight/internal/topics"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestEncodingsAlike plays one world, with restarts, in both encodings: what is decided, learned and
// rejected is the same.
func TestEncodingsAlike(t *testing.T) {
	want, got := playEncoded(t, codec.MessagePack), playEncoded(t, codec.JSON)
	if len(want) < 500 || len(want) != len(got) {
		t.Fatalf("%d records and %d", len(want), len(got))
	}
	for i := range want {
		if !reflect.DeepEqual(want[i], got[i]) {
			t.Fatalf("record %d:\n%+v\n%+v", i, want[i], got[i])
		}
	}
}

// playEncoded returns the parsed data of decisions, feedback and rejects.
func playEncoded(t *testing.T, encoding codec.Encoding) (all []any) {
	ctx := t.Context()
	log := mem.New(mem.Options{Clock: clock()})
	ts := createTopics(t, log, "m", 1)
	jc := SystemConfig{Log: log, Source: &follow.Source{Name: "m", Version: 1, Model: []byte("x")}, Build: testBuild,
		Partitions: 1, Encoding: encoding, MaxPending: 1000, Dedup: 100, MarkEvery: 10,
		Logger: slog.New(slog.DiscardHandler)}
	dc := jc
	dc.Name, dc.Seed, dc.SnapshotEvery, dc.MaxInFlight = "m", []byte("seed"), 50, 100
	var j *Joiner
	var d *Decider
	open := func() {
		if j != nil {
			j.Close()
			d.Close()
		}
		var err error
		j, err = OpenJoiner(ctx, jc)
		must(t, j, err)
		d, err = OpenDecider(ctx, dc)
		must(t, d, err)
	}
	open()
	in, err := log.Writer(ctx, ts.Contexts, 0, nil)
	must(t, in, err)
	out, err := log.Writer(ctx, ts.Outcomes, 0, nil)
	must(t, out, err)
	for i := range 300 {
		in.Append(ctx, &stream.Record{Value: contextNumber(i)})
		if i%3 != 0 && i >= 5 {
			out.Append(ctx, &stream.Record{Value: fmt.Appendf(nil, `{"id":"c%d","loss":0.%d}`, i-5, i%10)})
		}
		if i%37 == 36 {
			open()
		}
		for busy := true; busy; {
			b1, err := d.StepFeedback(ctx, 0)
			must(t, b1, err)
			b2, err := d.StepContexts(ctx, 10)
			must(t, b2, err)
			b3, err := j.Step(ctx)
			must(t, b3, err)
			busy = b1 || b2 || b3
		}
		must(t, 0, d.WriteSnapshots(ctx))
	}
	must(t, 0, j.core.Stop(ctx))
	for _, topic := range []string{ts.Decisions, ts.Feedback, ts.Rejects, ts.Snapshots} {
		_, end, _ := log.Bounds(ctx, topic, 0)
		must(t, 0, stream.Scan(ctx, log, topic, 0, 0, end, func(r *stream.Record) error {
			checkEncoded(t, topic, r, encoding)
			if x := dataOf(t, r, topic); x != nil {
				all = append(all, x)
			}
			return nil
		}))
	}
	return all
}

// contextNumber returns contexts in both encodings, as CloudEvents, and some that are rejected.
func contextNumber(i int) []byte {
	text := fmt.Sprintf(`{"id":"c%d","features":{"x":%d.1,"größe \"y":true},"actions":["a","b","c"], "note":"é"}`,
		i, i%5)
	switch i % 6 {
	case 1:
		var c codec.Context
		if err := codec.ParseContext(&c, []byte(text)); err != nil {
			panic(err)
		}
		return codec.AppendContext(nil, &c)
	case 2:
		return []byte(" " + text + "\n")
	case 3:
		return fmt.Appendf(nil, `{"specversion":"1.0","id":"e","data":%s}`, text)
	case 4:
		if i%4 == 0 {
			return []byte("\x82nothing\xff")
		}
	}
	return []byte(text)
}

// checkEncoded holds that a record is in its encoding, with what tells so.
func checkEncoded(t *testing.T, topic string, r *stream.Record, encoding codec.Encoding) {
	t.Helper()
	if encoding == codec.MessagePack {
		if codec.IsJSON(r.Value) || len(r.Headers) > 0 && r.Type != stream.TypeOpen {
			t.Fatalf("%s: %q %v", topic, r.Value, r.Headers)
		}
		return
	}
	var x struct {
		Type     string
		Time     int64
		ClosedAt int64 `json:"closed_at"`
		Context  map[string]any
	}
	if err := json.Unmarshal(r.Value, &x); err != nil || x.Type != r.Type {
		t.Fatalf("%s: type %q, %v: %s", topic, r.Type, err, r.Value)
	}
	headers := map[string]string{}
	for _, h := range r.Headers {
		headers[h.Key] = h.Value
	}
	if r.Type == stream.TypeOpen {
		return
	}
	if got := headers[envelope.ContentType]; got != "application/json" {
		t.Fatalf("%s: content type %q", topic, got)
	}
	if x.ClosedAt > 0 {
		x.Time = x.ClosedAt
	}
	if x.Time > 0 && headers[envelope.EventTime] != time.Unix(0, x.Time).UTC().Format(time.RFC3339Nano) {
		t.Fatalf("%s: time %q: %s", topic, headers[envelope.EventTime], r.Value)
	}
	if r.Type == "" && !strings.HasSuffix(topic, "rejects") && !strings.HasSuffix(topic, "snapshots") &&
		x.Context == nil {
		t.Fatalf("%s: no context: %s", topic, r.Value)
	}
}

// dataOf parses a record of data, its context to what it means; nil of others.
func dataOf(t *testing.T, r *stream.Record, topic string) any {
	t.Helper()
	meant := func(raw []byte) []byte {
		var c codec.Context
		must(t, 0, codec.ParseContext(&c, raw))
		return codec.AppendContextJSON(nil, &c)
	}
	value := append([]byte(nil), r.Value...)
	switch {
	case r.Type != "":
	case strings.HasSuffix(topic, "decisions"):
		var d codec.Decision
		must(t, 0, codec.ParseDecision(&d, value))
		d.Context = meant(d.Context)
		return d
	case strings.HasSuffix(topic, "feedback"):
		var f codec.Feedback
		must(t, 0, codec.ParseFeedback(&f, value))
		f.Context = meant(f.Context)
		return f
	case strings.HasSuffix(topic, "rejects"):
		x, err := codec.ParseReject(value)
		return must(t, x, err)
	}
	return nil
}

// sharesAll is a share of everything, at once.
type sharesAll struct{}

func (sharesAll) Deciders(ctx context.Context, _ int, _ *slog.Logger, run func(context.Context, int) error) error {
	return run(ctx, 0)
}

func (sharesAll) Joiner(ctx context.Context, _ *slog.Logger, run func(context.Context) error) error {
	return run(ctx)
}

// TestOtherEncoding: a process that chose another encoding while the topics were empty takes nothing over.
func TestOtherEncoding(t *testing.T) {
	log := mem.New(mem.Options{Clock: clock()})
	ts := createTopics(t, log, "m", 1)
	c := SystemConfig{Log: log, Name: "m", Source: &follow.Source{Name: "m", Version: 1, Model: []byte("x")},
		Build: testBuild, Seed: []byte("seed"), Partitions: 1, Logger: slog.New(slog.DiscardHandler),
		Metrics: watch.NewMetrics(nil, nil), Sharing: sharesAll{}, Encoding: codec.JSON}
	if _, _, err := log.Open(t.Context(), ts.Decisions, 0, stream.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := RunSharedJoiner(t.Context(), c.Sharing, c, nil); !errors.Is(err, topics.ErrEncoding) {
		t.Errorf("the joiner: %v", err)
	}
	if err := c.runSharedDeciders(t.Context(), nil); !errors.Is(err, topics.ErrEncoding) {
		t.Errorf("the deciders: %v", err)
	}
	for _, topic := range []string{ts.Decisions, ts.Feedback} {
		if first, next, err := log.Bounds(t.Context(), topic, 0); err != nil || next > first+1 {
			t.Errorf("%s has records %d…%d, %v", topic, first, next, err)
		}
	}
}

// TestLaterEncoding: a decider that was opened while the topics were empty ends before it decides anything, if the
// joiner then began the model in another encoding.
func TestLaterEncoding(t *testing.T) {
	log := mem.New(mem.Options{Clock: clock()})
	ts := createTopics(t, log, "m", 1)
	c := SystemConfig{Log: log, Name: "m", Source: &follow.Source{Name: "m", Version: 1, Model: []byte("x")},
		Build: testBuild, Seed: []byte("seed"), Partitions: 1, Logger: slog.New(slog.DiscardHandler),
		Metrics: watch.NewMetrics(nil, nil), Sharing: sharesAll{}, Encoding: codec.JSON}
	d, err := OpenDecider(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, _, err := log.Open(t.Context(), ts.Feedback, 0, stream.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.StepFeedback(t.Context(), 0); !errors.Is(err, topics.ErrEncoding) || !fatal(err) {
		t.Errorf("%v", err)
	}
}
