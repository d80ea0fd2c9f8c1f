package join

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"hindsight/internal/intake"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// ceaseless is a log in which five decisions come in each partition whenever somebody asks for an end, some times.
type ceaseless struct {
	*mem.Log
	*testing.T
	decisions []stream.Appender
	times     int
}

func (l *ceaseless) Bounds(ctx context.Context, topic string, partition int) (int64, int64, error) {
	if l.times--; l.times >= 0 {
		for _, a := range l.decisions {
			for range 5 {
				l.append(a)
			}
		}
	}
	return l.Log.Bounds(ctx, topic, partition)
}

func (l *ceaseless) append(a stream.Appender) {
	l.Helper()
	_, err := a.Append(l.Context(), &stream.Record{Value: []byte("x")})
	l.must(err)
}

func (l *ceaseless) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// chooser returns a chooser of a log in which each partition has one record.
func (l *ceaseless) chooser(partitions int) *chooser {
	l.Helper()
	var inputs []*intake.Input
	for _, topic := range []string{"d", "o"} {
		l.must(l.Create(l.Context(), topic, partitions, stream.TopicOptions{}))
		for p := range partitions {
			a, err := l.Writer(l.Context(), topic, p, nil)
			l.must(err)
			l.append(a)
			in, err := intake.Open(l.Context(), l, topic, p, 0)
			l.must(err)
			l.Cleanup(in.Close)
			if inputs = append(inputs, in); topic == "d" {
				l.decisions = append(l.decisions, a)
			}
		}
	}
	limits := codec.Limits{Heart: loop.Heart, Pending: 1 << 20, Dedup: 1 << 20}
	return newChooser(inputs, loop.NewJoiner(partitions, limits, 1, nil), 0)
}

// choose polls and chooses.
func (l *ceaseless) choose(c *chooser) {
	l.Helper()
	_, _, err := c.poll(l.Context())
	l.must(err)
	_, err = c.choose(l.Context())
	l.must(err)
}

// TestDecisionsNeverCease holds that the cuts move log time though more decisions have come whenever the
// joiner looks than a reader gives at once: without that no round is due until those are read that fill
// the joiner's lead.
func TestDecisionsNeverCease(t *testing.T) {
	for _, partitions := range []int{1, 3} {
		t.Run(fmt.Sprint(partitions, " partitions"), func(t *testing.T) {
			log := &ceaseless{Log: mem.New(mem.Options{MaxBatch: 2, StrictBytes: true}), T: t}
			c := log.chooser(partitions)
			log.times = 1 << 30
			last := int64(0)
			for cut := range 10 {
				log.choose(c)
				if c.ahead || c.time <= last {
					t.Fatalf("cut %d: log time %d, was %d, decisions ahead: %t", cut, c.time, last, c.ahead)
				}
				last = c.time
				c.taken()
			}
		})
	}
}

// TestPatient holds that a patient chooser reads decisions until none come, and another one four times.
func TestPatient(t *testing.T) {
	for _, patient := range []bool{false, true} {
		log := &ceaseless{Log: mem.New(mem.Options{MaxBatch: 2, StrictBytes: true}), T: t}
		c := log.chooser(2)
		c.patient = patient
		log.must(c.inputs[0].FetchEnd(t.Context()))
		log.times = 20
		log.choose(c)
		if had := log.times <= 0 && len(c.inputs[0].Batch) == 101; had != patient {
			t.Errorf("patient %t: %d decisions in hand, %d times left", patient, len(c.inputs[0].Batch), log.times)
		}
	}
}

// TestWindowInRoundsEnds holds that decisions that come one by one end a window in rounds, though no outcome does: they
// are not left behind the first of them until a cut takes that.
func TestWindowInRoundsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &ceaseless{Log: mem.New(mem.Options{}), T: t}
		rules := &loop.Rules{Range: loop.Range{Max: 1}, Window: loop.Window{Rounds: 3}}
		c := log.chooser(1)
		c.heart = loop.NewJoiner(1, codec.Limits{Heart: loop.Heart, Pending: 9, Dedup: 9}, 1,
			func(int64) *loop.Rules { return rules })
		decided := loop.DecisionEvent{Time: 1, D: codec.Decision{N: 1, ID: "a"}}
		log.must(c.heart.Take(&codec.Cut{Cut: 1, Time: 1, Decisions: []codec.Range{{Next: 1}}},
			[]loop.Batch{{Decisions: []loop.DecisionEvent{decided}}}))
		for _, in := range c.inputs {
			in.Start(t.Context(), func() {})
			synctest.Wait()
			_, _, err := c.poll(t.Context())
			log.must(err)
			in.Batch = nil // what each partition begins with
		}
		for n := range 3 {
			if c.due() {
				t.Errorf("due after %d later decisions", n)
			}
			log.append(log.decisions[0])
			synctest.Wait()
			_, got, err := c.poll(t.Context())
			if log.must(err); got != n+1 || len(c.inputs[0].Batch) != got {
				t.Errorf("%d decisions in hand, counted %d, want %d", len(c.inputs[0].Batch), got, n+1)
			}
		}
		if !c.due() {
			t.Error("not due after three later decisions")
		}
	})
}
