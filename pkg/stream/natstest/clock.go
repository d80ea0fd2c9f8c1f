package natstest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// OtherClock builds a server whose clock can be wrong, for [Server.SetClock]: package time is compiled with another
// Now.
func OtherClock(t testing.TB) (exe string) {
	t.Helper()
	dir := t.TempDir()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	std := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	was, err := os.ReadFile(filepath.Join(std, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if !strings.Contains(string(was), now) {
		t.Fatal("package time has another Now: adapt OtherClock")
	}
	overlay := map[string]string{}
	add := func(path, name, text string) {
		overlay[path] = filepath.Join(dir, name)
		if err := os.WriteFile(overlay[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	add(filepath.Join(std, "time.go"), "time.go", strings.Replace(string(was), now, now+"\tsec += ahead\n", 1))
	add(filepath.Join(std, "ahead.go"), "ahead.go", `package time
import "syscall"
var ahead = func() int64 { s, _ := syscall.Getenv("`+clockAhead+`"); d, _ := ParseDuration(s); return int64(d / Second) }()
`)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	add(filepath.Join(here, "otherclock", "main.go"), "main.go", `package main
import "hindsight/pkg/stream/natstest"
func main() { natstest.Main() }
`)
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	list, exe := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "server")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-overlay", list, "-o", exe,
		"./otherclock").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return exe
}

const clockAhead = "HINDSIGHT_TEST_CLOCK_AHEAD"

// SetClock has the server, from its next start, run as the program of [OtherClock] with a clock that is ahead by so
// many seconds.
func (s *Server) SetClock(exe string, ahead time.Duration) {
	s.exe, s.env = exe, fmt.Sprintf("%s=%v", clockAhead, ahead)
}
