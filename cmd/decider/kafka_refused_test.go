package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"hindsight/pkg/stream/kafkatest"
)

// TestKafkaRefuses holds that what cannot work with brokers is said by name, with what
// to do, and never with a password.
func TestKafkaRefuses(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: go test without it runs this")
	}
	t.Parallel()
	plain, _ := kafkatest.Fake(t, 1)
	few, _ := kafkatest.Fake(t, 1, kfake.SeedTopics(2, "shop.contexts"))
	users, _ := kafkatest.Fake(t, 1, kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("SCRAM-SHA-512", "admin", "secret1"),
		kfake.User("SCRAM-SHA-512", "shop", "secret2"), kfake.User("PLAIN", "plain", "secret3"))
	dead := closedPort(t)
	dir := t.TempDir()
	password, empty := filepath.Join(dir, "password"), filepath.Join(dir, "empty")
	for path, text := range map[string]string{password: "secret2\n", empty: "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	common := []string{"--model", writeModel(t, dir, shop), "--seed-file", filepath.Join(dir, "seed"),
		"--admin", "none", "--listen", "127.0.0.1:0"}
	at := func(hosts []string, more ...string) []string {
		return append([]string{"--log", "kafka://" + hosts[0]}, more...)
	}
	type refusal struct {
		name string
		args []string
		code int
		says []string
		p    *process
	}
	cases := []*refusal{
		{"no broker", []string{"--log", "kafka://"}, 2, []string{"--log", "expected kafka://"}, nil},
		{"a scheme without slashes", []string{"--log", "kafka:host"}, 2, []string{"expected kafka://"}, nil},
		{"no port", []string{"--log", "kafka://h:x"}, 2, []string{`"x" is not a port`}, nil},
		{"an unknown setting", at(plain, "--log", "kafka://"+plain[0]+"/?acks=1"), 2,
			[]string{`no setting "acks"`, "min_isr, replication, session"}, nil},
		{"a password with a slash", []string{"--log", "kafka://u:sec/secret@h"}, 2, []string{"percent-encoded",
			"Try: "}, nil},
		{"requests on nothing", at(plain, "--nats", "http://u:secret@h"), 2, []string{"--nats", "expected nats://"},
			nil},
		{"requests beside a log that answers them", []string{"--log", "mem:", "--nats", "nats://h"}, 2,
			[]string{"this log answers them itself"}, nil},
		{"nobody there", at([]string{dead}), 1, []string{"connect to " + dead, "connection refused",
			"start the brokers"}, nil},
		{"an unknown host", at([]string{"no-such-host.invalid:9092"}), 1, []string{"connect to " +
			"no-such-host.invalid:9092", "no such host", "give an address"}, nil},
		{"wrong password", at(users, "--log", "kafka://shop:wrongsecret@"+users[0]), 1,
			[]string{"authentication failed", "connect to " + users[0], "--kafka-password-file"}, nil},
		{"wrong mechanism", at(users, "--kafka-user", "shop", "--kafka-password-file", password, "--kafka-sasl",
			"scram-sha-256"), 1, []string{"authentication failed", "--kafka-sasl"}, nil},
		{"a mechanism that is none", at(users, "--kafka-user", "shop", "--kafka-password-file", password,
			"--kafka-sasl", "gssapi"), 1, []string{"expected plain, scram-sha-256 or scram-sha-512"}, nil},
		{"no password", at(users, "--kafka-user", "shop"), 1, []string{"which password", "HINDSIGHT_KAFKA_PASSWORD"},
			nil},
		{"an empty password", at(users, "--kafka-user", "shop", "--kafka-password-file", empty), 1,
			[]string{empty + " is empty"}, nil},
		{"no password file", at(users, "--kafka-user", "shop", "--kafka-password-file", filepath.Join(dir, "none")), 1,
			[]string{"none: no such file"}, nil},
		{"a password without a user", at(users, "--kafka-password-file", password), 1, []string{"without a user"}, nil},
		{"two users", at(users, "--log", "kafka://other:secret@"+users[0], "--kafka-user", "shop"), 1,
			[]string{"name two users"}, nil},
		{"no rights", at(users, "--kafka-user", "shop", "--kafka-password-file", password), 1,
			[]string{"shop.", "not authorized"}, nil},
		{"TLS where there is none", at(plain, "--log", "kafkas://"+plain[0]), 1, []string{"TLS", "--kafka-ca"}, nil},
		{"no CA file", at(plain, "--kafka-ca", filepath.Join(dir, "none.pem")), 1, []string{"none.pem: no such file"},
			nil},
		{"a CA file without a certificate", at(plain, "--kafka-ca", password), 1, []string{"holds no certificate"},
			nil},
		{"a certificate without a key", at(plain, "--kafka-cert", password), 1, []string{"go together"}, nil},
		{"more copies in sync than there are", at(plain, "--kafka-replication", "1", "--kafka-min-isr", "2"), 1,
			[]string{"2 copies", "there are 1"}, nil},
		{"two replications", at(plain, "--log", "kafka://"+plain[0]+"?replication=3", "--kafka-replication", "1"), 1,
			[]string{"contradict"}, nil},
		{"more copies than brokers", at(plain, "--kafka-replication", "3"), 1, []string{"shop.contexts", "eplication"},
			nil},
		{"other partitions", at(few, "--partitions", "3"), 1, []string{`model "shop"`, "another number of partitions",
			"created with 2, not 3"}, nil},
	}
	for _, c := range cases { // at once: one of them takes its time
		c.p = start(t, decider(t, append(slices.Clone(common), c.args...)...))
	}
	for _, c := range cases {
		code := c.p.wait(patience)
		for _, says := range c.says {
			if code != c.code || !strings.Contains(c.p.log(), says) {
				t.Errorf("%s: exit code %d, want %d and %q:\n%s", c.name, code, c.code, says, c.p.log())
			}
		}
		if strings.Contains(c.p.log(), "secret") {
			t.Errorf("%s: the log shows a password:\n%s", c.name, c.p.log())
		}
	}
}

