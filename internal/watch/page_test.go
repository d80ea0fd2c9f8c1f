package watch

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"hindsight/internal/testkit"
)

var update = flag.Bool("update", false, "write the page of all metrics")

// TestReferenceMetrics holds docs/reference/metrics.md.
func TestReferenceMetrics(t *testing.T) {
	testkit.Page(t, *update, "../../docs/reference/metrics.md", metricsPage())
}

var metricName = regexp.MustCompile(`^hindsight_[a-z]+(_[a-z]+)*$`)

var aLoss = regexp.MustCompile(`_loss(_(mean|error|standard_error))?$`)

// The names follow the convention, and each metric says what it is.
func TestMetricNames(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range MetricDocs() {
		switch {
		case seen[d.Name]:
			t.Errorf("%s is there twice", d.Name)
		case !metricName.MatchString(d.Name):
			t.Errorf("%s is no name", d.Name)
		case (d.Type == "counter") != strings.HasSuffix(d.Name, "_total"):
			t.Errorf("%s is a %s", d.Name, d.Type)
		case len(d.Help) < 10 || !strings.HasSuffix(d.Help, "."):
			t.Errorf("%s: %q says too little", d.Name, d.Help)
		case strings.HasPrefix(d.Help, "1 if ") && unitOf(d.Name) != "0 or 1", aLoss.MatchString(d.Name) &&
			unitOf(d.Name) != "loss":
			t.Errorf("%s is in %q: %s", d.Name, unitOf(d.Name), d.Help)
		}
		seen[d.Name] = true
	}
}

// units are those that a metric's name does not end with.
var units = map[string]string{
	"hindsight_gamma": "1/loss", "hindsight_epoch": "number", "hindsight_joiner_epoch": "number",
	"hindsight_learned_through": "number",
	"hindsight_regret_bound":    "losses", "hindsight_exploration_cost": "losses", "hindsight_recent_loss": "loss",
	"hindsight_recent_uniform_loss": "loss",
	"hindsight_recent_excess_loss":  "loss", "hindsight_recent_excess_loss_error": "loss",
	"hindsight_loss_mean": "loss", "hindsight_loss_standard_error": "loss", "hindsight_propensity_floor": "probability",
	"hindsight_top_weight":             "ratio",
	"hindsight_head_of_line_partition": "number", "hindsight_head_of_line_round": "number",
	"hindsight_draw_evidence":      "betting odds",
	"hindsight_shadow_excess_loss": "loss", "hindsight_shadow_excess_loss_error": "loss",
	"hindsight_guard_excess_loss": "loss", "hindsight_mode": "0 to 3",
	"hindsight_ready": "0 or 1", "hindsight_standing_by": "0 or 1", "hindsight_class_refuted": "0 or 1",
	"hindsight_late_losses_differ": "0 or 1", "hindsight_guard_alarm": "0 or 1",
	"hindsight_budget_missed": "0 or 1", "hindsight_promotion": "0 or 1",
	"hindsight_candidate_loss": "loss", "hindsight_candidate_loss_low": "loss", "hindsight_candidate_loss_high": "loss",
	"hindsight_candidate_gain": "loss", "hindsight_candidate_gain_low": "loss", "hindsight_candidate_gain_high": "loss",
}

// unitOf returns the unit of a metric: what its name ends with, as the convention has it.
func unitOf(name string) string {
	if u := units[name]; u != "" {
		return u
	}
	name = strings.TrimSuffix(name, "_total")
	switch last := name[strings.LastIndexByte(name, '_')+1:]; last {
	case "seconds", "bytes", "records", "rounds", "ratio":
		return last
	}
	return "count"
}

// metricsPage returns the page that lists all metrics, in Markdown.
func metricsPage() string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(`# Metrics

~/metrics~ of ~decider~ and ~feedback-joiner~, by default at http://127.0.0.1:9464/metrics (~--admin~). A
process shows the joiner's metrics while its joiner works, and a decider's metrics for each partition it owns.
Labels have the listed values only; ~partition~ is 0 … P−1. The collectors of the Go runtime, the process and
the build come with them (~go_*~, ~process_*~).

Beside them: ~/healthz~ is 200 while the loops are alive. ~/readyz~ is 503, with the reason in one line, while
the process recovers, owns no partition, has no model, cannot reach the log, or one of its loops is stuck. A
decider's ~/certificate~ says in JSON what bounds the regret, on which assumptions, and whether they hold.
~/models?alpha=0.05&limit=1000~ lists the functions of its class that the data have not refuted.

[Alerts](alerts.md) says when to act. The status page shows most of these figures: [state](state.md).

This page is made from the code by ~go test ./internal/watch -run Reference -update~.

| metric | type | unit | labels | meaning | look when |
|---|---|---|---|---|---|
`, "~", "`"))
	for _, d := range MetricDocs() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", d.Name, d.Type, unitOf(d.Name), labels(&d), cell(d.Help),
			cell(d.Alert))
	}
	return b.String()
}

// labels lists the labels of a metric, and their values.
func labels(d *MetricDoc) string {
	var out []string
	for _, l := range d.Labels {
		if v := d.Values[l]; v != nil {
			l += ": " + strings.Join(v, ", ")
		}
		out = append(out, l)
	}
	return strings.Join(out, "; ")
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
