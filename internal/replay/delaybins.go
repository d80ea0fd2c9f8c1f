package replay

// DelayBin is a bar of a histogram of delays: the rounds whose delay is from Low to High
// later rounds. Bars are powers of two apart: 0, 1, 2–3, 4–7, …
type DelayBin struct {
	Low      int64 `json:"low"`
	High     int64 `json:"high"`
	Raw      int64 `json:"raw"`      // rounds, as outcomes arrived; those that never came count with the rounds that were left
	Released int64 `json:"released"` // as feedback was released
}

// delayBins returns the histogram of a run, up to the last bar that is not empty; its
// arguments are those of [MeasureDelays].
func delayBins(raw, learnedThrough []int64) []DelayBin {
	arrived, _ := arrivedDelays(raw)
	released, _ := releasedDelays(learnedThrough)
	var out []DelayBin
	for _, d := range arrived {
		binOf(&out, d).Raw++
	}
	for _, d := range released {
		binOf(&out, d).Released++
	}
	return out
}
