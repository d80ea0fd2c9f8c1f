package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// part is a module that is linked in, Go itself, or a file of others in this source tree.
type part struct {
	name, version string
	purl          string // its package URL
	files         []file
}

// file is the text of a licence or a notice.
type file struct {
	name string // in its part
	text string
	ids  []string // of the licences that it holds, nil for a notice
}

// licenceName matches the names that such files have.
var licenceName = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice|copyright)([-._].*)?$`)

// known are the licences that ask for nothing but that they are told.
var known = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC-BY-4.0", "CC0-1.0", "FTL", "ISC",
	"MIT", "Unlicense", "Zlib", "MIT-0", "OFL-1.1"}

// read are modules whose licence a person has read: one may choose it, and its text lies elsewhere in the module.
var read = map[string]struct{ id, text string }{
	"github.com/golang/freetype": {"FTL", "licenses/ftl.txt"},
}

// goPackage is what is asked of `go list`.
type goPackage struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// collect returns the parts of the packages of the source tree in dir, in the order of their names.
func collect(dir string, packages []string) ([]part, error) {
	pkgs, err := list(dir, packages)
	if err != nil {
		return nil, err
	}
	folders := map[string][]string{} // of packages that are linked, by module
	parts := map[string]*part{}
	var own string
	for _, p := range pkgs {
		switch m := p.Module; {
		case p.Standard || m == nil:
		case m.Main:
			own = m.Dir
		default:
			parts[m.Dir] = &part{name: m.Path, version: m.Version, purl: "pkg:golang/" + m.Path + "@" + m.Version}
			folders[m.Dir] = append(folders[m.Dir], p.Dir)
		}
	}
	out := []part{}
	for root, p := range parts {
		if p.files, err = above(root, folders[root]); err != nil {
			return nil, err
		}
		if r, ok := read[p.name]; ok {
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(r.text)))
			if err != nil {
				return nil, err
			}
			p.files = append(p.files, file{r.text, string(bytes.TrimSpace(text)), []string{r.id}})
		}
		out = append(out, *p)
	}
	goPart := part{name: "the Go standard library and runtime", version: runtime.Version(),
		purl: "pkg:golang/std@" + strings.TrimPrefix(runtime.Version(), "go")}
	if goPart.files, err = texts(goroot(dir), goroot(dir)); err != nil {
		return nil, err
	}
	inside, err := carried(own)
	if err != nil {
		return nil, err
	}
	out = append(append(out, goPart), inside...)
	slices.SortFunc(out, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

func list(dir string, packages []string) (out []goPackage, err error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Dir,Standard,Module"}, packages...)...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		out = append(out, p)
	}
}

func goroot(dir string) string {
	cmd := exec.Command("go", "env", "GOROOT")
	cmd.Dir = dir
	text, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// above returns the texts in the folders of the packages that are used and in all above
// them, up to the module's own: parts of a module may have another licence.
func above(root string, dirs []string) (out []file, err error) {
	seen := map[string]bool{}
	for _, dir := range append(slices.Clone(dirs), root) {
		for ; !seen[dir] && strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			seen[dir] = true
			found, err := texts(root, dir)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	slices.SortFunc(out, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// texts reads the licences in a folder.
func texts(root, dir string) (out []file, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceName.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		out = append(out, file{filepath.ToSlash(name), string(bytes.TrimSpace(text)), identify(text)})
	}
	return out, nil
}

// identify returns the licences in a text.
func identify(text []byte) (ids []string) {
	for _, m := range licensecheck.Scan(text).Match {
		if !m.IsURL {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// carried returns what lies in the source tree itself with a licence beside it, in a folder
// NAME-VERSION: it is from npm.
func carried(root string) (out []part, err error) {
	err = filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		found, err := texts(path, path)
		if len(found) > 0 {
			name, version, _ := strings.Cut(filepath.Base(path), "-")
			out = append(out, part{name: name, version: version, purl: "pkg:npm/" + strings.ToLower(name) +
				"@" + version, files: found})
		}
		return err
	})
	return out, err
}

// ids names the licences of a part.
func (p part) ids() string {
	var all []string
	for _, f := range p.files {
		all = append(all, f.ids...)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// judge reports what is wrong with the licences of a part.
func (p part) judge() error {
	found := p.ids()
	if found == "" {
		return fmt.Errorf("%s %s: no licence that is recognised, in %d files", p.name, p.version, len(p.files))
	}
	for id := range strings.SplitSeq(found, ", ") {
		if !slices.Contains(known, id) {
			return fmt.Errorf("%s %s: licence %s is not among %s", p.name, p.version, id, strings.Join(known, ", "))
		}
	}
	return nil
}
