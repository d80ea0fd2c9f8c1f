package see

import (
	"fmt"
	"strings"
	"time"
)

// Rules returns the alarms as alerting rules for Prometheus.
func Rules() string {
	var b strings.Builder
	b.WriteString(`# Alerting rules for Prometheus, made from the code by: go test ./internal/see -run Documents -update
# What each means, and what to do about it, is in ALERTS.md. severity: wake (someone, at once) or look (today).
groups:
  - name: hindsight
    rules:
`)
	for _, a := range Alarms() {
		fmt.Fprintf(&b, "      - alert: Hindsight%s\n        expr: %q\n", a.Name, a.Expr)
		if a.For > 0 {
			fmt.Fprintf(&b, "        for: %s\n", promSpan(a.For))
		}
		fmt.Fprintf(&b, "        labels: {severity: %s}\n        annotations:\n          summary: %q\n          description: %q\n", a.Severity, a.Says, a.Do)
	}
	return b.String()
}

// promSpan writes a duration as Prometheus does.
func promSpan(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dm", d/time.Minute)
}

// AlertsPage returns the page that says what to do about each alarm, in Markdown.
func AlertsPage() string {
	var b strings.Builder
	b.WriteString(`# Alerts

What to be told of, and what to do then. ` + "`alerts.yml`" + ` has the conditions as rules for Prometheus, over all processes of a
model; the page at ` + "`/`" + ` of the admin port judges those marked with ● by what its own process sees, without Prometheus.
*wake*: someone, at once; *look*: today. All processes of a model must be one job, whose name begins with ` + "`hindsight`" + `: rules and
dashboard tell models apart by it. Where one Prometheus watches several models, give each a ` + "`job_name`" + ` of its own; on Kubernetes a
PodMonitor of its own (podmonitor.yaml). The rules hold with a ` + "`scrape_interval`" + ` of up to a minute, which is Prometheus's default; tell
Grafana what it is (*Scrape interval* of the data source), for the dashboard's rates.

This page and ` + "`alerts.yml`" + ` are made from the code by ` + "`go test ./internal/see -run Documents -update`" + `.

| alert | | for | what is wrong | what to do |
|---|---|---|---|---|
`)
	for _, a := range Alarms() {
		mark, hold := a.Severity, "at once"
		if !a.Elsewhere {
			mark += " ●"
		}
		if a.For > 0 {
			hold = promSpan(a.For)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", a.Name, mark, hold, cell(a.Says), cell(a.Do))
	}
	return b.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
