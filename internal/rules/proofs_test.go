package rules

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hindsight/internal/testkit"
)

var update = flag.Bool("update", false, "write the pages of limits and faults")

var (
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
	named    = regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Z]\\w*)`")
	lastCell = regexp.MustCompile(`(?m)^(\|.*\|)[^|\n]*\|$`)
	inText   = regexp.MustCompile(" \\((`(Test|Benchmark)\\w+`(, )?)+\\)")
)

// proofs returns the parts of proofs.md by their titles.
func proofs(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("proofs.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for _, part := range strings.Split("\n"+string(text), "\n# ")[1:] {
		title, _, _ := strings.Cut(part, "\n")
		parts[title] = "# " + strings.TrimSpace(part) + "\n"
	}
	return parts
}

// TestReferenceProofs holds that the pages of limits and faults are those of proofs.md, without its tests.
func TestReferenceProofs(t *testing.T) {
	for title, part := range proofs(t) {
		path := filepath.Join(root, "docs/reference", strings.ToLower(title)+".md")
		want := inText.ReplaceAllString(lastCell.ReplaceAllString(part, "$1"), "") + "\nThis page is made from " +
			"`internal/rules/proofs.md` by `go test ./internal/rules -run Reference -update`.\n"
		if title == "Other claims" {
			continue
		}
		testkit.Page(t, *update, path, want)
	}
}

// TestNamedTestsExist holds that each test that proofs.md names is there.
func TestNamedTestsExist(t *testing.T) {
	have := map[string]bool{}
	for _, top := range []string{"cmd", "internal", "pkg", "compose"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") && !strings.Contains(path,
				"streamtest") {
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
	for title, part := range proofs(t) {
		tests := named.FindAllStringSubmatch(part, -1)
		if len(tests) < 20 {
			t.Errorf("%s name %d tests", title, len(tests))
		}
		for _, m := range tests {
			if name := m[1]; !have[name] {
				t.Errorf("%s name %s, which is not there", title, name)
			}
		}
	}
}

// unproved returns the rows of a part's tables that name no test.
func unproved(part string) (rows []string) {
	for line := range strings.Lines(part) {
		if strings.HasPrefix(line, "| ") && !strings.Contains(line, " test |") && !strings.Contains(line, " tests |") &&
			!named.MatchString(line) {
			rows = append(rows, line)
		}
	}
	return rows
}

// TestEveryClaimIsTested holds that each limit, fault and claim has a test.
func TestEveryClaimIsTested(t *testing.T) {
	for title, part := range proofs(t) {
		if rows := unproved(part); rows != nil {
			t.Errorf("%s without a test:\n%s", title, strings.Join(rows, ""))
		}
	}
	if rows := unproved("| what | test |\n| scrapes at once | 4 | 503 | |\n"); len(rows) != 1 {
		t.Errorf("a limit without a test is not seen: %q", rows)
	}
}
