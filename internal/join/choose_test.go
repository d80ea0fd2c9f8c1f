package join

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"hindsight/internal/intake"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// askedLog counts the questions for ends, by topic.
type askedLog struct {
	*mem.Log
	asked map[string]int
}

func (l *askedLog) Bounds(ctx context.Context, topic string, partition int) (int64, int64, error) {
	l.asked[topic]++
	return l.Log.Bounds(ctx, topic, partition)
}

// TestEndsAskedFor holds that a cut asks the log for no end that it need not know: where decisions end if this
// process knows, and where outcomes do if the last record in hand is one.
func TestEndsAskedFor(t *testing.T) {
	for _, c := range []struct {
		known, outcomeLast bool
		want               map[string]int
	}{
		{false, false, map[string]int{"d": 1, "o": 1}},
		{false, true, map[string]int{"d": 1}},
		{true, false, map[string]int{"o": 1}},
		{true, true, map[string]int{}},
	} {
		ctx, time := t.Context(), int64(0)
		log := &askedLog{mem.New(mem.Options{Clock: func() int64 { time++; return time }}), map[string]int{}}
		cfg := Config{Ends: func(p int) (int64, bool) {
			_, end, err := log.Log.Bounds(ctx, "d", p)
			return end, c.known && err == nil
		}}
		topics, inputs := []string{"d", "o"}, []*intake.Input{}
		for _, topic := range topics {
			if err := log.Create(ctx, topic, 1, stream.TopicOptions{}); err != nil {
				t.Fatal(err)
			}
			in, err := intake.Open(ctx, log, topic, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			inputs = append(inputs, in)
		}
		if !c.outcomeLast {
			topics = []string{"o", "d"}
		}
		for _, topic := range topics {
			a, err := log.Writer(ctx, topic, 0, nil)
			if err == nil {
				_, err = a.Append(ctx, &stream.Record{Value: []byte("x")})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		x := newChooser(inputs, loop.NewJoiner(1, codec.Limits{Heart: loop.Heart, Pending: 9, Dedup: 9}, 1, nil), &cfg)
		if _, _, err := x.poll(ctx); err != nil {
			t.Fatal(err)
		}
		clear(log.asked)
		busy, err := x.choose(ctx)
		if err != nil || !busy || x.take[0] != 1 || x.take[1] != 1 || !reflect.DeepEqual(log.asked, c.want) {
			t.Errorf("%+v: asked %v, takes %v: %v", c, log.asked, x.take, err)
		}
	}
}

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
	c := newChooser(inputs, loop.NewJoiner(partitions, limits, 1, nil), &Config{})
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
