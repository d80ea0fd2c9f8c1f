package follow

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestSnapshotMemory holds that a snapshot is in memory once while it is written, beside a few
// of its records, whichever oracle is large.
func TestSnapshotMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("counts bytes, of which the race detector takes as many again")
	}
	for what, reg := range largeOracles(t) {
		t.Run(what, func(t *testing.T) {
			log := &snapshotLog{Log: mem.New(mem.Options{})}
			f := largeFollower(t, log, reg)
			var s *Snapshot
			encoded := allocated(func() { s = f.Snapshot() })
			written := allocated(func() { must(t, f.WriteSnapshot(t.Context(), s, "n")) })
			size := float64(len(s.Bytes))
			t.Logf("%.1f MB: encoding it allocates %.2f of that, writing it %.2f; %d kB on the way",
				size/1e6, encoded/size, written/size, log.most/1000)
			if encoded > 1.1*size {
				t.Errorf("encoding it allocates %.2f of its bytes", encoded/size)
			}
			if written > .2*size+(1<<20) {
				t.Errorf("writing it allocates %.2f of its bytes", written/size)
			}
			if log.all < len(s.Bytes) || log.most > chunksOnTheWay*(chunkBytes+chunkHead) {
				t.Errorf("%d bytes, of which %d were on the way at once", log.all, log.most)
			}
		})
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}

// largeOracles returns oracles with some MB of state.
func largeOracles(t *testing.T) map[string]oracle.Regressor {
	auto, err := oracle.NewAggregate(oracle.AggregateOptions{Version: oracle.Newest, Fourier: oracle.ByWhatComes})
	must(t, err)
	linear, err := oracle.NewLinear(oracle.LinearOptions{Version: oracle.Newest})
	must(t, err)
	shared, err := oracle.NewShared(oracle.SharedOptions{Version: oracle.Newest, Hashed: 1500})
	must(t, err)
	x := &oracle.Input{Actions: make([]oracle.Action, 1)}
	for i := range 250 {
		x.Features = append(x.Features, oracle.Feature{Name: fmt.Sprint("f", i), Value: float64(i)})
	}
	for i := range 30 {
		x.Actions[0].Name = fmt.Sprint("a", i)
		auto.Update(x, 0, .5)
		linear.Update(x, 0, .5)
	}
	return map[string]oracle.Regressor{"auto": auto, "linear": linear, "shared": shared}
}

// largeFollower returns a follower whose learner has that oracle.
func largeFollower(t *testing.T, log stream.Log, reg oracle.Regressor) *Follower {
	s, err := learner.NewSchedule("balanced", reg)
	must(t, err)
	build := func(rec *codec.Epoch, _ map[string][]byte) (loop.Epoch, error) {
		return loop.Epoch{Number: rec.Epoch, Learner: learner.NewDAFA(reg, s), Rules: &loop.Rules{}}, nil
	}
	f := New(log, "m", build, 1)
	ep, err := f.epochs.addEpoch(&codec.Epoch{Epoch: 1, Model: []byte("{}"), SHA256: hexSum([]byte("{}"))})
	must(t, err)
	must(t, f.begin(ep))
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// snapshotLog counts what is appended to it and keeps nothing.
type snapshotLog struct {
	stream.Log
	all, onTheWay, most int
}

func (l *snapshotLog) Writer(context.Context, string, int, stream.AckFunc) (stream.Appender, error) {
	return l, nil
}

func (l *snapshotLog) Append(_ context.Context, r *stream.Record) (uint64, error) {
	l.all += len(r.Value)
	l.onTheWay += len(r.Value)
	l.most = max(l.most, l.onTheWay)
	return 0, nil
}

func (l *snapshotLog) Flush(context.Context) error {
	l.onTheWay = 0
	return nil
}
