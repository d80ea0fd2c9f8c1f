package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

func TestSeedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "seed")
	seed, err := SeedFile(path)
	if err != nil || len(seed) != SeedBytes {
		t.Fatalf("%x, %v", seed, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}
	again, err := SeedFile(path)
	if err != nil || !bytes.Equal(again, seed) {
		t.Errorf("read back %x, %v, want %x", again, err, seed)
	}
	other, err := SeedFile(path + "2")
	if err != nil || bytes.Equal(other, seed) {
		t.Errorf("two files have the same seed: %x, %v", other, err)
	}
	if err := WriteSeed(path, make([]byte, SeedBytes)); !errors.Is(err, os.ErrExist) {
		t.Errorf("it was written again: %v", err)
	}
	if err := WriteSeed(filepath.Join(path, "seed"), seed); err == nil {
		t.Error("a file is taken as a folder")
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".seed-*")); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSeedFileRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seed")
	if _, err := SeedFile(path); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o440: true, 0o644: false, 0o604: false,
		0o660: false, 0o602: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := SeedFile(path)
		if ok != (err == nil) {
			t.Errorf("mode %04o: %v", mode, err)
		}
		if err != nil && !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %04o: no remedy in %v", mode, err)
		}
	}
	for _, text := range []string{"", "12", strings.Repeat("g", 64), strings.Repeat("a", 63), strings.Repeat("a", 66),
		strings.Repeat("a", 5000)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if seed, err := SeedFile(path); err == nil {
			t.Errorf("%d bytes of text give %x", len(text), seed)
		}
	}
	if _, err := SeedFile(t.TempDir()); err == nil {
		t.Error("a folder is taken as a seed file")
	}
}

// TestSeedMissing holds that no seed is made for a log that was made with another one.
func TestSeedMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seed")
	old, unknown := func() (bool, error) { return true, nil },
		func() (bool, error) { return false, errors.New("unknown") }
	if _, err := SeedOf(path, old); err == nil || !strings.Contains(err.Error(), "there is no file "+path) ||
		!strings.Contains(err.Error(), "restore it from the backup") {
		t.Errorf("got %v", err)
	}
	if _, err := SeedOf(path, unknown); err == nil || err.Error() != "unknown" {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a seed was made all the same")
	}
	seed, err := SeedOf(path, func() (bool, error) { return false, nil })
	if err != nil {
		t.Fatal(err)
	}
	again, err := SeedOf(path, old)
	if err != nil || !bytes.Equal(again, seed) {
		t.Errorf("read back %x, %v, want %x", again, err, seed)
	}
}

// TestSeedFileRace holds that all who make the file at once get the same seed.
func TestSeedFileRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seed")
	seeds := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range seeds {
		wg.Go(func() {
			seed, err := SeedFile(path)
			if err != nil {
				t.Error(err)
			}
			seeds[i] = seed
		})
	}
	wg.Wait()
	for _, s := range seeds {
		if !bytes.Equal(s, seeds[0]) {
			t.Errorf("%x and %x", s, seeds[0])
		}
	}
}

func TestVersion(t *testing.T) {
	setting := func(k, v string) debug.BuildSetting { return debug.BuildSetting{Key: k, Value: v} }
	for _, c := range []struct {
		version  string
		settings []debug.BuildSetting
		built    string
		want     string
	}{
		{"(devel)", nil, "", "devel (go1.26)"},
		{"v1.2.3", nil, "", "v1.2.3 (go1.26)"},
		{"v1.2.3", []debug.BuildSetting{setting("vcs.modified", "false")}, "fedcba",
			"v1.2.3 (revision fedcba, go1.26)"},
		{"(devel)", nil, "fedcba9876543210", "devel (revision fedcba987654, go1.26)"},
		{"", []debug.BuildSetting{setting("vcs.revision", "0123456789abcdef"), setting("vcs.modified", "true")},
			"fedcba9876543210", "devel (revision 0123456789ab, modified, go1.26)"},
	} {
		info := &debug.BuildInfo{GoVersion: "go1.26", Settings: c.settings}
		info.Main.Version = c.version
		if got := version(info, c.built); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	host, err := os.Hostname()
	if want := fmt.Sprintf("decider@%s/%d", host, os.Getpid()); err != nil || Owner("decider") != want {
		t.Errorf("%q, %v, want %q", Owner("decider"), err, want)
	}
}

// TestSeedOfAnother holds that a process does not draw by a seed that another user knows.
func TestSeedOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seed")
	begun := func() (bool, error) { return false, nil }
	if _, err := SeedOf(path, begun); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 1001, -1); err != nil {
		t.Skip("only root can give a file away")
	}
	if _, err := SeedOf(path, begun); err == nil || !strings.Contains(err.Error(), "belongs to user 1001") ||
		!strings.Contains(err.Error(), "run: chown -R 0 ") {
		t.Errorf("the seed of another user: %v", err)
	}
	if _, err := SeedFile(path); err != nil {
		t.Errorf("whoever only reads a log may use the seed of another: %v", err)
	}
}
