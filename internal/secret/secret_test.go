package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestLine(t *testing.T) {
	const planted = "plantedsecret"
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string
		says string
	}{
		{planted, 0o600, planted, ""},
		{planted + "\n", 0o600, planted, ""},
		{planted + "\r\n", 0o440, planted, ""},
		{planted, 0o644, "", "chmod 600"},
		{planted, 0o660, "", "chmod 600"},
		{planted, 0o602, "", "chmod 600"},
		{"", 0o600, "", "is empty"},
		{"\n", 0o600, "", "is empty"},
		{planted + strings.Repeat("x", 20-len(planted)), 0o600, planted + "xxxxxxx", ""}, // at the limit
		{planted + strings.Repeat("x", 20-len(planted)) + "\r\n", 0o600, planted + "xxxxxxx", ""},
		{planted + strings.Repeat("x", 23-len(planted)), 0o600, "", "not a file of at most 22 bytes"},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		got, err := Line(path, "password", 20)
		switch {
		case c.says == "" && (err != nil || got != c.want):
			t.Errorf("%q, mode %o: %q, %v", c.text, c.mode, got, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(),
			"password file "+path) || strings.Contains(err.Error(), planted)):
			t.Errorf("%q, mode %o: %v, want %q", c.text, c.mode, err, c.says)
		}
	}
	_, err := Line(t.TempDir(), "password", 1<<20)
	if err == nil || !strings.Contains(err.Error(), "no pipe, device or folder") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Line(filepath.Join(t.TempDir(), "none"), "password", 20); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestWarn holds which modes are warned of, by name and with the command that mends them.
func TestWarn(t *testing.T) {
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o440: false, 0o640: false, 0o644: true,
		0o604: true, 0o601: true, 0o620: true, 0o666: true} {
		path := filepath.Join(t.TempDir(), "a key")
		if err := os.WriteFile(path, []byte("plantedsecret"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		Warn(slog.New(slog.NewJSONHandler(&out, nil)), path, "--nats-key")
		var line struct{ Level, What, File, Mode, Run string }
		if warns {
			if err := json.Unmarshal(out.Bytes(), &line); err != nil {
				t.Fatalf("mode %o: %v", mode, err)
			}
		}
		switch {
		case !warns && out.Len() > 0, strings.Contains(out.String(), "plantedsecret"):
			t.Errorf("mode %o: %s", mode, &out)
		case warns && (line.Level != "WARN" || line.What != "--nats-key" || line.File != path ||
			line.Mode != fmt.Sprintf("%04o", mode) || line.Run != fmt.Sprintf("chmod 600 %q", path)):
			t.Errorf("mode %o: %s", mode, &out)
		}
	}
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	Warn(logger, "", "--nats-key")
	Warn(logger, filepath.Join(t.TempDir(), "none"), "--nats-key")
	Warn(nil, os.Args[0], "--nats-key")
	if out.Len() > 0 {
		t.Errorf("%s", &out)
	}
}

func TestInArguments(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{"--log=nats://u:topsecret@h:4222", "--log=nats://u:xxxxxxxxx@h:4222"},
		{"nats://u:top@secret@h,v:other@i", "nats://u:xxxxxxxxxxxxxxxxxxxx@i"},
		{"nats://token@h", "nats://xxxxx@h"}, // a token is a user without a password
		{"kafkas://u:p@h?x=y", "kafkas://u:x@h?x=y"},
		{"nats://token@h/path", "nats://xxxxx@h/path"},
		{"nats://u:se/cret@h", "nats://u:xxxxxxx@h"},
		{"://u:p@h", "://u:x@h"},
		{"file:///path@x", "file:///path@x"},
		{"nats://h:4222", "nats://h:4222"},
		{"nats://u:@h", "nats://u:@h"},
		{"embedded:./data", "embedded:./data"},
		{"someone@example.org", "someone@example.org"},
		{"http://h/path@x", "http://h/path@x"},
		{"", ""},
	} {
		from, to := inArgument(c.arg)
		got := c.arg[:from] + strings.Repeat("x", to-from) + c.arg[to:]
		if got != c.want {
			t.Errorf("%q becomes %q, want %q", c.arg, got, c.want)
		}
		if own := strings.Clone(c.arg); to > from && runtime.GOOS == "linux" { // whose bytes may be written
			if mask(own, from, to); own != c.want {
				t.Errorf("%q is overwritten as %q", c.arg, own)
			}
		}
	}
}

// TestTakeArguments holds that a program gets its arguments as they were given, and others see them without passwords.
func TestTakeArguments(t *testing.T) {
	defer func(was []string) { os.Args = was }(os.Args)
	for _, c := range []struct {
		given, left []string
		seen        bool
	}{
		{[]string{"--log=nats://u:secret@h", "--name", "x"}, []string{"--log=nats://u:xxxxxx@h", "--name", "x"}, true},
		{[]string{"--log=./data", "kafka://u:p@h"}, []string{"--log=./data", "kafka://u:x@h"}, true},
		{[]string{"--log=nats://h"}, []string{"--log=nats://h"}, false},
		{nil, nil, false},
	} {
		os.Args = []string{"http://program:name@h"}
		for _, arg := range c.given {
			os.Args = append(os.Args, strings.Clone(arg)) // whose bytes may be written
		}
		args, seen := TakeArguments()
		if runtime.GOOS != "linux" {
			c.left = c.given
		}
		if !slices.Equal(args, c.given) || seen != c.seen || !slices.Equal(os.Args[1:], c.left) {
			t.Errorf("%q: %q, %v, and others see %q", c.given, args, seen, os.Args)
		}
	}
}

// FuzzInArgument holds that what is overwritten lies within the argument, and is what
// stands before the last @.
func FuzzInArgument(f *testing.F) {
	for _, seed := range []string{"--log=nats://u:p@h", "://@", "@://", "a://b/c:d@e", "nats://u:se/c@ret@h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		from, to := inArgument(arg)
		if from < 0 || from > to || to > len(arg) || to > from && (arg[to] != '@' || strings.Contains(arg[to+1:],
			"@")) {
			t.Errorf("%q: [%d, %d)", arg, from, to)
		}
	})
}
