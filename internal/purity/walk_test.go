package purity

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// walker looks at the files of one pure package.
type walker struct {
	*checker
	folder    folder
	info      *types.Info
	pkg       *types.Package
	importsOK bool       // no import is banned, so every type is known
	stack     []ast.Node // the node at hand and those around it, the file first
}

func (w *walker) file(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			w.stack = w.stack[:len(w.stack)-1]
			return false
		}
		w.stack = append(w.stack, n)
		w.node(n)
		return true
	})
}

// around returns the node that is i levels above the one at hand.
func (w *walker) around(i int) ast.Node {
	if i = len(w.stack) - 1 - i; i >= 0 {
		return w.stack[i]
	}
	return nil
}

func (w *walker) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.GoStmt:
		w.report(n.Pos(), "starts a goroutine", whyThread)
	case *ast.SelectStmt:
		w.report(n.Pos(), "selects", whyChannel)
	case *ast.ChanType:
		w.report(n.Pos(), "names a channel type", whyChannel)
	case *ast.SendStmt:
		w.report(n.Pos(), "sends on a channel", whyChannel)
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			w.report(n.Pos(), "receives from a channel", whyChannel)
		}
	case *ast.RangeStmt:
		w.ranges(n)
	case *ast.CallExpr:
		if isChan(w.info.TypeOf(n)) {
			w.report(n.Pos(), "gets a channel from a call", whyChannel)
		}
	case *ast.Ident:
		if o := w.info.Uses[n]; o != nil {
			w.uses(n, o)
		}
	}
}

func (w *walker) ranges(n *ast.RangeStmt) {
	t := w.info.TypeOf(n.X)
	switch {
	case t == nil || t == types.Typ[types.Invalid]:
		if w.importsOK {
			w.report(n.Pos(), "ranges over something of unknown type", whyTypes)
		}
	case mayBe(t, func(u types.Type) bool { _, ok := u.(*types.Map); return ok }):
		w.report(n.Pos(), "ranges over a map", whyMap)
	case mayBe(t, isChan):
		w.report(n.Pos(), "receives from a channel", whyChannel)
	}
}

func isChan(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Chan)
	return ok
}

// mayBe reports whether is holds for the type under t or, if t is a type
// parameter, for one of those that its constraint lists.
func mayBe(t types.Type, is func(types.Type) bool) bool {
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		return constraintMayBe(p.Constraint(), is)
	}
	return is(t.Underlying())
}

func constraintMayBe(t types.Type, is func(types.Type) bool) bool {
	switch u := t.Underlying().(type) {
	case *types.Interface:
		for e := range u.EmbeddedTypes() {
			if constraintMayBe(e, is) {
				return true
			}
		}
		return false
	case *types.Union:
		for term := range u.Terms() {
			if constraintMayBe(term.Type(), is) {
				return true
			}
		}
		return false
	default:
		return is(u)
	}
}

// pureTime is what pure code may use of package time: Duration, its units and
// its text.
var pureTime = []string{"Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour", "ParseDuration"}

// uses looks at what an identifier refers to.
func (w *walker) uses(n *ast.Ident, o types.Object) {
	if b, ok := o.(*types.Builtin); ok && (b.Name() == "print" || b.Name() == "println") {
		w.report(n.Pos(), "prints", whyPrint)
	}
	if v, ok := o.(*types.Var); ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
		w.usesVariable(n, v)
	}
	if o.Pkg() == nil {
		return
	}
	name := o.Name()
	topLevel := o.Parent() == o.Pkg().Scope()
	switch o.Pkg().Path() {
	case "time":
		if topLevel && !slices.Contains(pureTime, name) {
			w.report(n.Pos(), "uses time."+name, whyClock)
		}
		if r := receiver(o); r != "" && r != "Duration" {
			w.report(n.Pos(), fmt.Sprintf("uses %s of time.%s", name, r), whyClock)
		}
	case "fmt":
		if topLevel && (strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Scan")) {
			w.report(n.Pos(), "uses fmt."+name, whyPrint)
		}
	case "iter":
		if strings.HasPrefix(name, "Pull") && !w.folder.coroutines {
			w.report(n.Pos(), "uses iter."+name, whyPull)
		}
	case "maps":
		if slices.Contains([]string{"All", "Keys", "Values", "DeleteFunc"}, name) && !w.sortedAtOnce(name) {
			w.report(n.Pos(), "uses maps."+name, whyMap)
		}
	case "reflect":
		switch name {
		case "MapKeys", "MapRange", "Seq", "Seq2":
			w.report(n.Pos(), "uses "+name+" of package reflect", whyMap)
		case "ChanOf", "MakeChan", "Select", "Send", "Recv", "TrySend", "TryRecv":
			w.report(n.Pos(), "uses "+name+" of package reflect", whyChannel)
		}
	case "runtime/debug":
		if name != "Stack" {
			w.report(n.Pos(), "uses debug."+name, whyStack)
		}
	}
}

// receiver returns the name of the type that o is a method of.
func receiver(o types.Object) string {
	f, ok := o.(*types.Func)
	if !ok || f.Signature().Recv() == nil {
		return ""
	}
	t := f.Signature().Recv().Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if named, ok := types.Unalias(t).(*types.Named); ok {
		return named.Obj().Name()
	}
	return ""
}

// sortedAtOnce reports whether the identifier at hand is in a call that is the
// argument of slices.Sorted, or, for keys, which are distinct, of
// slices.SortedFunc.
func (w *walker) sortedAtOnce(name string) bool {
	i := 1
	var call ast.Node = w.around(0)
	for {
		outer := w.around(i)
		i++
		switch outer := outer.(type) {
		case *ast.SelectorExpr, *ast.IndexExpr, *ast.IndexListExpr, *ast.ParenExpr:
			call = outer
			continue
		case *ast.CallExpr:
			if outer.Fun == call {
				call = outer
				continue
			}
			if len(outer.Args) == 0 || outer.Args[0] != call {
				return false
			}
			sorter := w.info.Uses[lastIdent(outer.Fun)]
			if sorter == nil || sorter.Pkg() == nil || sorter.Pkg().Path() != "slices" {
				return false
			}
			return sorter.Name() == "Sorted" || name == "Keys" && sorter.Name() == "SortedFunc"
		}
		return false
	}
}

// lastIdent returns f of pkg.f, or of f, or nil.
func lastIdent(e ast.Expr) *ast.Ident {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.IndexExpr:
		return lastIdent(e.X)
	case *ast.IndexListExpr:
		return lastIdent(e.X)
	}
	return nil
}
