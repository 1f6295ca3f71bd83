package purity

import (
	"os"
	"sync"
	"testing"
)

// root is the module's root, from here.
const root = "../.."

// theOutside is loaded once for all tests: it takes longer than all checks.
var theOutside = sync.OnceValues(func() (*outside, error) {
	goMod, err := os.ReadFile(root + "/go.mod")
	if err != nil {
		return nil, err
	}
	return newOutside(string(goMod)), nil
})

// TestModule keeps the rules of the package doc.
func TestModule(t *testing.T) {
	o, err := theOutside()
	if err != nil {
		t.Fatal(err)
	}
	m, err := readModule(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if m.dirs == nil || m.dir("tags").files == nil {
		t.Fatalf("no module at %s", root)
	}
	for _, v := range check(m, o) {
		t.Error(v)
	}
}

// TestTable keeps the table itself in order.
func TestTable(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range folders {
		if seen[f.path] {
			t.Errorf("%s is in the table twice", f.path)
		}
		seen[f.path] = true
		if !f.pure && (f.also != nil || f.coroutines) {
			t.Errorf("%s isn't pure, and has exceptions from being so", f.path)
		}
	}
	for _, p := range pureImports {
		if why := reasonAgainst(p); why != whyImport {
			t.Errorf("%s is listed as pure, and it is banned: %s", p, why)
		}
	}
}
