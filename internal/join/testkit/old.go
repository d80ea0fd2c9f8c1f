package testkit

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// oldJoiner is a joiner that logs no cuts, with the shell it had.
type oldJoiner struct {
	w        *World
	heart    *loop.Joiner
	feedback stream.Appender
	rejects  stream.Appender
	next     []int64 // by input
	lifted   []int64
}

// RunOld plays a world with a joiner that logs no cuts. It stops, or crashes anywhere.
func (w *World) RunOld(steps int, stops bool) {
	ctx := context.Background()
	j := &oldJoiner{w: w, next: make([]int64, 2*w.Partitions), lifted: make([]int64, 2*w.Partitions)}
	j.heart = loop.NewJoiner(loop.JoinerOptions{Partitions: w.Partitions, MaxPending: int(w.limits.Pending),
		Dedup: int(w.limits.Dedup)}, w.Rules)
	var err error
	j.feedback, _, err = w.Log.Open(ctx, "f", 0, stream.OpenOptions{})
	w.must(err)
	j.rejects, err = w.Log.Writer(ctx, "r", 0, nil)
	w.must(err)
	for range steps {
		w.quiet = false
		w.live()
		w.quiet = true
		if w.rng.IntN(40) == 0 {
			w.real += w.rng.Int64N(4000)
		}
		j.step(false)
		if !j.release(false) {
			panic("it did not crash")
		}
	}
	j.step(stops)
	if j.release(!stops) && stops {
		j.mark(j.heart.Mark())
		j.heart.Orphans(math.MaxUint64)
		j.heart.Advance(loop.End)
		for _, f := range j.heart.AppendReady(nil) {
			w.Rest = append(w.Rest, codec.AppendFeedback(nil, &f))
		}
	}
	w.must(j.feedback.Close())
	w.must(j.rejects.Close())
}

// Save records a world in a file.
func (w *World) Save(path string) {
	x := recording{Kind: w.Kind, Partitions: w.Partitions, Skews: w.skews, First: w.first, Stride: w.stride,
		Real: w.real, Back: w.back, Rules: w.rules, Limits: w.limits, N: w.N, Open: w.open, All: w.all, Rest: w.Rest}
	for topic, n := range map[string]int{"d": w.Partitions, "o": w.Partitions, "f": 1, "r": 1} {
		for p := range n {
			for _, r := range w.Read(topic, p) {
				x.Records = append(x.Records, recordedRecord{topic, p, r.Time, r.Type, r.Key, r.Value})
			}
		}
	}
	slices.SortStableFunc(x.Records, func(a, b recordedRecord) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	f, err := os.Create(path)
	w.must(err)
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	w.must(err)
	w.must(errors.Join(json.NewEncoder(z).Encode(&x), z.Close(), f.Close()))
}

// Lose has logs lose their tails.
func (w *World) Lose() { w.lose() }

// step takes some of the records that are there, or all, in the order of log time.
func (j *oldJoiner) step(all bool) {
	type head struct {
		time  int64
		input int
		r     stream.Record
	}
	var heads []head
	for i := range slices.Backward(j.next) { // outcomes first
		topic := Topics.Decisions
		if i >= j.w.Partitions {
			topic = Topics.Outcomes
		}
		time := j.lifted[i]
		for _, r := range j.w.Read(topic, i%j.w.Partitions) {
			if r.Offset >= j.next[i] {
				time = max(time, r.Time)
				heads = append(heads, head{time, i, r})
			}
		}
	}
	slices.SortStableFunc(heads, func(a, b head) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.input, b.input), cmp.Compare(a.r.Offset, b.r.Offset))
	})
	k := j.w.rng.IntN(len(heads) + 1)
	if all {
		k = len(heads)
	}
	for _, h := range heads[:k] {
		j.next[h.input], j.lifted[h.input] = h.r.Offset+1, h.time
		at := loop.Place{Partition: h.input % j.w.Partitions, Offset: h.r.Offset}
		if h.input >= j.w.Partitions {
			j.heart.AddOutcome(at, h.r.Time, h.r.Value, "")
		} else {
			j.w.must(j.heart.AddDecision(at, h.r.Time, h.r.Value))
		}
	}
	if k == len(heads) && j.w.rng.IntN(2) == 0 {
		_, seq := j.heart.Parked()
		j.heart.Orphans(seq)
	}
}

// release stores what follows: a mark before rejects, and those before feedback. It reports whether it
// did not crash on the way.
func (j *oldJoiner) release(crashes bool) bool {
	done := func() bool { return crashes && j.w.rng.IntN(3) == 0 }
	if done() {
		return false
	}
	if j.heart.NeedsMark() {
		j.mark(j.heart.MarkRejects())
		if done() {
			return false
		}
	}
	for _, r := range j.heart.AppendRejects(nil) {
		j.append(j.rejects, &stream.Record{Key: []byte(r.ID), Value: codec.AppendReject(nil, &r)})
	}
	most := math.MaxInt
	if done() {
		most = j.w.rng.IntN(3)
	}
	for i, f := range j.heart.AppendReady(nil) {
		if i == most {
			return false
		}
		j.append(j.feedback, &stream.Record{Key: []byte(f.ID), Value: codec.AppendFeedback(nil, &f)})
	}
	if j.w.rng.IntN(6) == 0 {
		j.mark(j.heart.Mark())
	}
	return true
}

func (j *oldJoiner) mark(m codec.FeedbackMark) {
	m.Epochs = epochs{j.w}.Refs()
	j.append(j.feedback, &stream.Record{Type: codec.TypeMark, Value: codec.AppendFeedbackMark(nil, &m)})
}

func (j *oldJoiner) append(a stream.Appender, r *stream.Record) {
	_, err := a.Append(context.Background(), r)
	j.w.must(err)
	j.w.must(a.Flush(context.Background()))
}
