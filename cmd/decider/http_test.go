package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

var httpLine = regexp.MustCompile(`http=(https?://\S+)`)

// http waits until the process says where it answers HTTP.
func (p *process) http() (url string) {
	p.t.Helper()
	eventually(p.t, "the address of HTTP", func() bool {
		if m := httpLine.FindStringSubmatch(p.log()); m != nil {
			url = m[1]
		}
		return url != ""
	})
	return url
}

// inTurn is a bus whose requests come by it and by HTTP in turn.
type inTurn struct {
	stream.Bus
	url, name string // of the model
	turn      atomic.Int64
}

// Request implements [stream.Bus].
func (b *inTurn) Request(ctx context.Context, subject string, data []byte, headers ...stream.Header) ([]byte,
	[]stream.Header, error) {
	if b.turn.Add(1)%2 == 0 {
		return b.Bus.Request(ctx, subject, data, headers...)
	}
	r, err := http.NewRequestWithContext(ctx, "POST", b.url+"/v1"+strings.Replace(subject[len(b.name):], ".", "/", 1),
		bytes.NewReader(data))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if codec.IsMap(data) {
		r.Header.Set("Content-Type", "application/msgpack")
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", stream.ErrUnavailable, err)
	}
	defer got.Body.Close()
	reply, err := io.ReadAll(got.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", stream.ErrUnavailable, err)
	}
	if got.StatusCode >= 400 {
		return reply, []stream.Header{{Key: "Nats-Service-Error-Code", Value: strconv.Itoa(got.StatusCode)}}, nil
	}
	return reply, nil, nil
}

// needsCurl skips a test where curl is not installed, but fails it where other people's clients must be there.
func needsCurl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("HINDSIGHT_SDKS") == "require" {
			t.Fatal(err)
		}
		t.Skip("what the page types is not tried:", err)
	}
}

