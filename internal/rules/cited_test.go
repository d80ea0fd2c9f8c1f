package rules

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var cited = regexp.MustCompile(`[\w./:-]*\w\.md\b`)

// citedPages returns the pages that the comments of a Go file cite and that are not there,
// seen from the top of the tree or from the folders of pages.
func citedPages(t *testing.T, file string, text any) (n int, missing []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Comments {
		for _, page := range cited.FindAllString(c.Text(), -1) {
			if strings.Contains(page, "://") {
				continue
			}
			n++
			if !slices.ContainsFunc([]string{"", "docs", "docs/reference", "internal/rules"}, func(dir string) bool {
				_, err := os.Stat(filepath.Join(root, dir, page))
				return err == nil
			}) {
				missing = append(missing, page)
			}
		}
	}
	return n, missing
}

// TestCitedPages holds that each page which a comment cites is part of the project.
func TestCitedPages(t *testing.T) {
	n := 0
	err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(file, ".go") {
			return err
		}
		seen, missing := citedPages(t, file, nil)
		n += seen
		for _, page := range missing {
			t.Errorf("%s cites %s, which is not there", file, page)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	planted := "package p\n\n// As NOWHERE.md says.\nvar X int // see README.md\n"
	if seen, missing := citedPages(t, "planted.go", planted); seen != 2 || len(missing) != 1 ||
		missing[0] != "NOWHERE.md" {
		t.Errorf("of two pages, one of which is not there, %d are seen and %q are missed", seen, missing)
	}
	if n < 20 {
		t.Errorf("%d citations were found", n)
	}
}
