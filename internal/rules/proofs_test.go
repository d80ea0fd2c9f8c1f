package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
	named    = regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Z]\\w*)`")
)

// TestNamedTestsExist holds that each test that a page names as the proof of what it says
// is there.
func TestNamedTestsExist(t *testing.T) {
	have := map[string]bool{}
	for _, top := range []string{"cmd", "internal", "pkg", "compose"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "streamtest") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range testFunc.FindAllSubmatch(text, -1) {
				have[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, page := range []string{"docs/reference/faults.md", "docs/reference/limits.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		tests := named.FindAllSubmatch(text, -1)
		if len(tests) < 20 {
			t.Errorf("%s names %d tests", page, len(tests))
		}
		for _, m := range tests {
			if name := string(m[1]); !have[name] {
				t.Errorf("%s names %s, which is not there", page, name)
			}
		}
	}
}

// unproved returns the rows of a page's tables that name no test.
func unproved(page string) (rows []string) {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| what |") && !named.MatchString(line) {
			rows = append(rows, line)
		}
	}
	return rows
}

// TestEveryLimitIsTested holds what docs/reference/limits.md says of its rows.
func TestEveryLimitIsTested(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/reference/limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	if rows := unproved(string(text)); rows != nil {
		t.Errorf("limits without a test:\n%s", strings.Join(rows, ""))
	}
	if rows := unproved(string(text) + "| scrapes at once | 4 | 503 | |\n"); len(rows) != 1 {
		t.Errorf("a limit without a test is not seen: %q", rows)
	}
}
