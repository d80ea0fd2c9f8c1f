package clients

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// root is the folder of the project.
const root = "../.."

var linkOf = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// links returns what the pages for users point to inside the project, as page → targets
// (PATH or PATH#HEADING, from the root).
func links(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, page := range append(pages(t, root), root+"/CHANGELOG.md") {
		name, err := filepath.Rel(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range linkOf.FindAllStringSubmatch(contents(t, page), -1) {
			path, heading, has := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			to := name // a heading of the same page
			if path != "" {
				to = filepath.Join(filepath.Dir(name), path)
			}
			if has {
				to += "#" + heading
			}
			out[name] = append(out[name], to)
		}
	}
	return out
}

// pages returns the pages for users below a folder.
func pages(t *testing.T, dir string) (out []string) {
	t.Helper()
	for _, at := range []string{"README.md", "docs/*.md", "docs/reference/*.md", "compose/*.md"} {
		found, err := filepath.Glob(filepath.Join(dir, at))
		if err != nil || len(found) == 0 {
			t.Fatalf("no page %s: %v", at, err)
		}
		out = append(out, found...)
	}
	return out
}

func contents(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// anchors returns the names of a page's headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.SplitSeq(page, "\n") {
		if text := strings.TrimLeft(line, "#"); text != line && strings.HasPrefix(text, " ") {
			out[strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
					return unicode.ToLower(r)
				}
				return -1
			}, strings.TrimSpace(text))] = true
		}
	}
	return out
}

// leads reports whether a link ends somewhere.
func leads(t *testing.T, to string) bool {
	t.Helper()
	path, heading, has := strings.Cut(to, "#")
	if _, err := os.Stat(filepath.Join(root, path)); err != nil {
		return false
	}
	return !has || anchors(contents(t, filepath.Join(root, path)))[heading]
}

// TestLinks holds that what a page points to is there, headings included.
func TestLinks(t *testing.T) {
	n := 0
	for page, targets := range links(t) {
		for _, to := range targets {
			if n++; !leads(t, to) {
				t.Errorf("%s points to %s, which is not there", page, to)
			}
		}
	}
	if n < 50 || leads(t, "README.md#no-such-heading") || leads(t, "docs/NOTHING.md") ||
		!leads(t, "docs/backup.md#backup-and-restore") {
		t.Errorf("%d links looked at, or links that lead nowhere are not seen", n)
	}
}
