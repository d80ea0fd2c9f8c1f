package service

import (
	"fmt"
	"log/slog"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

func testBuild(rec *codec.Epoch, _ map[string][]byte) (loop.Epoch, error) {
	reg, err := oracle.NewLinear(oracle.LinearOptions{Beta: .5, Lambda: 1, MaxFeatures: 16})
	if err != nil {
		return loop.Epoch{}, err
	}
	s, err := learner.NewSchedule("balanced", reg)
	if err != nil {
		return loop.Epoch{}, err
	}
	return loop.Epoch{Number: rec.Epoch, Learner: learner.NewDAFA(reg, s), Rules: &loop.Rules{
		MaxActions: 100, Range: loop.Range{Max: 1}, Window: loop.Window{Rounds: 20},
	}}, nil
}

func must[T any](t *testing.T, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func createTopics(t testing.TB, log stream.Log, name string, partitions int) join.Topics {
	ts := join.TopicsOf(name)
	for _, topic := range []string{ts.Contexts, ts.Decisions, ts.Outcomes} {
		if err := log.Create(t.Context(), topic, partitions, stream.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, topic := range []string{ts.Feedback, ts.Snapshots, ts.Rejects} {
		if err := log.Create(t.Context(), topic, 1, stream.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return ts
}

func TestLoopOnMemory(t *testing.T) {
	ctx := t.Context()
	log := mem.New(mem.Options{})
	ts := createTopics(t, log, "m", 1)
	logger := slog.New(slog.DiscardHandler)
	jc := SystemConfig{Log: log, Source: &follow.Source{Name: "m", Version: 1, Model: []byte("x")}, Build: testBuild,
		Partitions: 1, MaxPending: 1000, Dedup: 100, MarkEvery: 10, Logger: logger}
	dc := SystemConfig{Log: log, Name: "m", Build: testBuild, Seed: []byte("seed"), Partitions: 1, Dedup: 100,
		SnapshotEvery: 50, MaxInFlight: 100, Owner: "test", Logger: logger}
	j, err := OpenJoiner(ctx, jc)
	must(t, j, err)
	d, err := OpenDecider(ctx, dc)
	must(t, d, err)
	in, err := log.Writer(ctx, ts.Contexts, 0, nil)
	must(t, in, err)
	out, err := log.Writer(ctx, ts.Outcomes, 0, nil)
	must(t, out, err)
	for i := range 300 {
		in.Append(ctx,
			&stream.Record{Value: fmt.Appendf(nil, `{"id":"c%d","features":{"x":%d},"actions":["a","b","c"]}`, i, i%5)})
		if i%3 != 0 && i >= 5 {
			out.Append(ctx, &stream.Record{Value: fmt.Appendf(nil, `{"id":"c%d","loss":0.%d}`, i-5, i%10)})
		}
		if i%17 == 0 {
			d.Close()
			d, err = OpenDecider(ctx, dc)
			must(t, d, err)
		}
		if i%23 == 0 {
			j.Close()
			j, err = OpenJoiner(ctx, jc)
			must(t, j, err)
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
	t.Log(j.Heart().LastN(), d.heart.Next(), d.follower.Replica().LearnedThrough(), j.Heart().Pending())
	fates := map[string]int{}
	_, end, _ := log.Bounds(ctx, ts.Feedback, 0)
	var f codec.Feedback
	n := int64(0)
	must(t, 0, stream.Scan(ctx, log, ts.Feedback, 0, 0, end, func(r *stream.Record) error {
		fates[r.Type]++
		if r.Type == "" {
			if err := codec.ParseFeedback(&f, r.Value); err != nil {
				return err
			}
			if err := f.Validate(); err != nil {
				return err
			}
			n++
			if f.N != n || f.Round != n {
				t.Fatal(f.N, f.Round, n)
			}
			fates[f.Fate.String()]++
		}
		return nil
	}))
	t.Log(fates)
}
