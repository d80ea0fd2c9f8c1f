package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestSystemdUnits holds the units against systemd's own judgement: no unknown key, and
// an exposure that it calls OK.
func TestSystemdUnits(t *testing.T) {
	if err := exec.Command("systemd-analyze", "--version").Run(); err != nil {
		t.Skip("systemd-analyze is not here: apt-get install systemd")
	}
	paths, err := filepath.Glob("../*.service")
	if err != nil || len(paths) < 3 {
		t.Fatalf("units %v: %v", paths, err)
	}
	exposure := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+) OK`)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if out := verifyUnit(t, filepath.Base(path), string(text)); out != "" {
			t.Errorf("%s: %s", path, out)
		}
		if f := credentialFlaws(string(text)); f != nil {
			t.Errorf("%s: %v", path, f)
		}
		if f := credentialFlaws(strings.Replace(string(text), "#LoadCredential=admin-token:", "#LoadCredential=token:",
			1)); len(f) != 1 {
			t.Errorf("%s: a credential that nobody loads: %v", path, f)
		}
		if out := verifyUnit(t, filepath.Base(path), withCredentials(string(text))); out != "" {
			t.Errorf("%s, with what it shows in comments: %s", path, out)
		}
		out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", path).CombinedOutput()
		found := exposure.FindSubmatch(out)
		if err != nil || found == nil {
			t.Errorf("%s: %v\n%s", path, err, out)
			continue
		}
		if level, err := strconv.ParseFloat(string(found[1]), 64); err != nil || level > 1.5 {
			t.Errorf("%s: exposure %s: %v", path, found[1], err)
		}
		if verifyUnit(t, filepath.Base(path), strings.Replace(string(text), "RestartSec=1", "RestratSec=1", 1)) == "" {
			t.Errorf("%s: an unknown key is accepted", path)
		}
	}
}

// withCredentials returns a unit with the credentials that it shows in comments.
func withCredentials(unit string) string {
	return regexp.MustCompile(`(?m)^#(LoadCredential=|Environment=)`).ReplaceAllString(unit, "$1")
}

// credentialFlaws returns the files below %d that a unit names and does not load.
func credentialFlaws(unit string) (out []string) {
	unit = withCredentials(unit)
	for _, m := range regexp.MustCompile(`%d/([a-z.-]+)`).FindAllStringSubmatch(unit, -1) {
		if !strings.Contains(unit, "\nLoadCredential="+m[1]+":/etc/hindsight/"+m[1]+"\n") {
			out = append(out, m[1])
		}
	}
	return out
}

// verifyUnit returns what systemd says about a unit, whose program need not be here.
func verifyUnit(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	text = regexp.MustCompile(`/usr/local/bin/[a-z-]+`).ReplaceAllString(text, "/bin/true")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", path).CombinedOutput()
	if err != nil {
		return err.Error() + "\n" + string(out)
	}
	return string(out)
}
