package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/internal/testkit/locked"
	"hindsight/pkg/stream/natstest"
)

// What is planted, to be found nowhere but where it was put.
const (
	plantedSeed     = "5ec0de5ec0de5ec0de5ec0de5ec0de5ec0de5ec0de5ec0de5ec0de5ec0de5ec0" // in hex
	plantedToken    = "planted-admin-token-417"
	plantedPassword = "planted-nats-password-418"
	plantedFeature  = "planted-feature-419" // of a context: it goes to the logs of the model, and nowhere else
)

// secrets are texts that must not be seen, by name.
type secrets map[string][]byte

func planted(t *testing.T) secrets {
	t.Helper()
	raw, err := hex.DecodeString(plantedSeed)
	if err != nil {
		t.Fatal(err)
	}
	s := secrets{"token": []byte(plantedToken), "password": []byte(plantedPassword),
		"seed": []byte(plantedSeed), "seed as bytes": raw,
		"seed in base64":  []byte(base64.StdEncoding.EncodeToString(raw)[:40]),
		"token in base64": []byte(base64.StdEncoding.EncodeToString([]byte(plantedToken))[:24])}
	return s
}

// notIn fails if one of the secrets is in what a process wrote.
func (s secrets) notIn(t *testing.T, where string, text []byte) {
	t.Helper()
	for name, secret := range s {
		if len(secret) > 0 && bytes.Contains(text, secret) {
			t.Errorf("the %s is in %s", name, where)
		}
	}
}

// notBelow looks in all files of a folder but those that are there to hold a secret.
func (s secrets) notBelow(t *testing.T, dir string, except ...string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, name := range except {
			if d.Name() == name {
				return nil
			}
		}
		text, err := os.ReadFile(path)
		s.notIn(t, path, text)
		files++
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("looked into %d files: %v", files, err)
	}
}

func plant(t *testing.T, dir, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// heard starts a command and keeps all that it writes.
func heard(t *testing.T, args ...string) (*process, *locked.Buffer) {
	t.Helper()
	cmd := decider(t, args...)
	out := &locked.Buffer{}
	cmd.Stdout = out
	return start(t, cmd), out
}

// all is everything that a process wrote to its standard outputs.
func (p *process) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// pages returns what the admin pages show to somebody.
func pagesOf(t *testing.T, addr, token string) (text []byte) {
	t.Helper()
	for _, path := range []string{"/", "/metrics", "/healthz", "/readyz", "/certificate", "/models", "/state",
		"/nothing",
		"/debug/pprof/", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/debug/pprof/cmdline"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		header, err := json.Marshal(answer.Header)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(append(text, path...), header...), body...)
	}
	return text
}

// useWrongly asks as users do who make mistakes, with a feature that nobody else shall
// see in what the process tells of itself.
func useWrongly(t *testing.T, url string) {
	t.Helper()
	conn, err := natsgo.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, data := range []string{`{"id":"a","features":{"x":"` + plantedFeature + `"},"actions":["x","y"]}`,
		`{"id":"a","features":{"x":"` + plantedFeature + `"},"actions":["x"]}`,
		`{"features":{"x":"` + plantedFeature, `{"features":"` + plantedFeature + `"}`} {
		if _, err := conn.Request("shop.decide", []byte(data), patience); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := conn.Request("shop.outcome", []byte(`{"id":"a","loss":"`+plantedFeature+`"}`), patience); err != nil {
		t.Fatal(m, err)
	}
	if m, err := conn.Request("shop.outcome", []byte(`{"id":"a","loss":0.5}`), patience); err != nil {
		t.Fatal(m, err)
	}
}

// TestSecretsEmbedded runs a decider with a seed and a token that are known, and looks for
// them, and for the passwords that it made, in all that it shows and writes: arguments,
// log, pages, a dump of its goroutines, the folder. Features stay in the folder.
func TestSecretsEmbedded(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	seed, token := plant(t, other, "seed", plantedSeed), plant(t, other, "token", plantedToken)
	p, out := heard(t, "--log", "embedded:"+dir, "--listen", "127.0.0.1:0", "--model", writeModel(t, other, shop),
		"--seed-file", seed, "--admin", "127.0.0.1:0", "--admin-token-file", token, "--pprof", "--log-level", "debug")
	p.ready()
	access := p.reached(dir)
	useWrongly(t, access.URL)
	s := planted(t)
	s["service's password"], s["client's password"] = []byte(access.Password), []byte(access.ClientPassword)
	outside := secrets{"feature": []byte(plantedFeature)}
	for name, secret := range s {
		outside[name] = secret
	}
	outside.notIn(t, "the pages", pagesOf(t, p.admin(), plantedToken))
	outside.notIn(t, "what a stranger is told", pagesOf(t, p.admin(), "a-wrong-token-for-it"))
	for _, name := range []string{"cmdline", "environ"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, name))
		if err != nil {
			t.Fatal(err)
		}
		outside.notIn(t, name, text)
	}
	p.signal(syscall.SIGQUIT) // the runtime dumps all goroutines
	if p.wait(patience); !strings.Contains(p.all(), "goroutine 1 ") {
		t.Errorf("no dump:\n%s", p.log())
	}
	outside.notIn(t, "the log", []byte(p.all()+out.String()))
	s.notBelow(t, dir, "connect.json")
	// A clean life writes a snapshot.
	p, _ = heard(t, "--log", "embedded:"+dir, "--listen", "127.0.0.1:0", "--model", writeModel(t, other, shop),
		"--seed-file", seed, "--admin", "none")
	p.ready().stop(patience)
	s.notBelow(t, dir)
	// The search finds what is there.
	found := secrets{"seed": []byte(plantedSeed)}
	text, err := os.ReadFile(seed)
	if err != nil || !bytes.Contains(text, found["seed"]) {
		t.Errorf("%q, %v", text, err)
	}
}

