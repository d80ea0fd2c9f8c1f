package replay

import (
	"slices"

	"hindsight/internal/words"
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

// MeasureDelays makes the report and the histogram of a run of T rounds. raw[t] is d_t as arrived:
// the decisions after round t and before its outcome, or Never. learnedThrough[t] is τ of the decision
// of round t, in feedbacks; feedback and decisions are numbered alike, so it is at most t.
func MeasureDelays(spec string, raw, learnedThrough []int64) (DelayReport, []DelayBin) {
	n := int64(len(raw))
	m := newDelayMeter(len(raw))
	// The meter takes them as they grow; which decisions they are of makes a difference to σ alone.
	grown := slices.Sorted(slices.Values(learnedThrough))
	var waiting schedule
	came := int64(0)
	for t, d := range raw {
		at := int64(t)
		cut := d
		if d != Never {
			cut = min(d, n-1-at)
			waiting.push(awaited{due: at + d, round: int32(t)})
		}
		m.decided(at, cut, came, grown[t])
		m.released.sigma = max(m.released.sigma, at-learnedThrough[t])
		for _, o := range waiting.after(t) {
			m.came(int64(o.round), at)
			came++
		}
	}
	for _, o := range waiting.rest() {
		m.came(int64(o.round), o.due)
	}
	return m.report(spec)
}

// Line is the figures for people.
func (s DelayStats) Line() string {
	return words.Items("D %s, d_max %s, σ_max %s, mean %s, p50 %s, p90 %s, p99 %s",
		words.Count(s.D), words.Count(s.DMax), words.Count(s.SigmaMax), words.Digits(s.Mean), words.Count(s.P50), words.Count(s.P90), words.Count(s.P99))
}
