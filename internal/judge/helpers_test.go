package judge

import (
	"encoding/json"
	"io"
	"testing"

	"pgregory.net/rapid"

	"hindsight/internal/dataset"
	"hindsight/internal/dataset/testkit"
	"hindsight/internal/logs"
	"hindsight/internal/replay"
)

type logOptions = testkit.LogOptions

func openLog(path string, o logs.Options) (*replay.Rounds, error) {
	b, err := testkit.OpenLog(path, o)
	if err != nil {
		return nil, err
	}
	return replay.OfTable(b), nil
}

func readLog(file string, in io.Reader, o logOptions) (*replay.Rounds, error) {
	b, err := testkit.ReadLog(file, in, o)
	if err != nil {
		return nil, err
	}
	return replay.OfTable(b), nil
}

func readEvents(t rapid.TB, text string, o dataset.Options, lo logs.Options) *replay.Rounds {
	return replay.OfTable(testkit.ReadEvents(t, text, o, lo))
}

func parseLog(t testing.TB, text string, m logs.Mapping) *replay.Rounds {
	return replay.OfTable(testkit.ParseLog(t, text, m))
}

func timedLog(t testing.TB) *replay.Rounds {
	return parseLog(t, testkit.TimedText, testkit.TimedMapping())
}

func worldLog(t testing.TB, seed uint64, rows int) *replay.Rounds {
	return replay.OfTable(testkit.WorldLog(t, seed, rows))
}

func openJournal(t *testing.T, path string) *replay.Journal {
	t.Helper()
	j, err := replay.OpenJournal(path, "v1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
