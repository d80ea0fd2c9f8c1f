package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
)

// audit returns what axe-core calls serious or critical, with the first elements of each.
const audit = `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations
	.filter((v) => v.impact === "serious" || v.impact === "critical")
	.map((v) => v.impact + " " + v.id + " in " + v.nodes.length + ": " + v.nodes.slice(0, 3)
		.map((n) => n.target.join(" ") + " " + (n.any[0]?.message || "")).join("; ")))`

// shows are what a page is audited on.
var shows = []struct {
	name  string
	width int
	Media
}{{"400 px", 400, Media{}}, {"400 px, dark", 400, Media{Dark: true}}, {"1,200 px", 1200, Media{}},
	{"1,200 px, dark", 1200, Media{Dark: true}}, {"paper", 1200, Media{Print: true}}}

// Accessible returns what axe-core finds in the page on a narrow and on a wide screen, light and
// dark, and on paper, and may keep a picture of each. axe-core is looked for in NODE_PATH; without
// it the test is skipped, or fails as the package says.
func (p *Page) Accessible(name string) (found []string) {
	p.t.Helper()
	path := filepath.Join(os.Getenv("NODE_PATH"), "axe-core", "axe.min.js")
	script, err := os.ReadFile(path)
	if err != nil && os.Getenv("HINDSIGHT_BROWSER") == "require" {
		p.t.Fatal(err)
	} else if err != nil {
		p.t.Skip("axe-core is not in NODE_PATH: .ci/browser installs it")
	}
	Eval[bool](p, string(script)+"\n;true")
	for _, s := range shows {
		p.Size(s.width, 900)
		p.Media(s.Media)
		if os.Getenv("HINDSIGHT_PICTURES") != "" {
			p.Picture(name + " " + s.name)
		}
		for _, f := range Eval[[]string](p, audit) {
			found = append(found, fmt.Sprintf("%s: %s", s.name, f))
		}
	}
	p.Size(1280, 800)
	p.Media(Media{})
	return found
}
