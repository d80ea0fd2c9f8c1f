package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// checker collects what breaks the rules in one package.
type checker struct {
	path  string
	fset  *token.FileSet
	info  *types.Info
	pkg   *types.Package
	seen  map[string]bool // entries of the lists above that were used
	found []string
}

func (c *checker) report(at token.Pos, format string, args ...any) {
	p := c.fset.Position(at)
	if rel, err := filepath.Rel(root, p.Filename); err == nil {
		p.Filename = rel
	}
	c.found = append(c.found, fmt.Sprintf("%v: %s", p, fmt.Sprintf(format, args...)))
}

// violations returns what breaks the rules of the heart.
func violations(t *testing.T, path string, fset *token.FileSet, files []*ast.File, exports map[string]string,
	seen map[string]bool) []string {
	t.Helper()
	c := &checker{path: path, fset: fset, seen: seen,
		info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
			Defs: map[*ast.Ident]types.Object{}}}
	var err error
	if c.pkg, err = typeCheck(path, fset, files, exports, c.info); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		c.imports(f)
		for _, d := range f.Decls {
			c.decl(d)
		}
	}
	c.variables(files)
	return c.found
}

func (c *checker) imports(f *ast.File) {
	for _, s := range f.Imports {
		if path := strings.Trim(s.Path.Value, `"`); !slices.Contains(allowedImports, path) {
			c.report(s.Pos(), "the heart imports %q", path)
		}
	}
}

func (c *checker) decl(d ast.Decl) {
	name := ""
	if fn, ok := d.(*ast.FuncDecl); ok {
		name = funcName(fn)
		if name == "init" {
			c.report(fn.Pos(), "an init function")
		}
		c.products(fn)
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			c.report(n.Pos(), "a go statement")
		case *ast.SelectStmt:
			c.report(n.Pos(), "a select statement")
		case *ast.ChanType:
			c.report(n.Pos(), "a channel")
		case *ast.Ident:
			c.use(n)
		case *ast.RangeStmt:
			if key := c.path + " " + name; isMap(c.info.TypeOf(n.X)) {
				if c.seen[key] = true; allowedRanges[key] == "" {
					c.report(n.Pos(), "a range over a map in %s: its order changes from run to run", name)
				}
			}
		}
		return true
	})
}

func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}

// isMap also looks at what a type parameter stands for.
func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := t.(*types.TypeParam); ok {
		i, ok := p.Constraint().Underlying().(*types.Interface)
		for k := 0; ok && k < i.NumEmbeddeds(); k++ {
			if u, ok := i.EmbeddedType(k).(*types.Union); ok {
				for m := range u.Len() {
					if isMap(u.Term(m).Type()) {
						return true
					}
				}
			}
		}
		return false
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// use checks a name that belongs to another package or to the language.
func (c *checker) use(id *ast.Ident) {
	switch o := c.info.Uses[id].(type) {
	case *types.Builtin:
		if o.Name() == "print" || o.Name() == "println" || o.Name() == "complex" {
			c.report(id.Pos(), "%s", o.Name())
		}
	case *types.TypeName:
		if b, ok := o.Type().(*types.Basic); ok && b.Info()&types.IsComplex != 0 {
			c.report(id.Pos(), "complex numbers: their products are sums of products")
		}
	case *types.Func:
		if o.Pkg() == nil {
			return
		}
		switch {
		case o.Pkg().Path() == "math" && !slices.Contains(allowedMath, o.Name()):
			c.report(id.Pos(), "math.%s: its bits may depend on the machine, or it is not on the list", o.Name())
		case o.Pkg().Path() == "fmt" && (strings.HasPrefix(o.Name(), "Print") || strings.HasPrefix(o.Name(), "Scan")):
			c.report(id.Pos(), "fmt.%s is I/O", o.Name())
		}
	}
}
