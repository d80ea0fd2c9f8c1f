package access_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"hindsight/internal/access"
	"hindsight/internal/daemon"
	"hindsight/internal/topics"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/natstest"
)

func TestMain(m *testing.M) { natstest.TestMain(m) }

// TestSecretFiles holds that each file with a secret that others can use is told by the
// name of its flag, or refused, before anything else is done with it.
func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	if err := os.WriteFile(file, []byte("plantedsecret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	const nowhere = "127.0.0.1:1"
	nats := func(f access.NATS) func(*slog.Logger) error {
		return func(l *slog.Logger) error {
			_, err := (&access.Flags{NATS: f}).Dial(t.Context(), "nats://"+nowhere, "test", l)
			return err
		}
	}
	kafka := func(f access.Kafka) func(*slog.Logger) error {
		return func(l *slog.Logger) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := (&access.Flags{Kafka: f}).Dial(ctx, "kafka://"+nowhere, "test", l)
			return err
		}
	}
	for _, c := range []struct {
		flag, says string // in the log, or in the error
		open       func(*slog.Logger) error
	}{
		{"--nats-creds", "", nats(access.NATS{Creds: file})},
		{"--nats-nkey", "", nats(access.NATS{NKey: file})},
		{"--nats-key", "", nats(access.NATS{Cert: file, Key: file})},
		{"--nats-password-file", "holds a secret; run: chmod 600", nats(access.NATS{User: "u", PasswordFile: file})},
		{"--kafka-password-file", "holds a secret; run: chmod 600", kafka(access.Kafka{User: "u", PasswordFile: file})},
		{"--kafka-password-file", "", kafka(access.Kafka{Mechanism: "oauthbearer", PasswordFile: file})},
		{"--kafka-key", "", kafka(access.Kafka{Cert: file, Key: file})},
		{"--admin-key", "", func(l *slog.Logger) error { return admin(l, "--admin-cert", file, "--admin-key", file) }},
		{"--admin-token-file", "holds a secret; run: chmod 600", func(l *slog.Logger) error {
			return admin(l, "--admin-token-file", file)
		}},
	} {
		var out bytes.Buffer
		err := c.open(slog.New(slog.NewTextHandler(&out, nil)))
		warned := strings.Contains(out.String(), "what="+c.flag+" ") && strings.Contains(out.String(),
			fmt.Sprintf("chmod 600 \\\"%s\\\"", file))
		switch {
		case err == nil || strings.Contains(err.Error()+out.String(), "plantedsecret"):
			t.Errorf("%s: %v %s", c.flag, err, &out)
		case c.says == "" && !warned:
			t.Errorf("%s: no warning: %s", c.flag, &out)
		case c.says != "" && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), file)):
			t.Errorf("%s: %v", c.flag, err)
		}
	}
}

// TestDial: what a server and a broker give to a program, that a model's records have headers on brokers only, and
// that each shares the work on a model.
func TestDial(t *testing.T) {
	brokers, _ := kafkatest.Fake(t, 1)
	for kind, log := range map[string]string{"nats": natstest.Start(t, natstest.Options{}).URL(),
		"kafka": "kafka://" + brokers[0]} {
		f, discard := access.New(os.Getenv), slog.New(slog.DiscardHandler)
		s, err := f.Dial(t.Context(), log, "test", discard)
		if err != nil || (s.Bus != nil) != (kind == "nats") {
			t.Fatalf("%s: %v, %+v", kind, err, s)
		}
		if _, err := topics.Ensure(t.Context(), s.Log, "m", 1, topics.Retention{}); err != nil {
			t.Fatal(err)
		}
		w, err := s.Log.Writer(t.Context(), "m.contexts", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = w.Append(t.Context(), &stream.Record{Value: []byte("{}")}); err == nil {
			err = w.Flush(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		sharing, err := s.Sharing(t.Context(), "m", "test")
		if err != nil {
			t.Fatal(err)
		}
		done := errors.New("done")
		err = sharing.Deciders(t.Context(), 1, discard, func(context.Context, int) error { return done })
		if !errors.Is(err, done) {
			t.Errorf("%s: deciders: %v", kind, err)
		}
		err = sharing.Joiner(t.Context(), discard, func(context.Context) error { return done })
		if !errors.Is(err, done) {
			t.Errorf("%s: joiner: %v", kind, err)
		}
		err = stream.Scan(t.Context(), s.Log, "m.contexts", 0, stream.Earliest, math.MaxInt64,
			func(r *stream.Record) error {
				if (len(r.Headers) > 0) != (kind == "kafka") {
					t.Errorf("%s: headers %v", kind, r.Headers)
				}
				return done
			})
		if !errors.Is(err, done) {
			t.Errorf("%s: no record: %v", kind, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestInTheClear holds that a password or token which everybody on the way to the brokers can read is warned of.
func TestInTheClear(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		url, mechanism string
		warns          bool
	}{{"kafka://u:p@127.0.0.1:1", "plain", true}, {"kafkas://u:p@127.0.0.1:1", "plain", false},
		{"kafka://u:p@127.0.0.1:1", "scram-sha-256", false}, {"kafka://127.0.0.1:1", "plain", false}} {
		var out bytes.Buffer
		f := access.Flags{Kafka: access.Kafka{Mechanism: c.mechanism, Getenv: func(string) string { return "" }}}
		_, err := f.Dial(ctx, c.url, "test", slog.New(slog.NewTextHandler(&out, nil)))
		if err == nil || strings.Contains(out.String(), "goes over the network as it is") != c.warns {
			t.Errorf("%+v: %v, %s", c, err, &out)
		}
		_, _ = f.Dial(ctx, c.url, "test", nil) // without a logger
	}
}

// admin opens the admin pages with flags.
func admin(logger *slog.Logger, args ...string) error {
	var a daemon.AdminFlag
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	a.Add(fs)
	if err := fs.Parse(append(args, "--admin", "127.0.0.1:0")); err != nil {
		return err
	}
	open, err := a.Open(logger, daemon.Probes{})
	if err == nil {
		open.Close()
	}
	return err
}
