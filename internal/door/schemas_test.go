package door

import (
	"encoding/json"
	"strings"
	"testing"

	"hindsight/compose/schemas"
)

// TestSchemas: each schema is served under its name, to anybody, and nothing else is.
func TestSchemas(t *testing.T) {
	file, _ := keyFile(t, "web decide")
	w := open(t, setting{flags: []string{"--keys", file}})
	files, err := schemas.Files.ReadDir(".")
	if err != nil || len(files) != 6 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		got := w.call("GET", "/schemas/"+f.Name(), "", "Accept-Encoding: identity")
		var s struct{ Title string }
		if err := json.Unmarshal(got.body, &s); got.status != 200 || err != nil || s.Title+".json" != f.Name() ||
			got.header.Get("Content-Type") != "application/schema+json" {
			t.Errorf("%s: %d %v %v", f.Name(), got.status, err, got.header)
		}
	}
	for _, name := range []string{"none.json", "..%2Fschemas.go", "%2e%2e", "."} {
		if got := w.call("GET", "/schemas/"+name, ""); strings.Contains(string(got.body), "$schema") ||
			got.status == 200 {
			t.Errorf("%s: %d %.80s", name, got.status, got.body)
		}
	}
}
