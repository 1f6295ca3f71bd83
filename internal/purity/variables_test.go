package purity

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// variables looks at the package variables that a file declares: errors,
// unexported tables of constants, and assertions that a type implements an
// interface.
func (w *walker) variables(f *ast.File) {
	for _, decl := range f.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			spec := spec.(*ast.ValueSpec)
			for i, name := range spec.Names {
				var value ast.Expr
				if i < len(spec.Values) && len(spec.Values) == len(spec.Names) {
					value = spec.Values[i]
				}
				w.variable(name, spec.Type, value)
			}
		}
	}
}

func (w *walker) variable(name *ast.Ident, declared, value ast.Expr) {
	o := w.info.Defs[name]
	t := w.typeOf(o, value)
	switch {
	case name.Name == "_" && declared != nil && value != nil && !w.calls(value):
	case t != nil && value != nil && implementsError(t) && w.makesError(value):
	case t != nil && value != nil && !name.IsExported() && isTable(t) && w.constant(value):
	default:
		w.report(name.Pos(), fmt.Sprintf("package variable %s", name.Name), whyVariable)
	}
}

// typeOf returns the type of a declared variable; _ has no object.
func (w *walker) typeOf(o types.Object, value ast.Expr) types.Type {
	if o != nil {
		return o.Type()
	}
	if value != nil {
		return w.info.TypeOf(value)
	}
	return nil
}

func implementsError(t types.Type) bool {
	e := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	return types.Implements(t, e)
}

// makesError reports whether e is errors.New(…), fmt.Errorf(…), or a literal of
// an error type.
func (w *walker) makesError(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		f := w.info.Uses[lastIdent(e.Fun)]
		return f != nil && f.Pkg() != nil && (f.Pkg().Path() == "errors" && f.Name() == "New" || f.Pkg().Path() == "fmt" && f.Name() == "Errorf")
	case *ast.UnaryExpr:
		return e.Op == token.AND && w.makesError(e.X)
	case *ast.CompositeLit:
		return !w.calls(e)
	}
	return false
}

// calls reports whether e calls anything; a conversion isn't a call.
func (w *walker) calls(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && !w.info.Types[call.Fun].IsType() {
			found = true
		}
		return !found
	})
	return found
}

// isTable reports whether t is an array, a slice or a map of plain values.
func isTable(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Array:
		return isPlain(u.Elem())
	case *types.Slice:
		return isPlain(u.Elem())
	case *types.Map:
		return isPlain(u.Key()) && isPlain(u.Elem())
	}
	return false
}

// isPlain reports whether a copy of a value of type t shares nothing with it.
func isPlain(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Kind() != types.UnsafePointer
	case *types.Array:
		return isPlain(u.Elem())
	case *types.Struct:
		for f := range u.Fields() {
			if !isPlain(f.Type()) {
				return false
			}
		}
		return true
	}
	return false
}

// constant reports whether e is a constant, or a literal of such.
func (w *walker) constant(e ast.Expr) bool {
	if tv := w.info.Types[e]; tv.Value != nil {
		return true
	}
	lit, ok := ast.Unparen(e).(*ast.CompositeLit)
	if !ok {
		return false
	}
	for _, element := range lit.Elts {
		if kv, ok := element.(*ast.KeyValueExpr); ok {
			if _, isMap := w.info.TypeOf(lit).Underlying().(*types.Map); isMap && !w.constant(kv.Key) {
				return false
			}
			element = kv.Value
		}
		if !w.constant(element) {
			return false
		}
	}
	return true
}

// usesVariable looks at one use of a package variable, this package's or
// another's: it may be read, and nothing may come of that through which it
// could be changed.
func (w *walker) usesVariable(n *ast.Ident, v *types.Var) {
	whole, outer := w.place(n)
	if change := w.changes(whole, outer); change != "" {
		w.report(n.Pos(), change+" package variable "+v.Name(), whyConstant)
	}
}

// place climbs from the identifier at hand to the largest expression that
// denotes the variable or a part of it, v[i].f for v. It returns that and the
// node around it.
func (w *walker) place(n *ast.Ident) (whole ast.Expr, outer ast.Node) {
	whole = n
	for i := 1; ; i++ {
		outer = w.around(i)
		switch o := outer.(type) {
		case *ast.ParenExpr:
			whole = o
			continue
		case *ast.IndexExpr:
			if o.X == whole {
				whole = o
				continue
			}
		case *ast.SelectorExpr:
			s := w.info.Selections[o]
			qualified := s == nil && o.Sel == whole // pkg.v
			if qualified || o.X == whole && s != nil && s.Kind() == types.FieldVal {
				whole = o
				continue
			}
		}
		return whole, outer
	}
}

// changes says what outer does to the variable, or part of one, that whole
// denotes; nothing if it only reads.
func (w *walker) changes(whole ast.Expr, outer ast.Node) string {
	t := w.info.TypeOf(whole)
	if t == nil {
		return ""
	}
	switch o := outer.(type) {
	case *ast.AssignStmt:
		for _, l := range o.Lhs {
			if l == whole {
				return "assigns to"
			}
		}
	case *ast.IncDecStmt:
		return "assigns to"
	case *ast.UnaryExpr:
		if o.Op == token.AND {
			return "takes the address of"
		}
	case *ast.RangeStmt:
		if o.Key == whole || o.Value == whole {
			return "assigns to"
		}
		return "" // ranging over it copies the elements
	case *ast.SliceExpr:
		if basic, ok := t.Underlying().(*types.Basic); o.X == whole && (!ok || basic.Info()&types.IsString == 0) {
			return "slices"
		}
	case *ast.SelectorExpr:
		if s := w.info.Selections[o]; s != nil && s.Kind() == types.MethodVal && isPointerMethod(s) && !isPointer(t) {
			return "takes the address of"
		}
	case *ast.CallExpr:
		if b, ok := w.info.Uses[lastIdent(o.Fun)].(*types.Builtin); ok && (b.Name() == "len" || b.Name() == "cap") {
			return ""
		}
	}
	if isShared(t) {
		return "passes on"
	}
	return ""
}

func isPointerMethod(s *types.Selection) bool {
	return isPointer(s.Obj().(*types.Func).Signature().Recv().Type())
}

func isPointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

// isShared reports whether a copy of a value of type t can be used to change
// the original.
func isShared(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Slice, *types.Map:
		return true
	}
	return false
}
