package verify

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// TestSlotsVerify holds that a log whose rounds are slots verifies, and that a law which is not that of the slot given
// the draws before it is named: another one, one as if nothing had been drawn, and one of another slot.
func TestSlotsVerify(t *testing.T) {
	s := newShop(t, shopLogs(t)["mem"](t), shopModel("linear", 1, "actions: [a, b, c]"))
	defer s.shut()
	for i := range 20 {
		done := make(chan string, 1)
		s.d.Request(stream.Message{
			Data: fmt.Appendf(nil, `{"id":"e%d","features":{"x":%d},"slots":["hero","side","top"]}`, i, i%3),
			Respond: func(b []byte, _ ...stream.Header) error {
				done <- string(b)
				return nil
			}})
		if got := <-done; strings.Count(got, `"duplicate":false`) != 3 {
			t.Fatal(got)
		}
		s.report()
		s.pump()
	}
	if r := s.verify(); r.ExitCode() != Identical {
		t.Fatalf("does not verify: %+v\n%+v", r.First, r)
	}
	all := s.decisions(stream.Earliest)
	if len(all) != 60 {
		t.Fatalf("%d rounds", len(all))
	}
	hero, side := all[57], all[58]
	if side.ID != loop.SlotID("e19", "side") || slices.Contains(side.Actions, hero.Actions[hero.Action]) {
		t.Fatalf("%+v", side)
	}
	for name, change := range map[string]func(d *codec.Decision){
		"another law": func(d *codec.Decision) { d.Propensities = []float64{.75, .25} },
		"as if nothing was drawn": func(d *codec.Decision) {
			d.Action = slices.Index(hero.Actions, d.Actions[d.Action])
			d.Actions, d.Propensities = hero.Actions, hero.Propensities
		},
		"another slot": func(d *codec.Decision) {
			d.Context = bytes.ReplaceAll(d.Context, []byte(`"slot":"side"`), []byte(`"slot":"hero"`))
		},
	} {
		bad := side
		change(&bad)
		undo := s.edit(&side, bad)
		if r := s.verify(); r.ExitCode() == Identical || r.First.Topic != s.ts.Decisions || r.First.Round != side.N {
			t.Errorf("%s: %+v", name, r.First)
		}
		undo()
	}
}
