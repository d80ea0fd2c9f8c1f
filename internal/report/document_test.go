package report

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"hindsight/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/reference/results.md anew")

const documentHead = `# Results

The keys of ~replayer backtest --json~, and the CSV files of ~--csv DIR~. The report of ~--report FILE~ shows the same
figures. ~inject --json~ prints one ~Result~. Names are stable: keys may be added, and none changes its meaning. An unknown
figure is null in JSON and empty in CSV. A key marked with * is absent if it does not apply.

This page is made from the code by ~go test ./internal/report -run Reference -update~.
`

// TestReferenceResults holds docs/reference/results.md against the structs.
func TestReferenceResults(t *testing.T) {
	d := &document{t: t, seen: map[reflect.Type]bool{}, comments: map[string]map[string]string{}}
	d.b.WriteString(strings.ReplaceAll(documentHead, "~", "`"))
	d.describe(reflect.TypeFor[Results]())
	d.b.WriteString("\n## CSV\n\nA column's name is the path of the same figure in JSON. `run` is the run's index in " +
		"`runs`, from 0.\n\n| file | holds | columns |\n|---|---|---|\n")
	for _, f := range (&Results{}).files() {
		fmt.Fprintf(&d.b, "| `%s` | %s | %s |\n", f.Name, f.Holds, "`"+strings.Join(f.Columns, "` `")+"`")
	}
	testkit.Page(t, *update, "../../docs/reference/results.md", d.b.String())
}

// document writes a table a struct.
type document struct {
	t        *testing.T
	b        strings.Builder
	seen     map[reflect.Type]bool
	comments map[string]map[string]string // package → "Type" or "Type.Field" → comment
}

// plain is t without pointers and lists.
func plain(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

// ours reports whether a type is a struct that is described on its own.
func ours(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && strings.HasPrefix(t.PkgPath(), "hindsight/")
}

func (d *document) describe(t reflect.Type) {
	if d.seen[t] {
		return
	}
	d.seen[t] = true
	fmt.Fprintf(&d.b, "\n## %s\n\n%s\n\n| key | value | meaning |\n|---|---|---|\n", title(t.Name()),
		title(d.comment(t, "")))
	var next []reflect.Type
	d.fields(t, &next)
	for _, n := range next {
		d.describe(n)
	}
}

func (d *document) fields(t reflect.Type, next *[]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, embedded, skip := jsonName(f)
		switch {
		case skip:
			continue
		case embedded:
			d.fields(plain(f.Type), next)
			continue
		}
		if strings.Contains(f.Tag.Get("json"), ",omitempty") {
			name += "*"
		}
		if ours(plain(f.Type)) {
			*next = append(*next, plain(f.Type))
		}
		fmt.Fprintf(&d.b, "| `%s` | %s | %s |\n", name, kindName(f.Type), d.comment(t, f.Name))
	}
}

// title writes a name as one of a part of the page.
func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// kindName names a type as JSON has it.
func kindName(t reflect.Type) string {
	switch {
	case t == timeType:
		return "time, RFC 3339"
	case t.Name() == "Estimates":
		return "object of Estimate by estimator"
	case t.Kind() == reflect.Pointer:
		return kindName(t.Elem()) + " or null"
	case t.Kind() == reflect.Slice:
		return "list of " + kindName(t.Elem())
	case t.Kind() == reflect.Map:
		return "object of " + kindName(t.Elem())
	case t.Kind() == reflect.Struct:
		return title(t.Name())
	case t.Name() == "Figure":
		return "number or null"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "number"
	}
	return "whole number"
}

// link is a reference to another name in a comment.
var link = regexp.MustCompile(`\[([A-Za-z_.*]+)\]`)

// comment returns what the source says of a type or of one of its fields, in one line.
func (d *document) comment(t reflect.Type, field string) string {
	pkg := t.PkgPath()
	if d.comments[pkg] == nil {
		d.comments[pkg] = d.read(pkg)
	}
	key := t.Name()
	if field != "" {
		key += "." + field
	}
	text := strings.ReplaceAll(strings.Join(strings.Fields(d.comments[pkg][key]), " "), "|", `\|`)
	if text == "" && field == "" {
		d.t.Errorf("%s.%s has no comment", pkg, key)
	}
	return link.ReplaceAllString(text, "$1")
}

// read reads the comments of a package.
func (d *document) read(pkg string) map[string]string {
	dir := filepath.Join("../..", strings.TrimPrefix(pkg, "hindsight/"))
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		d.t.Fatalf("no sources of %s: %v", pkg, err)
	}
	out := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, decl := range file.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				typeComments(out, g, spec.(*ast.TypeSpec))
			}
		}
	}
	return out
}

func typeComments(out map[string]string, g *ast.GenDecl, spec *ast.TypeSpec) {
	text := spec.Doc.Text()
	if text == "" {
		text = g.Doc.Text()
	}
	out[spec.Name.Name] = text
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range s.Fields.List {
		text := f.Comment.Text()
		if text == "" {
			text = f.Doc.Text()
		}
		for _, n := range f.Names {
			out[spec.Name.Name+"."+n.Name] = text
		}
	}
}
