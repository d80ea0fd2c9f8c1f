package door

import (
	"bytes"
	_ "embed"
	"html/template"
	"iter"
	"net/http"
	"sync"

	"go.yaml.in/yaml/v3"

	"hindsight/compose/schemas"
)

//go:embed openapi.yaml
var openAPI []byte

// description answers with the OpenAPI description of these calls.
func (d *Door) description(w http.ResponseWriter, r *http.Request, _ client) *problem {
	send(w, r, http.StatusOK, "application/yaml", openAPI)
	return nil
}

// schema answers with the JSON Schema of what lies in a topic.
func (d *Door) schema(w http.ResponseWriter, r *http.Request, _ client) *problem {
	b, err := schemas.Files.ReadFile(r.PathValue("file"))
	if err != nil {
		return newProblem(http.StatusNotFound, "there is no such schema: decisions.json is one")
	}
	send(w, r, http.StatusOK, "application/schema+json", b)
	return nil
}

// docs answers with the description as a page, which loads nothing.
func (d *Door) docs(w http.ResponseWriter, r *http.Request, _ client) *problem {
	page, err := docsPage()
	if err != nil {
		return newProblem(http.StatusInternalServerError, "the description cannot be shown: "+err.Error())
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "+
		"form-action 'none'; frame-ancestors 'none'")
	send(w, r, http.StatusOK, "text/html; charset=utf-8", page)
	return nil
}

// block is one call, or one schema, of the page.
type block struct {
	Name, Summary, Text string // Text is its YAML
}

// docsPage makes the page once.
var docsPage = sync.OnceValues(func() ([]byte, error) {
	var doc struct {
		Info       struct{ Title, Description string }
		Paths      yaml.Node
		Components struct{ Schemas yaml.Node }
	}
	if err := yaml.Unmarshal(openAPI, &doc); err != nil {
		return nil, err
	}
	var calls, schemas []block
	for path, n := range pairs(&doc.Paths) {
		for method, call := range pairs(n) {
			if method != "parameters" {
				calls = append(calls, blockOf(method+" "+path, call))
			}
		}
	}
	for name, n := range pairs(&doc.Components.Schemas) {
		schemas = append(schemas, blockOf(name, n))
	}
	var out bytes.Buffer
	err := docsTemplate.Execute(&out, map[string]any{"Info": doc.Info, "Calls": calls, "Schemas": schemas})
	return out.Bytes(), err
})

// pairs yields the keys of a map in their order.
func pairs(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}

func blockOf(name string, n *yaml.Node) block {
	var of struct{ Summary string }
	_ = n.Decode(&of)          // a schema has none
	text, _ := yaml.Marshal(n) // of what was read
	return block{name, of.Summary, string(text)}
}

var docsTemplate = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Info.Title}}: ` +
	`HTTP</title>
<style>body{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em}pre{background:#f4f4f4;padding:1em;
overflow:auto}code{font-weight:bold}</style>
<h1>{{.Info.Title}}</h1><p>{{.Info.Description}} <a href="/openapi.yaml">openapi.yaml</a></p>
<h2>Calls</h2>{{range .Calls}}
<details><summary><code>{{.Name}}</code> {{.Summary}}</summary><pre>{{.Text}}</pre></details>{{end}}
<h2>Schemas</h2>{{range .Schemas}}
<details><summary><code>{{.Name}}</code></summary><pre>{{.Text}}</pre></details>{{end}}
</html>
`))
