package layout

import (
	"strings"
	"testing"

	"hindsight/internal/judge"
	"hindsight/internal/replay"
)

// TestSummaryFitsAScreen: two policies and two runs on 80 columns and 24 lines.
func TestSummaryFitsAScreen(t *testing.T) {
	o := judged(t, worldLog(t, 2, 300))
	e := &judge.Evaluations{Settings: o.Settings(o.Options())}
	for _, spec := range []string{"logging", "uniform"} {
		p, err := o.Evaluate(spec, o.Options())
		if err != nil {
			t.Fatal(err)
		}
		e.Policies = append(e.Policies, p)
	}
	delayed, none := example(), example()
	none.Delays.Spec = "none"
	runs := []replay.Result{delayed, none}
	var b strings.Builder
	if err := WritePolicies(&b, e, 80, true); err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n")
	if err := WriteRunsIn(&b, runs, 80); err != nil {
		t.Fatal(err)
	}
	if w, n := widest(b.String()), strings.Count(b.String(), "\n"); w > 80 || n > 23 {
		t.Errorf("%d columns wide and %d lines:\n%s", w, n, b.String())
	}
	for _, want := range []string{"dafa, lognormal:20,1.5", "bound", " dr", "ESS", "all policies: few events"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "\n\n\n") {
		t.Errorf("two empty lines:\n%s", b.String())
	}
}
