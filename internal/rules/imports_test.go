package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "hindsight/"

// root is the top of the source tree.
var root = func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return filepath.Dir(filepath.Dir(dir))
}()

// pack is what the go command says of a package; Imports and Deps are without tests.
type pack struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
	Export     string
}

func goList(t *testing.T, args ...string) (out []pack) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-e"}, args...)...)
	cmd.Dir = root
	b, err := cmd.Output()
	if err != nil {
		var e *exec.ExitError
		if errors.As(err, &e) {
			t.Fatalf("%v: %s", err, e.Stderr)
		}
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		var p pack
		if err := d.Decode(&p); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
}

// listExports returns the files with the types of what the heart and the snippets
// import.
func listExports(t *testing.T) map[string]string {
	t.Helper()
	args := []string{"-export", "-deps", "-json=ImportPath,Export"}
	for _, dir := range heart {
		args = append(args, "./"+dir)
	}
	exports := map[string]string{}
	for _, p := range goList(t, append(args, "os", "net", "context", "log/slog", "math/rand", "math/rand/v2",
		"crypto/rand", "maps", "log")...) {
		exports[p.ImportPath] = p.Export
	}
	return exports
}

func typeCheck(path string, fset *token.FileSet, files []*ast.File, exports map[string]string,
	info *types.Info) (*types.Package, error) {
	imp := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		file := exports[path]
		if file == "" {
			return nil, fmt.Errorf("no types of %s", path)
		}
		return os.Open(file)
	})
	conf := types.Config{Importer: imp}
	return conf.Check(path, fset, files, info)
}

// serverIn are the only packages that may bring the NATS server with them.
var serverIn = []string{"cmd/decider", "cmd/replayer", "internal/engine", "pkg/stream/embedded", "pkg/stream/natstest"}

// kafkaIn are the only packages that know Kafka's client; in-process brokers are for tests.
// The source of load is a client as a user would write it.
var kafkaIn = []string{"compose/clients/load", "internal/access", "pkg/stream/kafka", "pkg/stream/kafkatest"}

// tracesIn are the only packages that bring OpenTelemetry's SDK with them.
var tracesIn = []string{"cmd/decider", "cmd/feedback-joiner", "internal/trace/otlp"}

// apart are packages that work without the shells: they are parts of them, or recompute what they did.
var apart = []string{"internal/explain", "internal/follow", "internal/front", "internal/join", "internal/replay",
	"internal/tail", "internal/topics", "internal/verify"}

// broken returns which rule of the layout a package breaks.
func broken(p *pack) (out []string) {
	name := strings.TrimPrefix(p.ImportPath, module)
	deny := func(path, why string) { out = append(out, fmt.Sprintf("%s imports %s: %s", name, path, why)) }
	for _, path := range p.Imports {
		own := strings.HasPrefix(path, module)
		to := strings.TrimPrefix(path, module)
		switch {
		case own && strings.HasPrefix(to, "cmd/"):
			deny(to, "nothing imports a command")
		case own && strings.HasPrefix(name, "pkg/") && strings.HasPrefix(to, "internal/"):
			deny(to, "pkg never imports internal")
		case name == "internal/verify" && to == "internal/replay", name == "internal/replay" && to == "internal/verify":
			deny(to, "the replayer, and the audit of logs whoever wrote them, need nothing of each other")
		case !strings.HasPrefix(path, module) && !strings.Contains(path, "."):
			// the standard library: purity_test.go says what the heart may have of it
		case name == "pkg/oracle":
			deny(to, "an oracle needs nothing but the standard library")
		case name == "pkg/learner" && path != module+"pkg/oracle":
			deny(to, "a learner knows oracles only")
		case name == "pkg/codec" && !strings.HasPrefix(path, "github.com/vmihailenco/msgpack/"):
			deny(to, "the codec knows MessagePack only")
		case strings.HasPrefix(name, "pkg/stream") && own && !strings.HasPrefix(to, "pkg/stream"):
			deny(to, "records are bytes to a log")
		case strings.HasPrefix(path, "github.com/segmentio/kafka-go") && !slices.Contains(kafkaIn, name):
			deny(to, "Kafka is behind pkg/stream/kafka")
		case name == "internal/loop" && !slices.Contains([]string{"internal/ledger", "pkg/codec", "pkg/learner",
			"pkg/oracle"}, to):
			deny(to, "the heart knows events, learners, oracles and the ledger only")
		}
	}
	if slices.Contains(apart, name) && slices.Contains(p.Deps, module+"internal/service") {
		out = append(out, name+" links the shells")
	}
	links := func(prefix, what string, allowed ...string) {
		if slices.Contains(allowed, name) {
			return
		}
		if slices.ContainsFunc(p.Deps, func(path string) bool { return strings.HasPrefix(path, prefix) }) {
			out = append(out, name+" links "+what)
		}
	}
	links("github.com/nats-io/nats-server", "the NATS server", serverIn...)
	links("go.opentelemetry.io/", "OpenTelemetry", tracesIn...)
	links("github.com/twmb/franz-go", "a Kafka client that is for tests", "pkg/stream/kafkatest")
	return out
}

