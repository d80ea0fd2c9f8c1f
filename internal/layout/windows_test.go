package layout

import (
	"bytes"
	"encoding/csv"
	"testing"

	"hindsight/internal/loop"
	"hindsight/internal/replay"
)

// TestWindowCSV: of runs without a loss there is a row of as many cells as columns.
func TestWindowCSV(t *testing.T) {
	prices := replay.PriceWindows([]loop.Window{{Rounds: 1}}, [][]replay.Result{{{Rounds: 5}}})
	var b bytes.Buffer
	if err := WriteWindowCSV(&b, prices); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 2 || len(rows[1]) != len(WindowColumns) {
		t.Errorf("%v %v", rows, err)
	}
}

// TestWindowChart: a line each for loss, bound and share skipped, and a mark where one is proposed.
func TestWindowChart(t *testing.T) {
	loss := []float64{.1, .2, .3}
	var windows []loop.Window
	var runs [][]replay.Result
	for i := range loss {
		windows = append(windows, loop.Window{Rounds: int64(10 * (i + 1))})
		runs = append(runs, []replay.Result{{Rounds: 3000, MeanLoss: &loss[i]}})
	}
	c := WindowChart(replay.PriceWindows(windows, runs), &runs[0][0])
	if len(c.Series) != 3 || len(c.Series[0].X) != 3 || c.Series[0].X[2] != 30 || c.Mark == nil || *c.Mark != 10 {
		t.Errorf("chart %+v", c)
	}
}
