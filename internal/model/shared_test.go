package model

import (
	"strings"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// TestShared: the model file alone makes the oracles; nothing of them grows with the
// number of actions.
func TestShared(t *testing.T) {
	for _, kind := range []string{Shared, Hybrid} {
		m := mustParse(t, "oracle: {kind: "+kind+", hashed: 64}\nactions: [red, green]\nmax_features: 60000")
		if got, want := m.Memory(), int64(8*(64*65/2+64)); got != want {
			t.Errorf("%s: memory %d, want %d", kind, got, want)
		}
		if back := mustParse(t, string(m.Canonical())); back.Oracle != m.Oracle {
			t.Errorf("%s: read back as %+v", kind, back.Oracle)
		}
		m.Resolve(0, 0)
		if !strings.Contains(string(m.Canonical()), "oracle: {kind: "+kind+", version: 2, beta: 0.5, lambda: 1, "+
			"hashed: 64}\n") {
			t.Errorf("%s: resolved\n%s", kind, m.Canonical())
		}
		o, ok := build(t, "oracle: {kind: "+kind+"}").(*learner.DAFA).Oracle().(*oracle.Shared)
		if !ok {
			t.Fatalf("%s: not built", kind)
		}
		x := colours()
		for range 5 {
			o.Update(x, 0, 1)
		}
		p := make([]float64, 2)
		if o.Predict(p, x); (p[0] == p[1]) != (kind == Shared) {
			t.Errorf("%s: actions without features are predicted %v", kind, p)
		}
	}
}
