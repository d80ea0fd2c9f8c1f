package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// readPlanted reads faults that are written by hand. Each is a paragraph: a name, a line of the file, the
// package and the pattern of the tests that are to find it, the lines to replace, each after "- ", and
// those that replace them, each after "+ ". Lines that begin with # are comments.
func readPlanted(path string) (all []*fault, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		f := &fault{}
		var was, with []string
		for line := range strings.Lines(paragraph) {
			line = strings.TrimSuffix(line, "\n")
			switch fields := strings.Fields(line); {
			case strings.HasPrefix(line, "#") || line == "":
			case f.name == "":
				f.name = line
			case f.file == "" && len(fields) == 3:
				f.file, f.tests, f.run = fields[0], fields[1], fields[2]
			case strings.HasPrefix(line, "- ") && f.file != "":
				was = append(was, line[2:])
			case strings.HasPrefix(line, "+ ") && f.file != "":
				with = append(with, line[2:])
			default:
				return nil, fmt.Errorf("%s: %q: not a line of a fault", path, line)
			}
		}
		if f.name == "" {
			continue
		}
		source, err := os.ReadFile(f.file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %s: %w", path, f.name, err)
		}
		f.with, f.was = strings.Join(with, "\n"), strings.Join(was, "\n")
		if i := bytes.Index(source, []byte(f.was)); f.was != "" && bytes.Count(source, []byte(f.was)) == 1 {
			f.from, f.to = i, i+len(f.was)
		}
		all = append(all, f)
	}
	return all, nil
}
