package replay

import (
	"slices"
	"strings"
)

// DelayStats are the delays of a run from one point of view (ALGORITHMS.md,
// section 0). d_t is the number of later rounds decided without knowing round t,
// cut at the end of the run; σ_t the number of earlier rounds not known when t was
// decided.
type DelayStats struct {
	D        int64   `json:"D"` // Σ d_t = Σ σ_t
	DMax     int64   `json:"d_max"`
	SigmaMax int64   `json:"sigma_max"`
	Mean     float64 `json:"mean"` // D/T
	P50      int64   `json:"p50"`  // of d_t, nearest rank
	P90      int64   `json:"p90"`
	P99      int64   `json:"p99"`
}

// DelayReport compares the delays of a run as outcomes arrived with those as
// feedback was released.
type DelayReport struct {
	Spec      string     `json:"spec"`
	Invented  bool       `json:"-"` // they were played on data that they are not from
	Raw       DelayStats `json:"raw"`
	Released  DelayStats `json:"released"`
	FIFOTax   int64      `json:"fifo_tax"`  // Released.D − Raw.D: what waiting in line cost
	Overtaken int64      `json:"overtaken"` // rounds whose outcome came after that of a later round
	// Recorded are the delays that a log tells, of all its rounds: also of those that drew
	// another action than the recorded one, whose withdrawal comes at once.
	Recorded *RecordedDelays `json:"recorded,omitempty"`
}

// InventedDelays says which of the delays that were played on data are none of its own; "" if
// all are.
func InventedDelays(runs []Result) string {
	var specs []string
	for i := range runs {
		if d := &runs[i].Delays; d.Invented && !slices.Contains(specs, d.Spec) {
			specs = append(specs, d.Spec)
		}
	}
	if specs == nil {
		return ""
	}
	return "Delays that are invented, and not those of the data: " + strings.Join(specs, ", ")
}

// MeasureDelays makes the report of a run of T rounds. raw[t] is d_t as arrived:
// the decisions after round t and before its outcome, or Never.
// learnedThrough[t] is τ of the decision of round t, in feedbacks; feedback and
// decisions are numbered alike, so it is at most t.
func MeasureDelays(spec string, raw, learnedThrough []int64) DelayReport {
	r := DelayReport{
		Spec: spec, Raw: rawStats(raw), Released: releasedStats(learnedThrough), Overtaken: overtaken(raw),
	}
	r.FIFOTax = r.Released.D - r.Raw.D
	return r
}

// arrival returns the number of rounds decided when the outcome of round t is
// there, at most n.
func arrival(t int, d, n int64) int64 {
	if d == Never || d >= n {
		return n
	}
	return min(int64(t)+1+d, n)
}

func rawStats(raw []int64) DelayStats {
	d, sigma := arrivedDelays(raw)
	s := summarise(d)
	s.SigmaMax = sigma
	return s
}

// arrivedDelays returns d_t as arrived, and σ_max.
func arrivedDelays(raw []int64) (d []int64, sigma int64) {
	n := int64(len(raw))
	d = make([]int64, n)
	arrivals := make([]int64, n+1) // arrivals[i]: outcomes that come when i rounds are decided
	for t := range raw {
		at := arrival(t, raw[t], n)
		arrivals[at]++
		d[t] = at - int64(t) - 1
	}
	known := int64(0)
	for t := range raw {
		known += arrivals[t]
		sigma = max(sigma, int64(t)-known)
	}
	return d, sigma
}

func releasedStats(learnedThrough []int64) DelayStats {
	d, sigma := releasedDelays(learnedThrough)
	s := summarise(d)
	s.SigmaMax = sigma
	return s
}

// releasedDelays returns d_t as released, and σ_max.
func releasedDelays(learnedThrough []int64) (d []int64, sigma int64) {
	n := len(learnedThrough)
	// Since τ(t') < t' (counting from 1), all rounds up to t were decided with
	// τ < t; what is more than those was decided later without knowing t.
	below := make([]int64, n+1)
	for i, tau := range learnedThrough {
		below[max(0, min(tau, int64(n)))]++
		sigma = max(sigma, int64(i)-tau)
	}
	d = make([]int64, n)
	count := int64(0)
	for i := range d {
		count += below[i] // rounds with τ ≤ i, that is τ < i+1
		d[i] = max(0, count-int64(i+1))
	}
	return d, sigma
}

// summarise fills all but SigmaMax; it sorts d.
func summarise(d []int64) DelayStats {
	var s DelayStats
	if len(d) == 0 {
		return s
	}
	slices.Sort(d)
	for _, v := range d {
		s.D += v
	}
	rank := func(percent int) int64 { return d[(len(d)*percent+99)/100-1] }
	s.DMax = d[len(d)-1]
	s.Mean = float64(s.D) / float64(len(d))
	s.P50, s.P90, s.P99 = rank(50), rank(90), rank(99)
	return s
}

// overtaken counts the rounds that the outcome of a later round came before.
func overtaken(raw []int64) int64 {
	const end = int64(1) << 62
	first := end // of the outcomes of later rounds
	n := int64(0)
	for t := len(raw) - 1; t >= 0; t-- {
		at := end
		if raw[t] != Never {
			at = int64(t) + raw[t]
		}
		if first < at {
			n++
		}
		first = min(first, at)
	}
	return n
}
