package replay

import "math/bits"

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
	bar := func(d int64) *DelayBin {
		for i := bits.Len64(uint64(d)); len(out) <= i; {
			n := len(out)
			if n == 0 {
				out = append(out, DelayBin{})
				continue
			}
			out = append(out, DelayBin{Low: 1 << (n - 1), High: 1<<n - 1})
		}
		return &out[bits.Len64(uint64(d))]
	}
	for _, d := range arrived {
		bar(d).Raw++
	}
	for _, d := range released {
		bar(d).Released++
	}
	return out
}
