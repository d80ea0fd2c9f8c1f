package door

import (
	"bytes"
	_ "embed"
	"html/template"
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

// docsPage makes the page once.
var docsPage = sync.OnceValues(func() ([]byte, error) {
	var doc struct {
		Info       struct{ Title, Description string }
		Paths      map[string]map[string]any
		Components struct{ Schemas map[string]any }
	}
	if err := yaml.Unmarshal(openAPI, &doc); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err := docsTemplate.Execute(&out, doc)
	return out.Bytes(), err
})

func asYAML(v any) (string, error) {
	b, err := yaml.Marshal(v)
	return string(b), err
}

var docsTemplate = template.Must(template.New("docs").Funcs(template.FuncMap{"yaml": asYAML}).Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Info.Title}}: ` +
	`HTTP</title>
<style>body{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em}pre{background:#f4f4f4;padding:1em;
overflow:auto}code{font-weight:bold}</style>
<h1>{{.Info.Title}}</h1><p>{{.Info.Description}} <a href="/openapi.yaml">openapi.yaml</a></p>
<h2>Calls</h2>{{range $path, $calls := .Paths}}{{range $method, $call := $calls}}{{if ne $method "parameters"}}
<details id="{{$call.operationId}}"><summary><code>{{$method}} {{$path}}</code> {{$call.summary}}</summary>
<pre>{{yaml $call}}</pre></details>
{{end}}{{end}}{{end}}
<h2>Schemas</h2>{{range $name, $schema := .Components.Schemas}}
<details><summary><code>{{$name}}</code></summary><pre>{{yaml $schema}}</pre></details>{{end}}
</html>
`))
