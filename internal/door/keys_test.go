package door

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keyFile makes a file of keys, as name → roles, and returns them by name.
func keyFile(t testing.TB, clients ...string) (file string, made map[string]string) {
	t.Helper()
	file, made = filepath.Join(t.TempDir(), "shop.keys"), map[string]string{}
	for _, c := range clients {
		name, roles, _ := strings.Cut(c, " ")
		key, err := AddKey(file, name, roles)
		if err != nil {
			t.Fatal(err)
		}
		made[name] = key
	}
	return file, made
}

// TestKeys holds what each key may do, by either header.
func TestKeys(t *testing.T) {
	file, keys := keyFile(t, "web decide", "till outcome", "both decide,outcome", "root admin", "desk read")
	w := open(t, setting{flags: []string{"--keys", file}})
	const outcome = `{"id":"a","loss":0.5}`
	for _, c := range []struct {
		name, path, body, header string
		status                   int
		says                     string
	}{
		{"no key", "/v1/decide", context1, "", 401, "Authorization: Bearer KEY"},
		{"a wrong key", "/v1/decide", context1, "Authorization: Bearer hs_wrong", 401, "no such key"},
		{"half a key", "/v1/decide", context1, "Authorization: Bearer " + keys["web"][:20], 401, "no such key"},
		{"a key and more", "/v1/decide", context1, "Authorization: Bearer " + keys["web"] + "x", 401, "no such key"},
		{"a hash for a key", "/v1/decide", context1,
			fmt.Sprintf("Authorization: Bearer %x", sha256.Sum256([]byte(keys["web"]))), 401, "no such key"},
		{"another scheme", "/v1/decide", context1, "Authorization: Basic " + keys["web"], 401, "no such key"},
		{"a wrong role", "/v1/outcome", outcome, "Authorization: Bearer " + keys["web"], 403, "keys add web outcome"},
		{"another wrong role", "/v1/decide", context1, "Authorization: Bearer " + keys["till"], 403, "keys add " +
			"till decide"},
		{"a reader", "/v1/decide", context1, "Authorization: Bearer " + keys["desk"], 403, "keys add desk decide"},
		{"the right key", "/v1/decide", context1, "Authorization: Bearer " + keys["web"], 200, ""},
		{"the vendor's header", "/v1/decide", context1, "Ocp-Apim-Subscription-Key: " + keys["web"], 200, ""},
		{"two roles", "/v1/decide", context1, "Authorization: Bearer " + keys["both"], 200, ""},
		{"two roles, the other", "/v1/outcome", outcome, "Authorization: Bearer " + keys["both"], 202, ""},
		{"outcome", "/v1/outcome", outcome, "Authorization: Bearer " + keys["till"], 202, ""},
		{"admin", "/v1/outcome", outcome, "Authorization: Bearer " + keys["root"], 202, ""},
	} {
		got := w.call("POST", c.path, c.body, c.header)
		if got.status != c.status {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		} else if c.status >= 400 && !strings.Contains(got.problem(t).Detail, c.says) {
			t.Errorf("%s: %s; want %q", c.name, got.body, c.says)
		}
		if (got.header.Get("WWW-Authenticate") == "Bearer") != (c.status == 401) {
			t.Errorf("%s: WWW-Authenticate: %s", c.name, got.header.Get("WWW-Authenticate"))
		}
		for name, k := range keys {
			if bytes.Contains(got.body, []byte(k)) {
				t.Errorf("%s shows the key of %s", c.name, name)
			}
		}
	}
	if d := w.decide(context1, "Host: shop.example", "Authorization: Bearer "+keys["web"]); !d.Duplicate {
		t.Errorf("by another name, with a key: %+v", d)
	}
}

