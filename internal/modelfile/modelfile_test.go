package modelfile

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The start of a program, and whoever has the file read again, is warned of what in it is
// seldom meant.
func TestWarningsAreLogged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	write("name: shop\nexplore: 0.05\nwindow: 10\n")
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	Announce(logger, s)
	for _, want := range []string{"shop.yaml:2:10: explore: 0.05 is no ε", "shop.yaml:3:9: window: 10 means rounds"} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%s", &log)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 2 {
		t.Errorf("%d warnings: %s", n, &log)
	}
	log.Reset()
	if _, err := Reload(logger, path)(); err != nil || strings.Count(log.String(), "level=WARN") != 2 {
		t.Errorf("%v, %s", err, &log)
	}
	log.Reset()
	write("name: shop\nexplore: balanced\nwindow: 10m\n")
	if s, err = Load(path); err != nil {
		t.Fatal(err)
	}
	if Announce(logger, s); strings.Contains(log.String(), "level=WARN") {
		t.Errorf("%s", &log)
	}
}
