package engine_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hindsight/internal/access"
	"hindsight/internal/engine"
	"hindsight/internal/join"
	"hindsight/internal/topics"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/natstest"
)

func TestMain(m *testing.M) { natstest.TestMain(m) }

// says checks an error against a text that it has; "": there is none.
func says(t *testing.T, what string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

// TestParse holds what --log may be, where its seed lies, and what --nats and --requesters say beside it.
func TestParse(t *testing.T) {
	for log, want := range map[string]struct{ kind, dir, seed, err, nats, requesters string }{
		"embedded:./a/": {"embedded", "a", "a/seed", "", "this log answers them itself", ""},
		"embedded:":     {err: "which folder?"},
		"embedded":      {err: "which folder?"},
		"mem:":          {"mem", "", "", "", "this log answers them itself", ""},
		"mem":           {"mem", "", "", "", "this log answers them itself", ""},
		"mem:x":         {err: "expected embedded:DIR"},
		"nats://h":      {"nats", "", access.SeedFile, "", "this log answers them itself", "on servers of your own"},
		"nats://h:x":    {err: "--log nats://h:x"},
		"kafka://h":     {"kafka", "", access.SeedFile, "", "", ""},
		"kafka://":      {err: "a broker has no name"},
		"x://u:p@h":     {err: `--log "x://***@h": expected`},
		"":              {err: engine.DefaultLog},
	} {
		spec, err := engine.Parse(log)
		says(t, log, err, want.err)
		if err != nil {
			continue
		}
		if spec.Kind != want.kind || spec.Dir != want.dir || spec.SeedFile() != want.seed {
			t.Errorf("%s: %+v, seed in %q", log, spec, spec.SeedFile())
		}
		says(t, log, engine.CheckRequests(spec, ""), "")
		says(t, log, engine.CheckRequests(spec, "nats://r"), want.nats)
		says(t, log, engine.CheckRequesters(spec, "", ""), "")
		says(t, log, engine.CheckRequesters(spec, "", "file"), want.requesters)
		says(t, log, engine.CheckRequesters(spec, "nats://r", "file"), "on servers of your own")
		says(t, log, engine.CheckRequesters(spec, "nats://r", ""), "")
	}
	kafka := engine.Spec{Kind: "kafka"}
	says(t, "--nats", engine.CheckRequests(kafka, "nats://h:x"), "--nats nats://h:x")
	for listen, want := range map[string]struct {
		host string
		port int
		err  string
	}{"h:0": {"h", 0, ""}, "h:65535": {"h", 65535, ""}, ":1": {"", 1, ""}, "h": {err: "expected HOST:PORT"},
		"h:-1": {err: "is not a port"}, "h:65536": {err: "is not a port"}, "h:x": {err: `"x" is not a port`}} {
		host, port, err := engine.ParseListen(listen)
		if says(t, listen, err, want.err); host != want.host || port != want.port {
			t.Errorf("%s: %q, %d", listen, host, port)
		}
	}
}

// TestOpenKinds holds what a process has of each kind of log: requests or none, its own or those of all, what shares
// its work, and by how much clocks may differ.
func TestOpenKinds(t *testing.T) {
	type has struct {
		bus, apart, joined, shared, usage bool
		url                               string // begins with this
		skew                              time.Duration
	}
	const skew = time.Duration(join.ClockSkew)
	server := natstest.Start(t, natstest.Options{}).URL()
	addresses, _ := kafkatest.Fake(t, 1)
	dir, brokers := filepath.Join(t.TempDir(), "data"), "kafka://"+addresses[0]
	if engine.Exists(dir) {
		t.Error("a log is there before it is made")
	}
	for _, c := range []struct {
		what string
		o    engine.Options
		want has
	}{
		{"embedded", engine.Options{Log: "embedded:" + dir}, has{bus: true, usage: true, url: "nats://127.0.0.1:"}},
		{"embedded, to read beside it", engine.Options{Log: "embedded:" + dir, Read: true}, has{bus: true,
			joined: true}},
		{"memory", engine.Options{Log: "mem:"}, has{bus: true, url: "nats://127.0.0.1:"}},
		{"memory without requests", engine.Options{Log: "mem:", Requests: access.None}, has{}},
		{"servers", engine.Options{Log: server}, has{bus: true, shared: true, url: "nats://", skew: skew}},
		{"brokers", engine.Options{Log: brokers}, has{bus: true, apart: true, shared: true, url: "nats://127.0.0.1:",
			skew: skew}},
		{"brokers without requests", engine.Options{Log: brokers, Requests: access.None}, has{shared: true,
			skew: skew}},
		{"brokers beside servers", engine.Options{Log: brokers, Requests: server}, has{bus: true, shared: true,
			url: "nats://", skew: skew}},
	} {
		c.o.Listen, c.o.Access = "127.0.0.1:0", access.New(os.Getenv)
		e, err := engine.Open(t.Context(), c.o)
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		sharing, err := e.Sharing(t.Context(), "m", "test")
		got := has{e.Bus != nil, e.BusApart, e.Joined, sharing != nil, e.Usage != nil, c.want.url, e.ClockSkew}
		if err != nil || got != c.want || !strings.HasPrefix(e.URL, c.want.url) || c.want.url == "" && e.URL != "" ||
			(e.Dir == dir) != strings.HasPrefix(c.what, "embedded") {
			t.Errorf("%s: %+v at %q in %q, %v, want %+v", c.what, got, e.URL, e.Dir, err, c.want)
		}
		if _, err := topics.Ensure(t.Context(), e.Log, "m", 1, topics.Retention{}); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if names, err := engine.Models(t.Context(), e.Log); err != nil || !slices.Equal(names, []string{"m"}) {
			t.Errorf("%s holds the models %q, %v", c.what, names, err)
		}
		if !engine.Exists(dir) {
			t.Error("the embedded log is not there")
		}
		closed := func() {
			if err := e.Close(); err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
		}
		if c.what == "embedded" {
			defer closed() // the next one joins it
		} else {
			closed()
		}
	}
}

// TestOpenRefused holds what is told before a log is made.
func TestOpenRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "requesters")
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const nowhere = "nats://127.0.0.1:1"
	for _, c := range []struct {
		o    engine.Options
		says string
	}{
		{engine.Options{Log: "?"}, "expected embedded:DIR"},
		{engine.Options{Log: "embedded:" + dir, Listen: "?"}, "expected HOST:PORT"},
		{engine.Options{Log: "mem:", Listen: "?"}, "expected HOST:PORT"},
		{engine.Options{Log: "embedded:" + dir, Requesters: dir + "/none"}, "no such file"},
		{engine.Options{Log: "embedded:" + dir, Requesters: file("?", 0o600)}, "requesters file "},
		{engine.Options{Log: nowhere}, "127.0.0.1:1"},
		{engine.Options{Log: "mem:", Requests: nowhere}, "--nats: "},
	} {
		e, err := engine.Open(t.Context(), c.o)
		if says(t, c.o.Log, err, c.says); err == nil {
			_ = e.Close()
		}
		if engine.Exists(dir) {
			t.Fatalf("%+v: a log was made", c.o)
		}
	}
}