// TestSecretsServers gives a password for servers in a file, in the environment and among
// the arguments, right and wrong, with the server there and away: it is seen nowhere.
func TestSecretsServers(t *testing.T) {
	notShort(t)
	t.Parallel()
	server := natstest.Start(t, natstest.Options{Users: []natstest.User{{Name: "shop", Password: plantedPassword}}})
	dir := t.TempDir()
	seed, password, wrong := plant(t, dir, "seed", plantedSeed), plant(t, dir, "password", plantedPassword),
		plant(t, dir, "wrong", "not-"+plantedPassword)
	common := []string{"--model", writeModel(t, dir, shop), "--seed-file", seed, "--admin", "127.0.0.1:0",
		"--log-level", "debug"}
	s := planted(t)
	for _, c := range []struct {
		name string
		args []string
		env  string
		says string // "": it starts
	}{
		{"file", []string{"--log", server.URL(), "--nats-user", "shop", "--nats-password-file", password}, "", ""},
		{"environment", []string{"--log", server.URL(), "--nats-user", "shop"}, "HINDSIGHT_NATS_PASSWORD=" +
			plantedPassword, ""},
		{"URL in the environment", nil, "HINDSIGHT_LOG=nats://shop:" + plantedPassword + "@" + server.Addr(), ""},
		{"argument", []string{"--log", "nats://shop:" + plantedPassword + "@" + server.Addr()}, "", ""},
		{"wrong file", []string{"--log", server.URL(), "--nats-user", "shop", "--nats-password-file", wrong}, "",
			"refuses this user, password"},
		{"wrong argument", []string{"--log=nats://shop:not-" + plantedPassword + "@" + server.Addr()}, "",
			"refuses this user, password"},
		{"not a URL", []string{"--log", "nats://shop:" + plantedPassword + "/@" + server.Addr()}, "",
			"expected nats://"},
		{"no password", []string{"--log", server.URL(), "--nats-user", "shop"}, "", "Give --nats-password-file"},
		{"two users", []string{"--log", "nats://shop:" + plantedPassword + "@" + server.Addr(), "--nats-user", "shop",
			"--nats-password-file", password}, "", "names a user already"},
	} {
		cmd := decider(t, append(c.args, common...)...)
		if c.env != "" {
			cmd.Env = append(cmd.Env, c.env)
		}
		out := &locked.Buffer{}
		cmd.Stdout = out
		p := start(t, cmd)
		if c.says == "" {
			p.ready()
			arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.cmd.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			s.notIn(t, c.name+": cmdline", arguments)
			s.notIn(t, c.name+": the pages", pagesOf(t, p.admin(), ""))
			if warned := strings.Contains(p.all(), "a password among the arguments"); warned != (c.name == "argument") {
				t.Errorf("%s: warned: %v", c.name, warned)
			}
			if c.name == "argument" { // the last of those that start
				server.Kill()
				p.becomes(p.admin(), 503, "")
				server.Restart()
			}
			p.stop(patience)
		} else if code := p.wait(patience); code == 0 || !strings.Contains(p.all(), c.says) {
			t.Errorf("%s: exit code %d, want %q:\n%s", c.name, code, c.says, p.log())
		}
		s.notIn(t, c.name+": the log", []byte(p.all()+out.String()))
	}
}
