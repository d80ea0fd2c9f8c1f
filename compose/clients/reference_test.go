package clients

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/testkit"
)

var update = flag.Bool("update", false, "write the pages of HTTP and topics, and kubernetes.yaml from the chart")

// document reads a description in YAML.
func document(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// inCell writes a text as a cell of a table.
func inCell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

// each calls do with the keys and values of a mapping, in its order.
func each(n *yaml.Node, do func(key string, value *yaml.Node)) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		do(n.Content[i].Value, n.Content[i+1])
	}
}

// madeFrom holds a page of the reference, made from a file.
func madeFrom(t *testing.T, b *strings.Builder, page, from string) {
	t.Helper()
	b.WriteString("\nThis page is made from `" + from + "` by `go test ./compose/clients -run Reference -update`.\n")
	testkit.Page(t, *update, "../../docs/reference/"+page, b.String())
}

// TestReferenceHTTP holds docs/reference/http.md, the calls of openapi.yaml.
func TestReferenceHTTP(t *testing.T) {
	var api struct{ Paths yaml.Node }
	document(t, "../../internal/door/openapi.yaml", &api)
	var b strings.Builder
	b.WriteString("# HTTP calls\n\n[HTTP](../http.md) explains how to use them. A decider serves the whole " +
		"description, with the schemas of bodies, at\n`/openapi.yaml`, and as a page at `/docs`.\n\n" +
		"| call | what it does | statuses |\n|---|---|---|\n")
	each(&api.Paths, func(path string, methods *yaml.Node) {
		each(methods, func(method string, n *yaml.Node) {
			if method == "parameters" {
				return
			}
			var call struct {
				Summary, Description string
				Responses            map[string]any
			}
			if err := n.Decode(&call); err != nil || call.Summary == "" || len(call.Responses) == 0 {
				t.Errorf("%s %s: %+v, %v", method, path, call, err)
			}
			var statuses []string
			for s := range call.Responses {
				statuses = append(statuses, s)
			}
			slices.Sort(statuses)
			fmt.Fprintf(&b, "| `%s %s` | %s. %s | %s |\n", strings.ToUpper(method), path, call.Summary,
				inCell(call.Description), strings.Join(statuses, ", "))
		})
	})
	madeFrom(t, &b, "http.md", "internal/door/openapi.yaml")
}

// TestReferenceTopics holds docs/reference/topics.md, the channels and messages of asyncapi.yaml.
func TestReferenceTopics(t *testing.T) {
	var api struct {
		Info     struct{ Description string }
		Channels yaml.Node
	}
	var messages struct {
		Components struct{ Messages yaml.Node }
	}
	document(t, "../asyncapi.yaml", &api)
	document(t, "../asyncapi.yaml", &messages)
	var b strings.Builder
	b.WriteString("# Topics and subjects\n\n" + strings.TrimSpace(api.Info.Description) +
		"\n\n| topic or subject | what it is | records |\n|---|---|---|\n")
	each(&api.Channels, func(name string, n *yaml.Node) {
		var c struct {
			Address, Description string
			Messages             yaml.Node
		}
		if err := n.Decode(&c); err != nil {
			t.Fatal(err)
		}
		if c.Address == "" {
			c.Address = "the inbox of a request"
		}
		var has []string
		each(&c.Messages, func(m string, _ *yaml.Node) {
			has = append(has, "["+m+"](#"+strings.ToLower(m)+")")
		})
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Address, inCell(c.Description), strings.Join(has, ", "))
	})
	each(&messages.Components.Messages, func(name string, n *yaml.Node) {
		var m struct {
			Summary, Description string
			Headers              struct{ Properties yaml.Node }
			Payload              map[string]string
		}
		if err := n.Decode(&m); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s.%s\n", name, inCell(m.Summary), strings.TrimRight(" "+inCell(m.Description),
			" "))
		if ref, _, file := strings.Cut(m.Payload["$ref"], "#/$defs/"); file {
			fmt.Fprintf(&b, "Keys: [%s](../../compose/%s).\n", ref, ref)
		}
		if len(m.Headers.Properties.Content) > 0 {
			b.WriteString("\n| header | meaning |\n|---|---|\n")
			each(&m.Headers.Properties, func(h string, n *yaml.Node) {
				var of struct{ Description, Const string }
				if err := n.Decode(&of); err != nil {
					t.Fatal(err)
				}
				if of.Const != "" {
					of.Description = "`" + of.Const + "`"
				}
				fmt.Fprintf(&b, "| `%s` | %s |\n", h, inCell(of.Description))
			})
		}
	})
	madeFrom(t, &b, "topics.md", "compose/asyncapi.yaml")
}
