package topics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

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
