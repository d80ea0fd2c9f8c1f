package service

import (
	"context"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// refuserBus is a bus that says when it does not hand a request over.
type refuserBus struct {
	stream.Bus
	refused func(subject string)
}

func (b *refuserBus) OnRefused(f func(subject string)) { b.refused = f }

// TestRefusedReplies holds that requests which a bus refuses for their reply are counted.
func TestRefusedReplies(t *testing.T) {
	log := mem.New(mem.Options{Clock: clock()})
	defer log.Close()
	if err := CreateTopics(t.Context(), log, "m", 1, Retention{}); err != nil {
		t.Fatal(err)
	}
	bus, reg := &refuserBus{Bus: log}, prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := RunSystem(ctx, SystemConfig{Log: log, Bus: bus, Name: "m", Source: &Source{Name: "m", Version: 1, Model: []byte("x")}, Build: testBuild,
		Seed: []byte("seed"), Partitions: 1, Owned: []int{0}, Owner: "test", Metrics: NewMetrics(reg, nil), Logger: slog.New(slog.DiscardHandler)}, cancel); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"m.decide", "m.decide.0", "m.outcome"} {
		bus.refused(subject)
	}
	got := scrape(t, reg)
	for series, want := range map[string]float64{
		`hindsight_requests_refused_total{code="no-inbox",subject="decide"}`:  2,
		`hindsight_requests_refused_total{code="no-inbox",subject="outcome"}`: 1,
		`hindsight_requests_refused_total{code="other",subject="decide"}`:     0,
	} {
		if got[series] != want {
			t.Errorf("%s is %v, want %v", series, got[series], want)
		}
	}
}
