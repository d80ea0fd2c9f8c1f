package access

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestParse reads URLs of every kind.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		log  string
		want address
		says string // of the error; "": none
	}{
		{"kafka://h", address{brokers: []string{"h:9092"}}, ""},
		{"kafka://h/", address{brokers: []string{"h:9092"}}, ""},
		{"kafkas://a:1,b,c:65535", address{tls: true, brokers: []string{"a:1", "b:9092", "c:65535"}}, ""},
		{"kafka://[::1]:9093,[fe80::2],10.0.0.1", address{brokers: []string{"[::1]:9093", "[fe80::2]:9092",
			"10.0.0.1:9092"}}, ""},
		{"kafka://u:p%40%2Fx:y@h?replication=3&min_isr=2&session=6s", address{user: "u", password: "p@/x:y",
			hasPassword: true,
			brokers:     []string{"h:9092"}, replication: 3, minISR: 2, session: 6 * time.Second}, ""},
		{"kafka://u@h", address{user: "u", brokers: []string{"h:9092"}}, ""},
		{"kafka://", address{}, "a broker has no name"},
		{"kafka://a,,b", address{}, "a broker has no name"},
		{"kafka:h", address{}, "expected kafka://"},
		{"kafka://h:0", address{}, "is not a port"},
		{"kafka://h:66000", address{}, "is not a port"},
		{"kafka://h/topic", address{}, "is not the name of a host"},
		{"kafka://h:1:2", address{}, "is not the name of a host"},
		{"kafka://:p@h", address{}, "percent-encoded"},
		{"kafka://u:p/w@h", address{}, "percent-encoded"},
		{"kafka://u:p%zz@h", address{}, "percent-encoded"},
		{"kafka://h?acks=all", address{}, `no setting "acks"`},
		{"kafka://h?replication=0", address{}, "expected a number from 1 on"},
		{"kafka://h?replication=x", address{}, "expected a number from 1 on"},
		{"kafka://h?min_isr=1&min_isr=2", address{}, "given 2 times"},
		{"kafka://h?session=6", address{}, "expected a duration"},
		{"kafka://h?session=10ms", address{}, "at least 1s"},
		{"kafka://h?a;b", address{}, "cannot be read"},
	} {
		got, err := parse(c.log)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", c.log, err, c.says)
			}
			continue
		}
		if err != nil || fmt.Sprint(*got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+v %v, want %+v", c.log, got, err, c.want)
		}
	}
	if !IsKafka("kafka://h") || !IsKafka("kafkas://h") || IsKafka("kafkaesque://h") || IsKafka("nats://h") {
		t.Error("IsKafka")
	}
}

// FuzzParse holds that no --log makes the parser panic, that what it accepts has
// brokers, and that no error shows what could be a password.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"kafka://u:secret@h:1,[::1]:2/?replication=3&session=6s", "kafkas://h", "kafka://%",
		"kafka://u:secret/@h?x=secret"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, log string) {
		a, err := parse(log)
		if err == nil && (len(a.brokers) == 0 || slices.Contains(a.brokers, "")) {
			t.Errorf("%q: %+v", log, a)
		}
		_, rest, _ := strings.Cut(log, "://")
		if at := strings.LastIndexByte(rest, '@'); err != nil && at > 0 {
			_, password, ok := strings.Cut(rest[:at], ":")
			if ok && len(password) > 12 && strings.Contains(err.Error(), password) && !strings.Contains(errURL.Error(),
				password) && !strings.Contains(rest[at:], password) {
				t.Errorf("%q: the error shows the password: %v", log, err)
			}
		}
	})
}

// TestPasswords holds which password counts: that of a file, of the environment, of the URL, in this order.
func TestPasswords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("file pass \r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &address{user: "u", password: "url", hasPassword: true}
	env := func(string) string { return "env" }
	none := func(string) string { return "" }
	for _, c := range []struct {
		f    Kafka
		want string
	}{
		{Kafka{PasswordFile: file, Getenv: env}, "file pass "},
		{Kafka{Getenv: env}, "env"},
		{Kafka{Getenv: none}, "url"},
	} {
		if got, _, err := c.f.password(a); err != nil || got != c.want {
			t.Errorf("%q %v, want %q", got, err, c.want)
		}
		if m, err := c.f.login(t.Context(), a); err != nil || m.Name() != "SCRAM-SHA-512" {
			t.Errorf("%v %v", m, err)
		}
	}
	f := Kafka{Getenv: env}
	if m, err := f.login(t.Context(), &address{}); m != nil || err != nil {
		t.Errorf("nobody logs in: %v %v", m, err)
	}
	if err := os.WriteFile(file, make([]byte, maxPassword+3), 0o600); err != nil {
		t.Fatal(err)
	}
	f.PasswordFile = file
	if _, _, err := f.password(a); err == nil || !strings.Contains(err.Error(), "not a file of at most") {
		t.Error(err)
	}
	if err := checkKafka("kafka://u:sec/ret@h"); err == nil || strings.Contains(err.Error(), "sec/") ||
		!errors.Is(err, errURL) {
		t.Error(err)
	}
}
