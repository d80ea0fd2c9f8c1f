package see

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"hindsight/internal/daemon"
	"hindsight/internal/testkit"
	"hindsight/internal/watch"
)

var update = flag.Bool("update", false, "write the pages and files that are made from the code")

// documents are the files that are made from the code and its assets.
func documents(t *testing.T) map[string]string {
	return map[string]string{"docs/reference/alerts.md": alertsPage(), "compose/alerts.yml": string(alertRules),
		"docs/reference/state.md": statePage(t)}
}

// TestReferenceDocuments holds the pages of alerts and of the state, and the rules of Prometheus.
func TestReferenceDocuments(t *testing.T) {
	for name, want := range documents(t) {
		testkit.Page(t, *update, filepath.Join("../..", name), want)
	}
}

var metricOf = regexp.MustCompile(`\bhindsight_[a-z_]+`)

// foreign returns the metrics that a text names and that no process has, and the labels that
// they do not have.
func foreign(text string) (out []string) {
	known := map[string]watch.MetricDoc{}
	for _, d := range watch.MetricDocs() {
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
	all := documents(t)
	all["dashboard"] = expressions(t, dashboard(t))
	for name, text := range all {
		text = strings.ReplaceAll(text, `\"`, `"`)
		if f := foreign(text); f != nil {
			t.Errorf("%s names %v", name, f)
		}
		if !strings.Contains(text, "hindsight_") && !strings.HasSuffix(name, ".md") {
			t.Errorf("%s names no metric", name)
		}
	}
	for _, planted := range []string{"rate(hindsight_nothing_total[1m])", `hindsight_at_work{role="cook"}`,
		`hindsight_at_work{rule="joiner"}`, "hindsight_ready_bucket"} {
		if foreign(planted) == nil {
			t.Errorf("%s is not seen", planted)
		}
	}
}

// Nor does the page look at one: a figure of a name that nobody has would be missing for ever.
func TestNoForeignMetricsHere(t *testing.T) {
	b, err := os.ReadFile("build.go")
	if err != nil {
		t.Fatal(err)
	}
	// values of labels that are variables
	text := regexp.MustCompile(`\{\w+="\+[^}]*\}`).ReplaceAllString(string(b), "")
	if f := foreign(text); f != nil || !strings.Contains(text, "hindsight_gamma") {
		t.Errorf("build.go names %v", f)
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

// Each rule has all of its parts, its name once, and no others.
func TestRulesParse(t *testing.T) {
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	strict := yaml.NewDecoder(bytes.NewReader(alertRules))
	strict.KnownFields(true)
	if err := strict.Decode(&file); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, a := range alarms() {
		name, said := file.Groups[0].Rules[i].Alert, a.Annotations
		if name != "Hindsight"+a.Name || seen[name] || a.Expr == "" || said.Says == "" || said.Do == "" ||
			!slices.Contains([]string{"wake", "look"}, a.Labels.Severity) {
			t.Errorf("%s is there twice, or says too little: %+v", name, a)
		}
		seen[name] = true
	}
	for _, name := range prometheusOnly {
		if !seen["Hindsight"+name] {
			t.Errorf("%s is no alarm", name)
		}
	}
}

// ofMetrics finds the names of metrics, and the brace that begins their labels.
var ofMetrics = regexp.MustCompile(`\b(?:hindsight|process|go)_\w+(\{)?`)

// mixes reports whether an expression adds up, or joins, processes of different models.
func mixes(expr string) bool {
	for _, at := range regexp.MustCompile(`\b(?:sum|min|max|avg|count)(?: by)? ?\(|\bon \(`).FindAllStringIndex(expr,
		-1) {
		labels, _, _ := strings.Cut(expr[at[1]:], ")")
		if !slices.Contains(strings.Split(labels, ", "), "job") {
			return true
		}
	}
	return false
}

// Two models under one Prometheus do not disturb one another.
func TestModelsApart(t *testing.T) {
	for _, a := range alarms() {
		if mixes(a.Expr) {
			t.Errorf("%s takes several jobs for one model: %s", a.Name, a.Expr)
		}
	}
	for _, expr := range strings.Split(expressions(t, dashboard(t)), "\n") {
		if n := len(ofMetrics.FindAllString(expr, -1)); n == 0 || n != strings.Count(expr, `{job=~"$job"`) {
			t.Errorf("the dashboard shows processes of any model: %s", expr)
		}
	}
	for _, planted := range []string{`sum(up)`, `sum by (le) (up)`, `up > 0 and on () up`,
		`sum by (job) (up) > max(up)`} {
		if !mixes(planted) {
			t.Errorf("%s is not seen", planted)
		}
	}
}

var spanOf = regexp.MustCompile(`\[(\w+)[\]:]`)

// brief returns the ranges of an expression that are too short where Prometheus scrapes once a
// minute, as it does unless it is told otherwise: four samples must be in one.
func brief(t *testing.T, expr string) (out []string) {
	for _, m := range spanOf.FindAllStringSubmatch(expr, -1) {
		d, err := model.ParseDuration(m[1])
		if err != nil {
			t.Fatal(err)
		}
		if time.Duration(d) < 4*time.Minute {
			out = append(out, m[0])
		}
	}
	return out
}

// Rules and panels work at Prometheus's own scrape interval.
func TestRanges(t *testing.T) {
	all := strings.Split(expressions(t, dashboard(t)), "\n")
	for _, a := range alarms() {
		all = append(all, a.Expr)
	}
	for _, expr := range all {
		if b := brief(t, strings.ReplaceAll(expr, "[$__rate_interval]", "")); b != nil {
			t.Errorf("%s: %v", expr, b)
		}
	}
	if brief(t, "rate(x[1m])") == nil || brief(t, "avg_over_time(x[1m:1m])") == nil || brief(t, "rate(x[5m])") != nil {
		t.Error("a short range is not seen")
	}
}

// On Kubernetes the pods of kubernetes.yaml are found by podmonitor.yaml, with their token, as a
// job that the rules are over; and by nothing that would take two models for one.
func TestPodMonitor(t *testing.T) {
	type object = map[string]any
	read := func(name string) (text string, all []object) {
		b, err := os.ReadFile(filepath.Join("../../compose", name))
		if err != nil {
			t.Fatal(err)
		}
		for d := yaml.NewDecoder(bytes.NewReader(b)); ; {
			var o object
			if err := d.Decode(&o); errors.Is(err, io.EOF) {
				return string(b), all
			} else if err != nil {
				t.Fatal(err)
			}
			all = append(all, o)
		}
	}
	at := func(v any, path ...any) any {
		for _, p := range path {
			switch p := p.(type) {
			case string:
				v = v.(object)[p]
			case int:
				v = v.([]any)[p]
			}
		}
		return v
	}
	text, objects := read("kubernetes.yaml")
	if strings.Contains(text, "prometheus.io/") {
		t.Error("annotations of Prometheus make one job of all models, without the token")
	}
	_, monitors := read("podmonitor.yaml")
	spec := at(monitors[0], "spec")
	endpoint := at(spec, "podMetricsEndpoints", 0)
	if job, _ := at(endpoint, "relabelings", 0, "replacement").(string); at(endpoint, "relabelings", 0,
		"targetLabel") != "job" || !strings.HasPrefix(job, "hindsight") {
		t.Errorf("the job is %q", job)
	}
	found := false
	for _, o := range objects {
		if o["kind"] != "Deployment" || !reflect.DeepEqual(at(o, "spec", "template", "metadata", "labels"),
			at(spec, "selector", "matchLabels")) {
			continue
		}
		found = true
		c := at(o, "spec", "template", "spec", "containers", 0)
		token := slices.ContainsFunc(at(c, "env").([]any), func(v any) bool {
			return at(v, "name") == daemon.AdminTokenEnv && reflect.DeepEqual(at(v, "valueFrom", "secretKeyRef"),
				at(endpoint, "authorization", "credentials"))
		})
		if !token || at(o, "metadata", "namespace") != at(monitors[0], "metadata", "namespace") ||
			at(c, "ports", 0, "name") != at(endpoint, "port") {
			t.Errorf("it is not what the deployment says: %v", endpoint)
		}
	}
	if !found {
		t.Error("no deployment is selected")
	}
}

var meanOf = regexp.MustCompile(`\bavg(?: by \(\w+\) )?\((\w+)\{[^}]*\}( >= 0| > -Inf)?\)`)

// A process that knows nothing yet, and says NaN, does not blank the mean over all.
func TestPanelsWithoutNaN(t *testing.T) {
	all := expressions(t, dashboard(t))
	means := meanOf.FindAllStringSubmatch(all, -1)
	for _, m := range means {
		if m[1] != "hindsight_gamma" && m[2] == "" { // γ is a number from the start
			t.Errorf("%s is NaN while one process says NaN", m[0])
		}
	}
	if n := strings.Count(all, "avg"); n < 7 || n != len(means) {
		t.Errorf("%d means of %d are understood", len(means), n)
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
	for _, args := range [][]string{{"check", "config", "--syntax-only", "../../compose/prometheus.yml"},
		{"check", "rules", "../../compose/alerts.yml"}} {
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
	for _, expr := range strings.Split(expressions(t, dashboard(t)), "\n") {
		queries = append(queries, rule{"x", strings.ReplaceAll(expr, "$__rate_interval", "5m")})
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
