package testkit

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// recording is a world with what its logs hold, so that it can go on.
type recording struct {
	Kind          string
	Partitions    int
	Skews         []int64
	First, Stride int64
	Real, Back    int64
	Rules         loop.Rules
	Limits        codec.Limits
	N             []int64
	Open, All     []string
	Records       []recordedRecord // by partition
	Rest          [][]byte
}

type recordedRecord struct {
	Topic     string
	Partition int
	Time      int64
	Type      string
	Key       []byte
	Value     []byte
}

// Lose has logs lose their tails.
func (w *World) Lose() { w.lose() }

// Settle has the joiner take all that the logs hold.
func (w *World) Settle() {
	for w.busy() {
		w.step(w.Core)
	}
}

// Load returns a recorded world, of a joiner that logged no cuts. How it goes on is told by the seed.
func Load(t testing.TB, path string, seed uint64) *World {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var x recording
	z, err := gzip.NewReader(f)
	if err == nil {
		err = errors.Join(json.NewDecoder(z).Decode(&x), f.Close())
	}
	if err != nil {
		t.Fatal(path, err)
	}
	w := &World{t: t, rng: rand.New(rand.NewPCG(seed, 11)), Kind: x.Kind, Partitions: x.Partitions, skews: x.Skews,
		first: x.First, stride: x.Stride, real: x.Real, back: x.Back, rules: x.Rules, limits: x.Limits,
		open: x.Open, all: x.All, Rest: x.Rest}
	w.actions, w.law, w.context = []string{"a", "b"}, []float64{.25, .75}, []byte("{}")
	w.create()
	w.N = x.N
	for i := range x.Records {
		r := &x.Records[i]
		a, err := w.Log.Writer(context.Background(), r.Topic, r.Partition, nil)
		w.must(err)
		w.recorded = r.Time
		_, err = a.Append(context.Background(), &stream.Record{Type: r.Type, Key: r.Key, Value: r.Value})
		w.must(errors.Join(err, a.Flush(context.Background()), a.Close()))
	}
	w.recorded = 0
	return w
}
