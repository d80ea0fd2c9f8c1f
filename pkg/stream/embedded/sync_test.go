package embedded_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
)

// TestSyncSurvivesPowerCuts cuts the power below the store, at any system call of a process
// that appends: with sync always nothing that was acknowledged is lost, be it to an appender, to
// a client that publishes to the stream itself, or to one that derives records from those that
// it has read, and none of these is left without its source. With an interval some is lost,
// which shows that the power is cut.
func TestSyncSurvivesPowerCuts(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil || testing.Short() {
		t.Skip("needs strace")
	}
	rounds, each := 2, 6
	if os.Getenv("HINDSIGHT_LONG") != "" {
		rounds, each = 20, 10
	}
	if lost := cutPower(t, embedded.SyncAlways, rounds, each); lost > 0 {
		t.Errorf("%d acknowledged records are lost", lost)
	}
	if lost := cutPower(t, embedded.SyncInterval, 1, 3); lost == 0 {
		t.Error("nothing is lost without sync: this shows nothing")
	}
}

// cutPower runs processes, each on what a power cut left of the one before, and cuts the
// power of each some times. It returns how many acknowledged records were lost in all.
func cutPower(t *testing.T, sync string, rounds, each int) (lost int64) {
	t.Helper()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	dir, acked, n, atRisk := t.TempDir(), map[string]int64{}, 0, 0
	for range rounds {
		d := newDisk(t, dir, func(text string) {
			var log string
			var offset int64
			if _, err := fmt.Sscan(text, &log, &offset); err != nil {
				t.Fatalf("the process says %q", text)
			}
			acked[log] = offset
		})
		trace, lines := traceAppends(t, dir, sync)
		cuts := map[int]int{}
		for range each {
			cuts[random.IntN(lines)]++
		}
		var next map[string]int64
		d.replay(t, trace, func(line int) {
			for range cuts[line] {
				dir = d.image(t, n%waysToCut, n/waysToCut%2 == 1, random)
				next = maps.Clone(acked)
				atRisk += d.unsynced()
				lost += checkCut(t, dir, acked, sync == embedded.SyncAlways)
				n++
			}
		})
		acked = next
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("sync %s: %d cuts, %d bytes that were not synced, %d acknowledged records lost", sync, n, atRisk, lost)
	if atRisk == 0 {
		t.Error("all was synced at each cut: this shows nothing")
	}
	return lost
}

// checkCut returns how many records are lost of those that were acknowledged.
func checkCut(t *testing.T, dir string, acked map[string]int64, always bool) (lost int64) {
	t.Helper()
	e := open(t, embedded.Options{Dir: dir, DontListen: true})
	defer closeEngine(t, e)
	ends, source := map[string]int64{}, int64(0)
	for _, log := range []string{"a.0", "a.1", "b.0"} {
		topic, p := log[:1], int(log[2]-'0')
		if _, _, err := e.Log().Bounds(t.Context(), topic, p); errors.Is(err, stream.ErrNotFound) {
			lost += acked[log]
			continue
		}
		_, ends[log] = readSelfDescribing(t, e, topic, p, func(value []byte) {
			_, _ = fmt.Sscan(string(value), new(int64), &source)
		})
		lost += max(0, acked[log]+1-ends[log])
	}
	if always && source > 0 && source >= ends["a.0"] { // the last log that was read is the derived one
		t.Errorf("a record was derived from %d, and its log ends at %d", source, ends["a.0"])
	}
	return lost
}

// powerDir and powerSync make the test binary a process that appends for a while, and dies.
const (
	powerDir  = "HINDSIGHT_TEST_POWER_DIR"
	powerSync = "HINDSIGHT_TEST_POWER_SYNC"
)

// traceAppends runs that process and returns its system calls, in a file of so many lines.
func traceAppends(t *testing.T, dir, sync string) (trace string, lines int) {
	t.Helper()
	trace = filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "-qq", "-y", "-xx", "-s", "1000000", "--seccomp-bpf", "-e",
		"trace=openat,write,pwrite64,ftruncate,fsync,fdatasync,renameat,unlinkat,mkdirat", "-e", "signal=none",
		"-o", trace, os.Args[0])
	cmd.Env = append(os.Environ(), powerDir+"="+dir, powerSync+"="+sync)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out[max(0, len(out)-1000):])
	}
	data, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	return trace, bytes.Count(data, []byte("\n"))
}

// appendSynced appends to three logs records that begin with their offset, and says which are
// acknowledged: by an appender, by a client elsewhere, and derived from the first.
func appendSynced(dir, sync string) error {
	const each = 200
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e, err := embedded.Open(ctx, embedded.Options{Dir: dir, Port: -1, Sync: sync})
	if err != nil {
		return err
	}
	l := e.Log()
	if err := errors.Join(l.Create(ctx, "a", 2, small), l.Create(ctx, "b", 1, small)); err != nil {
		return err
	}
	say := func(log string, offset int64, err error) {
		if err == nil {
			fmt.Println(log, offset)
		}
	}
	first, tail, err := l.Open(ctx, "a", 0, stream.OpenOptions{Ack: func(_ uint64, offset int64, err error) {
		say("a.0", offset, err)
	}})
	if err != nil {
		return err
	}
	_, next, err := l.Bounds(ctx, "b", 0)
	if err != nil {
		return err
	}
	derived, err := l.Writer(ctx, "b", 0, func(_ uint64, offset int64, err error) { say("b.0", offset, err) })
	if err != nil {
		return err
	}
	var all errgroup.Group
	all.Go(func() error {
		for i := range int64(each) {
			value := fmt.Appendf(nil, "%d padded %0100d", tail.Next+i, 0)
			if _, err := first.Append(ctx, &stream.Record{Value: value}); err != nil {
				return err
			}
		}
		return first.Flush(ctx)
	})
	all.Go(func() error { return publishSynced(ctx, e, each, say) })
	all.Go(func() error {
		r, err := l.Read(ctx, "a", 0, tail.Next)
		if err != nil {
			return err
		}
		for recs := []stream.Record(nil); r.Position() < tail.Next+each; {
			if recs, err = r.Next(ctx, recs[:0]); err != nil {
				return err
			}
			for _, source := range recs {
				value := fmt.Appendf(nil, "%d %d padded %0100d", next, source.Offset, 0)
				if _, err := derived.Append(ctx, &stream.Record{Value: value}); err != nil {
					return err
				}
				next++
			}
		}
		return derived.Flush(ctx)
	})
	return all.Wait()
}

// publishSynced publishes to a stream as any client of the server does, one record at a time.
func publishSynced(ctx context.Context, e *embedded.Engine, n int, say func(string, int64, error)) error {
	c, err := natsgo.Connect(e.URL(), natsgo.UserInfo(e.Access().User, e.Access().Password),
		natsgo.CustomInboxPrefix(e.Access().Inbox))
	if err != nil {
		return err
	}
	_, next, err := e.Log().Bounds(ctx, "a", 1)
	for i := next; i < next+int64(n) && err == nil; i++ {
		var m *natsgo.Msg
		if m, err = c.RequestWithContext(ctx, "a.1", fmt.Appendf(nil, "%d padded %0100d", i, 0)); err == nil {
			var ack struct{ Seq int64 }
			err = json.Unmarshal(m.Data, &ack)
			say("a.1", ack.Seq, err)
		}
	}
	return err
}
