package verify

import (
	"fmt"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// TestVerifyPolicies holds that Run recomputes what exp4dale did over several
// partitions, through restarts and snapshots, in both orders; and that it finds a
// propensity that was not played.
func TestVerifyPolicies(t *testing.T) {
	for _, order := range []string{"fifo", "arrival"} {
		for parts := 1; parts <= 2; parts++ {
			t.Run(fmt.Sprint(order, " ", parts), func(t *testing.T) {
				w := newWorld(t, parts, 7)
				w.name(
					`{name: m, version: 1, learner: {kind: exp4dale, policies: class.jsonl}, window: 9 rounds, order: ` + order + `}`)
				w.openJoiner()
				for p := range parts {
					w.openDecider(p)
				}
				w.pump()
				w.rounds(150)
				if r := w.verify(); r.ExitCode() != Identical {
					t.Fatalf("not identical:\n%s", r.text())
				}
				forged := false
				for _, r := range w.records(w.ts.Decisions, 0)[60:] {
					var d codec.Decision
					if r.Type != "" || codec.ParseDecision(&d, r.Value) != nil ||
						d.Propensities[0] == d.Propensities[1] {
						continue
					}
					d.Propensities[0], d.Propensities[1] = d.Propensities[1], d.Propensities[0]
					value := codec.AppendDecision(nil, &d)
					restore := w.edit(w.ts.Decisions, 0, r.Offset, func(r *stream.Record) { r.Value = value })
					if w.verify().ExitCode() == Identical {
						t.Errorf("decision %d with other propensities verifies", d.N)
					}
					restore()
					forged = true
					break
				}
				if !forged {
					t.Error("all laws are uniform: nothing was learned")
				}
			})
		}
	}
}