// TestKeyIsComparedWithAll holds that a key is compared with all of the file, so that the time it takes tells nothing:
// of a key with several lines each counts.
func TestKeyIsComparedWithAll(t *testing.T) {
	file, made := keyFile(t, "web decide", "other read")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	text = append(text, strings.Replace(first, "decide", "outcome", 1)...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := readKeys(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := k.find(made["web"]); !ok || c.role != mayDecide|mayOutcome {
		t.Errorf("%+v %v", c, ok)
	}
}

// TestKeysReadAgain holds that keys come and go without a restart, and that a file that is none leaves the last ones.
func TestKeysReadAgain(t *testing.T) {
	file, made := keyFile(t, "web decide")
	var log bytes.Buffer
	k, err := readKeys(file, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	find := func(key string) bool {
		k.readAt.Store(0) // it is due
		_, ok := k.find(key)
		return ok
	}
	second, err := AddKey(file, "till", "outcome")
	if err != nil {
		t.Fatal(err)
	}
	if log.Len() > 0 {
		t.Errorf("of the first reading the log says %s", &log)
	}
	if !find(made["web"]) || !find(second) || find("hs_") {
		t.Error("a key is missing, or there is one too many")
	}
	if n := strings.Count(log.String(), "keys are read again"); n != 1 {
		t.Errorf("it is told %d times that they are read again", n)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "\n\n") {
		t.Errorf("an empty line before a key: %s", text)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(file, []byte(rest), 0o600); err != nil {
		t.Fatal(err)
	}
	if find(made["web"]) || !find(second) {
		t.Error("a key whose line is removed is a key, or another is none")
	}
	for _, bad := range []string{"till outcome", "till all sha256:00"} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		if again := find(second); !again || !find(second) || strings.Count(log.String(), "the last ones "+
			"stay in use") != 1 {
			t.Errorf("%q: the log says %q", bad, log.String())
		}
	}
	now := k.readAt.Load()
	if k.find(second); k.readAt.Load() != now {
		t.Error("read again at once")
	}
}

// TestKeyFiles holds which files and names are refused, and how.
func TestKeyFiles(t *testing.T) {
	good := fmt.Sprintf("web decide sha256:%x\n", sha256.Sum256([]byte("x")))
	for _, c := range []struct{ text, says string }{
		{good + "\n# a comment\n" + good, ""},
		{"web decide", "line 1: expected NAME ROLE sha256:HEX"},
		{good + "we b decide sha256:00", "line 2: expected NAME ROLE sha256:HEX"},
		{"w/b decide sha256:00", "line 1: expected NAME ROLE sha256:HEX"},
		{strings.Replace(good, "decide", "decider", 1), "expected decide, outcome, read, admin"},
		{strings.Replace(good, "sha256:", "", 1), "the 64 hexadecimal digits"},
		{good[:40] + "\n", "the 64 hexadecimal digits"},
		{strings.TrimSpace(good) + "00\n", "the 64 hexadecimal digits"},
		{strings.Repeat(good, maxKeys), ""},
		{strings.Repeat(good, maxKeys+1), "at most 256"},
	} {
		_, err := parseKeys([]byte(c.text))
		if (err == nil) != (c.says == "") || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%.99q: %v; want %q", c.text, err, c.says)
		}
	}
	file, _ := keyFile(t, "web decide")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	for _, c := range [][2]string{{"a b", "decide"}, {"web", "all"}, {"", "decide"}} {
		if _, err := AddKey(file, c[0], c[1]); err == nil {
			t.Errorf("%q is added", c)
		}
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := AddKey(file, "web", "decide"); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
	if _, err := readKeys(file, nil); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
}

// TestElsewhere holds what beyond loopback is refused at the start.
func TestElsewhere(t *testing.T) {
	for _, c := range []struct {
		flags Flags
		says  string
	}{
		{Flags{address: "0.0.0.0:0"}, "give --keys, or --http-ca"},
		{Flags{address: ":0"}, "give --keys, or --http-ca"},
		{Flags{address: "[::]:0", plain: true}, "give --keys, or --http-ca"},
		{Flags{address: "shop.example:80", keys: "k"}, "give --http-cert and --http-key, or --http-plain"},
		{Flags{address: "0.0.0.0:0", keys: "k", plain: true}, ""},
		{Flags{address: "0.0.0.0:0", keys: "k", cert: "c", key: "d"}, ""},
		{Flags{address: "0.0.0.0:0", ca: "a", cert: "c", key: "d"}, ""},
		{Flags{address: "127.0.0.1:0", cert: "c"}, "go together"},
		{Flags{address: "127.0.0.1:0", ca: "c"}, "needs --http-cert"},
		{Flags{address: "127.0.0.1:0", origins: []string{"shop.example"}}, "--http-origin shop.example"},
		{Flags{address: "127.0.0.1:0", origins: []string{"https://shop.example/page"}},
			"--http-origin https://shop.example/page"},
		{Flags{address: "none", ca: "c"}, ""},
	} {
		if err := c.flags.Check(); (err == nil) != (c.says == "") || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%+v: %v; want %q", c.flags, err, c.says)
		}
	}
}

// TestOrigins holds that the pages of an origin that is named may ask, and no others.
func TestOrigins(t *testing.T) {
	w := open(t, setting{flags: []string{"--http-origin", "https://shop.example,https://till.example"}})
	const ours, foreign = "Origin: https://till.example", "Origin: https://till.example.org"
	ask := []string{"Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type"}
	got := w.call("OPTIONS", "/v1/decide", "", append(ask, ours)...)
	if got.status != 204 || got.header.Get("Access-Control-Allow-Origin") != "https://till.example" ||
		!strings.Contains(got.header.Get("Access-Control-Allow-Headers"), "Content-Type") {
		t.Errorf("CORS preflight: %d %v", got.status, got.header)
	}
	got = w.call("POST", "/v1/decide", context1, ours, "Sec-Fetch-Site: cross-site")
	if got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != "https://till.example" ||
		got.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%d %v", got.status, got.header)
	}
	for what, got := range map[string]reply{
		"CORS preflight, foreign": w.call("OPTIONS", "/v1/decide", "", append(ask, foreign)...),
		"foreign":                 w.call("POST", "/v1/decide", context1, foreign, "Sec-Fetch-Site: cross-site"),
	} {
		if got.status < 400 || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v", what, got.status, got.header)
		}
	}
}
