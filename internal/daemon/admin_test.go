package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
)

func well() error { return nil }

// adminWith returns the flag as a command line with these arguments leaves it.
func adminWith(t *testing.T, args ...string) *AdminFlag {
	t.Helper()
	var a AdminFlag
	cmd := &cobra.Command{Use: "x"}
	a.Add(cmd.Flags())
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return &a
}

func openAdmin(t *testing.T, a *AdminFlag, p Probes) *Admin {
	t.Helper()
	admin, err := a.Open(slog.New(slog.DiscardHandler), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Close(); err != nil {
			t.Error(err)
		}
	})
	return admin
}

func get(t *testing.T, addr, path string) (code int, body string) {
	t.Helper()
	code, body, _ = ask(t, http.DefaultClient, "GET", "http://"+addr+path, nobody)
	return code, body
}

func TestAdminPages(t *testing.T) {
	var sick atomic.Bool
	p := Probes{Alive: well, Ready: func() error {
		if sick.Load() {
			return errors.New("the log is away\nand more")
		}
		return nil
	}}
	a := openAdmin(t, adminWith(t, "--admin", "127.0.0.1:0"), p)
	for _, c := range []struct {
		path string
		sick bool
		code int
		body string
	}{
		{"/healthz", false, 200, "alive\n"},
		{"/readyz", false, 200, "ready\n"},
		{"/readyz", true, 503, "the log is away\n"},
		{"/healthz", true, 200, "alive\n"},
		{"/debug/pprof/", false, 404, "404 page not found\n"},
		{"/", false, 404, "404 page not found\n"},
	} {
		sick.Store(c.sick)
		if code, body := get(t, a.Addr(), c.path); code != c.code || body != c.body {
			t.Errorf("%s: %d %q, expected %d %q", c.path, code, body, c.code, c.body)
		}
	}
	r, err := http.Post("http://"+a.Addr()+"/metrics", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", r.StatusCode)
	}
}

func TestAdminScrapeParses(t *testing.T) {
	a := openAdmin(t, adminWith(t, "--admin", "127.0.0.1:0"), Probes{well, well})
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "hindsight_test_total", Help: "A test."})
	a.Registry.MustRegister(c)
	c.Add(3)
	_, body := get(t, a.Addr(), "/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go_goroutines", "process_start_time_seconds", "go_build_info",
		"hindsight_test_total"} {
		if families[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	if v := families["hindsight_test_total"].GetMetric()[0].GetCounter().GetValue(); v != 3 {
		t.Errorf("the counter shows %v", v)
	}
}

// Several servers in one process share nothing.
func TestTwoAdmins(t *testing.T) {
	p := Probes{well, well}
	a, b := openAdmin(t, adminWith(t, "--admin", "127.0.0.1:0"), p),
		openAdmin(t, adminWith(t, "--admin", "127.0.0.1:0"), p)
	for _, x := range []*Admin{a, b} {
		if err := x.Registry.Register(
			prometheus.NewCounter(prometheus.CounterOpts{Name: "same", Help: "Same."})); err != nil {
			t.Error(err)
		}
	}
	if a.Addr() == b.Addr() {
		t.Error("one address for two")
	}
}

func TestAdminPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	given := adminWith(t, "--admin", l.Addr().String())
	if _, err := given.Open(slog.New(slog.DiscardHandler), Probes{well, well}); err == nil ||
		!strings.Contains(err.Error(), "--admin "+l.Addr().String()) {
		t.Errorf("a given port that is taken: %v", err)
	}
	byDefault := adminWith(t)
	byDefault.address = l.Addr().String() // as if it were the default
	var logged bytes.Buffer
	a, err := byDefault.Open(slog.New(slog.NewTextHandler(&logged, nil)), Probes{well, well})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	warned := fmt.Sprintf("taken=%s used=%s", l.Addr(), a.Addr())
	if a.Addr() == l.Addr().String() || !strings.Contains(logged.String(), "level=WARN") ||
		!strings.Contains(logged.String(), warned) {
		t.Errorf("at %s, the log says %s", a.Addr(), logged.String())
	}
	if code, _ := get(t, a.Addr(), "/readyz"); code != 200 {
		t.Error(code)
	}
}

func TestAdminOff(t *testing.T) {
	a := openAdmin(t, adminWith(t, "--admin", "none"), Probes{well, well})
	if a.Addr() != "" || a.Registry == nil {
		t.Errorf("at %q", a.Addr())
	}
}

func TestAdminFlagCheck(t *testing.T) {
	for _, c := range []struct {
		value string
		good  bool
	}{{"none", true}, {"127.0.0.1:9464", true}, {"[::1]:0", true}, {"localhost:0", true}, {"9464", false}, {"", false},
		{"host:", false}} {
		if err := adminWith(t, "--admin", c.value).Check(); (err == nil) != c.good {
			t.Errorf("%q: %v", c.value, err)
		}
	}
}

// A client that sends nothing, or reads nothing, does not hold up the end.
func TestAdminCloseWithIdleClients(t *testing.T) {
	a, err := adminWith(t, "--admin", "127.0.0.1:0").Open(slog.New(slog.DiscardHandler), Probes{well, well})
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", a.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /metr"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- a.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Fatal("Close hangs")
	}
}

// Addr returns where the pages are, "" if they are off.
func (a *Admin) Addr() string {
	if a.listener == nil {
		return ""
	}
	return a.listener.Addr().String()
}
