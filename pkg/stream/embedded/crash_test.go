package embedded_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/embedded"
)

// crashDir makes the test binary a process that appends until it is killed.
const crashDir = "HINDSIGHT_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		if err := appendForever(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if dir := os.Getenv(powerDir); dir != "" {
		if err := appendSynced(dir, os.Getenv(powerSync)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// appendForever appends records that hold their own offset and prints each offset
// that is acknowledged, 8 bytes big endian.
func appendForever(dir string) error {
	ctx := context.Background()
	e, err := embedded.Open(ctx, embedded.Options{Dir: dir, Port: -1})
	if err != nil {
		return err
	}
	if err := e.Log().Create(ctx, "a", 1, stream.TopicOptions{}); err != nil {
		return err
	}
	a, tail, err := e.Log().Open(ctx, "a", 0, stream.OpenOptions{Ack: func(_ uint64, offset int64, err error) {
		if err == nil {
			_, _ = os.Stdout.Write(binary.BigEndian.AppendUint64(nil, uint64(offset)))
		}
	}})
	if err != nil {
		return err
	}
	for i := tail.Next; ; i++ {
		if _, err := a.Append(ctx,
			&stream.Record{Value: fmt.Appendf(nil, "%d padded to a realistic length %0100d", i, 0)}); err != nil {
			return err
		}
	}
}

// kill -9 at any moment loses nothing that was acknowledged and leaves no gap.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	rounds := 6
	if os.Getenv("HINDSIGHT_LONG") != "" {
		rounds = 100
	}
	total := int64(0)
	for round := range rounds {
		acked := appendAndKill(t, dir, time.Duration(rand.IntN(150))*time.Millisecond)
		total = max(total, acked)
		if who, held, err := attach.Locked(dir); held || err != nil {
			t.Fatalf("the dead process %s holds the folder: %v", who, err)
		}
		next := checkSelfDescribing(t, dir)
		if next <= acked {
			t.Fatalf("round %d: offset %d was acknowledged, the log ends at %d", round, acked, next)
		}
		t.Logf("round %d: acknowledged to %d, log to %d", round, acked, next)
	}
	if total < 1000 {
		t.Errorf("only %d records were ever acknowledged: this showed little", total)
	}
}

// appendAndKill runs a process and kills it some time after its first
// acknowledgement. It returns the last one.
func appendAndKill(t *testing.T, dir string, after time.Duration) (last int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	var b [8]byte
	for killing := false; ; {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			break
		}
		last = int64(binary.BigEndian.Uint64(b[:]))
		if !killing {
			killing = true
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
	}
	if err := cmd.Wait(); err == nil || last == 0 {
		t.Fatalf("the process ended by itself: %v, last acknowledgement %d", err, last)
	}
	return last
}

// checkSelfDescribing reads the whole log, whose records say where they are, and
// returns the next offset.
func checkSelfDescribing(t *testing.T, dir string) int64 {
	t.Helper()
	e := open(t, embedded.Options{Dir: dir, DontListen: true})
	defer closeEngine(t, e)
	first, next := readSelfDescribing(t, e, "a", 0, func([]byte) {})
	if first != 1 {
		t.Fatalf("bounds [%d, %d)", first, next)
	}
	return next
}

// readSelfDescribing calls each for the records of a partition, which say where they are.
func readSelfDescribing(t *testing.T, e *embedded.Engine, topic string, p int, each func([]byte)) (first, next int64) {
	t.Helper()
	ctx := context.Background()
	first, next, err := e.Log().Bounds(ctx, topic, p)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Log().Read(ctx, topic, p, first)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var recs []stream.Record
	for r.Position() < next {
		if recs, err = r.Next(ctx, recs[:0]); err != nil {
			t.Fatal(err)
		}
		for _, rec := range recs {
			var says int64
			if rec.Type == "" {
				_, _ = fmt.Sscan(string(rec.Value), &says)
				each(rec.Value)
			}
			if rec.Type == "" && says != rec.Offset {
				t.Fatalf("record %d says that it is %d", rec.Offset, says)
			}
		}
	}
	return first, next
}
