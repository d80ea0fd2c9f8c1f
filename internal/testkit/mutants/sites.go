package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// fault is one change of a source file.
type fault struct {
	file     string
	line     int
	function string
	from, to int // bytes that are replaced; none: the text to replace is not in the file, or there twice
	with     string
	was      string // the replaced text, shortened
	in       string // the first line that it stands in
	nth      int    // of those of the function that are alike, from 1
	name     string // of a fault written by hand
	tests    string // packages whose tests are run, with commas between
	run      string // pattern of their names; empty: all
}

func (f *fault) String() string {
	if f.name != "" {
		return fmt.Sprintf("%s: %s (%s)", f.file, f.name, f.run)
	}
	return fmt.Sprintf("%s:%d %s", f.file, f.line, f.change())
}

// entry is the line of equivalent.txt that means this fault of a rule and no other, wherever it stands in its function.
func (f *fault) entry() string { return f.file + " " + f.change() }

// change names what a rule does in a function. Where the line has more than the text that is replaced it is named, too.
func (f *fault) change() string {
	with := strings.Join(strings.Fields(f.with), " ")
	if with == "" {
		with = "nothing"
	}
	change := fmt.Sprintf("%s: %s becomes %s", f.function, f.was, with)
	if f.in != f.was {
		change += " in " + f.in
	}
	if f.nth > 1 {
		change += fmt.Sprintf(" (%d)", f.nth)
	}
	return change
}

// apply returns the file with the fault in it.
func (f *fault) apply(text []byte) []byte {
	var b bytes.Buffer
	b.Write(text[:f.from])
	b.WriteString(f.with)
	b.Write(text[f.to:])
	return b.Bytes()
}

// swaps are the operators that stand in for others.
var swaps = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GTR}, token.LEQ: {token.LSS}, token.GTR: {token.GEQ, token.LSS},
	token.GEQ: {token.GTR},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
}

// sites returns all faults that the rules make of a file: an operator is another, a condition is
// turned round, a statement is left out, a number is one more, a loop ends where it went on.
func sites(name string) ([]*fault, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &search{name: filepath.ToSlash(filepath.Clean(name)), text: text, fset: fset, alike: map[string]int{}}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && f.Name.Name != "String" && f.Name.Name != "Error" {
			s.function = f.Name.Name
			if f.Recv != nil {
				s.function = strings.TrimPrefix(s.slice(f.Recv.List[0].Type), "*") + "." + s.function
			}
			ast.Inspect(f.Body, s.visit)
		}
	}
	return s.found, nil
}

type search struct {
	name     string
	text     []byte
	fset     *token.FileSet
	function string
	alike    map[string]int
	found    []*fault
}

func (s *search) put(from, to token.Pos, with string) {
	a, b := s.fset.Position(from), s.fset.Position(to)
	was := strings.Join(strings.Fields(string(s.text[a.Offset:b.Offset])), " ")
	if len(was) > 70 {
		was = was[:70] + "…"
	}
	begins, ends := bytes.LastIndexByte(s.text[:a.Offset], '\n')+1, len(s.text)
	if n := bytes.IndexByte(s.text[a.Offset:], '\n'); n >= 0 {
		ends = a.Offset + n
	}
	f := &fault{file: s.name, line: a.Line, function: s.function, from: a.Offset, to: b.Offset, with: with, was: was,
		in: strings.TrimSpace(string(s.text[begins:ends])), tests: "./" + filepath.Dir(s.name)}
	s.alike[f.change()]++
	f.nth = s.alike[f.change()]
	s.found = append(s.found, f)
}

// visit notes the faults of a node. What only words a message is left alone.
func (s *search) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr: // of what math.Inf is told only the sign counts
		return !words(n) && s.slice(n.Fun) != "math.Inf"
	case *ast.ReturnStmt: // a value beside an error says nothing
		if k := len(n.Results); k > 1 && isError(n.Results[k-1]) {
			return false
		}
	case *ast.BinaryExpr:
		for _, op := range swaps[n.Op] {
			with := s.slice(n.X) + " " + op.String() + " " + s.slice(n.Y)
			s.put(n.Pos(), n.End(), with)
		}
	case *ast.IfStmt:
		s.put(n.Cond.Pos(), n.Cond.End(), "!("+s.slice(n.Cond)+")")
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !words(call) {
			s.put(n.Pos(), n.End(), "")
		}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			s.put(n.Pos(), n.End(), "")
		}
	case *ast.IncDecStmt:
		s.put(n.Pos(), n.End(), "")
	case *ast.BranchStmt:
		if n.Label == nil && n.Tok == token.CONTINUE {
			s.put(n.Pos(), n.End(), "break")
		}
	case *ast.BasicLit:
		if n.Kind == token.INT {
			s.put(n.Pos(), n.End(), "("+n.Value+" + 1)")
		}
	}
	return true
}

// isError reports whether an expression that is returned is an error by its looks.
func isError(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return strings.HasPrefix(x.Name, "err") || strings.HasPrefix(x.Name, "Err")
	case *ast.SelectorExpr:
		return strings.HasPrefix(strings.ToLower(x.Sel.Name), "err")
	case *ast.CallExpr:
		return words(x)
	}
	return false
}

func (s *search) slice(n ast.Node) string {
	return string(s.text[s.fset.Position(n.Pos()).Offset:s.fset.Position(n.End()).Offset])
}

// words reports whether a call makes or writes a text for people, or ends the program.
func words(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name == "panic"
	case *ast.SelectorExpr:
		switch f.Sel.Name {
		case "Info", "Warn", "Error", "Debug", "Lock", "Unlock", "Close", "Stop", "Fail":
			return true
		}
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name == "fmt" || x.Name == "errors" || x.Name == "slog"
		}
	}
	return false
}
