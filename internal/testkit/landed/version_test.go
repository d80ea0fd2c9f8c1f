package landed

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hindsight/internal/join"
	"hindsight/internal/testkit/daily"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

var versionLine = regexp.MustCompile(`(?m)^version: \d+\n`)

// TestNextVersion holds that what oracles compute changes only with the next version of a
// model that begins another learner: a log from before oracles had versions goes on to the
// same bits with the same file, and with one that keeps its learner or goes back to it.
func TestNextVersion(t *testing.T) {
	for i, name := range []string{"b2b353d/auto", "73b16a4/linear", "73b16a4/hybrid"} {
		if testing.Short() && i > 0 || !testing.Short() && !daily.Turn(t, i, 3) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			unpackLog(t, filepath.Join("testdata", "logs", name+".tar.gz"), dir)
			path := filepath.Join(dir, "model.yaml")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range []struct {
				warm  string
				newer bool // the oracle is of the newest version
			}{{"none", false}, {"keep", false}, {"refit", true}, {"keep", true}, {"30", false}, {"none", true}} {
				model := versionLine.ReplaceAllString(string(text), fmt.Sprintf("version: %d\nwarm: %s\n", i+1, c.warm))
				if i == 0 {
					model = string(text)
				}
				if err := os.WriteFile(path, []byte(model), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := run(t, dir, func(url string) {
					play(t, url, rand.New(rand.NewPCG(9, uint64(i))), 10+i)
				}); err != nil {
					t.Fatal(err)
				}
				if err := run(t, dir, nil); err != nil {
					t.Fatalf("a restart of version %d, warm: %s: %v", i+1, c.warm, err)
				}
				got := lastModel(t, dir)
				if newer := strings.Contains(got, ", version: 2"); newer != c.newer ||
					!strings.Contains(got, fmt.Sprintf("\nversion: %d\n", i+1)) {
					t.Errorf("version %d, warm: %s:\n%s", i+1, c.warm, got)
				}
			}
			verified(t, dir)
		})
	}
}

// lastModel returns the model of the last epoch of a log.
func lastModel(t *testing.T, dir string) (model string) {
	t.Helper()
	e, _ := open(t, dir)
	defer e.Close()
	topic := join.TopicsOf("m").Feedback
	_, end, err := e.Log.Bounds(t.Context(), topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Scan(t.Context(), e.Log, topic, 0, stream.Earliest, end, func(r *stream.Record) error {
		if r.Type != codec.TypeEpoch {
			return nil
		}
		rec, err := codec.ParseEpoch(r.Value)
		model = string(rec.Model)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return model
}
