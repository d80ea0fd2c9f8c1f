package delay

import "slices"

// Stats are the delays of a run from one point of view (docs/algorithms.md, section 0). d_t is the number of later
// rounds decided without knowing round t, cut at the end of the run; σ_t the number of earlier rounds not known when t
// was decided.
type Stats struct {
	D        int64   `json:"D"` // Σ d_t = Σ σ_t
	DMax     int64   `json:"d_max"`
	SigmaMax int64   `json:"sigma_max"`
	Mean     float64 `json:"mean"` // D/T
	P50      int64   `json:"p50"`  // of d_t, nearest rank
	P90      int64   `json:"p90"`
	P99      int64   `json:"p99"`
}

// Report compares the delays of a run as outcomes arrived with those as feedback was released.
type Report struct {
	Spec      string `json:"spec"`
	Invented  bool   `json:"-"` // they were played on data that they are not from
	Raw       Stats  `json:"raw"`
	Released  Stats  `json:"released"`
	FIFOTax   int64  `json:"fifo_tax"`  // Released.D − Raw.D: what waiting in line cost
	Overtaken int64  `json:"overtaken"` // rounds whose outcome came after that of a later round
	// Recorded are the delays that a log tells, of all its rounds: also of those that drew
	// another action than the recorded one, whose withdrawal comes at once.
	Recorded *Recorded `json:"recorded,omitempty"`
}

// Measure makes the report and the histogram of a run of T rounds. raw[t] is d_t as arrived:
// the decisions after round t and before its outcome, or Never. learnedThrough[t] is τ of the decision
// of round t, in feedbacks; feedback and decisions are numbered alike, so it is at most t.
func Measure(spec string, raw, learnedThrough []int64) (Report, []Bin) {
	n := int64(len(raw))
	m := NewMeter(len(raw))
	// The meter takes them as they grow; which decisions they are of makes a difference to σ alone.
	grown := slices.Sorted(slices.Values(learnedThrough))
	var waiting Schedule
	came := int64(0)
	for t, d := range raw {
		at := int64(t)
		cut := d
		if d != Never {
			cut = min(d, n-1-at)
			waiting.push(Awaited{due: at + d, Round: int32(t)})
		}
		m.Decided(at, cut, came, grown[t])
		m.released.sigma = max(m.released.sigma, at-learnedThrough[t])
		for _, o := range waiting.After(t) {
			m.Came(int64(o.Round), at)
			came++
		}
	}
	for _, o := range waiting.Rest() {
		m.Came(int64(o.Round), o.due)
	}
	return m.Report(spec)
}
