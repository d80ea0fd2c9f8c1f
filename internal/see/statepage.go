package see

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"hindsight/internal/service"
)

// StatePage returns the page about the page: what it shows, and the fields of /state.
func StatePage() string {
	var b strings.Builder
	b.WriteString(`# The page

` + "`http://127.0.0.1:9464/`" + ` of every decider and feedback-joiner (` + "`--admin`" + `) is one page that shows what that process knows of
its loop, every second, with no network but that process: the loop with what passes a second, alarms with
what to do about each ([ALERTS.md](ALERTS.md)), loss over time beside uniform play, what is played, delays, fates, exploration, the
certificate with its assumptions, the last rejects. It shows names of actions and ids of rounds, no features and
no secrets; what is wrong with a rejected context may name the feature, without its value. A decider sees the feedback of all partitions and the decisions of its own; a joiner all of both, but no
certificate. Where both are in one process, which is the default, the page has everything.

` + "`/explain?id=ID`" + ` tells the life of one round in JSON, with ` + "`&format=text`" + ` for people: what ` + "`replayer explain ID`" + ` prints, without
the context. It reads the logs back from their ends for at most 20 seconds, one round at a time; ` + "`replayer explain`" + ` may
take its time.

## /state

The JSON behind the page. What the process does not know is null. Losses are on the scale of 0 to 1; where outcomes are rewards the
page shows rewards, on the model's own range.
This list is made from the code by ` + "`go test ./internal/see -run Documents -update`" + `.

| field | type | meaning |
|---|---|---|
`)
	describe(&b, "", reflect.TypeFor[State]())
	return b.String()
}

// describe writes the fields of a struct, and below each those of what it holds.
func describe(b *strings.Builder, prefix string, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", prefix+name, jsonType(f.Type), cell(f.Tag.Get("doc")))
		inner, suffix := f.Type, "."
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				suffix = "[]."
			}
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() && inner != reflect.TypeFor[service.CertificatePage]() {
			describe(b, prefix+name+suffix, inner)
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
