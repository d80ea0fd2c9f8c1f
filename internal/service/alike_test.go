package service

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/topics"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestLearnersAlike runs as many deciders as there are partitions, step by step in
// random order, restarting some: all have the same learner to the bit, which is
// that of one process that is fed the same feedback log.
func TestLearnersAlike(t *testing.T) {
	for _, partitions := range []int{1, 2, 4} {
		t.Run(fmt.Sprint("partitions=", partitions), func(t *testing.T) {
			learnersAlike(t, partitions, 400, uint64(partitions))
		})
	}
}

func learnersAlike(t *testing.T, partitions, rounds int, seed uint64) {
	ctx := t.Context()
	r := rand.New(rand.NewPCG(seed, 1))
	log := mem.New(mem.Options{Clock: clock()})
	defer log.Close()
	names := join.TopicsOf("m")
	if err := topics.Create(ctx, log, "m", partitions, topics.Retention{}); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	j, err := OpenJoiner(ctx, SystemConfig{Log: log, Source: &follow.Source{Name: "m", Version: 1, Model: []byte("x")},
		Build: testBuild, Partitions: partitions, MaxPending: 1000, Dedup: 1000, MarkEvery: 20, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	deciders := make([]*Decider, partitions)
	open := func(p int) {
		if deciders[p] != nil {
			deciders[p].Close()
		}
		var err error
		deciders[p], err = OpenDecider(ctx, SystemConfig{Log: log, Name: "m", Build: testBuild, Seed: []byte("seed"),
			Partition: p, Partitions: partitions,
			Dedup: 1000, SnapshotEvery: int64(50 * (p + 1)), MaxInFlight: 100, Owner: fmt.Sprint("d", p),
			Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
	}
	var contexts, outcomes []stream.Appender
	for p := range partitions {
		open(p)
		defer func() { deciders[p].Close() }()
		for topic, dst := range map[string]*[]stream.Appender{names.Contexts: &contexts, names.Outcomes: &outcomes} {
			w, err := log.Writer(ctx, topic, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			*dst = append(*dst, w)
		}
	}
	put := func(w stream.Appender, text string) {
		if _, err := w.Append(ctx, &stream.Record{Value: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	step := func() (busy bool) {
		k := r.IntN(partitions + 1)
		if k == partitions {
			busy, err = j.Step(ctx)
		} else if busy, err = deciders[k].StepFeedback(ctx, 0); err == nil && !busy {
			busy, err = deciders[k].StepContexts(ctx, 1+r.IntN(3))
		}
		if err != nil {
			t.Fatal(err)
		}
		return busy
	}
	for i := range rounds {
		put(contexts[r.IntN(partitions)], fmt.Sprintf(`{"id":"c%d","features":{"x":%d,"y":%d},"actions":["a","b","c"]}`,
			i, r.IntN(5), r.IntN(3)))
		for range r.IntN(6) {
			step()
		}
		if old := i - r.IntN(30); old >= 0 && r.IntN(4) > 0 {
			put(outcomes[r.IntN(partitions)], fmt.Sprintf(`{"id":"c%d","loss":0.%d}`, old, r.IntN(10)))
		}
		if r.IntN(40) == 0 {
			p := r.IntN(partitions)
			if err := deciders[p].WriteSnapshots(ctx); err != nil {
				t.Fatal(err)
			}
			open(p)
		}
	}
	for idle := 0; idle < 20*(partitions+1); idle++ {
		if step() {
			idle = 0
		}
	}
	audit := follow.New(log, "m", testBuild, partitions)
	n := feed(ctx, t, log, names, audit)
	want, err := audit.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	if audit.Replica().LearnedThrough() < int64(rounds/2) {
		t.Fatalf("only %d feedbacks", audit.Replica().LearnedThrough())
	}
	for p, d := range deciders {
		if d.follower.Replica().LearnedThrough() != audit.Replica().LearnedThrough() ||
			!bytes.Equal(d.follower.Snapshot().Bytes, want) {
			t.Errorf("the learner of decider %d differs from that of one process", p)
		}
	}
	for p, last := range n { // first come, first learned, in each partition
		if last == 0 {
			t.Errorf("partition %d has no feedback", p)
		}
	}
}

// feed feeds a feedback log to one process, and checks the order in each partition.
func feed(ctx context.Context, t *testing.T, log stream.Log, names join.Topics, audit *follow.Follower) []int64 {
	t.Helper()
	_, end, err := log.Bounds(ctx, names.Feedback, 0)
	if err != nil {
		t.Fatal(err)
	}
	var f codec.Feedback
	last := make([]int64, len(audit.Rounds()))
	err = stream.Scan(ctx, log, names.Feedback, 0, 0, end, func(r *stream.Record) error {
		if r.Type == "" {
			if err := codec.ParseFeedback(&f, r.Value); err != nil {
				return err
			}
			if f.Round != last[f.Partition]+1 {
				t.Errorf("partition %d: round %d is released after %d", f.Partition, f.Round, last[f.Partition])
			}
			last[f.Partition] = f.Round
		}
		return audit.Take(ctx, r)
	})
	if err != nil {
		t.Fatal(err)
	}
	return last
}
