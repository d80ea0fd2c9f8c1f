package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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

// TestReadmeCurl runs the commands of README.md that ask and report, word for word but for the address.
func TestReadmeCurl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl here")
	}
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
	got := finish(t, decider(t, "--log", "embedded:"+filepath.Join(dir, "b"), "--listen", "127.0.0.1:0", "--http", taken))
	if got.code != 1 || !strings.Contains(got.stderr, "--http "+taken+": ") || !strings.Contains(got.stderr, "choose another") {
		t.Errorf("a taken address: %+v", got)
	}
	off := start(t, decider(t, "--log", "embedded:"+filepath.Join(dir, "c"), "--listen", "127.0.0.1:0", "--http", "none")).ready()
	if httpLine.MatchString(off.log()) {
		t.Error("--http none answers")
	}
	a.stop(patience)
	off.stop(patience)
}
