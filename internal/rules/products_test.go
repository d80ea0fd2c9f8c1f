package rules

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
)

// products reports floating-point products that a compiler may fuse with a sum: an
// explicit conversion keeps it from that (the Go specification, "Floating-point
// operators"). A product that is kept in a variable may be fused as well.
func (c *checker) products(fn *ast.FuncDecl) {
	bare := map[types.Object]bool{} // variables that were ever set to a bare product
	ast.Inspect(fn, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
			for i, l := range a.Lhs {
				id, ok := l.(*ast.Ident)
				if ok && (c.product(a.Rhs[i], nil) || a.Tok == token.MUL_ASSIGN && c.float(l) &&
					!c.powerOfTwo(a.Rhs[i])) {
					if o := c.info.ObjectOf(id); o != nil {
						bare[o] = true
					}
				}
			}
		}
		return true
	})
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if (n.Op == token.ADD || n.Op == token.SUB) && (c.product(n.X, bare) || c.product(n.Y, bare)) {
				c.report(n.OpPos, "a product is added to without float64(…) around it")
			}
		case *ast.AssignStmt:
			if (n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN) &&
				(c.product(n.Rhs[0], bare) || c.product(n.Lhs[0], bare)) {
				c.report(n.TokPos, "a product is added to without float64(…) around it")
			}
		}
		return true
	})
}

func (c *checker) float(e ast.Expr) bool {
	tv := c.info.Types[e]
	if tv.Type == nil {
		if id, ok := e.(*ast.Ident); ok && c.info.ObjectOf(id) != nil {
			tv.Type = c.info.ObjectOf(id).Type()
		}
	}
	if tv.Type == nil || tv.Value != nil { // a constant is exact
		return false
	}
	b, ok := tv.Type.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsFloat != 0
}

// product reports whether e is a floating-point product without a conversion.
func (c *checker) product(e ast.Expr, bare map[types.Object]bool) bool {
	switch x := e.(type) {
	case *ast.ParenExpr:
		return c.product(x.X, bare)
	case *ast.UnaryExpr:
		return c.product(x.X, bare)
	case *ast.Ident:
		return bare[c.info.ObjectOf(x)]
	case *ast.BinaryExpr:
		return x.Op == token.MUL && c.float(x) && !c.powerOfTwo(x.X) && !c.powerOfTwo(x.Y)
	}
	return false
}

// powerOfTwo reports whether e is a constant with which every product is exact, fused
// or not.
func (c *checker) powerOfTwo(e ast.Expr) bool {
	tv := c.info.Types[e]
	if tv.Value == nil {
		return false
	}
	x, _ := constant.Float64Val(constant.ToFloat(tv.Value))
	frac, _ := math.Frexp(x)
	return math.Abs(frac) == 0.5
}
