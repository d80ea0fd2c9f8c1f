package see

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/service"
)

var update = flag.Bool("update", false, "write the pages and files that are made from the code")

// documents are the files that are made from the code.
func documents() map[string]string {
	return map[string]string{"ALERTS.md": AlertsPage(), "alerts.yml": Rules(), "PAGE.md": StatePage(), "grafana/dashboards/hindsight.json": Dashboard()}
}

func TestDocuments(t *testing.T) {
	for name, want := range documents() {
		path := filepath.Join("../../compose", name)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("compose/%s is not what the code says (%v); write it with: go test ./internal/see -run Documents -update", name, err)
		}
	}
}

var metricOf = regexp.MustCompile(`\bhindsight_[a-z_]+`)

// foreign returns the metrics that a text names and that no process has, and the labels that
// they do not have.
func foreign(text string) (out []string) {
	known := map[string]service.MetricDoc{}
	for _, d := range service.MetricDocs() {
		known[d.Name] = d
		if d.Type == "histogram" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				known[d.Name+suffix] = d
			}
		}
	}
	for _, at := range metricOf.FindAllStringIndex(text, -1) {
		name := text[at[0]:at[1]]
		d, ok := known[name]
		if !ok {
			out = append(out, name)
			continue
		}
		if rest := text[at[1]:]; strings.HasPrefix(rest, "{") {
			inside, _, _ := strings.Cut(rest[1:], "}")
			for _, match := range strings.Split(inside, ",") {
				label, value, _ := strings.Cut(match, "=")
				value = strings.Trim(value, "~\"")
				if label == "job" { // Prometheus's own: one a model
					continue
				}
				if v := d.Values[label]; !slices.Contains(d.Labels, label) || v != nil && !slices.Contains(v, value) {
					out = append(out, name+"{"+match+"}")
				}
			}
		}
	}
	return out
}

// No rule and no panel names a metric, or a value of a label, that does not exist.
func TestNoForeignMetrics(t *testing.T) {
	for name, text := range documents() {
		if strings.HasSuffix(name, ".json") {
			text = expressions(t, text)
		}
		text = strings.ReplaceAll(text, `\"`, `"`)
		if f := foreign(text); f != nil {
			t.Errorf("%s names %v", name, f)
		}
		if !strings.Contains(text, "hindsight_") && name != "PAGE.md" && name != "ALERTS.md" {
			t.Errorf("%s names no metric", name)
		}
	}
	for _, planted := range []string{"rate(hindsight_nothing_total[1m])", `hindsight_at_work{role="cook"}`, `hindsight_at_work{rule="joiner"}`, "hindsight_ready_bucket"} {
		if foreign(planted) == nil {
			t.Errorf("%s is not seen", planted)
		}
	}
}

// Nor do the alarms that a process judges, and its page, look at one: an alarm on a name that
// nobody has would be silent for ever.
func TestNoForeignMetricsHere(t *testing.T) {
	for _, name := range []string{"alarms.go", "build.go"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`\{\w+="\+[^}]*\}`).ReplaceAllString(string(b), "") // values of labels that are variables
		if f := foreign(text); f != nil || !strings.Contains(text, "hindsight_gamma") && !strings.Contains(text, "hindsight_ready") {
			t.Errorf("%s names %v", name, f)
		}
	}
}

// expressions returns all queries of a dashboard.
func expressions(t *testing.T, text string) string {
	t.Helper()
	var d struct {
		Panels []struct {
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	var out []string
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" || at[0] >= 24 {
					t.Fatalf("%s lies over %s", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
		for _, target := range p.Targets {
			out = append(out, target.Expr)
		}
	}
	return strings.Join(out, "\n")
}

// The rules are what Prometheus takes, as far as YAML goes.
func TestRulesParse(t *testing.T) {
	var r struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(Rules()), &r); err != nil {
		t.Fatal(err)
	}
	all := Alarms()
	if len(r.Groups) != 1 || len(r.Groups[0].Rules) != len(all) {
		t.Fatalf("%d rules of %d alarms", len(r.Groups[0].Rules), len(all))
	}
	seen := map[string]bool{}
	for i, got := range r.Groups[0].Rules {
		a := all[i]
		if got.Alert != "Hindsight"+a.Name || got.Expr != a.Expr || got.Annotations["description"] != a.Do || got.Labels["severity"] != a.Severity {
			t.Errorf("%+v is not %+v", got, a)
		}
		if seen[a.Name] || a.Says == "" || a.Do == "" || a.Severity != Wake && a.Severity != Look {
			t.Errorf("%s is there twice, or says too little", a.Name)
		}
		seen[a.Name] = true
	}
}

// mixes reports whether an expression adds up, or joins, processes of different models.
func mixes(expr string) bool {
	for _, at := range regexp.MustCompile(`\b(?:sum|min|max|avg|count)(?: by)? ?\(|\bon \(`).FindAllStringIndex(expr, -1) {
		labels, _, _ := strings.Cut(expr[at[1]:], ")")
		if !slices.Contains(strings.Split(labels, ", "), "job") {
			return true
		}
	}
	return false
}

// Two models under one Prometheus do not disturb one another.
func TestModelsApart(t *testing.T) {
	for _, a := range Alarms() {
		if mixes(a.Expr) {
			t.Errorf("%s takes several jobs for one model: %s", a.Name, a.Expr)
		}
	}
	for _, expr := range strings.Split(expressions(t, Dashboard()), "\n") {
		if n := len(series.FindAllString(expr, -1)); n == 0 || n != strings.Count(expr, `{job=~"$job"`) {
			t.Errorf("the dashboard shows processes of any model: %s", expr)
		}
	}
	for _, planted := range []string{`sum(up)`, `sum by (le) (up)`, `up > 0 and on () up`, `sum by (job) (up) > max(up)`} {
		if !mixes(planted) {
			t.Errorf("%s is not seen", planted)
		}
	}
}

// Promtool, where it is at hand, judges the rules, the configuration and the queries of the
// dashboard, and plays the rules of testdata/alerts_test.yml.
func TestPromtool(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool here; Debian has it: apt-get install prometheus")
	}
	run := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{{"check", "config", "--syntax-only", "../../compose/prometheus.yml"}, {"check", "rules", "../../compose/alerts.yml"}} {
		if out, err := run(args...); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if out, err := run("test", "rules", "testdata/alerts_test.yml"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var queries []rule
	for _, expr := range strings.Split(expressions(t, Dashboard()), "\n") {
		queries = append(queries, rule{"x", expr})
	}
	check := func(rules []rule) error {
		b, err := yaml.Marshal(map[string]any{"groups": []map[string]any{{"name": "panels", "rules": rules}}})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "panels.yml")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := run("check", "rules", "--lint=none", path); err != nil {
			t.Log(out)
			return err
		}
		return nil
	}
	if err := check(queries); err != nil {
		t.Errorf("queries of the dashboard: %v", err)
	}
	if check([]rule{{"x", "rate(hindsight_outcomes_total[1m]"}}) == nil {
		t.Error("a query that is none is accepted")
	}
}
