package topics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestCheckTopics deletes each topic of a model.
func TestCheckTopics(t *testing.T) {
	ctx := t.Context()
	log := mem.New(mem.Options{})
	if err := Check(ctx, log, "m"); err != nil {
		t.Errorf("a new model: %v", err)
	}
	if err := Create(ctx, log, "m", 1, Retention{}); err != nil {
		t.Fatal(err)
	}
	if err := Check(ctx, log, "m"); err != nil {
		t.Errorf("a model with all of its topics: %v", err)
	}
	err := Check(ctx, without{log, "m.decisions"}, "m")
	const want = "m.decisions is gone, but m.snapshots is there"
	if !errors.Is(err, stream.ErrNotFound) || !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("decisions deleted: %v", err)
	}
	if err := Check(ctx, without{log, "m.snapshots"}, "m"); err != nil {
		t.Errorf("a model whose last topic is yet to be made: %v", err)
	}
}

// without is a log without a topic.
type without struct {
	stream.Log
	topic string
}

func (w without) Partitions(ctx context.Context, topic string) (int, error) {
	if topic == w.topic {
		return 0, stream.ErrNotFound
	}
	return w.Log.Partitions(ctx, topic)
}

// TestEncoding: the encoding is that of what was written last, by the joiner before deciders; of nothing
// it is the one that is asked for.
func TestEncoding(t *testing.T) {
	ctx := t.Context()
	json := codec.OpenValue(codec.JSON)
	mark := codec.AppendFeedbackMark(nil, &codec.FeedbackMark{Limits: codec.Limits{Heart: 1}})
	opened := func(topic string, value []byte) func(stream.Log) error {
		return func(log stream.Log) error {
			_, _, err := log.Open(ctx, topic, 0, stream.OpenOptions{Value: value})
			return err
		}
	}
	wrote := func(topic, kind string, value []byte) func(stream.Log) error {
		return func(log stream.Log) error {
			w, err := log.Writer(ctx, topic, 0, nil)
			if err == nil {
				_, err = w.Append(ctx, &stream.Record{Type: kind, Value: value})
			}
			return err
		}
	}
	for name, c := range map[string]struct {
		write []func(stream.Log) error
		known bool
		want  codec.Encoding
	}{
		"nothing":           {},
		"a decider":         {[]func(stream.Log) error{opened("m.decisions", json)}, true, codec.JSON},
		"a decider, packed": {[]func(stream.Log) error{opened("m.decisions", nil)}, true, codec.MessagePack},
		"a joiner": {[]func(stream.Log) error{opened("m.decisions", nil), opened("m.feedback", json)}, true,
			codec.JSON},
		"a mark": {[]func(stream.Log) error{wrote("m.feedback", codec.TypeMark,
			codec.AppendJSON(nil, codec.TypeMark, mark))},
			true, codec.JSON},
		"one that was too large": {[]func(stream.Log) error{opened("m.feedback", json), wrote("m.feedback",
			codec.TypeMark, mark)}, true, codec.JSON},
		"a stranger": {[]func(stream.Log) error{opened("m.feedback", nil), wrote("m.feedback", "", []byte(`{"n":1}`)),
			wrote("m.feedback", codec.TypeMark, []byte(`{}`))}, true, codec.MessagePack},
	} {
		log := mem.New(mem.Options{})
		if err := Create(ctx, log, "m", 2, Retention{}); err != nil {
			t.Fatal(err)
		}
		for _, write := range c.write {
			if err := write(log); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := Encoding(ctx, log, "m", ""); got != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		for _, asked := range []codec.Encoding{codec.MessagePack, codec.JSON} {
			got, err := Encoding(ctx, log, "m", asked.String())
			if refused := err != nil; refused != (c.known && asked != c.want) || !refused && got != asked {
				t.Errorf("%s, and %s is asked for: %v, %v", name, asked, got, err)
			}
		}
		ctx, cancel := context.WithCancel(ctx)
		waits := slog.New(ends(cancel))
		if _, err := Await(ctx, log, "m", waits); (err == nil) != c.known {
			t.Errorf("%s: waiting for a decider: %v", name, err)
		}
		cancel()
	}
}

// ends is a handler of a logger that ends a wait.
type ends context.CancelFunc

func (e ends) Enabled(context.Context, slog.Level) bool      { return true }
func (e ends) Handle(_ context.Context, _ slog.Record) error { e(); return nil }
func (e ends) WithAttrs([]slog.Attr) slog.Handler            { return e }
func (e ends) WithGroup(string) slog.Handler                 { return e }
