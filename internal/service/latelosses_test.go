package service

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
)

// lateEach is how many losses come in time, and late, in a lateRig.
const lateEach = 120

// lateRig has 2·lateEach + 20 rounds decided, of which all but the last 20 get a loss of 0.2
// or 0.4 in turn in time, but for every second one, which gets what late says after its window.
func lateRig(t *testing.T, logged *bytes.Buffer, late func(i int) float64, tune ...func(r *rig)) *rig {
	r := newRig(t, func(r *rig) {
		for _, f := range tune {
			f(r)
		}
		r.jc.Logger = slog.New(slog.NewTextHandler(logged, nil))
		r.jc.Dedup = 10 * lateEach // a round that is forgotten has no late outcomes, but orphans
	})
	ids := make([]string, 2*lateEach+20)
	for i := range ids {
		ids[i] = fmt.Sprint("round", i)
	}
	loss := func(i int, x float64) { r.put(r.topics.Outcomes, `{"id":%q,"loss":%v}`, plantedText+ids[i], x) }
	for at := 0; at < len(ids); at += 10 {
		r.contexts(ids[at : at+10]...)
		r.must(r.settle())
		for i := at; i < min(at+10, 2*lateEach); i += 2 {
			loss(i, 0.2+0.2*float64(i/2%2))
		}
		r.must(r.settle())
	}
	for i := 1; i < 2*lateEach; i += 2 {
		loss(i, late(i))
		loss(i, 1) // only the first one counts
	}
	r.must(r.settle())
	return r
}

func TestLateLossesThatDiffer(t *testing.T) {
	var logged bytes.Buffer
	r := lateRig(t, &logged, func(i int) float64 { return 0.6 + 0.2*float64(i/2%2) })
	se := math.Sqrt(0.01 / (lateEach - 1))
	near := func(series string, want float64) {
		t.Helper()
		if got := r.value(series); !(math.Abs(got-want) < 1e-9) {
			t.Errorf("%s is %v, expected %v", series, got, want)
		}
	}
	r.expect(map[string]float64{`hindsight_losses{came="in-time"}`: lateEach, `hindsight_losses{came="late"}`: lateEach,
		`hindsight_late_losses_differ`: 1})
	near(`hindsight_loss_mean{came="in-time"}`, 0.3)
	near(`hindsight_loss_mean{came="late"}`, 0.7)
	near(`hindsight_loss_standard_error{came="in-time"}`, se)
	near(`hindsight_loss_standard_error{came="late"}`, se)
	if n := strings.Count(logged.String(), "lengthen the window"); n != 1 {
		t.Errorf("%d warnings: %s", n, &logged)
	}
	if strings.Contains(logged.String(), "order: arrival") {
		t.Errorf("it is not the order of this model: %s", &logged)
	}
	checkExposed(t, exposed(t, r.reg), 1)

	// A joiner that takes over begins anew: it says nothing of what it has not seen.
	r.must(r.j.stop(t.Context()))
	r.j.Close()
	r.d.Close()
	if len(scrapeOf(t, r, "hindsight_loss")) != 0 {
		t.Error("losses of a joiner that is gone are still shown")
	}
	r.open()
	r.must(r.settle())
	r.expect(map[string]float64{`hindsight_losses{came="in-time"}`: 0, `hindsight_losses{came="late"}`: 0,
		`hindsight_late_losses_differ`: 0})
	if !math.IsNaN(r.value(`hindsight_loss_mean{came="late"}`)) {
		t.Error("nothing has a mean")
	}
}

// TestLateLossesOnArrival holds that the log says which guarantee is gone, and what to do.
func TestLateLossesOnArrival(t *testing.T) {
	var logged bytes.Buffer
	lateRig(t, &logged, func(i int) float64 { return 0.6 + 0.2*float64(i/2%2) },
		func(r *rig) { r.rules.Arrival = true })
	for _, want := range []string{"with order: arrival the bounds by measured drift and a priori are void",
		"use order: fifo", "eta: outstanding"} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("no %q in %s", want, &logged)
		}
	}
}

func TestLateLossesAlike(t *testing.T) {
	var logged bytes.Buffer
	r := lateRig(t, &logged, func(i int) float64 { return 0.2 + 0.2*float64(i/2%2) })
	r.expect(map[string]float64{`hindsight_losses{came="in-time"}`: lateEach, `hindsight_losses{came="late"}`: lateEach,
		`hindsight_late_losses_differ`: 0})
	if strings.Contains(logged.String(), "lengthen the window") {
		t.Errorf("a warning of losses that are alike: %s", &logged)
	}
	r.expect(map[string]float64{`hindsight_rejects_total{reason="late",topic="outcomes"}`: 2 * lateEach})
}

func scrapeOf(t *testing.T, r *rig, prefix string) (out []string) {
	for series := range scrape(t, r.reg) {
		if strings.HasPrefix(series, prefix) {
			out = append(out, series)
		}
	}
	return out
}