// closedPort returns an address where nobody listens until the test ends.
func closedPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) }) // till then nobody else gets the port
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", at.(*syscall.SockaddrInet4).Port)
}

// TestKafkaLogsIn starts deciders as users of every kind of password, and shows none.
func TestKafkaLogsIn(t *testing.T) {
	addrs, _ := kafkatest.Fake(t, 1, kfake.EnableSASL(), kfake.Superuser("PLAIN", "a", "secret@1"),
		kfake.Superuser("SCRAM-SHA-256", "b", "secret2"), kfake.Superuser("SCRAM-SHA-512", "c", "secret3"))
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("secret2"), 0o600); err != nil {
		t.Fatal(err)
	}
	common := []string{"--model", writeModel(t, dir, shop), "--seed-file", filepath.Join(dir, "seed"),
		"--admin", "none", "--nats", "none"}
	for _, c := range []struct {
		name string
		args []string
		env  string
		warn bool
	}{
		{"in the URL", []string{"--log", "kafka://a:secret%401@" + addrs[0], "--kafka-sasl", "plain"}, "", true},
		{"in a file", []string{"--log", "kafka://" + addrs[0], "--kafka-user", "b", "--kafka-password-file", password,
			"--kafka-sasl", "scram-sha-256"}, "", false},
		{"in the environment", []string{"--log", "kafka://c@" + addrs[0]}, "HINDSIGHT_KAFKA_PASSWORD=secret3", false},
	} {
		cmd := decider(t, append(slices.Clone(common), c.args...)...)
		if c.env != "" {
			cmd.Env = append(cmd.Env, c.env)
		}
		p := start(t, cmd).ready()
		p.stop(patience)
		if warned := strings.Contains(p.log(), "goes over the network as it is"); warned != c.warn {
			t.Errorf("%s: a warning of a password in the clear: %v", c.name, warned)
		}
		if strings.Contains(p.log(), "secret") {
			t.Errorf("%s: the log shows the password:\n%s", c.name, p.log())
		}
	}
}
