package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"hindsight/internal/topics"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// widened is a log to whose contexts and outcomes somebody adds partitions.
type widened struct {
	stream.Log
	n atomic.Int64 // of them, beyond the first
}

// beside returns the topic that has the added partitions.
func beside(topic string, p int) (string, int) {
	if p > 0 {
		return "added." + topic, p - 1
	}
	return topic, p
}

func (w *widened) Partitions(ctx context.Context, topic string) (int, error) {
	n, err := w.Log.Partitions(ctx, topic)
	if topic == "m.contexts" || topic == "m.outcomes" {
		n += int(w.n.Load())
	}
	return n, err
}

func (w *widened) Bounds(ctx context.Context, topic string, p int) (first, next int64, err error) {
	topic, p = beside(topic, p)
	return w.Log.Bounds(ctx, topic, p)
}

func (w *widened) Read(ctx context.Context, topic string, p int, from int64) (stream.Reader, error) {
	topic, p = beside(topic, p)
	return w.Log.Read(ctx, topic, p, from)
}

// TestSurplusPartitions adds partitions to contexts and outcomes while a joiner is at work: it is not
// ready until its process is started again, and what is put there comes back as one reject each, also
// over restarts.
func TestSurplusPartitions(t *testing.T) {
	var w *widened
	r := newRig(t, func(r *rig) {
		w = &widened{Log: r.log}
		for _, topic := range []string{"added.m.contexts", "added.m.outcomes"} {
			if err := w.Create(t.Context(), topic, 2, stream.TopicOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		r.jc.Log, r.jc.began = w, new([2]atomic.Int64)
	})
	put := func(topic string, p int, value string) {
		t.Helper()
		topic, p = beside(topic, p)
		a, err := r.log.Writer(t.Context(), topic, p, nil)
		if err == nil {
			_, err = a.Append(t.Context(), &stream.Record{Value: []byte(value)})
		}
		r.must(err)
	}
	said := func() string {
		t.Helper()
		why, err := r.j.countPartitions(t.Context())
		r.must(err)
		return fmt.Sprint(why)
	}
	rejects := func() (got []string) {
		t.Helper()
		_, end, err := r.log.Bounds(t.Context(), "m.rejects", 0)
		r.must(err)
		r.must(stream.Scan(t.Context(), r.log, "m.rejects", 0, stream.Earliest, end, func(rec *stream.Record) error {
			x, err := codec.ParseReject(rec.Value)
			if x.Reason != codec.ReasonMalformed || !strings.Contains(x.Detail, "the model has 0 to 0") {
				t.Errorf("%+v", x)
			}
			got = append(got, fmt.Sprintf("%s/%d %s", x.Topic, x.Partition, x.Bytes))
			return err
		}))
		return got
	}
	again := func() {
		t.Helper()
		r.j.Close()
		var err error
		r.j, err = OpenJoiner(t.Context(), r.jc)
		r.must(err)
		r.must(r.settle())
	}
	put("m.contexts", 0, `{"id":"a","actions":["x","y"]}`)
	r.must(r.settle())
	if s := said(); s != "<nil>" {
		t.Errorf("before anything was added: %s", s)
	}
	w.n.Store(2)
	put("m.contexts", 1, "c1")
	put("m.contexts", 2, "c2")
	put("m.outcomes", 1, "o1")
	put("m.outcomes", 1, "o2")
	for range 2 {
		if s := said(); !strings.Contains(s, "m.outcomes has 3 partitions by now, the model has 1") {
			t.Errorf("it says %s", s)
		}
		r.must(r.settle())
		want := "[contexts/1 c1 contexts/2 c2 outcomes/1 o1 outcomes/1 o2]"
		if got := fmt.Sprint(rejects()); got != want {
			t.Errorf("rejects %s, want %s", got, want)
		}
		again()
	}
	r.jc.began = new([2]atomic.Int64) // of another process
	again()
	if s := said(); s != "<nil>" {
		t.Errorf("a process that was started since: %s", s)
	}
	put("m.contexts", 2, "c3")
	r.must(r.settle())
	if got := rejects(); len(got) != 5 || got[4] != "contexts/2 c3" {
		t.Errorf("rejects %s", got)
	}
	if n, err := topics.Partitions(t.Context(), w, "m"); n != 1 || err != nil {
		t.Errorf("the model has %d partitions, %v", n, err)
	}
	if n, err := topics.Ensure(t.Context(), createless{w}, "m", 0, topics.Retention{}); n != 1 || err != nil {
		t.Errorf("a start finds %d partitions, %v", n, err)
	}
}

// A topic that somebody made with other partitions before a model began is refused: none were added.
func TestWiderTopicOfNewModel(t *testing.T) {
	w := &widened{Log: mem.New(mem.Options{})}
	if err := w.Create(t.Context(), "m.outcomes", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	w.n.Store(2)
	if _, err := topics.Ensure(t.Context(), creates{w}, "m", 1, topics.Retention{}); !errors.Is(err,
		stream.ErrPartitions) {
		t.Errorf("it says %v", err)
	}
}

// creates is a log that compares how many partitions a topic has, where it exists.
type creates struct{ *widened }

func (c creates) Create(ctx context.Context, topic string, partitions int, o stream.TopicOptions) error {
	if _, err := c.Log.Partitions(ctx, topic); err == nil {
		return createless(c).Create(ctx, topic, partitions, o)
	}
	return c.Log.Create(ctx, topic, partitions, o)
}

// createless is a log whose topics exist with as many partitions as they have.
type createless struct{ *widened }

func (c createless) Create(ctx context.Context, topic string, partitions int, _ stream.TopicOptions) error {
	if n, err := c.Partitions(ctx, topic); err != nil || n != partitions {
		return fmt.Errorf("%w: %w", stream.ErrPartitions, err)
	}
	return nil
}
