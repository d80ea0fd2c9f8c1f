package clients

import (
	"archive/tar"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// needsHistory skips what makes a release in quick runs, and where there is no commit.
func needsHistory(t *testing.T) {
	t.Helper()
	if os.Getenv("HINDSIGHT_LONG") == "" {
		t.Skip("builds all programs: HINDSIGHT_LONG=1 runs it")
	}
	if err := exec.Command("git", "rev-parse", "HEAD").Run(); err != nil {
		t.Skip("no history: a release is of a commit")
	}
}

// TestVulnerabilitiesUnknown holds that a check that could not be made does not pass for one
// that found nothing.
func TestVulnerabilitiesUnknown(t *testing.T) {
	cmd := exec.Command("../vulncheck")
	cmd.Env = append(os.Environ(), "GOVULNDB=file://"+t.TempDir())
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 3 || !strings.Contains(string(out), "govulncheck did not run") {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
}

// TestRelease makes the release of the last commit for this machine, twice, and looks
// into it.
func TestRelease(t *testing.T) {
	needsHistory(t)
	out := t.TempDir()
	said := run(t, "../release", "--out", out, "--twice", runtime.GOOS+"/"+runtime.GOARCH)
	for _, want := range []string{"made twice, the same bytes", "decider ", "feedback-joiner ", "replayer ",
		"revision ", "govulncheck"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q was not said:\n%s", want, said)
		}
	}
	tarballs, err := filepath.Glob(filepath.Join(out, "*.tar.gz"))
	if err != nil || len(tarballs) != 1 {
		t.Fatalf("tarballs %v: %v", tarballs, err)
	}
	if f := billFlaws(t, out, strings.TrimSuffix(tarballs[0], ".tar.gz")+".cdx.json"); f != nil {
		t.Errorf("the bill of materials: %v", f)
	}
	check := exec.Command("sha256sum", "-c", "SHA256SUMS")
	check.Dir = out
	if text, err := check.CombinedOutput(); err != nil || strings.Count(string(text), ": OK") != 2 {
		t.Errorf("%v\n%s", err, text)
	}
	names := inside(t, tarballs[0])
	for _, want := range []string{"decider", "feedback-joiner", "replayer", "LICENCES.txt", "README.md", "CHANGELOG.md",
		"compose/hindsight-decider.service", "compose/kubernetes.yaml", "compose/.env"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not in the tarball: %v", want, names)
		}
	}
	for page, targets := range links(t) {
		for _, to := range targets {
			if path, _, _ := strings.Cut(to, "#"); !slices.Contains(names, path) && !slices.Contains(names, path+"/") {
				t.Errorf("%s points to %s, which is not in the tarball", page, path)
			}
		}
	}
}

// TestReleaseRuns plays the release of the last commit as somebody who has nothing but its
// tarball: what its pages say to type names what is there, and works.
func TestReleaseRuns(t *testing.T) {
	needsHistory(t)
	out := t.TempDir()
	run(t, "../release", "--out", out, runtime.GOOS+"/"+runtime.GOARCH)
	run(t, "sh", "-ec", "cd "+out+"; tar xzf *.tar.gz; mv hindsight-*/ unpacked")
	here := filepath.Join(out, "unpacked")
	if missing := notThere(t, here); missing != nil {
		t.Errorf("pages name %q", missing)
	}
	for _, i := range stages(t, filepath.Join(here, "compose", "Dockerfile"))["hindsight"] {
		if args := strings.Fields(i.rest); i.word == "COPY" {
			for _, from := range args[:len(args)-1] {
				if _, err := os.Stat(filepath.Join(here, from)); err != nil {
					t.Error(err)
				}
			}
		}
	}
	program := func(name string) string { return filepath.Join(here, name) }
	serve := func(args ...string) (url, log string) {
		t.Helper()
		listen, admin, data := freeAddress(t), freeAddress(t), t.TempDir()
		startCommand(t, "decider",
			exec.Command(program("decider"), append(args, "--log", "embedded:"+data, "--listen", listen, "--admin",
				admin)...))
		eventually(t, "a healthy decider", func() bool { return healthy("http://" + admin + "/readyz") })
		return "nats://" + listen, "embedded:" + data
	}
	hindsight, _ := serve()
	if said := run(t, program("clients/go"), hindsight); !strings.Contains(said, "outcome stored: true") {
		t.Errorf("clients/go: %s", said)
	}
	shop, log := serve("--model", program("compose/shop.yaml"))
	if said := run(t, program("clients/load"), "-nats", shop, "-rate", "200", "-n=200",
		"-delay=20ms"); !strings.Contains(
		said, "outcomes 2") {
		t.Errorf("clients/load: %s", said)
	}
	run(t, program("replayer"), "verify", "--log", log)
}

// notThere returns the programs that a folder's pages say to run with go run, which a
// folder without their source has not got built.
func notThere(t *testing.T, dir string) (missing []string) {
	t.Helper()
	n := 0
	for _, page := range pages(t, dir) {
		for _, m := range regexp.MustCompile(`go run \./(?:cmd/|compose/)([a-z/]+[a-z])`).FindAllStringSubmatch(
			contents(t, page), -1) {
			n++
			if info, err := os.Stat(filepath.Join(dir, m[1])); err != nil || info.IsDir() {
				missing = append(missing, m[0])
			}
		}
	}
	if n < 3 {
		t.Errorf("pages run %d programs", n)
	}
	return missing
}

// billFlaws returns which modules are in the programs of an archive and not in its bill of
// materials, or the reverse.
func billFlaws(t *testing.T, dir, bill string) (out []string) {
	t.Helper()
	var b struct{ Components []struct{ Purl string } }
	if err := json.Unmarshal([]byte(contents(t, bill)), &b); err != nil {
		t.Fatal(err)
	}
	run(t, "sh", "-ec", "cd "+dir+"; mkdir unpacked; tar xzf *.tar.gz -C unpacked")
	linked := map[string]bool{}
	programs, _ := filepath.Glob(filepath.Join(dir, "unpacked", "*", "*"))
	clients, _ := filepath.Glob(filepath.Join(dir, "unpacked", "*", "clients", "*"))
	for _, path := range append(programs, clients...) {
		if info, err := buildinfo.ReadFile(path); err == nil {
			for _, m := range info.Deps {
				linked["pkg:golang/"+m.Path+"@"+m.Version] = true
			}
		}
	}
	if len(linked) < 20 {
		t.Errorf("%d modules in %v", len(linked), programs)
	}
	for _, c := range b.Components {
		if !linked[c.Purl] && !strings.HasPrefix(c.Purl, "pkg:npm/") && !strings.HasPrefix(c.Purl,
			"pkg:golang/std@1.") {
			out = append(out, "not in the programs: "+c.Purl)
		}
		delete(linked, c.Purl)
	}
	for purl := range linked {
		out = append(out, "not in the bill: "+purl)
	}
	return out
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
