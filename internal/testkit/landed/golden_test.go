package landed

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/daemon"
	"hindsight/internal/engine"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/service"
	"hindsight/internal/verify"
	"hindsight/pkg/stream/embedded"
)

// TestLandings holds that every landing has golden logs.
func TestLandings(t *testing.T) {
	if len(All()) == 0 {
		t.Error("no landings")
	}
	for _, l := range All() {
		logs, err := filepath.Glob(filepath.Join("testdata", "logs", l.Short(), "*.tar.gz"))
		if err != nil || len(l.Revision) != 40 || len(logs) < 5 {
			t.Errorf("%+v has golden logs %v: %v; make them: go test ./internal/testkit/landed -run TestMake "+
				"-make %s", l, logs, err, l.Short())
		}
	}
}

// quick are the logs of a quick run: each layout of a snapshot once, and one of before cuts (b2b353d/default) with
// which a later build had gone on.
var quick = map[string]bool{"3f83b9d/default": true, "3f83b9d/hedge": true, "3f83b9d/arrival": true,
	"5d9422b/auto": true, "5d9422b/exp4dale": true, "5d9422b/elimination": true, "5d9422b/shared": true,
	"73b16a4/linear": true, "d6d7898/hedge": true, "0a5740a/upgraded": true}

// TestGoldenLogs holds that the logs of all earlier builds verify, and that this build
// goes on from them: from the state of their last snapshot, with the same learner. With
// HINDSIGHT_LONG=1 of every model.
func TestGoldenLogs(t *testing.T) {
	logs, err := filepath.Glob("testdata/logs/*/*.tar.gz")
	if err != nil || len(logs) == 0 {
		t.Fatalf("golden logs %v: %v", logs, err)
	}
	ran := 0
	for _, path := range logs {
		name := filepath.Base(filepath.Dir(path)) + "/" + strings.TrimSuffix(filepath.Base(path), ".tar.gz")
		if os.Getenv("HINDSIGHT_LONG") == "" && !quick[name] {
			continue
		}
		ran++
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			unpackLog(t, path, dir)
			if strings.HasSuffix(name, "/default") {
				refusesDefault(t, dir)
			}
			was := verified(t, dir)
			goOn(t, dir, was.Feedback.Records)
			is := verified(t, dir)
			if is.Decisions.Records != was.Decisions.Records+rounds {
				t.Errorf("%d decisions, and %d after %d more rounds", was.Decisions.Records, is.Decisions.Records,
					rounds)
			}
		})
	}
	if ran < len(quick) {
		t.Errorf("only %d of %d logs are here", ran, len(quick))
	}
}

// refusesDefault holds that a model file without an oracle, which means another model
// than it did in the first landing, is refused by the line that differs; and writes what
// it meant.
func refusesDefault(t *testing.T, dir string) {
	t.Helper()
	err := run(t, dir, nil)
	if err == nil {
		return // a build in which it means what it meant
	}
	if !strings.Contains(err.Error(), "oracle") || !strings.Contains(err.Error(), "version") {
		t.Errorf("a changed default is refused with: %v", err)
	}
	path := filepath.Join(dir, "model.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, "oracle: {kind: linear}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) (*engine.Engine, []byte) {
	t.Helper()
	seed, err := daemon.SeedFile(filepath.Join(dir, engine.SeedName))
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Options{Log: "embedded:" + dir, Listen: "127.0.0.1:0",
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return e, seed
}

// verified computes the logs of a folder again: all but the fates of before cuts were logged.
func verified(t *testing.T, dir string) *verify.Report {
	t.Helper()
	e, seed := open(t, dir)
	defer e.Close()
	v, err := verify.Run(t.Context(), verify.Config{Log: e.Log, Name: "m", Seed: seed, Build: model.Epoch})
	if err != nil {
		t.Fatal(err)
	}
	if v.ExitCode() != verify.TooOld || v.Differences > 0 || v.Feedback.Checked+
		v.Feedback.TooOld != v.Feedback.Records || v.Decisions.Checked != v.Decisions.Records ||
		v.Snapshots.Checked == 0 {
		t.Errorf("exit code %d, %+v: decisions %+v, snapshots %+v", v.ExitCode(), v.First, v.Decisions, v.Snapshots)
	}
	return v
}

// goOn plays more rounds. The first decision has learned from all feedback that there
// was.
func goOn(t *testing.T, dir string, feedback int64) {
	t.Helper()
	var first decision
	if err := run(t, dir, func(url string) { first = play(t, url, rand.New(rand.NewPCG(9, 9)), 9) }); err != nil {
		t.Fatal(err)
	}
	if first.LearnedThrough < feedback { // a restart may close a round that was due
		t.Errorf("after a restart the first decision has learned %d feedbacks of %d", first.LearnedThrough, feedback)
	}
}

// run runs a system in a folder, with the model file there, while work is done.
func run(t *testing.T, dir string, work func(url string)) error {
	t.Helper()
	source, err := modelfile.Load(filepath.Join(dir, "model.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	e, seed := open(t, dir)
	defer e.Close()
	stop, err := service.Start(t.Context(), service.SystemConfig{Log: e.Log, Bus: e.Bus, Name: source.Name,
		Source: source, Build: model.Epoch, Seed: seed, Partitions: 1, Owner: "test",
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if work != nil {
		work(e.URL)
	}
	return stop()
}

// pack writes a folder as a tar.gz whose bytes depend on its content only.
func pack(t *testing.T, dir, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	err = filepath.WalkDir(dir, func(at string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o600,
			Size: int64(len(b))}); err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	})
	if err := errors.Join(err, w.Close(), z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// unpackLog lays out a golden log, which keeps its records for ever: those of most were
// made to keep them for a week.
func unpackLog(t *testing.T, path, dir string) {
	t.Helper()
	unpackFiles(t, path, dir)
	if err := embedded.SetAge(dir, 0); err != nil {
		t.Fatal(err)
	}
}

// TestGoldenLogsStay holds that the records of golden logs do not grow too old for them.
func TestGoldenLogsStay(t *testing.T) {
	dir := t.TempDir()
	unpackLog(t, filepath.Join("testdata", "logs", All()[0].Short(), "linear.tar.gz"), dir)
	streams, err := filepath.Glob(filepath.Join(dir, "jetstream", "$G", "streams", "*", "meta.inf"))
	if err != nil || len(streams) != 6 {
		t.Fatalf("streams %v: %v", streams, err)
	}
	for _, path := range streams {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(`"max_age":0,`)) {
			t.Errorf("%s: %s, %v", path, text, err)
		}
	}
}

func unpackFiles(t *testing.T, path, dir string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
