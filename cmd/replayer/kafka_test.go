package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"hindsight/pkg/stream/kafkatest"
)

// TestKafka plays on brokers and verifies there.
func TestKafka(t *testing.T) {
	t.Parallel()
	addrs, _ := kafkatest.Fake(t, 1, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "u", "topsecret"))
	dir := t.TempDir()
	seed, password := filepath.Join(dir, "seed"), filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("topsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := strings.Join(addrs, ",")
	run := func(code int, says string, args ...string) {
		t.Helper()
		got := execute(t.Context(), args...)
		if all := got.stdout + got.stderr; got.code != code || !strings.Contains(all, says) ||
			strings.Contains(all, "secret") {
			t.Errorf("%.7s: exit code %d, want %d and %q:\n%s", args[0], got.code, code, says, all)
		}
	}
	login := []string{"--log", "kafka://" + addr, "--kafka-user", "u", "--kafka-password-file", password, "--seed-file",
		seed}
	run(0, "audit it again:  replayer verify --log kafka://"+addr, append([]string{"inject", "--rounds", "200",
		"--partitions", "2"}, login...)...)
	run(0, "identical", append([]string{"verify"}, login...)...)
	run(0, "identical", "verify", "--log", "kafka://u:topsecret@"+addr, "--seed-file", seed)
	run(1, "already", append([]string{"inject", "--rounds", "200"}, login...)...)
	run(4, "authentication failed", "verify", "--log", "kafka://u:wrongsecret@"+addr, "--seed-file", seed)
	run(2, "percent-encoded", "verify", "--log", "kafka://u:p/secret@h")
}
