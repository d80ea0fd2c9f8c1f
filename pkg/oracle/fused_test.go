package oracle

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoFusableProduct finds floating-point products that are added or subtracted
// without float64(…) around them: a compiler may fuse those into an FMA, which
// gives other bits on other machines.
func TestNoFusableProduct(t *testing.T) {
	for _, dir := range []string{".", "../learner"} {
		fset := token.NewFileSet()
		found := fusable(fset, parseDir(t, fset, dir))
		for _, pos := range found {
			t.Errorf("%s: a product is added without float64(…)", fset.Position(pos))
		}
	}
	const planted = `package p
func f(a, b, c float64, i, j int) float64 {
	c += a * b
	c = c - (a*b)
	c -= -(a * b)
	i += i * j
	return float64(a*b) + c + 2*3 + float64(i*j+1)
}`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "planted.go", planted, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(fusable(fset, []*ast.File{file})); n != 3 {
		t.Errorf("%d of 3 planted products found", n)
	}
}

func parseDir(t *testing.T, fset *token.FileSet, dir string) (files []*ast.File) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	return files
}

func fusable(fset *token.FileSet, files []*ast.File) (found []token.Pos) {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	// Errors from packages that the importer cannot find leave types unknown;
	// those count as floats.
	conf := types.Config{Importer: importer.Default(), Error: func(error) {}}
	_, _ = conf.Check("p", fset, files, info)
	check := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.ParenExpr:
				e = x.X
				continue
			case *ast.UnaryExpr:
				e = x.X
				continue
			case *ast.BinaryExpr:
				tv := info.Types[x]
				basic, _ := tv.Type.(*types.Basic)
				isInt := basic != nil && basic.Info()&types.IsInteger != 0
				if x.Op == token.MUL && tv.Value == nil && !isInt {
					found = append(found, x.Pos())
				}
			}
			return
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.BinaryExpr:
				if x.Op == token.ADD || x.Op == token.SUB {
					check(x.X)
					check(x.Y)
				}
			case *ast.AssignStmt:
				if x.Tok == token.ADD_ASSIGN || x.Tok == token.SUB_ASSIGN {
					check(x.Rhs[0])
				}
			}
			return true
		})
	}
	return found
}
