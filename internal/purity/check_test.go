package purity

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strconv"
	"strings"
)

// checker looks at a module and collects what breaks the rules.
type checker struct {
	*module
	outside *outside
	checked map[string]*types.Package // pure packages of the module, by folder
	found   []violation
}

type violation struct {
	at        token.Position
	what, why string
}

func (v violation) String() string {
	return fmt.Sprintf("%s:%d: %s\n\t%s", v.at.Filename, v.at.Line, v.what, v.why)
}

// check returns what in m breaks a rule, sorted by place, each once.
func check(m *module, o *outside) []violation {
	c := &checker{module: m, outside: o, checked: make(map[string]*types.Package)}
	for _, d := range m.dirs {
		place := slices.IndexFunc(folders, func(f folder) bool { return f.path == d.path })
		for _, f := range d.files {
			c.inits(f)
			if f.test() || place >= 0 && folders[place].tests {
				c.sleeps(f)
			}
		}
		if place < 0 {
			c.report(d.files[0].Package, fmt.Sprintf("folder %q is not in the table", d.path), whyTable)
			continue
		}
		for _, f := range d.files {
			c.imports(f, place)
		}
		if folders[place].pure {
			c.builds(d)
			if _, err := c.Import(path.Join(modulePath, d.path)); err != nil {
				c.report(d.files[0].Package, err.Error(), whyTypes)
			}
		}
	}
	slices.SortFunc(c.found, func(a, b violation) int { return strings.Compare(sortable(a), sortable(b)) })
	return slices.Compact(c.found)
}

func sortable(v violation) string {
	return fmt.Sprintf("%s %08d %s %s", v.at.Filename, v.at.Line, v.what, v.why)
}

func (c *checker) report(at token.Pos, what, why string) {
	p := c.fset.Position(at)
	p.Column, p.Offset = 0, 0 // one report a line is enough
	c.found = append(c.found, violation{p, what, why})
}

// inits looks for init functions.
func (c *checker) inits(f *file) {
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			c.report(fn.Pos(), "has an init function", whyInit)
		}
	}
}

// sleeps looks for time.Sleep by the name that the file gives to package time.
func (c *checker) sleeps(f *file) {
	name := ""
	for _, spec := range f.Imports {
		switch importPath(spec) {
		case "testing/synctest":
			return
		case "time":
			if name = "time"; spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	ast.Inspect(f.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && name != "" && x.Name == name && n.Sel.Name == "Sleep" {
				c.report(n.Pos(), "sleeps in a test", whySleep)
			}
		case *ast.CallExpr:
			if fun, ok := n.Fun.(*ast.Ident); ok && name == "." && fun.Name == "Sleep" {
				c.report(n.Pos(), "sleeps in a test", whySleep)
			}
		}
		return true
	})
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic(err) // the parser has seen to it
	}
	return p
}

// imports compares what f imports with the table.
func (c *checker) imports(f *file, place int) {
	if f.external() {
		return
	}
	for _, spec := range f.Imports {
		p := importPath(spec)
		if inside, ok := strings.CutPrefix(p, modulePath+"/"); ok {
			above := slices.ContainsFunc(folders[:place], func(f folder) bool { return f.path == inside })
			if !above {
				c.report(spec.Pos(), fmt.Sprintf("%s imports %s", folders[place].path, inside), whyOrder)
			}
			continue
		}
		if folders[place].pure && !f.test() && !allowed(folders[place], p) {
			c.report(spec.Pos(), fmt.Sprintf("imports %s", p), reasonAgainst(p))
		}
	}
}

func allowed(f folder, importPath string) bool {
	return slices.Contains(pureImports, importPath) || slices.Contains(f.also, importPath)
}

func reasonAgainst(importPath string) string {
	for p := importPath; p != "."; p = path.Dir(p) {
		if why, ok := whyNot[p]; ok {
			return why
		}
	}
	return whyImport
}