// TestSDKReadme runs the commands of README.md that ask and report, word for word but for the address.
func TestSDKReadme(t *testing.T) {
	needsCurl(t)
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- curl -->\n```sh\n")
	commands, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("README.md has no commands marked curl")
	}
	p := start(t, decider(t, "--log", "embedded:"+t.TempDir(), "--listen", "127.0.0.1:0")).ready()
	out, err := exec.CommandContext(t.Context(), "sh", "-ec",
		strings.ReplaceAll(commands, "http://127.0.0.1:8080", p.http())).Output()
	if got := string(out); err != nil || !strings.HasPrefix(got, `{"id":"8f3a","action":"`) ||
		!strings.HasSuffix(got, `{"id":"8f3a","stored":true}`) {
		t.Errorf("%v: %s", err, got)
	}
	p.stop(patience)
}

// TestHTTPFlag holds that an address that was asked for is had or refused, and that none is none.
func TestHTTPFlag(t *testing.T) {
	dir := t.TempDir()
	a := start(t, decider(t, "--log", "embedded:"+filepath.Join(dir, "a"), "--listen", "127.0.0.1:0")).ready()
	taken := strings.TrimPrefix(a.http(), "http://")
	got := finish(t, decider(t, "--log", "embedded:"+filepath.Join(dir, "b"), "--listen", "127.0.0.1:0",
		"--http", taken))
	if got.code != 1 || !strings.Contains(got.stderr, "--http "+taken+": ") || !strings.Contains(got.stderr,
		"choose another") {
		t.Errorf("a taken address: %+v", got)
	}
	off := start(t, decider(t, "--log", "embedded:"+filepath.Join(dir, "c"), "--listen", "127.0.0.1:0", "--http",
		"none")).ready()
	if httpLine.MatchString(off.log()) {
		t.Error("--http none answers")
	}
	a.stop(patience)
	off.stop(patience)
}

// TestKeysCommand makes a key as docs/http.md says, and asks with it.
func TestKeysCommand(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "shop.keys")
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(page), "<!-- keys -->\n```sh\n")
	line, _, _ = strings.Cut(line, "\n")
	args := strings.Fields(strings.Replace(line, "shop.keys", file, 1))
	cmd := decider(t, args[1:]...)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	made, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(made), "hs_") {
		t.Fatalf("%v: %q", err, made)
	}
	p := start(t, decider(t, "--log", "embedded:"+filepath.Join(dir, "log"), "--listen", "127.0.0.1:0", "--keys",
		file)).ready()
	ask := func(key string) int {
		r, err := http.NewRequestWithContext(t.Context(), "POST", p.http()+"/v1/decide",
			strings.NewReader(`{"actions":["a","b"]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + key}}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		return got.StatusCode
	}
	if code := ask(strings.TrimSpace(string(made))); code != 200 {
		t.Error(code)
	}
	if code := ask("hs_other"); code != 401 {
		t.Error(code)
	}
	p.stop(patience)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"keys", "add", "web", "decide"}, 2, "--keys is missing"},
		{[]string{"keys", "add", "web", "--keys", file}, 2, "expected NAME and ROLE"},
		{[]string{"keys", "add", "web", "write", "--keys", file}, 1, "expected decide, outcome, read, admin"},
		{[]string{"--http", "0.0.0.0:0", "--log", "mem:"}, 2, "give --keys, or --http-ca"},
		{[]string{"--keys", filepath.Join(dir, "none"), "--log", "mem:", "--listen", "127.0.0.1:0"}, 1,
			"--keys: read keys file"},
	} {
		if got := finish(t, decider(t, c.args...)); got.code != c.code || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%v: %+v; want %d, %q", c.args, got, c.code, c.says)
		}
	}
}

// TestHTTPStandby holds that a decider that stands by answers for the one that decides, and for itself after that.
func TestHTTPStandby(t *testing.T) {
	notShort(t)
	t.Parallel()
	s := newShared(t, 1)
	owner := s.decider().ready()
	s.shares(map[*process]int{owner: 1})
	standby := s.decider()
	var decided string
	ask := func() bool {
		got, err := http.Post(standby.http()+"/v1/decide", "application/json",
			strings.NewReader(`{"id":"a","actions":["x","y"]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		b, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		decided = string(b)
		return got.StatusCode == http.StatusOK
	}
	eventually(t, "the owner answers", ask)
	first := decided
	if have := s.holders(); have[fmt.Sprint(owner.cmd.Process.Pid)] != 1 {
		t.Errorf("the leases are held by %v", have)
	}
	owner.kill()
	s.shares(map[*process]int{standby: 1})
	eventually(t, "it answers itself", ask)
	if want := strings.Replace(first, `"duplicate":false`, `"duplicate":true`, 1); decided != want {
		t.Errorf("%s, then %s", first, decided)
	}
	standby.stop(patience)
}

// TestSDKHTTPClients has each of the shortest programs ask for a decision and report its outcome.
func TestSDKHTTPClients(t *testing.T) {
	t.Parallel()
	p := start(t, decider(t, "--log", "embedded:"+t.TempDir(), "--listen", "127.0.0.1:0")).ready()
	const dir = "../../compose/clients/http"
	source, err := os.ReadFile(filepath.Join(dir, "ask.ts"))
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader(source) // which node 20 does not take by its name
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for name, c := range map[string]struct{ needs, start []string }{
		"curl":     {[]string{"curl", "--version"}, []string{"sh", "ask.sh"}},
		"requests": {[]string{"python3", "-c", "import requests"}, []string{"python3", "ask_requests.py"}},
		"httpx":    {[]string{"python3", "-c", "import httpx"}, []string{"python3", "ask_httpx.py"}},
		"fetch":    {[]string{"node", "--version"}, []string{"node", "--input-type=module", "-"}},
		"java":     {[]string{"javac", "--version"}, []string{"java", "Ask.java"}},
		"dotnet":   {[]string{"dotnet", "--version"}, []string{"dotnet", "run", "Ask.cs"}},
		"go":       {[]string{"go", "version"}, []string{"go", "run", "main.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := run(c.needs...); err != nil {
				if os.Getenv("HINDSIGHT_SDKS") == "require" && name != "dotnet" {
					t.Fatal(err, out)
				}
				t.Skip("it is not installed")
			}
			if out, err := run(append(c.start, p.http())...); err != nil || !strings.Contains(out, `"stored":true`) ||
				!regexp.MustCompile("banner|video|none").MatchString(out) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	p.stop(patience)
}
