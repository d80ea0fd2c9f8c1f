package layout

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"hindsight/internal/judge"
	"hindsight/internal/ope"
	"hindsight/internal/words"
)

// TestWriteEvaluations holds the width and the parts of the table.
func TestWriteEvaluations(t *testing.T) {
	o := judged(t, worldLog(t, 2, 300))
	e := &judge.Evaluations{Settings: o.Settings(o.Options())}
	for _, spec := range []string{"logging", "uniform", "eps:0.1,eps:0.2,eps:0.3,eps:0.4,eps:0.5,always:c", "always:a"} {
		p, err := o.Evaluate(spec, o.Options())
		if err != nil {
			t.Fatal(err)
		}
		e.Policies = append(e.Policies, p)
	}
	var b bytes.Buffer
	if err := WritePolicies(&b, e, 100, false); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	marked := words.WithError(e.Policies[1].Estimates.Get("dm").Value, ope.Figure(math.NaN())) + "*"
	for _, want := range []string{marked, "policy ", "ESS", "mean w", " ips ", "snips", "switchdr10", "dros10", "* may be biased", "Mean loss a row of 300 rows, 3 actions, smallest propensity 0.1",
		"\n! all policies: few events: 300 rows, fewer than 1000.\n", "eps:0.1,eps:0.2,eps:0.3,eps:0.4,eps:0.5…"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
	if bytes.HasSuffix(b.Bytes(), []byte("\n\n")) {
		t.Error("it ends with an empty line")
	}
}
