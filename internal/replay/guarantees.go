package replay

import (
	"cmp"
	"math"
)

// States of the bound of a group that has no figure.
const (
	NoBound = "none"
	Void    = "void"
	Vacuous = "vacuous"
)

// GroupBound returns the mean of the sharpest bounds of runs that differ in their row orders;
// state says what one of them is instead, "" if each is a figure.
func GroupBound(g []*Result) (mean float64, state string) {
	sum := 0.0
	for _, r := range g {
		switch b, ok := r.Certificate.Sharpest(); {
		case !ok:
			return math.NaN(), NoBound
		case b.Void != "":
			state = Void
		case b.Vacuous:
			state = cmp.Or(state, Vacuous)
		default:
			sum += *b.Value
		}
	}
	if state != "" {
		return math.NaN(), state
	}
	return sum / float64(len(g)), ""
}

// Groups collects the runs of the same learner and delays, which differ in their row
// orders, in the order in which each first comes.
func Groups(runs []Result) [][]*Result {
	var out [][]*Result
	at := map[[2]string]int{}
	for i := range runs {
		r := &runs[i]
		key := [2]string{r.Learner, r.Delays.Spec}
		g, ok := at[key]
		if !ok {
			g = len(out)
			at[key] = g
			out = append(out, nil)
		}
		out[g] = append(out[g], r)
	}
	return out
}
