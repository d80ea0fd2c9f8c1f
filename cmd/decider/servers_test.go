package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/internal/daemon"
	"hindsight/pkg/stream/natstest"
	"hindsight/pkg/stream/tlstest"
)

// TestServersRefuse holds that what cannot work with servers is said by name, with
// what to do, and never with a password.
func TestServersRefuse(t *testing.T) {
	s := newShared(t, 2)
	first := s.decider().ready()
	defer first.stop(patience)
	ours, theirs := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	cert, key := ours.Issue("server")
	secure := natstest.Start(t, natstest.Options{Cert: cert, Key: key})
	gone := natstest.Start(t, natstest.Options{})
	gone.Kill()
	seed := filepath.Join(s.dir, "other-seed")
	if _, err := daemon.SeedFile(seed); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(s.dir, "none")
	higher := filepath.Join(t.TempDir(), "model.yaml")
	if err := os.WriteFile(higher, []byte(strings.Replace(shop, "window: 300ms", "window: 1s", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	with := func(args ...string) []string { return append(slices.Clone(s.args), args...) }
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"wrong password", []string{"--log", "nats://shop:wrongsecret@" + s.server.Addr()}, 1,
			[]string{"refuses this user, password or credentials", s.server.Addr(), "--nats-creds"}},
		{"no password", []string{"--log", s.server.URL()}, 1, []string{"refuses this user, password or credentials"}},
		{"wrong CA", []string{"--log", secure.URL(), "--nats-ca", theirs.CA}, 1,
			[]string{"certificate", secure.Addr(), "--nats-ca"}},
		{"no CA", []string{"--log", secure.URL()}, 1, []string{"certificate", "--nats-ca"}},
		{"CA away", []string{"--log", secure.URL(), "--nats-ca", "none.pem"}, 1, []string{"CA: open none.pem"}},
		{"certificate without a key", []string{"--log", secure.URL(), "--nats-cert", cert}, 1, []string{"go together"}},
		{"nobody there", []string{"--log", "nats://u:secret@" + gone.Addr()}, 1, []string{gone.Addr(), "no " +
			"server answers"}},
		{"a password with a slash", []string{"--log", "nats://u:sec/secret@h"}, 2, []string{"percent-encoded",
			"Try: "}},
		{"another seed", with("--seed-file", seed), 1, []string{"not the seed that the log was created with",
			"same seed file"}},
		{"another seed for the joiner too", with("--seed-file", seed, "--joiner=false"), 1,
			[]string{"not the seed that the log was created with"}},
		{"no seed file", with("--seed-file", none), 1, []string{"the seed of this log is missing", none,
			"copy it from where the log was made"}},
		{"no seed file for the joiner too", with("--seed-file", none, "--joiner=false"), 1,
			[]string{"the seed of this log is missing"}},
		{"other partitions", with("--partitions", "3"), 1, []string{`model "shop"`, "another number of partitions",
			"created with 2, not 3"}},
		{"no partitions", with("--partitions", "-1"), 2, []string{"at least 0"}},
	} {
		p := start(t, decider(t, c.args...))
		code := p.wait(patience)
		for _, says := range c.says {
			if code != c.code || !strings.Contains(p.log(), says) {
				t.Errorf("%s: exit code %d, want %d and %q:\n%s", c.name, code, c.code, says, p.log())
			}
		}
		if strings.Contains(p.log(), "secret") {
			t.Errorf("%s: the log shows a password:\n%s", c.name, p.log())
		}
	}
	p := start(t, decider(t, with("--model", higher)...)) // stands by: it would be refused as joiner
	s.shares(map[*process]int{first: 1, p: 1})
	p.stop(patience)
}

// TestServersTLS runs a decider and a joiner apart from it on a server that wants
// certificates, with an nkey-free setup of files only.
func TestServersTLS(t *testing.T) {
	a := tlstest.NewAuthority(t)
	cert, key := a.Issue("server")
	mine, mineKey := a.Issue("client")
	server := natstest.Start(t, natstest.Options{Cert: cert, Key: key, CA: a.CA})
	dir := t.TempDir()
	args := []string{"--log", server.URL(), "--nats-ca", a.CA, "--nats-cert", mine, "--nats-key", mineKey,
		"--model", writeModel(t, dir, shop), "--seed-file", filepath.Join(dir, "seed")}
	j := start(t, feedbackJoiner(t, args...)) // waits for the topics
	d := start(t, decider(t, append(args, "--joiner=false")...)).ready()
	j.ready()
	conn, err := natsgo.Connect(server.URL(), natsgo.RootCAs(a.CA), natsgo.ClientCert(mine, mineKey))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m, err := conn.Request("shop.decide", []byte(`{"id":"a","actions":["x","y"]}`), patience)
	if err != nil || !strings.Contains(string(m.Data), `"action"`) {
		t.Fatal(m, err)
	}
	d.stop(patience)
	j.stop(patience)
}

// TestServersApart kills the joiner that works: the one that stands by takes over.
// Then the server goes away for a while, and comes back.
func TestServersApart(t *testing.T) {
	notShort(t)
	t.Parallel()
	seed := testSeed(t)
	s := newShared(t, 1)
	d := s.decider("--joiner=false")
	j := start(t, feedbackJoiner(t, s.args...)).ready()
	k := start(t, feedbackJoiner(t, s.args...))
	d.ready()
	eventually(t, "the second joiner stands by", func() bool { return strings.Contains(k.log(), "standing by") })
	u := s.newUsers(seed)
	after(d, 300*time.Millisecond)
	began := time.Now()
	j.kill()
	k.ready()
	took := time.Since(began)
	after(d, 300*time.Millisecond)
	s.server.Kill()
	after(d, time.Duration(long(2, 60))*time.Second) // beyond the lease
	s.server.Restart()
	began = time.Now()
	s.answered()
	back := time.Since(began)
	after(d, 300*time.Millisecond)
	u.end()
	t.Logf("a joiner took over %v after kill -9; decisions %v after the server was back", took.Round(time.Millisecond),
		back.Round(time.Millisecond))
	if d.said("connection to the log lost") == 0 || d.said("connected to the log again") == 0 {
		t.Errorf("the decider does not say that the server was away:\n%s", d.log())
	}
	d.stop(patience)
	k.stop(patience)
	u.audit()
}

// TestServersStreamDeleted deletes the decisions under a decider: it says what is
// missing, and does not make it anew.
func TestServersStreamDeleted(t *testing.T) {
	s := newShared(t, 1)
	d := s.decider().ready()
	conn, err := natsgo.Connect(s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if m, err := conn.Request("$JS.API.STREAM.DELETE.shop_decisions_0", nil, 30*time.Second); err != nil ||
		!strings.Contains(string(m.Data), `"success":true`) {
		t.Fatal(m, err)
	}
	ask := func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		m, err := conn.RequestWithContext(ctx, "shop.decide", []byte(`{"id":"a","actions":["x","y"]}`))
		if err != nil {
			return err.Error()
		}
		return string(m.Data)
	}
	eventually(t, "the decider names the stream", func() bool {
		if reply := ask(); strings.Contains(reply, `"action"`) {
			t.Fatalf("a decision that is not stored: %s", reply)
		}
		return strings.Contains(d.log(), "shop.decisions[0]") && strings.Contains(d.log(), "no such topic or partition")
	})
	d.stop(patience)
}
