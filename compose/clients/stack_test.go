package clients

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"hindsight/internal/testkit/locked"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/natstest"
)

// stack reads compose.yaml as docker compose does: against the schema of the Compose
// specification, with references between services checked, and all its profiles on.
func stack(t *testing.T, edit func(string) string) (*types.Project, error) {
	t.Helper()
	text, err := os.ReadFile("../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: dir,
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(edit(string(text)))}}},
		loader.WithProfiles([]string{"*"}))
}

func asItIs(s string) string { return s }

// flaws returns what is wrong with a stack that the schema allows.
func flaws(p *types.Project) (out []string) {
	pinned := regexp.MustCompile(`^(hindsight(-nats)?:local|[a-z0-9/.-]+:v?[0-9]+\.[0-9]+\.[0-9]+[a-z0-9.-]*)$`)
	for name, s := range p.Services {
		say := func(format string, args ...any) { out = append(out, name+": "+fmt.Sprintf(format, args...)) }
		if !pinned.MatchString(s.Image) {
			say("image %q is not pinned to a version", s.Image)
		}
		if s.User == "" || s.User == "root" || strings.HasPrefix(s.User, "0") {
			say("user %q", s.User)
		}
		if !strings.HasSuffix(name, "load") && name != "keys" && (s.HealthCheck == nil ||
			len(s.HealthCheck.Test) == 0) {
			say("no health check")
		}
		if s.Privileged || len(s.CapAdd) > 0 {
			say("has more rights than it needs")
		}
		for _, c := range s.Configs {
			if s.ReadOnly && p.Configs[c.Source].File == "" { // docker/compose#12531
				say("is read-only, and config %s is no file: Compose refuses to create it", c.Source)
			}
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				say("port %s is open to other machines", port.Published)
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestComposeFile(t *testing.T) {
	p, err := stack(t, asItIs)
	if err != nil {
		t.Fatal(err)
	}
	if names := p.ServiceNames(); !slices.Equal(names, []string{
		"decider", "decider-1", "decider-2", "decider-load", "grafana", "joiner", "kafka", "keys", "load", "nats",
		"nats-decider-1",
		"nats-decider-2", "nats-load", "prometheus"}) {
		t.Errorf("services %v", names)
	}
	if f := flaws(p); f != nil {
		t.Errorf("%s", strings.Join(f, "\n"))
	}
	for _, plant := range []struct{ old, bad, want string }{
		{"apache/kafka:4.3.1", "apache/kafka:latest", "kafka: image"},
		{"user: 65534:65534", "user: root", "nats: user"},
		{`"127.0.0.1:4222:4222"`, `"4222:4222"`, "nats: port"},
		{"    image: prom/", "    read_only: true\n    image: prom/", "prometheus: is read-only"},
	} {
		p, err := stack(t, func(s string) string { return strings.Replace(s, plant.old, plant.bad, 1) })
		if err != nil {
			t.Fatal(err)
		}
		if f := flaws(p); len(f) != 1 || !strings.HasPrefix(f[0], plant.want) {
			t.Errorf("%s: found %v", plant.bad, f)
		}
	}
	for _, wrong := range [][2]string{{"restart: on-failure", "restrat: on-failure"},
		{"condition: service_healthy", "condition: service_fine"}, {"    nats: {cond", "    nuts: {cond"}} {
		if _, err := stack(t, func(s string) string { return strings.Replace(s, wrong[0], wrong[1], 1) }); err == nil {
			t.Errorf("%s is accepted", wrong[1])
		}
	}
}

// TestKafkaRealCompose runs the commands of compose.yaml, word for word but for
// addresses and paths, against a real broker, until the load source has seen outcomes
// through.
func TestKafkaRealCompose(t *testing.T) {
	kafkatest.Heavy(t)
	p, err := stack(t, asItIs)
	if err != nil {
		t.Fatal(err)
	}
	c := kafkatest.Shared(t)
	s := &running{t: t, bin: t.TempDir(), replace: strings.NewReplacer(
		"kafka:9092", c.Brokers()[0], "nats://nats:4222", natsFor(t), "/etc/hindsight/", "../", "/var/lib/hindsight/",
		t.TempDir()+"/", "-rate=20", "-rate=200")}
	build := exec.Command("go", "build", "-ldflags=-w", "-o", s.bin+"/", "../../cmd/decider",
		"../../cmd/feedback-joiner", "../../cmd/replayer", "./load")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first := s.start(p, "decider-1")
	s.start(p, "decider-2")
	joiner := s.start(p, "joiner")
	for _, probe := range []string{first, joiner} {
		eventually(t, "a healthy "+probe, func() bool { return healthy(probe) })
	}
	s.asks(t)
	out, err := exec.CommandContext(t.Context(), s.path("load"),
		append(s.args(p, "load"), "-n=200", "-delay=20ms")...).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("outcomes 2")) {
		t.Errorf("load: %v\n%s", err, out)
	}
	out, err = exec.CommandContext(t.Context(), s.path("replayer"), "verify", "--log",
		s.replace.Replace("kafka://kafka:9092"),
		"--seed-file", s.replace.Replace("/var/lib/hindsight/shop.seed")).CombinedOutput()
	if err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

// natsFor starts a server for requests.
func natsFor(t *testing.T) string {
	t.Helper()
	return "nats://" + natstest.Start(t, natstest.Options{}).Addr()
}

// running are services that run as processes.
type running struct {
	t       *testing.T
	bin     string
	replace *strings.Replacer
	key     string // that the service keys made; "": it did not run
	http    string // where the last decider answers
}

// makeKey runs the service keys twice: it makes one key.
func (s *running) makeKey(p *types.Project) {
	s.t.Helper()
	for range 2 {
		command := p.Services["keys"].Command
		cmd := exec.CommandContext(s.t.Context(), command[0], command[1], s.replace.Replace(command[2]))
		cmd.Env = append(os.Environ(), "PATH="+s.bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil || (s.key == "") != strings.HasPrefix(string(out), "hs_") {
			s.t.Fatalf("%v: %s", err, out)
		}
		s.key += strings.TrimSpace(string(out))
	}
}

// asks asks the last decider for a decision, with the key and without.
func (s *running) asks(t *testing.T) {
	t.Helper()
	for key, want := range map[string]int{s.key: http.StatusOK, "": http.StatusUnauthorized} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http+"/v1/decide", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+key)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("with the key %q: %s", key, answer.Status)
		}
	}
}

func (s *running) path(program string) string { return filepath.Join(s.bin, program) }

// args returns the arguments of a service's command.
func (s *running) args(p *types.Project, service string) (args []string) {
	for _, a := range p.Services[service].Command[1:] {
		args = append(args, s.replace.Replace(a))
	}
	return args
}

// start starts a service and returns where its health check asks.
func (s *running) start(p *types.Project, service string) (probe string) {
	s.t.Helper()
	svc := p.Services[service]
	if _, needs := svc.DependsOn["keys"]; needs && s.key == "" {
		s.makeKey(p)
	}
	addr := freeAddress(s.t)
	args := s.args(p, service)
	for i, a := range args {
		a = strings.Replace(a, "--admin=0.0.0.0:9464", "--admin="+addr, 1)
		if args[i] = a; a == "--http=0.0.0.0:8080" {
			here := freeAddress(s.t)
			args[i], s.http = "--http="+here, "http://"+here
		}
	}
	cmd := exec.Command(s.path(svc.Command[0]), args...)
	cmd.Env = append(os.Environ(), environment(svc)...)
	log := &locked.Buffer{}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || s.t.Failed() {
			s.t.Errorf("%s: %v\n%s", service, err, log)
		}
	})
	test := svc.HealthCheck.Test
	return strings.Replace(test[len(test)-1], "127.0.0.1:9464", addr, 1)
}

// environment returns what the file puts into a service's environment.
func environment(svc types.ServiceConfig) (vars []string) {
	for name, value := range svc.Environment {
		if value != nil {
			vars = append(vars, name+"="+*value)
		}
	}
	return vars
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func healthy(url string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
