package landed

import (
	"errors"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hindsight/pkg/stream/attach"
)

var makeLogs = flag.String("make", "", "build this revision and write its golden logs")

// TestMake writes the golden logs of a revision: what it leaves behind with each model of
// testdata/models that it knows. The folder of a log holds its model, its seed and its
// store.
func TestMake(t *testing.T) {
	if *makeLogs == "" {
		t.Skip("writes golden logs: -make REVISION")
	}
	revision, err := exec.Command("git", "rev-parse", *makeLogs+"^{commit}").Output()
	if err != nil {
		t.Fatal(err)
	}
	full := strings.TrimSpace(string(revision))
	bin := t.TempDir()
	if err := Build(t.Context(), ".", full, bin, "decider"); err != nil {
		t.Fatal(err)
	}
	models, err := filepath.Glob("testdata/models/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join("testdata", "logs", Landing{Revision: full}.Short())
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, model := range models {
		name := strings.TrimSuffix(filepath.Base(model), ".yaml")
		dir := filepath.Join(t.TempDir(), "log")
		if err := os.CopyFS(dir, os.DirFS("testdata/models")); err != nil {
			t.Fatal(err)
		}
		for i := range 2 { // a restart in the middle
			if said, ok := playWith(t, filepath.Join(bin, "decider"), dir, name+".yaml", i); !ok {
				t.Logf("%s: this revision does not know it: %s", name, said)
				dir = ""
				break
			}
		}
		if dir == "" {
			continue
		}
		if err := os.Rename(filepath.Join(dir, name+".yaml"), filepath.Join(dir, "model.yaml")); err != nil {
			t.Fatal(err)
		}
		for _, leave := range append(models, attach.LockFile, attach.ConnectFile) {
			if err := os.Remove(filepath.Join(dir, filepath.Base(leave))); err != nil && !errors.Is(err,
				fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		pack(t, dir, filepath.Join(out, name+".tar.gz"))
	}
}

// playWith runs a decider of another build in a folder and plays some rounds; false, and
// what it said, if it does not start.
func playWith(t *testing.T, decider, dir, model string, turn int) (said string, ok bool) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(decider, "--log", "embedded:"+dir, "--listen", "127.0.0.1:0", "--admin", "none", "--retention",
		"0", "--model", filepath.Join(dir, model))
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tell := func() string {
		b, err := os.ReadFile(log.Name())
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	for !strings.Contains(tell(), "msg=ready") {
		select {
		case <-ended:
			return tell(), false
		case <-time.After(20 * time.Millisecond):
		}
	}
	c, err := attach.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	play(t, c.URL, rand.New(rand.NewPCG(uint64(turn), 1)), turn)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, tell())
	}
	return "", true
}
