package door

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/vmihailenco/msgpack/v5"
	"go.yaml.in/yaml/v3"

	"hindsight/internal/daemon"
	"hindsight/pkg/codec"
)

// contract is what openapi.yaml says, which every answer of the tests must keep.
type contract struct {
	doc map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

var promised = sync.OnceValue(func() *contract {
	var doc map[string]any
	if err := yaml.Unmarshal(openAPI, &doc); err != nil {
		panic(err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	c := &contract{doc: resource.(map[string]any), compiler: jsonschema.NewCompiler()}
	if err := c.compiler.AddResource("mem:///openapi.json", resource); err != nil {
		panic(err)
	}
	return c
})

// at returns what lies at keys below a value, and follows references; nil: nothing.
func (c *contract) at(v any, pointer string, keys ...string) (any, string) {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		if v = m[k]; v == nil {
			return nil, ""
		}
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(k)
		if ref, ok := v.(map[string]any)["$ref"].(string); ok {
			pointer = ref
			v = c.doc
			for _, k := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
				v = v.(map[string]any)[k]
			}
		}
	}
	return v, pointer
}

// pathOf returns the path of the description that a request's path is one of; "": none.
func (c *contract) pathOf(path string) string {
	given := strings.Split(path, "/")
	for template := range c.doc["paths"].(map[string]any) {
		parts := strings.Split(template, "/")
		same := len(parts) == len(given)
		for i := 0; same && i < len(parts); i++ {
			same = parts[i] == given[i] || strings.HasPrefix(parts[i], "{")
		}
		if same {
			return template
		}
	}
	return ""
}

// check reports what of an answer is not as promised.
func (c *contract) check(t testing.TB, r *http.Request, got reply) {
	t.Helper()
	path := c.pathOf(r.URL.EscapedPath())
	if path == "" || r.Method == http.MethodOptions {
		return
	}
	method := strings.ToLower(r.Method)
	if calls := c.doc["paths"].(map[string]any)[path].(map[string]any); calls[method] == nil {
		if method = "get"; calls[method] == nil {
			method = "post"
		}
	}
	number, _ := json.Marshal(got.status)
	response, pointer := c.at(c.doc, "#", "paths", path, method, "responses", string(number))
	if response == nil {
		t.Errorf("%s %s: %d is not described: %.200s", r.Method, path, got.status, got.body)
		return
	}
	if response.(map[string]any)["content"] == nil {
		if len(got.body) > 0 {
			t.Errorf("%s %s: %d with a body is not described: %.200s", r.Method, path, got.status, got.body)
		}
		return
	}
	kind, _, _ := mime.ParseMediaType(got.header.Get("Content-Type"))
	schema, pointer := c.at(response, pointer, "content", kind, "schema")
	if schema == nil {
		t.Errorf("%s %s: %d as %q is not described", r.Method, path, got.status, kind)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.headers(response) {
		if got.header.Get(name) == "" {
			t.Errorf("%s %s: %d has no header %s", r.Method, path, got.status, name)
		}
	}
	c.valid(t, pointer, kind, got.body)
	if got.status < 300 && method == "post" && r.Header.Get("Content-Encoding") == "" &&
		!bytes.Contains(got.body, []byte("about:blank")) { // of a batch, requests may be refused
		c.asked(t, r, path, method)
	}
}

// asked holds that a request that was carried out is one of those described.
func (c *contract) asked(t testing.TB, r *http.Request, path, method string) {
	t.Helper()
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	_, pointer := c.at(c.doc, "#", "paths", path, method, "requestBody", "content", kind, "schema")
	body, err := r.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	if pointer == "" {
		t.Errorf("%s %s: a body of %q is not described", method, path, kind)
	} else {
		c.valid(t, pointer, kind, text)
	}
}

// valid reports what of a text is not as the schema at a place says. MessagePack has the keys of JSON.
func (c *contract) valid(t testing.TB, pointer, kind string, text []byte) {
	t.Helper()
	switch {
	case kind == typePack:
		pointer = strings.Replace(pointer, "msgpack", "json", 1)
		var v any
		err := msgpack.Unmarshal(text, &v)
		if err == nil {
			text, err = json.Marshal(v)
		}
		if err != nil {
			t.Errorf("%s: %v: %q", pointer, err, text)
			return
		}
	case !strings.HasSuffix(kind, "json"):
		return
	}
	s, err := c.compiler.Compile("mem:///openapi.json" + pointer)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		t.Errorf("%s: not as described: %v\n%.400s", pointer, err, text)
	}
}

func (c *contract) headers(response any) map[string]any {
	h, _ := response.(map[string]any)["headers"].(map[string]any)
	return h
}

// TestContractCanFail holds that an answer that is not as described is seen.
func TestContractCanFail(t *testing.T) {
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/outcome",
		strings.NewReader(`{"id":"a","loss":1}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", typeJSON)
	asJSON, asPack := http.Header{"Content-Type": {typeJSON}}, http.Header{"Content-Type": {typePack}}
	for what, got := range map[string]reply{
		"another status": {200, asJSON, []byte(`{"id":"a","stored":true}`)},
		"another type":   {202, http.Header{"Content-Type": {"text/plain"}}, []byte(`{"id":"a","stored":true}`)},
		"a missing key":  {202, asJSON, []byte(`{"id":"a"}`)},
		"another key":    {202, asJSON, []byte(`{"id":"a","stored":true,"x":1}`)},
		"no JSON":        {202, asJSON, []byte(`{`)},
		"no Retry-After": {503, http.Header{"Content-Type": {typeProblem}},
			[]byte(`{"type":"about:blank","title":"x","status":503,"detail":"x"}`)},
		"a missing detail": {400, http.Header{"Content-Type": {typeProblem}},
			[]byte(`{"type":"about:blank","title":"x","status":400,"detail":""}`)},
		"no MessagePack":             {202, asPack, []byte("{")},
		"another key of MessagePack": {202, asPack, []byte("\x81\xa1a\x01")},
		"as it should be 3":          {202, asPack, codec.AppendStored(nil, "a", false)},
		"as it should be":            {202, asJSON, []byte(`{"id":"a","stored":true}`)},
		"as it should be 2": {400, http.Header{"Content-Type": {typeProblem}},
			[]byte(`{"type":"about:blank","title":"x","status":400,"detail":"x"}`)},
	} {
		seen := &failures{TB: t}
		promised().check(seen, r, got)
		if (seen.n == 0) != strings.HasPrefix(what, "as it should be") {
			t.Errorf("%s: %d failures", what, seen.n)
		}
	}
}

// failures counts what it is told.
type failures struct {
	testing.TB
	n int
}

func (f *failures) Errorf(string, ...any) { f.n++ }

// TestDocs holds that the description is served, and shown on a page that names every call and loads nothing.
func TestDocs(t *testing.T) {
	file, _ := keyFile(t, "web decide")
	w := open(t, setting{flags: []string{"--keys", file}})
	if got := w.call("GET", "/openapi.yaml", "", "Accept-Encoding: identity"); got.status != 200 ||
		!bytes.Equal(got.body, openAPI) {
		t.Errorf("%d %.100s", got.status, got.body)
	}
	got := w.call("GET", "/docs", "", "Accept-Encoding: identity")
	page := string(got.body)
	for path := range promised().doc["paths"].(map[string]any) {
		if !strings.Contains(page, " "+path+"</code>") {
			t.Errorf("%s is not on the page", path)
		}
	}
	for _, other := range []string{"<script", "src=", "http://", "https://", "@import", "url("} {
		if strings.Contains(page, other) {
			t.Errorf("the page has %s", other)
		}
	}
	if got.status != 200 || !strings.HasPrefix(got.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d %v", got.status, got.header)
	}
}

// assigned1 is a decision of another system.
const assigned1 = `{"id":"b","actions":["x","y"],"assigned":{"action":"x"}}`

// class is a model over two functions, and its file.
const class = "oracle: {kind: hedge, eta: 0.5, class: c.jsonl}\n"

var classFile = map[string][]byte{"c.jsonl": []byte(`{"hindsight_class":1,"kind":"linear","features":["hour"],` +
	`"actions":["x","y"]}
{"prior":1,"w":[[0,0.9],[0,0.9]]}
{"prior":1,"w":[[0,0.95],[0,0.95]]}
`)}

// TestDescribedAnswers holds that every answer that is described is given.
func TestDescribedAnswers(t *testing.T) {
	file, keys := keyFile(t, "web decide", "desk read")
	w := open(t, setting{model: class, files: classFile})
	locked, limited := open(t, setting{flags: []string{"--keys", file}}), open(t, setting{clientRate: 1})
	slow, full, broken := open(t, setting{slow: 50 * time.Millisecond}), open(t, setting{}), open(t, setting{})
	full.door.held.Store(maxHeld)
	w.decide(context1)
	w.call("POST", "/v1/assignments", assigned1)
	w.call("POST", "/ofrep/v1/evaluate/flags/shop", `{"context":{"targetingKey":"a"}}`)
	induce := func(method, template string, status int) reply {
		path := strings.NewReplacer("{model}", "shop", "{key}", "shop", "{file}", "decisions.json", "{id}",
			"a").Replace(template)
		other := strings.NewReplacer("shop", "other", "decisions", "other").Replace(path)
		body := context1
		switch {
		case method == "GET":
			body = ""
		case path == "/v1/outcome":
			body = `{"id":"a","loss":1}`
		case path == "/v1/assignments":
			body = assigned1
		case path == "/v1/batch":
			body = "[]"
		case strings.HasPrefix(path, "/ofrep"):
			body = `{"context":{"targetingKey":"a"},"details":{"value":1}}`
		}
		switch {
		case status == 401:
			return locked.call(method, path, body)
		case status == 403 && strings.HasPrefix(path, "/v1"):
			return locked.call(method, path, body, "Authorization: Bearer "+keys[map[string]string{"GET": "web",
				"POST": "desk"}[method]])
		case status == 403:
			return w.call(method, path, body, "Host: example.org")
		case status == 405:
			return w.call("DELETE", path, "")
		case status == 404 && other != path:
			return w.call(method, other, body)
		case method == "GET" && status >= 400:
			broken.door.o.Pages = nil
			for _, p := range []string{"/explain", "/state", "/certificate", "/models", "/candidates"} {
				broken.door.o.Pages = append(broken.door.o.Pages, daemon.Page{Path: p,
					Answer: func(w http.ResponseWriter, _ *http.Request) {
						w.WriteHeader(status)
						fmt.Fprintf(w, `{"error":{"code":%d,"message":"away"}}`, status)
					}})
			}
			return broken.call(method, path, body)
		case status == 304:
			return w.call(method, path, body, "If-None-Match: *")
		case status == 400:
			return w.call(method, path, "{")
		case status == 408:
			return slow.halfSent(method, path)
		case status == 409:
			return w.call(method, path, strings.Replace(body, "{", `{"features":{"hour":3},`, 1))
		case status == 413:
			return w.call(method, path, spaces(body, maxBody+1))
		case status == 415:
			return w.call(method, path, body, "Content-Type: text/plain")
		case status == 429:
			for {
				if got := limited.call(method, path, body); got.status == 429 || got.status >= 500 {
					return got
				}
			}
		case status == 503:
			return full.call(method, path, body)
		}
		return w.call(method, path, body)
	}
	for path, calls := range promised().doc["paths"].(map[string]any) {
		for method, call := range calls.(map[string]any) {
			if method == "parameters" {
				continue
			}
			for number := range call.(map[string]any)["responses"].(map[string]any) {
				status, _ := strconv.Atoi(number)
				if got := induce(strings.ToUpper(method), path, status); got.status != status {
					t.Errorf("%s %s: %d %.200s; want %d", method, path, got.status, got.body, status)
				}
			}
		}
	}
}

// halfSent sends a part of a request, and returns the answer to it.
func (w *world) halfSent(method, path string) reply {
	w.t.Helper()
	body, end := io.Pipe()
	defer end.Close()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	r.ContentLength = 100
	r.Header.Set("Content-Type", typeJSON)
	return w.do(r)
}

// TestRoutesAreDescribed holds that the calls that are answered are those that are described.
func TestRoutesAreDescribed(t *testing.T) {
	described := map[string]bool{}
	for path, calls := range promised().doc["paths"].(map[string]any) {
		for method := range calls.(map[string]any) {
			if method != "parameters" {
				described[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	var d Door
	for _, r := range d.calls() {
		call := r.method + " " + r.path
		if !described[call] {
			t.Errorf("%s is not described", call)
		}
		delete(described, call)
	}
	for call := range described {
		t.Errorf("%s is described and not answered", call)
	}
}