// builds reports files of a pure folder that not every machine would build.
func (c *checker) builds(d *dir) {
	for _, f := range d.files {
		if f.test() {
			continue
		}
		built := false
		for _, tags := range [][]string{nil, {invariantsTag}} {
			here, err := c.selects(f, "linux", "amd64", tags...)
			there, terr := c.selects(f, "windows", "arm64", tags...)
			if err != nil || terr != nil || here != there {
				c.report(f.Package, "is built on some systems only", whyBuild)
				here = true
			}
			built = built || here
		}
		if !built {
			c.report(f.Package, "is never built", whyBuild)
		}
	}
}

// Import implements types.Importer. A package of this module is checked on the
// way; one that isn't pure isn't loaded, for a pure one must not import it.
func (c *checker) Import(p string) (*types.Package, error) {
	inside, ok := strings.CutPrefix(p, modulePath+"/")
	if !ok {
		return c.outside.Import(p)
	}
	if done, ok := c.checked[inside]; ok {
		if done == nil {
			return nil, fmt.Errorf("package %s imports itself", inside)
		}
		return done, nil
	}
	place := slices.IndexFunc(folders, func(f folder) bool { return f.path == inside })
	i := slices.IndexFunc(c.dirs, func(d *dir) bool { return d.path == inside })
	if place < 0 || i < 0 || !folders[place].pure {
		return nil, fmt.Errorf("no pure package %s", inside)
	}
	c.checked[inside] = nil // under way
	plain, err := c.pure(folders[place], c.dirs[i])
	if err != nil {
		return nil, err
	}
	c.checked[inside] = plain
	return plain, nil
}

// pure checks a pure package as it is built plainly, and again with the tag of
// costly checks if that selects other files. It returns the plain one.
func (c *checker) pure(f folder, d *dir) (*types.Package, error) {
	var plain *types.Package
	var before []*ast.File
	for _, tags := range [][]string{nil, {invariantsTag}} {
		var files []*ast.File
		importsOK := true
		for _, file := range d.files {
			ok, err := c.selects(file, "linux", "amd64", tags...)
			if err != nil {
				return nil, err
			}
			if !ok || file.test() {
				continue
			}
			files = append(files, file.File)
			for _, spec := range file.Imports {
				p := importPath(spec)
				importsOK = importsOK && (allowed(f, p) || strings.HasPrefix(p, modulePath+"/"))
			}
		}
		if plain != nil && slices.Equal(files, before) {
			break
		}
		p := c.checkFiles(f, files, importsOK)
		if plain == nil {
			plain, before = p, files
		}
	}
	return plain, nil
}

// checkFiles type-checks one selection of files, and looks at what is in them.
func (c *checker) checkFiles(f folder, files []*ast.File, importsOK bool) *types.Package {
	info := &types.Info{
		Types:      make(map[ast.Expr]types.TypeAndValue),
		Defs:       make(map[*ast.Ident]types.Object),
		Uses:       make(map[*ast.Ident]types.Object),
		Selections: make(map[*ast.SelectorExpr]*types.Selection),
	}
	config := types.Config{
		Importer: importer{c, f},
		Sizes:    types.SizesFor("gc", "amd64"),
		Error: func(err error) {
			// What comes from an import that is banned is noise beside that.
			if e, ok := err.(types.Error); ok && importsOK {
				c.report(e.Pos, "doesn't type-check: "+e.Msg, whyTypes)
			}
		},
	}
	p, _ := config.Check(path.Join(modulePath, f.path), c.fset, files, info)
	w := &walker{checker: c, folder: f, info: info, pkg: p, importsOK: importsOK}
	for _, file := range files {
		w.variables(file)
	}
	for _, file := range files {
		w.file(file)
	}
	return p
}

// importer loads for a pure package what that may import, and nothing else:
// package net would take as long as all the rest.
type importer struct {
	*checker
	folder folder
}

// Import implements types.Importer.
func (i importer) Import(p string) (*types.Package, error) {
	if !strings.HasPrefix(p, modulePath+"/") && !allowed(i.folder, p) {
		return nil, fmt.Errorf("%s is not pure", p)
	}
	return i.checker.Import(p)
}
