package main

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

var adminLine = regexp.MustCompile(`metrics=http://(\S+)/metrics`)

// admin waits until the process says where its admin pages are.
func (p *process) admin() (addr string) {
	p.t.Helper()
	eventually(p.t, "the address of the admin pages", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if m := adminLine.FindStringSubmatch(strings.Join(p.lines[:min(len(p.lines), 20)], "\n")); m != nil {
			addr = m[1]
		}
		return addr != ""
	})
	return addr
}

// page gets one of the admin pages; code 0: nobody is there.
func (p *process) page(addr, path string) (code int, body string) {
	p.t.Helper()
	client := http.Client{Timeout: patience}
	r, err := client.Get("http://" + addr + path)
	return p.answer(r, err)
}

// post asks for a change on one of the admin pages.
func (p *process) post(addr, path, body string) (code int, answer string) {
	p.t.Helper()
	client := http.Client{Timeout: patience}
	r, err := client.Post("http://"+addr+path, "application/json", strings.NewReader(body))
	return p.answer(r, err)
}

func (p *process) answer(r *http.Response, err error) (code int, body string) {
	p.t.Helper()
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Error(err)
	}
	return r.StatusCode, string(b)
}

// becomes waits until readyz says so, in one line and without a secret, while the
// process is alive.
func (p *process) becomes(addr string, code int, text string) {
	p.t.Helper()
	eventually(p.t, "readyz says "+text, func() bool {
		got, body := p.page(addr, "/readyz")
		if got != 0 && strings.Count(body, "\n") != 1 || strings.Contains(body, sharedPassword) {
			p.t.Errorf("readyz says %q", body)
		}
		return got == code && strings.Contains(body, text)
	})
	if got, body := p.page(addr, "/healthz"); got != 200 {
		p.t.Errorf("healthz says %d %q", got, body)
	}
}

// TestAdmin follows two processes through a life on a server: without a joiner, at
// work, with the server away, and at work again; a second joiner stands by.
func TestAdmin(t *testing.T) {
	t.Parallel()
	s := newShared(t, 1)
	d := s.decider("--joiner=false", "--admin", "127.0.0.1:0")
	pages := d.admin()
	d.becomes(pages, 503, "no epoch")
	j := start(t, feedbackJoiner(t, append(s.args, "--admin", "127.0.0.1:0")...)).ready()
	k := start(t, feedbackJoiner(t, append(s.args, "--admin", "127.0.0.1:0")...))
	d.becomes(pages, 200, "ready")
	j.becomes(j.admin(), 200, "ready")
	k.becomes(k.admin(), 503, "standing by: joiner: another process has the lease")
	s.server.Kill()
	d.becomes(pages, 503, ": ")
	j.becomes(j.admin(), 503, ": ")
	s.server.Restart()
	d.becomes(pages, 200, "ready")
	eventually(t, "one joiner is ready and one is not", func() bool {
		a, _ := j.page(j.admin(), "/readyz")
		b, _ := k.page(k.admin(), "/readyz")
		return a+b == 200+503
	})
	for _, p := range []*process{d, j} {
		_, body := p.page(p.admin(), "/metrics")
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(body))
		if err != nil || families["hindsight_ready"] == nil || families["process_cpu_seconds_total"] == nil {
			t.Errorf("%v in a scrape of %d families", err, len(families))
		}
		if strings.Contains(body, sharedPassword) || strings.Contains(body, "shop") {
			t.Error("a scrape shows a password or a name")
		}
	}
	for _, p := range []*process{d, j, k} {
		if code, body := p.page(p.admin(), "/"); code != 200 || !strings.Contains(body, "The loop") {
			t.Errorf("the page: %d %s", code, body)
		}
		code, body := p.page(p.admin(), "/state")
		decides := strings.Contains(body, `"program": "decider"`) && strings.Contains(body, `"mode": "live"`)
		if code != 200 || decides != (p == d) || !strings.Contains(body, `"model": "shop"`) ||
			strings.Contains(body, sharedPassword) {
			t.Errorf("/state: %d %s", code, body)
		}
	}
	for _, p := range []*process{d, j, k} {
		p.stop(patience)
		if code, _ := p.page(p.admin(), "/healthz"); code != 0 {
			t.Errorf("a process that has ended answers %d", code)
		}
	}
}

// TestAdminAddress holds that a port that was asked for is had or refused, and that the
// one nobody asked for is no reason not to start.
func TestAdminAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	for _, c := range []struct {
		value string
		code  int
		says  string
	}{
		{taken.Addr().String(), 1, "--admin " + taken.Addr().String() + ": listen tcp " + taken.Addr().String() +
			": bind: address already in use; choose another address, or none"},
		{"9464", 2, "expected HOST:PORT"},
	} {
		got := finish(t, decider(t, "--log", "embedded:"+filepath.Join(dir, "d"), "--admin", c.value))
		if got.code != c.code || !strings.Contains(got.stderr, c.says) {
			t.Errorf("--admin %s: exit code %d, %q; want %d, %q", c.value, got.code, got.stderr, c.code, c.says)
		}
	}
	a := start(t, decider(t, "--log", "embedded:"+filepath.Join(dir, "a"), "--listen", "127.0.0.1:0")).ready()
	b := start(t, decider(t, "--log", "embedded:"+filepath.Join(dir, "b"), "--listen", "127.0.0.1:0")).ready()
	if a.admin() == b.admin() {
		t.Error("two processes at one address")
	}
	off := start(t, decider(t, "--log", "embedded:"+filepath.Join(dir, "c"), "--listen", "127.0.0.1:0", "--admin",
		"none")).ready()
	if adminLine.MatchString(off.log()) {
		t.Error("--admin none has pages")
	}
	for _, p := range []*process{a, b, off} {
		p.stop(patience)
	}
}
