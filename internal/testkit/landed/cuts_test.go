package landed

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// readEpochs are the epochs of a feedback log that was read.
type readEpochs struct {
	log     stream.Log
	classes map[string][]byte
	rules   map[int64]*loop.Rules
	refs    []codec.EpochRef
	first   int64 // offset of the classes that were read; 0: none
}

func (e *readEpochs) Rules(epoch int64) *loop.Rules { return e.rules[epoch] }

func (e *readEpochs) Refs() []codec.EpochRef { return e.refs }

func (e *readEpochs) Find(ctx context.Context, refs []codec.EpochRef) error {
	for _, ref := range refs {
		err := stream.Scan(ctx, e.log, join.TopicsOf("m").Feedback, 0, ref.Offset, 1<<60, func(r *stream.Record) error {
			if r.Type == codec.TypeClass || r.Type == codec.TypeEpoch {
				if err := e.Read(r); err != nil {
					return err
				}
			}
			if r.Type == codec.TypeEpoch {
				return stream.ErrStop
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *readEpochs) Read(r *stream.Record) error {
	if r.Type == codec.TypeClass {
		c, err := codec.ParseClass(r.Value)
		if c.Part == 0 {
			e.classes[c.File] = nil
		}
		if e.first == 0 {
			e.first = r.Offset
		}
		e.classes[c.File] = append(e.classes[c.File], c.Bytes...)
		return err
	}
	x, err := codec.ParseEpoch(r.Value)
	at := cmp.Or(e.first, r.Offset)
	e.first = 0
	if err != nil || e.rules[x.Epoch] != nil {
		return err
	}
	epoch, err := model.Epoch(&x, e.classes)
	e.rules[x.Epoch], e.refs = epoch.Rules, append(e.refs, codec.EpochRef{Epoch: x.Epoch, Offset: at})
	return err
}

// TestCutsBehindGoldenLogs holds that a joiner that logs its cuts goes on from the logs of earlier
// builds: each decision gets one feedback, in the order of N, and a restart finds that the log follows
// from its cuts.
func TestCutsBehindGoldenLogs(t *testing.T) {
	logs, err := filepath.Glob("testdata/logs/*/*.tar.gz")
	if err != nil || len(logs) == 0 {
		t.Fatalf("golden logs %v: %v", logs, err)
	}
	for _, path := range logs {
		name := filepath.Base(filepath.Dir(path)) + "/" + strings.TrimSuffix(filepath.Base(path), ".tar.gz")
		if os.Getenv("HINDSIGHT_LONG") == "" && !quick[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			unpackLog(t, path, dir)
			joinOn(t, dir)
		})
	}
}

func joinOn(t *testing.T, dir string) {
	e, _ := open(t, dir)
	defer e.Close()
	ts := join.TopicsOf("m")
	cfg := join.Config{Log: e.Log, Partitions: 1, MarkEvery: 1000, Owner: "test", Logger: slog.New(slog.DiscardHandler),
		Topics: join.Topics{Decisions: ts.Decisions, Outcomes: ts.Outcomes, Feedback: ts.Feedback, Rejects: ts.Rejects},
		Limits: codec.Limits{Heart: loop.Heart, Pending: 100_000, Dedup: 100_000}, Wake: func() {}}
	goOn := func(outcome string) {
		cfg.Epochs = &readEpochs{log: e.Log, classes: map[string][]byte{}, rules: map[int64]*loop.Rules{}}
		c, err := join.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		settle := func() {
			for busy := true; busy; {
				if busy, _, err = c.Step(t.Context(), time.Time{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		settle()
		if _, d := c.Heart().Head(); outcome == "" && d != nil {
			outcome = d.ID
		}
		o := codec.Outcome{ID: outcome, Kind: codec.Withdrawn}
		appendTo(t, e.Log, ts.Outcomes, codec.AppendOutcome(nil, &o))
		settle()
		if err := c.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	was := fedRounds(t, e.Log, ts.Feedback)
	goOn("")
	goOn("nobody")
	is := fedRounds(t, e.Log, ts.Feedback)
	if !bytes.HasPrefix(is, was) {
		t.Errorf("rounds with feedback were %x, and are %x", was, is)
	}
	if decided := decidedRounds(t, e.Log, ts.Decisions); int64(len(is)) > decided || len(is) == len(was) &&
		len(is) < int(decided) {
		t.Errorf("of %d decisions %d had their feedback, and have %d", decided, len(was), len(is))
	}
}

func appendTo(t *testing.T, log stream.Log, topic string, value []byte) {
	t.Helper()
	w, err := log.Writer(t.Context(), topic, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Append(t.Context(), &stream.Record{Value: value}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// fedRounds returns a byte for each feedback, and fails unless N counts them and no round has two.
func fedRounds(t *testing.T, log stream.Log, topic string) (out []byte) {
	t.Helper()
	seen := map[int64]bool{}
	err := stream.Scan(t.Context(), log, topic, 0, stream.Earliest, 1<<60, func(r *stream.Record) error {
		var f codec.Feedback
		if r.Type != "" {
			return nil
		}
		if err := codec.ParseFeedback(&f, r.Value); err != nil {
			return err
		}
		out = append(out, byte(f.Round))
		if f.N != int64(len(out)) || seen[f.Round] {
			t.Errorf("feedback %d is of round %d, where %d was due", f.N, f.Round, len(out))
		}
		seen[f.Round] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func decidedRounds(t *testing.T, log stream.Log, topic string) (n int64) {
	t.Helper()
	err := stream.Scan(t.Context(), log, topic, 0, stream.Earliest, 1<<60, func(r *stream.Record) error {
		if r.Type == "" {
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
