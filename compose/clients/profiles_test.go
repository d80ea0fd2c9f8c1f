package clients

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"hindsight/internal/daemon"
	"hindsight/internal/testkit/deployed"
	"hindsight/pkg/stream/natstest"
)

// servicesOf returns the names of what a profile starts.
func servicesOf(p *types.Project, profile string) (names []string) {
	for _, name := range p.ServiceNames() {
		if s := p.Services[name]; len(s.Profiles) == 0 || slices.Contains(s.Profiles, profile) {
			names = append(names, name)
		}
	}
	return names
}

// TestComposeProfiles holds that each profile is whole: it has all that its services wait
// for, and no port twice.
func TestComposeProfiles(t *testing.T) {
	p, err := stack(t, asItIs)
	if err != nil {
		t.Fatal(err)
	}
	for profile, least := range map[string]int{"embedded": 2, "nats": 4, "kafka": 6} {
		names, ports := servicesOf(p, profile), map[string]string{}
		if len(names) < least {
			t.Errorf("%s starts %v only", profile, names)
		}
		for _, name := range names {
			s := p.Services[name]
			for needed := range s.DependsOn {
				if !slices.Contains(names, needed) {
					t.Errorf("%s: %s waits for %s, which is not started", profile, name, needed)
				}
			}
			if mode, ok := strings.CutPrefix(s.NetworkMode, "service:"); ok && !slices.Contains(names, mode) {
				t.Errorf("%s: %s is in the network of %s, which is not started", profile, name, mode)
			}
			for _, port := range s.Ports {
				if other, taken := ports[port.Published]; taken {
					t.Errorf("%s: port %s of %s and %s", profile, port.Published, other, name)
				}
				ports[port.Published] = name
			}
		}
	}
	text, err := os.ReadFile("../.env")
	if err != nil || !bytes.Contains(text, []byte("\nCOMPOSE_PROFILES=kafka\n")) {
		t.Errorf("the default profile: %s %v", text, err)
	}
}

// TestComposeProfilesRun runs the commands of the profiles embedded and nats, word for
// word but for addresses and paths, until the source of load has seen outcomes through,
// and verifies the logs. TestKafkaRealCompose does so for kafka.
func TestComposeProfilesRun(t *testing.T) {
	if os.Getenv("HINDSIGHT_LONG") == "" {
		t.Skip("builds all programs: HINDSIGHT_LONG=1 runs it")
	}
	p, err := stack(t, asItIs)
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	run(t, "go", "build", "-o", bin+"/", "../../cmd/decider", "../../cmd/feedback-joiner", "../../cmd/replayer",
		"./load")
	server := natstest.Start(t, natstest.Options{})
	for profile, c := range map[string]struct {
		deciders []string
		load     string
		address  string // of the embedded server or the one of the profile, as the file has it
		here     string // the same in this test
		log      string
	}{
		"embedded": {[]string{"decider"}, "decider-load", "127.0.0.1:4222", freeAddress(t),
			"embedded:/var/lib/hindsight/log"},
		"nats": {[]string{"nats-decider-1", "nats-decider-2"}, "nats-load", "nats:4222", server.Addr(),
			"nats://nats:4222"},
	} {
		t.Run(profile, func(t *testing.T) {
			state := t.TempDir()
			s := &running{t: t, bin: bin, replace: strings.NewReplacer(c.address, c.here, "/etc/hindsight/", "../",
				"/var/lib/hindsight/", state+"/", "/var/lib/keys/", state+"/", "-rate=20", "-rate=200")}
			for _, d := range c.deciders {
				probe := s.start(p, d)
				eventually(t, "a healthy "+d, func() bool { return healthy(probe) })
			}
			s.asks(t)
			out, err := exec.CommandContext(t.Context(), s.path("load"),
				append(s.args(p, c.load), "-n=200", "-delay=20ms")...).CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte("outcomes 2")) {
				t.Errorf("load: %v\n%s", err, out)
			}
			verify := []string{"verify", "--log", s.replace.Replace(c.log)}
			if profile == "nats" {
				verify = append(verify, "--seed-file", state+"/shop.seed")
			}
			t.Log(run(t, s.path("replayer"), verify...))
		})
	}
}

// TestUnitsAndPodsRun runs what the systemd units and the Kubernetes manifest start, word
// for word but for addresses and paths, until it is ready.
func TestUnitsAndPodsRun(t *testing.T) {
	if os.Getenv("HINDSIGHT_LONG") == "" {
		t.Skip("builds all programs: HINDSIGHT_LONG=1 runs it")
	}
	all, err := deployed.Commands("..")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	run(t, "go", "build", "-o", bin+"/", "../../cmd/decider", "../../cmd/feedback-joiner")
	units, pods := natstest.Start(t, natstest.Options{}), natstest.Start(t, natstest.Options{})
	dir := t.TempDir()
	seed := filepath.Join(dir, "seed")
	run(t, "sh", "-ec", "umask 077; openssl rand -hex 32 >"+seed+"; chmod 0440 "+seed) // as credentials and secrets are
	keys := filepath.Join(dir, "keys")
	run(t, filepath.Join(bin, "decider"), "keys", "add", "web", "decide,outcome", "--keys", keys)
	run(t, "chmod", "0440", keys)
	probes := map[string]string{}
	for _, c := range all {
		if c.File == "compose.yaml" || c.Args[0] == "nats-server" {
			continue
		}
		server := units
		if c.File == "kubernetes.yaml" {
			server = pods // with other partitions
		}
		admin := freeAddress(t)
		replace := strings.NewReplacer("nats:4222", server.Addr(), "127.0.0.1:4222", freeAddress(t),
			"/etc/hindsight/model.yaml", "../shop.yaml",
			"/etc/hindsight/model/model.yaml", "../shop.yaml", "/etc/hindsight/seed/seed", seed, "%d/seed", seed,
			"/var/lib/hindsight", filepath.Join(dir, "state"),
			"0.0.0.0:8080", "0.0.0.0:0", "127.0.0.1:8080", "127.0.0.1:0",
			"/etc/hindsight/keys/keys", keys, "0.0.0.0:9464", admin, "127.0.0.1:9464", admin, "127.0.0.1:9465", admin)
		var args []string
		for _, a := range c.Args[1:] {
			args = append(args, replace.Replace(a))
		}
		cmd := exec.Command(filepath.Join(bin, c.Args[0]), args...)
		if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--log=") }) {
			// EnvironmentFile
			cmd.Env = append(os.Environ(), "HINDSIGHT_LOG=nats://"+server.Addr(), "HINDSIGHT_JOINER=false")
		} else {
			cmd.Env = append(os.Environ(), daemon.AdminTokenEnv+"=of-a-kubernetes-secret")
		}
		startCommand(t, c.File+", "+c.Name, cmd)
		probes[c.File+": "+c.Name] = "http://" + admin + "/readyz"
	}
	if len(probes) != 4 {
		t.Errorf("%d commands, expected three units and one pod", len(probes))
	}
	for name, probe := range probes {
		eventually(t, name+" is ready", func() bool { return healthy(probe) })
	}
}

// startCommand starts a process, which must end well when the test does.
func startCommand(t *testing.T, name string, cmd *exec.Cmd) {
	t.Helper()
	log := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = log, log // read when it has ended
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("%s: %v\n%s", name, err, log)
		}
	})
}
