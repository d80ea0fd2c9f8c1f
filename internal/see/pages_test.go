package see

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"hindsight/internal/service"
)

// dashboard returns Grafana's dashboard.
func dashboard(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../compose/grafana/dashboards/hindsight.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// promSpan writes a duration as Prometheus does.
func promSpan(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dm", d/time.Minute)
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// alertsPage returns the page that says what to do about each alarm, in Markdown.
func alertsPage() string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(`# Alerts

What each alarm means, and what to do. [alerts.yml](../../compose/alerts.yml) has the conditions as rules for
Prometheus, over all processes of a model. The status page judges those marked with ● from what its own process
sees, without Prometheus. *wake*: someone, at once; *look*: today.

All processes of a model must be one job whose name begins with ~hindsight~: rules and dashboard tell models
apart by it. If one Prometheus watches several models, give each its own ~job_name~; on Kubernetes its own
PodMonitor ([podmonitor.yaml](../../compose/podmonitor.yaml)). The rules work with a ~scrape_interval~ of up to
a minute, Prometheus's default. Set the same value as *Scrape interval* of Grafana's data source: the
dashboard's rates need it.

This page is made from ~alerts.yml~ by ~go test ./internal/see -run Reference -update~.

| alert | | for | what is wrong | what to do |
|---|---|---|---|---|
`, "~", "`"))
	for _, a := range alarms() {
		mark, hold := a.Labels.Severity, "at once"
		if !a.elsewhere() {
			mark += " ●"
		}
		if a.For > 0 {
			hold = promSpan(a.For)
		}
		says, do := cell(a.Annotations.Says), cell(a.Annotations.Do)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", a.Name, mark, hold, says, do)
	}
	return b.String()
}

// statePage returns the page about the page: what it shows, and the fields of /state.
func statePage(t *testing.T) string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(`# Status page and /state

http://127.0.0.1:9464/ of every decider and feedback-joiner (~--admin~) shows what that process knows of its
loop, every second, and loads nothing from elsewhere: rates, alarms with [what to do](alerts.md), loss over time
compared with uniform play, actions, delays, fates, exploration, the certificate with its assumptions, and the
last rejects.

It shows names of actions and ids of rounds, no features and no secrets; a rejected context's detail may name
the feature, without its value. A decider sees the feedback of all partitions and the decisions of its own. A
joiner sees all of both, but no certificate. If both run in one process, the default, the page has everything.

~/explain?id=ID~ returns the life of one round as JSON, and with ~&format=text~ as text: what ~replayer explain
ID~ prints, without the context. It reads the logs back for at most 20 seconds, one round at a time; ~replayer
explain~ may take longer.

## /state

The JSON behind the page. Unknown values are null. Losses are between 0 and 1. If outcomes are rewards, the page
shows rewards on the model's range.

This list is made from the code by ~go test ./internal/see -run Reference -update~.

| field | type | meaning |
|---|---|---|
`, "~", "`"))
	describe(&b, comments(t), "", reflect.TypeFor[state]())
	return b.String()
}

// comments returns what the comments of this package, and of the page /candidates, say of the fields of its structs, by TYPE.FIELD.
func comments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, name := range append(files, "../service/candidates.go", "../ledger/ledger.go") {
		f, err := goparser.ParseFile(gotoken.NewFileSet(), name, nil, goparser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, id := range field.Names {
						text := field.Doc.Text() + field.Comment.Text()
						out[spec.Name.Name+"."+id.Name] = strings.Join(strings.Fields(text), " ")
					}
				}
			}
			return true
		})
	}
	return out
}

// describe writes the fields of a struct, and below each those of what it holds.
func describe(b *strings.Builder, says map[string]string, prefix string, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", prefix+name, jsonType(f.Type), cell(says[t.Name()+"."+f.Name]))
		inner, suffix := f.Type, "."
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				suffix = "[]."
			}
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() &&
			inner != reflect.TypeFor[service.CertificatePage]() {
			describe(b, says, prefix+name+suffix, inner)
		}
	}
}

// jsonType names a type as JSON has it.
func jsonType(t reflect.Type) string {
	null := ""
	if t.Kind() == reflect.Pointer {
		t, null = t.Elem(), " or null"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "list"
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return "time" + null
		}
		return "object" + null
	case reflect.Map:
		return "object"
	}
	return "number" + null
}
