package door

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hindsight/internal/browsertest"
)

// page is a web page of another origin that asks by all means that a page has: WHERE is the door.
const page = `<!doctype html><title>elsewhere</title><iframe name="out"></iframe>
<form target="out" method="post" enctype="text/plain" action="WHERE/v1/decide"><input name='{"id":"form",` +
	`"actions":["x","y"],"z":"'
value='"}'></form><script>
const body = (id) => JSON.stringify({id: id, actions: ["x", "y"]});
const post = (id, type, more) => fetch("WHERE/v1/decide", {method: "POST", headers: {"Content-Type": type}, body: ` +
	`body(id), ...more})
  .then((r) => r.type == "opaque" ? "opaque" : "read " + r.status, () => "refused");
async function attack() {
  document.forms[0].submit();
  navigator.sendBeacon("WHERE/v1/decide", new Blob([body("beacon")], {type: "text/plain"}));
  return [await post("json", "application/json"), await post("plain", "text/plain", {mode: "no-cors"}),
    await post("blind", "application/json", {mode: "no-cors"}),
    await fetch("WHERE/v1/state").then(() => "read", () => "refused")].join(", ");
}
</script>`

// TestBrowserOrigins holds that no web page of another origin can ask, and that those of an origin that is named can.
func TestBrowserOrigins(t *testing.T) {
	b := browsertest.Start(t)
	var where string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, strings.ReplaceAll(page, "WHERE", where))
	}))
	defer elsewhere.Close()
	for _, c := range []struct {
		origin string // that may ask
		want   string
		ids    int // that were decided
	}{
		{"https://shop.example", "refused, opaque, opaque, refused", 0},
		{elsewhere.URL, "read 200, opaque, opaque, read", 1},
	} {
		w := open(t, setting{flags: []string{"--http-origin", c.origin}})
		where = w.url
		p := b.Open(t, elsewhere.URL+"/")
		if got := browsertest.Eval[string](p, "attack()"); got != c.want {
			t.Errorf("with --http-origin %s: %s; want %s", c.origin, got, c.want)
		}
		if n := len(w.records("shop.decisions")); n != c.ids {
			t.Errorf("with --http-origin %s: %d decisions", c.origin, n)
		}
		w.stop()
	}
}

// TestBrowserDocs holds that the page of the calls shows them, and that nothing goes wrong in it.
func TestBrowserDocs(t *testing.T) {
	b := browsertest.Start(t)
	w := open(t, setting{})
	p := b.Open(t, w.url+"/docs")
	p.Click("#decide summary")
	p.Wait(`document.querySelector("#decide[open] pre").textContent.includes("operationId: decide")`)
	if said := p.Problems(); len(said) > 0 {
		t.Errorf("the page says %q", said)
	}
}
