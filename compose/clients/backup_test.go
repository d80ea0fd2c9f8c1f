package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/testkit"
)

// TestBackupCommands types what the page says about backups, where the folder of the log is
// a symbolic link, as systemd makes it: the copy holds what the folder holds, and not the
// link. TestBackup of cmd/decider goes on from such a copy.
func TestBackupCommands(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	put("private/hindsight/seed", "a seed for tests", 0o600)
	put("bin/systemctl", "#!/bin/sh\necho $1\n", 0o700)
	put("bin/replayer", "#!/bin/sh\necho verify ${3#embedded:}\n", 0o700)
	if err := os.Symlink("private/hindsight", filepath.Join(dir, "hindsight")); err != nil {
		t.Fatal(err)
	}
	commands := strings.NewReplacer("/var/lib/hindsight", filepath.Join(dir, "hindsight"), "BACKUP",
		filepath.Join(dir, "backup")).
		Replace(testkit.Block(t, "../../docs/backup.md", "backup"))
	said := run(t, "sh", "-ec", "PATH="+filepath.Join(dir, "bin")+":$PATH\n"+commands)
	if want := "stop\nstart\nverify " + filepath.Join(dir, "backup") + "\n"; said != want {
		t.Errorf("the commands of the page say %q, and not %q", said, want)
	}
	if err := os.RemoveAll(filepath.Join(dir, "private")); err != nil {
		t.Fatal(err)
	}
	seed, err := os.Stat(filepath.Join(dir, "backup", "seed"))
	if err != nil || seed.Mode() != 0o600 {
		t.Errorf("the backup has no seed of its own: %v, %v", seed, err)
	}
}
