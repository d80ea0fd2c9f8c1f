package clients

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestRelease makes the release of the last commit for this machine, twice, and looks
// into it.
func TestRelease(t *testing.T) {
	if os.Getenv("HINDSIGHT_LONG") == "" {
		t.Skip("builds all programs twice: HINDSIGHT_LONG=1 runs it")
	}
	if err := exec.Command("git", "rev-parse", "HEAD").Run(); err != nil {
		t.Skip("no history: a release is of a commit")
	}
	out := t.TempDir()
	said := run(t, "../release", "--out", out, "--twice", runtime.GOOS+"/"+runtime.GOARCH)
	for _, want := range []string{"made twice, the same bytes", "decider ", "feedback-joiner ", "replayer ", "revision ", "govulncheck"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q was not said:\n%s", want, said)
		}
	}
	tarballs, err := filepath.Glob(filepath.Join(out, "*.tar.gz"))
	if err != nil || len(tarballs) != 1 {
		t.Fatalf("tarballs %v: %v", tarballs, err)
	}
	check := exec.Command("sha256sum", "-c", "SHA256SUMS")
	check.Dir = out
	if text, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	names := inside(t, tarballs[0])
	for _, want := range []string{"decider", "feedback-joiner", "replayer", "LICENCES.txt", "README.md", "CHANGELOG.md", "compose/hindsight-decider.service", "compose/kubernetes.yaml"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not in the tarball: %v", want, names)
		}
	}
	for page, targets := range links(t) {
		for _, to := range targets {
			if path, _, _ := strings.Cut(to, "#"); !slices.Contains(names, path) {
				t.Errorf("%s points to %s, which is not in the tarball", page, path)
			}
		}
	}
}

// inside returns the names in a tarball, without its one folder.
func inside(t *testing.T, path string) (names []string) {
	t.Helper()
	for r := tar.NewReader(unzipped(t, path)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		} else if err != nil {
			t.Fatal(err)
		}
		if _, name, ok := strings.Cut(h.Name, "/"); ok && name != "" {
			names = append(names, name)
		}
		if h.Uid != 0 || h.Uname != "" && h.Uname != "root" {
			t.Errorf("%s belongs to %s", h.Name, h.Uname)
		}
	}
}
