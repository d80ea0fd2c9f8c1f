package see

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

const (
	sampleEvery = 5 * time.Second
	samplesKept = 11 * time.Minute / sampleEvery // more than the rates of alarms reach back
	oldEvery    = 10 * time.Minute               // beyond that
	oldKept     = 24 * time.Hour / oldEvery
)

// vector holds numbers by their labels: a="x",b="y", in the order of the labels' names.
type vector map[string]float64

// sum adds up the numbers whose labels have these values (a="x"); without any: all numbers.
func (v vector) sum(labels ...string) (sum float64) {
	for have, x := range v {
		if matches(have, labels) {
			sum += x
		}
	}
	return sum
}

// matches reports whether labels have these values. No value has a comma.
func matches(have string, labels []string) bool {
	all := strings.Split(have, ",")
	return !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(all, l) })
}

// sample is what all metrics showed at one moment, by name. Of a histogram it is the count.
type sample struct {
	at     time.Time
	values map[string]vector
}

// take looks at all metrics.
func take(g prometheus.Gatherer, now time.Time) sample {
	s := sample{at: now, values: map[string]vector{}}
	families, _ := g.Gather() // what it could gather is there beside an error
	for _, f := range families {
		v := vector{}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
			}
			v[strings.Join(labels, ",")] = valueOf(m)
		}
		s.values[f.GetName()] = v
	}
	return s
}

func valueOf(m *dto.Metric) float64 {
	if h := m.GetHistogram(); h != nil {
		return float64(h.GetSampleCount())
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue() // one of them is nil, and 0
}

// history holds samples, oldest first: all of the last minutes, and a few of the day before.
type history struct {
	mu          sync.Mutex
	old, recent []sample
}

func (h *history) add(s sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.recent) >= int(samplesKept) {
		first := h.recent[0]
		if n := len(h.old); n == 0 || first.at.Sub(h.old[n-1].at) >= oldEvery {
			h.old = append(h.old, first)
		}
		if len(h.old) > int(oldKept) {
			h.old = slices.Delete(h.old, 0, 1)
		}
		h.recent = slices.Delete(h.recent, 0, 1)
	}
	h.recent = append(h.recent, s)
}

// since returns the samples of the last span before now, and the one before them, so that they reach over all of it.
func (h *history) since(now time.Time, span time.Duration) []sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Concat(h.old, h.recent)
	i := len(all)
	for i > 0 && now.Sub(all[i-1].at) <= span {
		i--
	}
	return all[max(0, i-1):]
}

// moment is a sample with what was before it.
type moment struct {
	sample
	h *history
}

// rate returns the growth of a counter a second over the last few seconds.
func (m *moment) rate(name string, labels ...string) float64 {
	past := m.h.since(m.at, sampleEvery)
	if len(past) == 0 {
		return 0
	}
	seconds := m.at.Sub(past[0].at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return max(0, m.values[name].sum(labels...)-past[0].values[name].sum(labels...)) / seconds
}
