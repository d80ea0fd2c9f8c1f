package rules

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var fileNames = regexp.MustCompile(`\w+\.go`)

// readingList returns the files that a paragraph of the map names, and their lines: those of package loop, and after
// the words "here, " those of package join.
func readingList(text []byte, title string) (files, lines int, err error) {
	_, rest, found := bytes.Cut(text, []byte("// "+title+":"))
	paragraph, _, _ := bytes.Cut(rest, []byte("//\n"))
	here, there, both := bytes.Cut(paragraph, []byte(" here, "))
	if !found || !both {
		return 0, 0, errors.New("the map has no such list")
	}
	for dir, names := range map[string][]byte{"internal/loop": here, "internal/join": there} {
		for _, name := range fileNames.FindAll(names, -1) {
			b, e := os.ReadFile(filepath.Join(root, dir, string(name)))
			files, lines, err = files+1, lines+bytes.Count(b, []byte("\n")), errors.Join(err, e)
		}
	}
	return files, lines, err
}

// TestMap holds that the two promises of the joiner can be read: the package comment of internal/loop lists the files.
func TestMap(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "internal/loop/doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, c := range []struct {
		title string
		files int
	}{{"One decision, one feedback, in order", 9}, {"A restart continues exactly", 8}} {
		files, lines, err := readingList(text, c.title)
		if err != nil || files < 5 || files > c.files {
			t.Errorf("%s: %d files, at most %d; %v", c.title, files, c.files, err)
		}
		all += lines
	}
	if all > 3000 {
		t.Errorf("both lists have %d lines, more than 3,000", all)
	}
	planted := []byte("// A restart continues exactly: mark.go here, nowhere.go of package\n" +
		"// join.\n//\n// other.go\n")
	if files, _, err := readingList(planted, "A restart continues exactly"); files != 2 || err == nil {
		t.Errorf("a file that is not there: %d files, %v", files, err)
	}
}
