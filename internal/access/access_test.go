package access_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"hindsight/internal/access"
	"hindsight/internal/daemon"
)

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
