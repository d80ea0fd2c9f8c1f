package access

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hindsight/pkg/stream/kafka"
	"hindsight/pkg/stream/kafkatest"
)

// write puts text into a file of dir and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// sends checks that the next login sends a token, and returns whether the broker's answer,
// nil if it is content, lets it in.
func sends(t *testing.T, b *bearer, token string, answer []byte) {
	t.Helper()
	s, message, err := b.Start(t.Context())
	if err != nil || string(message) != "n,,\x01auth=Bearer "+token+"\x01\x01" {
		t.Fatalf("it sends %q, %v, want %s", message, err, token)
	}
	done, more, err := s.Next(t.Context(), answer)
	if answer == nil {
		if !done || more != nil || err != nil {
			t.Errorf("let in: %v %q %v", done, more, err)
		}
		return
	}
	if done || string(more) != "\x01" || err != nil {
		t.Errorf("refused: %v %q %v", done, more, err)
	}
	if done, _, err := s.Next(t.Context(), nil); done || !errors.Is(err, errToken) {
		t.Errorf("a refusal is not noticed: %v %v", done, err)
	}
}

var invalid = []byte(`{"status":"invalid_token"}`)

// TestBearer logs in with a token that is renewed in its file, and names what is no token.
func TestBearer(t *testing.T) {
	dir := t.TempDir()
	f := Kafka{Mechanism: mechanismBearer}
	if _, err := f.login(t.Context(), &address{}); err == nil || !strings.Contains(err.Error(),
		"--kafka-password-file") {
		t.Errorf("without a file: %v", err)
	}
	f.PasswordFile = filepath.Join(dir, "token")
	for _, text := range []string{"", " \n", "a b", strings.Repeat("x", maxToken+1)} {
		write(t, dir, "token", text)
		if _, err := f.login(t.Context(), &address{}); err == nil || !strings.Contains(err.Error(), "token for "+
			"Kafka: ") {
			t.Errorf("%.10q: %v", text, err)
		}
	}
	write(t, dir, "token", "first\n")
	m, err := f.login(t.Context(), &address{})
	if err != nil || m.Name() != "OAUTHBEARER" {
		t.Fatal(m, err)
	}
	sends(t, m.(*bearer), "first", nil)
	write(t, dir, "token", "second\n")
	sends(t, m.(*bearer), "second", invalid)
	f.TokenCommand = "echo x"
	if _, err := f.login(t.Context(), &address{}); err == nil || !strings.Contains(err.Error(), "not both") {
		t.Errorf("a file and a command: %v", err)
	}
	f.Mechanism = mechanismPlain
	_, err = f.login(t.Context(), &address{})
	if err == nil || !strings.Contains(err.Error(), "is for --kafka-sasl oauthbearer") {
		t.Errorf("a command with a password: %v", err)
	}
}

// counting returns a command that writes how often it has run, with more behind the number.
func counting(t *testing.T, dir, more string) *bearer {
	t.Helper()
	write(t, dir, "runs", "")
	script := write(t, dir, "count", "#!/bin/sh\necho >>"+dir+"/runs\necho $(wc -l <"+dir+"/runs)"+more+"\n")
	return &bearer{command: []string{script}, limit: time.Minute}
}

// TestTokenCommand runs the command again when a minute is over, when its token is refused, and when
// that has expired, and not before.
func TestTokenCommand(t *testing.T) {
	b := counting(t, t.TempDir(), "")
	sends(t, b, "1", nil)
	sends(t, b, "1", nil)
	sends(t, b, "1", invalid)
	sends(t, b, "2", nil)
	sends(t, b, "2", nil)
	if left := time.Until(b.until); left > tokenReuse {
		t.Errorf("it is used for %v", left)
	}
	b.until = time.Now()
	sends(t, b, "3", nil)

	now := time.Unix(1_000, 0)
	soon, most := now.Add(30*time.Second), now.Add(tokenReuse)
	for exp, want := range map[string]time.Time{`{"exp":1030}`: soon, `{"exp":1030.9,"sub":"x"}`: soon,
		`{"exp":99999}`: most, `{}`: most, `nonsense`: most} {
		token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(exp)) + "."
		if got := expiry(token, now.Add(tokenReuse)); !got.Equal(want) {
			t.Errorf("%s: used until %v, want %v", exp, got, want)
		}
	}
}

// TestTokenCommandFails holds that what a command does wrong is told with its name, and without what it wrote.
func TestTokenCommandFails(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, script, says string }{
		{"fails", "echo planted; echo planted >&2; exit 3", "exit status 3"},
		{"silent", "echo planted >&2", "holds none"},
		{"words", "echo planted planted", "holds none"},
		{"endless", "exec yes planted", "more than 65536 bytes of output"},
		{"hangs", "echo planted; exec sleep 1000", "no end after 300ms"},
		{"none", "", "no such file"},
	} {
		path := filepath.Join(dir, c.name)
		if c.script != "" {
			write(t, dir, c.name, "#!/bin/sh\n"+c.script+"\n")
		}
		b := &bearer{command: []string{path, "argument"}, limit: time.Minute}
		if c.name == "hangs" {
			b.limit = 300 * time.Millisecond
		}
		_, _, err := b.Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) ||
			strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestKafkaRealTokens logs in to a broker that reads tokens, with a file and with a command, and is told
// why a token is refused; so does kafka-go's own dialer, which groups use.
func TestKafkaRealTokens(t *testing.T) {
	k := kafkatest.Start(t, kafkatest.Options{Tokens: true})
	dir := t.TempDir()
	token := func(life time.Duration) string {
		now := time.Now()
		claims := fmt.Appendf(nil, `{"sub":"shop","iat":%d,"exp":%d}`, now.Add(-2*time.Hour).Unix(),
			now.Add(life).Unix())
		return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString(claims) + "."
	}
	file := write(t, dir, "token", token(time.Hour))
	command := write(t, dir, "command", "#!/bin/sh\ncat "+file+"\n")
	for name, f := range map[string]*Kafka{"file": {PasswordFile: file}, "command": {TokenCommand: command}} {
		f.Mechanism = mechanismBearer
		write(t, dir, "token", token(time.Hour))
		c, err := f.dial(t.Context(), "kafka://"+k.Brokers()[0], "test", nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m, err := f.login(t.Context(), &address{})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := (&kafkago.Dialer{SASLMechanism: m}).DialContext(t.Context(), "tcp", k.Brokers()[0])
		if err != nil {
			t.Fatalf("%s: as groups log in: %v", name, err)
		}
		_ = conn.Close()
		_ = c.Close()
		write(t, dir, "token", token(-time.Hour))
		_, err = f.dial(t.Context(), "kafka://"+k.Brokers()[0], "test", nil)
		if !errors.Is(err, kafka.ErrAuthentication) || !strings.Contains(err.Error(), "invalid_token") {
			t.Errorf("%s: an expired token: %v", name, err)
		}
	}
}

// TestRefusedToken holds that the token of the command is not used again once it was refused; an earlier one says
// nothing of it.
func TestRefusedToken(t *testing.T) {
	for token, again := range map[string]bool{"last": true, "earlier": false} {
		until := time.Now().Add(time.Hour)
		b := &bearer{last: "last", until: until}
		_, _, err := (&bearing{b: b, token: token}).Next(t.Context(), invalid)
		if err != nil || b.until != until != again {
			t.Errorf("%s was refused: used until %v, %v", token, b.until, err)
		}
	}
}
