package see

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

const (
	sampleEvery = 5 * time.Second
	samplesKept = 10 * time.Minute / sampleEvery
)

// sample is what all metrics showed at one moment: of each, by its name, the sum over all
// label values, and for each label by name{label=value} the sum over the others. Of a
// histogram it is the count.
type sample struct {
	at     time.Time
	values map[string]float64
}

// take looks at all metrics.
func take(g prometheus.Gatherer, now time.Time) sample {
	s := sample{at: now, values: map[string]float64{}}
	families, _ := g.Gather() // what it could gather is there beside an error
	for _, f := range families {
		for _, m := range f.GetMetric() {
			v := valueOf(m)
			s.values[f.GetName()] += v
			for _, l := range m.GetLabel() {
				s.values[f.GetName()+"{"+l.GetName()+"="+l.GetValue()+"}"] += v
			}
		}
	}
	return s
}

func valueOf(m *dto.Metric) float64 {
	if h := m.GetHistogram(); h != nil {
		return float64(h.GetSampleCount())
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue() // one of them is nil, and 0
}

// history are the samples of the last minutes, oldest first.
type history struct {
	mu      sync.Mutex
	samples []sample
}

func (h *history) add(s sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.samples) >= int(samplesKept) {
		copy(h.samples, h.samples[1:])
		h.samples = h.samples[:len(h.samples)-1]
	}
	h.samples = append(h.samples, s)
}

// since returns the samples of the last span before now, and the one before them, so that they
// reach over all of it.
func (h *history) since(now time.Time, span time.Duration) []sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := len(h.samples)
	for i > 0 && now.Sub(h.samples[i-1].at) <= span {
		i--
	}
	return append([]sample(nil), h.samples[max(0, i-1):]...)
}

// moment is a sample with what was before it.
type moment struct {
	sample
	h *history
}

// value returns what a metric shows now, and whether it is there.
func (m *moment) value(name string) (float64, bool) {
	v, ok := m.values[name]
	return v, ok
}

// is reports whether a metric is there and its value satisfies f. NaN satisfies nothing that
// is a comparison.
func (m *moment) is(name string, f func(v float64) bool) bool {
	v, ok := m.values[name]
	return ok && f(v)
}

// increase returns by how much a counter grew within a span, or since the process started if
// that is less; reached says that the samples go back that far. What was not there at the
// beginning did not grow.
func (m *moment) increase(name string, span time.Duration) (grown float64, reached bool) {
	past := m.h.since(m.at, span)
	if len(past) == 0 {
		return 0, false
	}
	was, ok := past[0].values[name]
	if !ok {
		return 0, false
	}
	return m.values[name] - was, m.at.Sub(past[0].at) >= span
}

// grew reports whether a counter grew by more than most within a span.
func (m *moment) grew(name string, span time.Duration, most float64) bool {
	n, _ := m.increase(name, span)
	return n > most
}

// rate returns the growth of a counter a second over the last few seconds.
func (m *moment) rate(name string) float64 {
	past := m.h.since(m.at, sampleEvery)
	if len(past) == 0 {
		return 0
	}
	seconds := m.at.Sub(past[0].at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return max(0, m.values[name]-past[0].values[name]) / seconds
}
