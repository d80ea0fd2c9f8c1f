package replay

import (
	"io"
	"testing"

	"pgregory.net/rapid"

	"hindsight/internal/dataset"
	"hindsight/internal/dataset/testkit"
	"hindsight/internal/logs"
)

type logOptions = testkit.LogOptions

func ofTable(b *dataset.Table, err error) (*Rounds, error) {
	if err != nil {
		return nil, err
	}
	return OfTable(b), nil
}

func readLog(file string, in io.Reader, o logOptions) (*Rounds, error) {
	return ofTable(testkit.ReadLog(file, in, o))
}

// readLabelled reads a labelled CSV.
func readLabelled(file string, in io.Reader) (*Rounds, error) {
	return readLog(file, in, logOptions{Options: logs.Options{Format: logs.Labelled}})
}

func openLog(path string, o logs.Options) (*Rounds, error) { return ofTable(testkit.OpenLog(path, o)) }

func readEvents(t rapid.TB, text string, o dataset.Options, lo logs.Options) *Rounds {
	return OfTable(testkit.ReadEvents(t, text, o, lo))
}

func parseLog(t testing.TB, text string, m logs.Mapping) *Rounds {
	return OfTable(testkit.ParseLog(t, text, m))
}

func timedLog(t testing.TB) *Rounds { return parseLog(t, timedText, timedMapping()) }

const timedText = testkit.TimedText

func timedMapping() logs.Mapping { return testkit.TimedMapping() }

var worldMeans = testkit.WorldMeans

func worldLog(t testing.TB, seed uint64, rows int) *Rounds {
	return OfTable(testkit.WorldLog(t, seed, rows))
}
