package browsertest

import (
	"bytes"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const faults = `<!doctype html><title>faults</title><link rel=icon href=data:,>
<style>body{background:#fff} @media (prefers-color-scheme: dark){body{background:#000}} @media ` +
	`print{#screen{display:none}}</style>
<p id=screen>on the screen</p><button onclick="this.textContent = 'clicked'" onmousemove="this.title = ` +
	`'moved'">press</button>
<script>
const fault = new URLSearchParams(location.search).get("fault");
if (fault == "error") console.error("said", {a: 1});
if (fault == "exception") setTimeout(() => { throw new Error("thrown"); }, 0);
if (fault == "promise") Promise.reject(new Error("broken"));
if (fault == "missing") fetch("/missing");
if (fault == "outside") fetch("http://example.com/x").catch(() => 0);
if (fault == "image") document.body.append(Object.assign(new Image(), {src: "/missing.png"}));
setTimeout(() => { document.title = "late"; }, 50);
</script>`

func serve(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, faults)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Every way in which a page can be wrong is seen, and none is seen in one that is not.
func TestBrowserSeesProblems(t *testing.T) {
	b, url := Start(t), serve(t)
	for fault, want := range map[string]string{"": "", "error": "said", "exception": "thrown", "promise": "broken",
		"missing": "404", "image": "404", "outside": "example.com"} {
		t.Run("fault="+fault, func(t *testing.T) {
			p := b.Open(t, url+"/?fault="+fault)
			p.Wait(`document.title == "late"`)
			if fault != "" {
				p.until(func(problems []string) bool { return len(problems) > 0 })
			}
			got := strings.Join(p.Problems(), "\n")
			if (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("problems %q, want one with %q", got, want)
			}
			if fault == "outside" && !slices.Contains(p.Requests(), "http://example.com/x") {
				t.Errorf("requests %q", p.Requests())
			}
		})
	}
}

// What cannot be read or has no name is found, on a light screen or on a dark one; a page without
// such faults passes.
func TestBrowserSeesBarriers(t *testing.T) {
	b := Start(t)
	for fault, want := range map[string]string{
		"": "", `<p style="color: #bbb; background: #fff">pale</p>`: "400 px: serious color-contrast",
		`<input>`: "1,200 px, dark: critical label",
		`<style>@media (prefers-color-scheme: dark) { p { color: #333 } }</style>`: "1,200 px, dark: serious " +
			"color-contrast",
		`<img src="data:,">`: "paper: critical image-alt",
	} {
		file := filepath.Join(t.TempDir(), "page.html")
		if err := os.WriteFile(file,
			[]byte(`<!doctype html><html lang="en"><title>page</title><main><h1>page</h1><p>text</p>`+
				`<style>@media (prefers-color-scheme: dark) { body { background: #000; color: #fff } }</style>`+fault),
			0o600); err != nil {
			t.Fatal(err)
		}
		found := strings.Join(b.Open(t, file).Accessible("barrier"), "\n")
		if (want == "") != (found == "") || !strings.Contains(found, want) {
			t.Errorf("%s: found %q, want %q", fault, found, want)
		}
	}
}

// until asks the page something until its problems are as wanted.
func (p *Page) until(done func([]string) bool) {
	p.t.Helper()
	for range 500 {
		if done(p.Problems()) {
			return
		}
		Eval[bool](p, `new Promise(r => setTimeout(() => r(true), 10))`)
	}
	p.t.Fatalf("problems %q", p.Problems())
}

func TestBrowserPlaysTheReader(t *testing.T) {
	b := Start(t)
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(faults), 0o600); err != nil {
		t.Fatal(err)
	}
	p := b.Open(t, file)
	if got := Eval[int](p, "innerWidth"); got != 1280 {
		t.Errorf("%d pixels wide", got)
	}
	p.Click("button")
	p.Wait(`document.querySelector("button").textContent == "clicked"`)
	p.Hover("button", .9, .5)
	p.Wait(`document.querySelector("button").title == "moved"`)
	shows := func(want bool) {
		t.Helper()
		if got := Eval[bool](p, `getComputedStyle(document.querySelector("#screen")).display != "none"`); got != want {
			t.Errorf("what is for the screen shows: %t", got)
		}
	}
	light := p.Picture("light")
	shows(true)
	p.Media(Media{Dark: true})
	if dark := p.Picture("dark"); bytes.Equal(light, dark) {
		t.Error("light and dark are alike")
	}
	p.Media(Media{Print: true})
	shows(false)
	p.Size(400, 300)
	small, err := png.Decode(bytes.NewReader(p.Picture("small")))
	if err != nil || small.Bounds().Dx() != 400 {
		t.Errorf("%v, %v", small.Bounds(), err)
	}
	if pdf := p.PDF("paper"); !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		t.Errorf("%.20q is no PDF", pdf)
	}
	if got := p.Requests(); len(got) != 1 {
		t.Errorf("requests %q", got)
	}
	if got := p.Problems(); len(got) > 0 {
		t.Errorf("problems %q", got)
	}
}

// Not finding a browser says where to get one.
func TestFindSaysHow(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HINDSIGHT_CHROMIUM", "")
	if _, err := find(); err == nil || !strings.Contains(err.Error(), "apt-get install chromium") {
		t.Errorf("%v", err)
	}
	t.Setenv("HINDSIGHT_CHROMIUM", "no-such-browser")
	if _, err := find(); err == nil || !strings.Contains(err.Error(), "no-such-browser") {
		t.Errorf("%v", err)
	}
}
