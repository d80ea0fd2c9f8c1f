package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exportedNames are the functions, variables and constants that packages below internal export, and the names that
// files take from other packages, as PACKAGE.NAME. Constants that are declared together are one: a set of kinds is
// exported whole. Of types nothing is asked: a caller need not write the type of a value that it is given.
type exportedNames struct {
	declared [][]string
	used     map[string]bool
}

// add adds a file of a package.
func (e *exportedNames) add(f *ast.File, of string) {
	imports := map[string]string{} // by the name in the file
	for _, i := range f.Imports {
		from, _ := strconv.Unquote(i.Path.Value)
		if from, own := strings.CutPrefix(from, module); own && from != of {
			name := path.Base(from)
			if i.Name != nil {
				name = i.Name.Name
			}
			imports[name] = from
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && imports[x.Name] != "" {
				e.used[imports[x.Name]+"."+s.Sel.Name] = true
			}
		}
		return true
	})
}

// declare adds what a file exports.
func (e *exportedNames) declare(f *ast.File, of string) {
	for _, d := range f.Decls {
		var together []string
		add := func(name *ast.Ident) {
			if name.IsExported() {
				together = append(together, of+"."+name.Name)
			}
		}
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok {
					for _, name := range v.Names {
						add(name)
					}
				}
			}
		}
		if together != nil {
			e.declared = append(e.declared, together)
		}
	}
}

// unused returns the declarations of which no other package takes a name.
func (e *exportedNames) unused() (out [][]string) {
	for _, d := range e.declared {
		if !slices.ContainsFunc(d, func(name string) bool { return e.used[name] }) {
			out = append(out, d)
		}
	}
	return out
}

// What a package below internal exports, another package uses.
func TestExportedNamesAreUsed(t *testing.T) {
	e := &exportedNames{used: map[string]bool{}}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".go" {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		of, err := filepath.Rel(root, filepath.Dir(file))
		of = filepath.ToSlash(of)
		if e.add(f, of); strings.HasPrefix(of, "internal/") && !strings.HasSuffix(file, "_test.go") {
			e.declare(f, of)
		}
		return err
	})
	if err != nil || len(e.declared) < 100 {
		t.Fatalf("%d declarations: %v", len(e.declared), err)
	}
	for _, d := range e.unused() {
		t.Errorf("no other package uses %s: unexport it, or take it out", strings.Join(d, ", "))
	}
}

// A name that only its own package uses is found.
func TestExportedNamesTestCanFail(t *testing.T) {
	e := &exportedNames{used: map[string]bool{}}
	for of, text := range map[string]string{
		"internal/a": "package a; const (One = 1; Two = 2); func Three() int { return Two }; type Four int; " +
			"var five, Six = Three(), One; func (Four) Seven() {}",
		"internal/b": `package b; import x "hindsight/internal/a"; var _ = x.One`,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		e.add(f, of)
		e.declare(f, of)
	}
	if got := e.unused(); len(got) != 2 || got[0][0] != "internal/a.Three" || got[1][0] != "internal/a.Six" {
		t.Errorf("unused: %v, want Three and Six", got)
	}
}
