package nats

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"hindsight/internal/testkit/locked"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/natstest"
	"hindsight/pkg/stream/tlstest"
)

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"embedded:./data":               "embedded:./data",
		"nats://h:4222":                 "nats://h:4222",
		"nats://u:secret@h:4222":        "nats://***@h:4222",
		"nats://u:secret@h,v:hidden@i":  "nats://***@i",
		"nats://u:secret@h,i":           "nats://***@h,i",
		"nats://u:se/c@re,t@h":          "nats://***@h",
		"nats://u:se cr@t@h: no":        "nats://***@h: no",
		"://u@h":                        "://***@h",
		`parse "nats://u:p@h:x": bad`:   `parse "nats://***@h:x": bad`,
		"someone@example.org, nats://h": "someone@example.org, nats://h",
	} {
		if got := Redact(text); got != want {
			t.Errorf("Redact(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestAccessRefuses holds what can be known without connecting, and that no error
// shows a password.
func TestAccessRefuses(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.nk")
	if err := os.WriteFile(bad, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a    Access
		want string
	}{
		{Access{URL: "nats://"}, "expected nats://"},
		{Access{URL: "nats://u:secret@h:port"}, "expected nats://"},
		{Access{URL: "nats://u:se%cret@h"}, "expected nats://"},
		{Access{URL: "nats://u:se/cret@h"}, "expected nats://"},
		{Access{URL: "http://u:secret@h"}, "expected nats:// or tls://"},
		{Access{URL: "nats://h,nats://u:secret@"}, "expected nats://"},
		{Access{URL: "nats://h", Cert: "x.pem"}, "go together"},
		{Access{URL: "nats://h", Creds: "x", NKey: "y"}, "exclude each other"},
		{Access{URL: "nats://h", CA: filepath.Join(dir, "none.pem")}, "CA: open "},
		{Access{URL: "nats://h", Creds: filepath.Join(dir, "none.creds")}, "credentials: open "},
		{Access{URL: "nats://h", CA: "/dev/zero"}, "CA: /dev/zero is not a plain file"},
		{Access{URL: "nats://h", NKey: bad}, "nkey seed " + bad},
	} {
		_, err := c.a.Dial("test", Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") ||
			strings.Contains(err.Error(), "cret@") {
			t.Errorf("%s: %v, want %q", Redact(c.a.URL), err, c.want)
		}
	}
	a := Access{URL: "nats://u:secret@h1,h2:99, tls://h3,h4"}
	urls, hosts, err := a.servers()
	if err != nil || hosts != "h1:4222,h2:99,h3:4222,h4:4222" || strings.Join(urls, " ") != "nats://u:secret@h1:4222 "+
		"nats://u:secret@h2:99 tls://u:secret@h3:4222 tls://u:secret@h4:4222" {
		t.Error(urls, hosts, err)
	}
}

// TestAccessServers dials servers that want a user, an nkey, and TLS, rightly and
// wrongly.
func TestAccessServers(t *testing.T) {
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, _ := user.PublicKey()
	seed, _ := user.Seed()
	nkey := filepath.Join(t.TempDir(), "user.nk")
	if err := os.WriteFile(nkey, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	ours, theirs := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	cert, key := ours.Issue("server")
	clientCert, clientKey := ours.Issue("client")
	otherCert, otherKey := theirs.Issue("other")
	plain := natstest.Start(
		t, natstest.Options{Users: []natstest.User{{Name: "shop", Password: "sec ret@,"}, {NKey: public}}})
	secure := natstest.Start(t, natstest.Options{Cert: cert, Key: key})
	mutual := natstest.Start(t, natstest.Options{Cert: cert, Key: key, CA: ours.CA})
	operator, creds, foreign := natstest.NewOperator(t)
	accounts := natstest.Start(t, natstest.Options{Operator: operator})
	gone := natstest.Start(t, natstest.Options{})
	gone.Kill()

	for _, c := range []struct {
		name string
		a    Access
		want error
		text string
	}{
		{"password", Access{URL: "nats://shop:sec%20ret%40%2C@" + plain.Addr()}, nil, ""},
		{"second server", Access{URL: "nats://shop:sec%20ret%40%2C@" + gone.Addr() + "," + plain.Addr()}, nil, ""},
		{"wrong password", Access{URL: "nats://shop:wrongsecret@" + plain.Addr()}, ErrRefused, plain.Addr()},
		{"no password", Access{URL: plain.URL()}, ErrRefused, plain.Addr()},
		{"nkey", Access{URL: plain.URL(), NKey: nkey}, nil, ""},
		{"credentials", Access{URL: accounts.URL(), Creds: creds}, nil, ""},
		{"credentials of others", Access{URL: accounts.URL(), Creds: foreign}, ErrRefused, accounts.Addr()},
		{"no credentials", Access{URL: accounts.URL()}, ErrRefused, accounts.Addr()},
		{"TLS", Access{URL: secure.URL(), CA: ours.CA}, nil, ""},
		{"TLS by name", Access{URL: "tls://" + secure.Addr(), CA: ours.CA}, nil, ""},
		{"wrong CA", Access{URL: secure.URL(), CA: theirs.CA}, ErrCertificate, secure.Addr()},
		{"no CA", Access{URL: secure.URL()}, ErrCertificate, secure.Addr()},
		{"server without TLS", Access{URL: plain.URL(), CA: ours.CA}, ErrCertificate, plain.Addr()},
		{"client certificate", Access{URL: mutual.URL(), CA: ours.CA, Cert: clientCert, Key: clientKey}, nil, ""},
		{"no client certificate", Access{URL: mutual.URL(), CA: ours.CA}, ErrCertificate, mutual.Addr()},
		{"client certificate of others", Access{URL: mutual.URL(), CA: ours.CA, Cert: otherCert, Key: otherKey},
			ErrCertificate, mutual.Addr()},
		{"nobody there", Access{URL: "nats://shop:secret@" + gone.Addr()}, stream.ErrUnavailable, gone.Addr()},
	} {
		client, err := c.a.Dial("test", Options{})
		if c.want == nil {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			if _, err := client.Log().Topics(t.Context()); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if err := client.Close(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(),
			"secret") {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
			continue
		}
		t.Logf("%s: %v", c.name, err)
	}
}

// TestAccessAway kills the server under a client: what is asked meanwhile fails by
// name, a reader waits, and all goes on when the server is back.
func TestAccessAway(t *testing.T) {
	s := natstest.Start(t, natstest.Options{Users: []natstest.User{{Name: "u", Password: "topsecret"}}})
	var log locked.Buffer
	a := Access{URL: "nats://u:topsecret@" + s.Addr(), Log: slog.New(slog.NewTextHandler(&log, nil))}
	c, err := a.Dial("test", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := c.Log().Create(ctx, "m.x", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	w, tail, err := c.Log().Open(ctx, "m.x", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Log().Read(ctx, "m.x", 0, tail.Next)
	if err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if _, err := w.Append(ctx, &stream.Record{Value: []byte("a")}); err == nil {
		err = w.Flush(ctx)
		if !errors.Is(err, stream.ErrUnknown) {
			t.Errorf("flush with the server away: %v", err)
		}
	} else if !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("append with the server away: %v", err)
	}
	if _, _, err := c.Log().Bounds(ctx, "m.x", 0); !stream.IsRetryable(err) {
		t.Errorf("bounds with the server away: %v", err)
	}
	if _, _, err := c.Bus().Request(ctx, "m.decide", nil); !stream.IsRetryable(err) {
		t.Errorf("request with the server away: %v", err)
	}
	s.Restart()
	waitFor(t, func() bool {
		w, _, err = c.Log().Open(ctx, "m.x", 0, stream.OpenOptions{})
		if err != nil && !stream.IsRetryable(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	if _, err := w.Append(ctx, &stream.Record{Value: []byte("b")}); err != nil {
		t.Fatal(err)
	}
	var got []stream.Record
	for len(got) == 0 || string(got[len(got)-1].Value) != "b" {
		if got, err = r.Next(ctx, got); err != nil {
			t.Fatal(err)
		}
	}
	if s := log.String(); !strings.Contains(s, "connection to the log lost") ||
		!strings.Contains(s, "connected to the log again") || strings.Contains(s, "secret") {
		t.Errorf("the log says:\n%s", s)
	}
}

// TestRequestBroken kills the server under a request that has arrived: it fails by name,
// at once and not with its context, for no reply would find it.
func TestRequestBroken(t *testing.T) {
	s := natstest.Start(t, natstest.Options{})
	c, err := Dial(s.URL(), "test", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	arrived := make(chan stream.Message, 1)
	if _, err := c.Bus().Serve("m.decide", "q", func(m stream.Message) { arrived <- m }); err != nil {
		t.Fatal(err)
	}
	asked := make(chan error, 1)
	go func() {
		_, _, err := c.Bus().Request(t.Context(), "m.decide", nil) // without an end of its own
		asked <- err
	}()
	<-arrived
	s.Kill()
	if err := <-asked; !errors.Is(err, stream.ErrUnavailable) || !strings.Contains(err.Error(), "m.decide") {
		t.Errorf("a request under which the server was killed: %v", err)
	}
}

// TestStreamDeleted deletes a stream under a writer and a reader: both are told.
func TestStreamDeleted(t *testing.T) {
	s := natstest.Start(t, natstest.Options{})
	c, err := (&Access{URL: s.URL()}).Dial("test", Options{AckTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.Log().Create(ctx, "m.x", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	w, tail, err := c.Log().Open(ctx, "m.x", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Log().Read(ctx, "m.x", 0, tail.Next)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := r.Next(ctx, nil)
		read <- err
	}()
	if err := c.log.call(ctx, c.log.conn, "STREAM.DELETE.m_x_0", nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(ctx, &stream.Record{Value: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(ctx); !errors.Is(err, stream.ErrUnknown) || !strings.Contains(err.Error(),
		"the stream is not there") {
		t.Errorf("flush: %v", err)
	}
	if err := <-read; !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("next: %v", err)
	}
	if _, _, err := c.Log().Open(ctx, "m.x", 0, stream.OpenOptions{}); !errors.Is(err, stream.ErrNotFound) ||
		!strings.Contains(err.Error(), "m.x[0]") {
		t.Errorf("open: %v", err)
	}
}
