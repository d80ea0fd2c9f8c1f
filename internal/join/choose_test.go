package join

import (
	"context"
	"fmt"
	"testing"

	"hindsight/internal/intake"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// ceaseless is a log in which decisions come whenever somebody asks for an end.
type ceaseless struct {
	*mem.Log
	come func()
}

func (l *ceaseless) Bounds(ctx context.Context, topic string, partition int) (int64, int64, error) {
	if l.come != nil {
		l.come()
	}
	return l.Log.Bounds(ctx, topic, partition)
}

// TestDecisionsNeverCease holds that the cuts move log time though more decisions have come whenever the
// joiner looks than a reader gives at once: without that no round is due until those are read that fill
// the joiner's lead.
func TestDecisionsNeverCease(t *testing.T) {
	for _, partitions := range []int{1, 3} {
		t.Run(fmt.Sprint(partitions, " partitions"), func(t *testing.T) { testCeaseless(t, partitions) })
	}
}

func testCeaseless(t *testing.T, partitions int) {
	ctx, must := t.Context(), func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	log := ceaseless{Log: mem.New(mem.Options{MaxBatch: 2, StrictBytes: true})}
	var appenders []stream.Appender
	topics := []string{"d", "o"}
	for _, topic := range topics {
		must(log.Create(ctx, topic, partitions, stream.TopicOptions{}))
	}
	var inputs []*intake.Input
	for _, topic := range topics {
		for p := range partitions {
			a, err := log.Writer(ctx, topic, p, nil)
			must(err)
			appenders = append(appenders, a)
			_, err = a.Append(ctx, &stream.Record{Value: []byte("x")})
			must(err)
			in, err := intake.Open(ctx, &log, topic, p, 0)
			must(err)
			defer in.Close()
			inputs = append(inputs, in)
		}
	}
	log.come = func() {
		for p := range partitions {
			for range 5 {
				_, err := appenders[p].Append(ctx, &stream.Record{Value: []byte("x")})
				must(err)
			}
		}
	}
	limits := codec.Limits{Heart: loop.Heart, Pending: 1 << 20, Dedup: 1 << 20}
	c := newChooser(inputs, loop.NewJoiner(partitions, limits, 1, nil), 0)
	last := int64(0)
	for cut := range 10 {
		_, _, err := c.poll(ctx)
		must(err)
		_, err = c.choose(ctx)
		must(err)
		if c.alone || c.time <= last {
			t.Fatalf("cut %d: log time %d, was %d, decisions alone: %t", cut, c.time, last, c.alone)
		}
		last = c.time
		c.taken()
	}
}
