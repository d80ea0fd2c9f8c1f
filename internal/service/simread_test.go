package service_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/join"
	"hindsight/internal/logs"
	"hindsight/internal/service"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// drawsOf returns the units of the draws of a log by their ids, which may come twice, and how many repeats there are.
func drawsOf(t *testing.T, s *service.Simulated) (units map[string][]string, repeats int) {
	units = map[string][]string{}
	topic := join.TopicsOf(s.Name).Decisions
	n, err := s.Log.Partitions(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	for p := range n {
		first, next, err := s.Log.Bounds(t.Context(), topic, p)
		if err == nil {
			err = stream.Scan(t.Context(), s.Log, topic, p, first, next, func(r *stream.Record) error {
				var d codec.Decision
				switch {
				case r.Type != "" || codec.ParseDecision(&d, r.Value) != nil:
				case d.First.N > 0:
					repeats++
				default:
					d.ID = strings.Clone(d.ID)
					units[d.ID] = append(units[d.ID], strings.Clone(d.Unit))
				}
				return nil
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return units, repeats
}

// TestSimulatedUnitsAreRead: the log of a simulation with units gives estimates each draw and no repeat, with the unit
// that its decision names.
func TestSimulatedUnitsAreRead(t *testing.T) {
	if testing.Short() {
		t.Skip("simulations take seconds")
	}
	for _, seed := range []int64{6, 13, 20} {
		s := service.Simulate(t, seed)
		units, repeats := drawsOf(t, s)
		at := join.TopicsOf(s.Name)
		r, err := logs.OpenTopics(t.Context(), s.Log, at.Decisions, at.Outcomes, at.Rejects,
			logs.Options{Inactive: true})
		if err != nil {
			t.Fatal(err)
		}
		var rec logs.Record
		events, named := 0, map[string]bool{}
		for err = r.Next(&rec); err == nil; err = r.Next(&rec) {
			if rec.Kind != logs.Event {
				continue
			}
			events++
			of := units[rec.ID]
			if !slices.Contains(of, rec.Unit) && !slices.Contains(of, "") { // a model may not read what a context names
				t.Errorf("seed %d: %s is of unit %q, not of one of %q", seed, rec.ID, rec.Unit, of)
			}
			named[strings.Clone(rec.Unit)] = rec.Unit != ""
		}
		if !errors.Is(err, io.EOF) || events == 0 || repeats == 0 || len(named) < 2 {
			t.Fatalf("seed %d: %v, %d events of %d units, %d repeats", seed, err, events, len(named), repeats)
		}
	}
}
