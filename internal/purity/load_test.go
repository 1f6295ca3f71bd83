package purity

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// modulePath is the path of this module.
const modulePath = "atoll"

// module is the parsed source of a whole module.
type module struct {
	fsys fs.FS
	fset *token.FileSet
	dirs []*dir // sorted by path
}

// dir is a folder with Go files in it.
type dir struct {
	path  string // from the module's root
	files []*file
}

type file struct {
	path string
	*ast.File
}

// test reports whether f belongs to tests, and external whether it is in a
// package of its own there.
func (f *file) test() bool     { return strings.HasSuffix(f.path, "_test.go") }
func (f *file) external() bool { return f.test() && strings.HasSuffix(f.Name.Name, "_test") }

// readModule parses all Go files below the root of fsys, those that no build
// would select too.
func readModule(fsys fs.FS) (*module, error) {
	m := &module{fsys: fsys, fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := path.Base(p)
		hidden := p != "." && (name[0] == '.' || name[0] == '_')
		if entry.IsDir() {
			if hidden || name == "testdata" || name == "vendor" {
				return fs.SkipDir
			}
			if _, err := fs.Stat(fsys, path.Join(p, "go.mod")); err == nil && p != "." {
				return fs.SkipDir // a module of its own, with its own dependencies
			}
			return nil
		}
		if hidden || path.Ext(p) != ".go" {
			return nil
		}
		source, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(m.fset, p, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		d := m.dir(path.Dir(p))
		d.files = append(d.files, &file{p, parsed})
		return nil
	})
	return m, err
}

// dir returns the folder, which it adds if it is new.
func (m *module) dir(p string) *dir {
	for _, d := range m.dirs {
		if d.path == p {
			return d
		}
	}
	d := &dir{path: p}
	m.dirs = append(m.dirs, d)
	return d
}

// selects reports whether a build with the given tags on the given system
// takes the file.
func (m *module) selects(f *file, goos, goarch string, tags ...string) (bool, error) {
	c := build.Default
	c.GOOS, c.GOARCH, c.BuildTags, c.CgoEnabled = goos, goarch, tags, false
	c.JoinPath = path.Join
	c.OpenFile = func(p string) (io.ReadCloser, error) { return m.fsys.Open(p) }
	return c.MatchFile(path.Dir(f.path), path.Base(f.path))
}

// outside reads packages that aren't in the module, from source: what they
// declare, without what is in their functions. It runs no command.
type outside struct {
	fset    *token.FileSet
	context build.Context
	modules map[string]string // module path -> folder
	done    map[string]*types.Package
}

// newOutside finds the versions of other modules in the text of go.mod.
func newOutside(goMod string) *outside {
	o := &outside{fset: token.NewFileSet(), context: build.Default, modules: make(map[string]string), done: make(map[string]*types.Package)}
	o.context.CgoEnabled = false
	cache := os.Getenv("GOMODCACHE")
	if cache == "" {
		cache = filepath.Join(filepath.SplitList(o.context.GOPATH)[0], "pkg", "mod")
	}
	for line := range strings.Lines(goMod) {
		fields := strings.Fields(strings.TrimPrefix(line, "require"))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") {
			o.modules[fields[0]] = filepath.Join(cache, filepath.FromSlash(escape(fields[0]))+"@"+fields[1])
		}
	}
	return o
}

// escape writes a module path as the module cache does: ! and the lower-case
// letter for each upper-case one.
func escape(p string) string {
	var b strings.Builder
	for _, r := range p {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// folder finds the source of a package.
func (o *outside) folder(importPath string) (string, error) {
	for m := importPath; m != "."; m = path.Dir(m) {
		if root, ok := o.modules[m]; ok {
			return filepath.Join(root, filepath.FromSlash(strings.TrimPrefix(importPath, m))), nil
		}
	}
	std := filepath.Join(o.context.GOROOT, "src")
	for _, root := range []string{std, filepath.Join(std, "vendor")} {
		dir := filepath.Join(root, filepath.FromSlash(importPath))
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no source of package %q in the standard library or in go.mod", importPath)
}

// inner are packages, and all below them, that packages which pure code may
// import use for themselves. They are most of the source, and no type of
// theirs is part of what those offer, so they are left empty; what is missing
// in consequence has an unknown type, which is reported where it is used.
var inner = []string{"internal", "runtime", "syscall", "os", "net", "crypto"}

func isInner(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return slices.Contains(inner, first)
}

// below is the importer for what a package outside of the module imports.
type below struct{ *outside }

// Import implements types.Importer.
func (b below) Import(importPath string) (*types.Package, error) {
	if isInner(importPath) {
		p := types.NewPackage(importPath, path.Base(importPath))
		p.MarkComplete()
		return p, nil
	}
	return b.outside.Import(importPath)
}

// Import implements types.Importer, for what the module imports.
func (o *outside) Import(importPath string) (*types.Package, error) {
	if importPath == "unsafe" {
		return types.Unsafe, nil
	}
	if p, ok := o.done[importPath]; ok {
		return p, nil
	}
	dir, err := o.folder(importPath)
	if err != nil {
		return nil, err
	}
	files, err := o.parse(dir)
	if err != nil {
		return nil, err
	}
	config := types.Config{
		Importer:         below{o},
		IgnoreFuncBodies: true,
		FakeImportC:      true,
		Sizes:            types.SizesFor("gc", o.context.GOARCH),
		Error:            func(error) {}, // what matters of it shows up where it is used
	}
	p, err := config.Check(importPath, o.fset, files, nil)
	if p == nil {
		return nil, err
	}
	p.MarkComplete()
	o.done[importPath] = p
	return p, nil
}

func (o *outside) parse(dir string) ([]*ast.File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, entry := range entries {
		name := entry.Name()
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if ok, err := o.context.MatchFile(dir, name); err != nil || !ok {
			continue
		}
		source, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(o.fset, filepath.Join(dir, name), source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
