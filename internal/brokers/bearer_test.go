package brokers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBearer logs in with a token that is renewed in its file, and names what is no token.
func TestBearer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := Flags{Mechanism: mechanismBearer}
	if _, err := f.login(&access{}); err == nil || !strings.Contains(err.Error(), "--kafka-password-file") {
		t.Errorf("without a file: %v", err)
	}
	f.PasswordFile = path
	for _, text := range []string{"", " \n", "a b", strings.Repeat("x", maxToken+1)} {
		write(text)
		if _, err := f.login(&access{}); err == nil || !strings.Contains(err.Error(), "token for Kafka: ") {
			t.Errorf("%.10q: %v", text, err)
		}
	}
	write("first\n")
	m, err := f.login(&access{})
	if err != nil || m.Name() != "OAUTHBEARER" {
		t.Fatal(m, err)
	}
	for _, token := range []string{"first", "second"} {
		write(token + "\n")
		s, message, err := m.Start(t.Context())
		if err != nil || string(message) != "n,,\x01auth=Bearer "+token+"\x01\x01" {
			t.Errorf("it sends %q, %v", message, err)
		}
		if done, more, err := s.Next(t.Context(), nil); !done || more != nil || err != nil {
			t.Errorf("let in: %v %q %v", done, more, err)
		}
		if done, _, err := s.Next(t.Context(), []byte(`{"status":"invalid_token"}`)); done || err == nil {
			t.Error("a refusal is not noticed")
		}
	}
}
