package rules

import (
	"go/ast"
	"go/token"
	"go/types"
)

// variables reports package variables that something may change.
func (c *checker) variables(files []*ast.File) {
	var vars []*types.Var
	for _, name := range c.pkg.Scope().Names() {
		if v, ok := c.pkg.Scope().Lookup(name).(*types.Var); ok {
			vars = append(vars, v)
		}
	}
	readOnly := map[*ast.Ident]bool{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt: // an element that is assigned to is no read
				for _, l := range n.Lhs {
					ast.Inspect(l, func(n ast.Node) bool {
						if id := base(n); id != nil {
							readOnly[id] = false
						}
						return true
					})
				}
				for _, r := range n.Rhs {
					c.reads(r, readOnly)
				}
				return true
			case ast.Expr:
				c.reads(n, readOnly)
			case *ast.RangeStmt:
				if id, ok := n.X.(*ast.Ident); ok {
					set(readOnly, id)
				}
			}
			return true
		})
	}
	for _, v := range vars {
		key := c.path + " " + v.Name()
		if types.Identical(v.Type(), types.Universe.Lookup("error").Type()) && !c.assigned(v, files) {
			continue
		}
		if allowedVars[key] != "" {
			c.seen[key] = true
			continue
		}
		if !isTable(v.Type()) || !c.onlyRead(v, readOnly) {
			c.report(v.Pos(), "variable %s of the package may change", v.Name())
		}
	}
}

// reads marks names that an expression only reads: an element, or the length.
func (c *checker) reads(e ast.Expr, readOnly map[*ast.Ident]bool) {
	switch x := e.(type) {
	case *ast.IndexExpr:
		if id, ok := x.X.(*ast.Ident); ok {
			set(readOnly, id)
		}
	case *ast.UnaryExpr:
		if x.Op == token.AND {
			if id := base(x.X); id != nil {
				readOnly[id] = false
			}
		}
	case *ast.CallExpr:
		if fn, ok := x.Fun.(*ast.Ident); ok && (fn.Name == "len" || fn.Name == "cap") {
			if id, ok := x.Args[0].(*ast.Ident); ok {
				set(readOnly, id)
			}
		}
	}
}

// set marks a name unless it was marked already.
func set(m map[*ast.Ident]bool, id *ast.Ident) {
	if _, ok := m[id]; !ok {
		m[id] = true
	}
}

// base returns the variable of an element.
func base(n ast.Node) *ast.Ident {
	switch x := n.(type) {
	case *ast.IndexExpr:
		return base(x.X)
	case *ast.Ident:
		return x
	}
	return nil
}

// isTable reports whether a type is a list of numbers or text.
func isTable(t types.Type) bool {
	var elem types.Type
	switch u := t.Underlying().(type) {
	case *types.Slice:
		elem = u.Elem()
	case *types.Array:
		elem = u.Elem()
	default:
		return false
	}
	_, ok := elem.Underlying().(*types.Basic)
	return ok || isTable(elem)
}

func (c *checker) onlyRead(v *types.Var, readOnly map[*ast.Ident]bool) bool {
	for id, o := range c.info.Uses {
		if o == v && !readOnly[id] {
			return false
		}
	}
	return true
}

func (c *checker) assigned(v *types.Var, files []*ast.File) (found bool) {
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, l := range n.Lhs {
					if id, ok := l.(*ast.Ident); ok && c.info.Uses[id] == v {
						found = true
					}
				}
			case *ast.UnaryExpr:
				if id, ok := n.X.(*ast.Ident); ok && n.Op == token.AND && c.info.Uses[id] == v {
					found = true
				}
			}
			return true
		})
	}
	return found
}
