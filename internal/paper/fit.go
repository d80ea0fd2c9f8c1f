package paper

import "math"

// slopeFit is the slope of a line through points on log-log axes, by least squares, beside
// the exponent that is predicted: over the means, with the standard error of the
// regression, or the mean over the seeds, with its own. One that is not known is null.
type slopeFit struct {
	What      string   `json:"what"` // y over x
	Predicted float64  `json:"predicted"`
	Kind      string   `json:"kind"` // what Predicted is to Slope, in words: "at most", "about", …
	Slope     float64  `json:"slope"`
	SE        *float64 `json:"se"`
	// Bound is the slope of the bound over the same points, where there is one: a rate
	// like √((K−1)T) has another exponent at small K than at large.
	Bound *float64 `json:"bound,omitempty"`
}

// fitSlope fits y = c·x^slope. Points that are not positive are left out; with fewer than two it returns false.
func fitSlope(what, kind string, predicted float64, x, y []float64) (slopeFit, bool) {
	var lx, ly []float64
	for i := range x {
		if x[i] > 0 && y[i] > 0 {
			lx, ly = append(lx, math.Log(x[i])), append(ly, math.Log(y[i]))
		}
	}
	f := slopeFit{What: what, Kind: kind, Predicted: predicted}
	n := float64(len(lx))
	if n < 2 {
		return f, false
	}
	mx, my := mean(lx), mean(ly)
	sxx, sxy := 0.0, 0.0
	for i := range lx {
		sxx += (lx[i] - mx) * (lx[i] - mx)
		sxy += (lx[i] - mx) * (ly[i] - my)
	}
	if sxx == 0 {
		return f, false
	}
	f.Slope = sxy / sxx
	if n > 2 {
		rest := 0.0
		for i := range lx {
			e := ly[i] - my - f.Slope*(lx[i]-mx)
			rest += e * e
		}
		se := math.Sqrt(rest / (n - 2) / sxx)
		f.SE = &se
	}
	return f, true
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
