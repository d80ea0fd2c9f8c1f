package daemon

import (
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// slow is a metric that takes until it is let go.
type slow struct {
	desc       *prometheus.Desc
	begun, end chan struct{}
}

func (s *slow) Describe(to chan<- *prometheus.Desc) { to <- s.desc }
func (s *slow) Collect(to chan<- prometheus.Metric) {
	s.begun <- struct{}{}
	<-s.end
	to <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, 1)
}

// TestAdminScrapes holds that adminScrapes scrapes are answered at once, that the next one
// is refused, and that there is room again when they are over.
func TestAdminScrapes(t *testing.T) {
	a := openAdmin(t, adminWith(t, "--admin", "127.0.0.1:0"), Probes{well, well})
	s := &slow{prometheus.NewDesc("slow", "takes long", nil, nil), make(chan struct{}), make(chan struct{})}
	a.Registry.MustRegister(s)
	codes, one := make(chan int), make(chan int, 1)
	scrape := func(to chan<- int) {
		r, err := http.Get("http://" + a.Addr() + "/metrics")
		if err != nil {
			to <- 0
			return
		}
		r.Body.Close()
		to <- r.StatusCode
	}
	for range adminScrapes {
		go scrape(codes)
	}
	for range adminScrapes {
		<-s.begun // all are under way
	}
	go scrape(one)
	select {
	case code := <-one:
		if code != http.StatusServiceUnavailable {
			t.Errorf("scrape %d at once: %d", adminScrapes+1, code)
		}
	case <-s.begun:
		t.Errorf("scrape %d at once is under way", adminScrapes+1)
	}
	close(s.end)
	for range adminScrapes {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a scrape that was under way: %d", code)
		}
	}
	go func() { <-s.begun }()
	if code, _ := get(t, a.Addr(), "/metrics"); code != http.StatusOK {
		t.Errorf("a scrape afterwards: %d", code)
	}
}