func TestImportRules(t *testing.T) {
	names := map[string]bool{}
	for _, p := range goList(t, "-json=ImportPath,Imports,Deps", "./...") {
		names[p.ImportPath] = true
		for _, b := range broken(&p) {
			t.Error(b)
		}
	}
	for _, name := range append([]string{"cmd/feedback-joiner", "internal/replay", "internal/verify", "pkg/codec",
		"pkg/stream"}, slices.Concat(heart, serverIn, kafkaIn, tracesIn, apart)...) {
		if !names[module+name] {
			t.Errorf("there is no package %s: a rule about it holds nothing", name)
		}
	}
}

// Each of these breaks a rule.
func TestImportTestCanFail(t *testing.T) {
	server := "github.com/nats-io/nats-server/v2/server"
	for _, p := range []pack{
		{ImportPath: "hindsight/internal/model", Imports: []string{"hindsight/cmd/decider"}},
		{ImportPath: "hindsight/pkg/stream/mem", Imports: []string{"hindsight/internal/loop"}},
		{ImportPath: "hindsight/pkg/codec", Imports: []string{"hindsight/internal/daemon"}},
		{ImportPath: "hindsight/pkg/oracle", Imports: []string{"hindsight/pkg/codec"}},
		{ImportPath: "hindsight/pkg/oracle", Imports: []string{"gonum.org/v1/gonum/mat"}},
		{ImportPath: "hindsight/pkg/learner", Imports: []string{"hindsight/pkg/codec"}},
		{ImportPath: "hindsight/pkg/codec", Imports: []string{"hindsight/pkg/oracle"}},
		{ImportPath: "hindsight/pkg/codec", Imports: []string{"go.yaml.in/yaml/v3"}},
		{ImportPath: "hindsight/pkg/stream/nats", Imports: []string{"hindsight/pkg/codec"}},
		{ImportPath: "hindsight/pkg/stream", Imports: []string{"hindsight/pkg/learner"}},
		{ImportPath: "hindsight/internal/loop", Imports: []string{"hindsight/pkg/stream"}},
		{ImportPath: "hindsight/internal/loop", Imports: []string{"go.yaml.in/yaml/v3"}},
		{ImportPath: "hindsight/internal/loop", Imports: []string{"hindsight/internal/model"}},
		{ImportPath: "hindsight/internal/verify", Imports: []string{"hindsight/internal/replay"}},
		{ImportPath: "hindsight/internal/verify", Deps: []string{"hindsight/internal/service"}},
		{ImportPath: "hindsight/internal/replay", Imports: []string{"hindsight/internal/verify"}},
		{ImportPath: "hindsight/cmd/feedback-joiner", Deps: []string{"fmt", server}},
		{ImportPath: "hindsight/pkg/stream/nats", Deps: []string{server}},
		{ImportPath: "hindsight/internal/service", Deps: []string{"go.opentelemetry.io/otel"}},
		{ImportPath: "hindsight/internal/service", Deps: []string{server}},
		{ImportPath: "hindsight/internal/service", Imports: []string{"github.com/segmentio/kafka-go"}},
		{ImportPath: "hindsight/pkg/stream/nats", Imports: []string{"github.com/segmentio/kafka-go/protocol"}},
		{ImportPath: "hindsight/pkg/stream/kafka", Deps: []string{"github.com/twmb/franz-go/pkg/kfake"}},
	} {
		if len(broken(&p)) == 0 {
			t.Errorf("%+v breaks no rule", p)
		}
	}
	for _, p := range []pack{
		{ImportPath: "hindsight/cmd/decider", Imports: []string{"hindsight/internal/service"}, Deps: []string{server}},
		{ImportPath: "hindsight/pkg/codec", Imports: []string{"math", "github.com/vmihailenco/msgpack/v5"}},
		{ImportPath: "hindsight/internal/loop", Imports: []string{"fmt", "hindsight/pkg/codec", "hindsight/pkg/oracle"}},
		{ImportPath: "hindsight/pkg/stream/embedded", Imports: []string{"hindsight/pkg/stream/nats"}, Deps: []string{server}},
		{ImportPath: "hindsight/pkg/stream/kafka",
			Imports: []string{"hindsight/pkg/stream", "github.com/segmentio/kafka-go"}},
		{ImportPath: "hindsight/pkg/stream/kafkatest", Deps: []string{"github.com/twmb/franz-go/pkg/kfake"}},
	} {
		if b := broken(&p); len(b) > 0 {
			t.Error(b)
		}
	}
}
