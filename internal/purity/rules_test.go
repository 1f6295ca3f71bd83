package purity

import (
	"strings"
	"testing"
	"testing/fstest"
)

// The test of the test: each rule catches what it forbids, and lets pass what
// it should.

// reports checks a module of the given files, "path: what" for each report.
func reports(t *testing.T, files map[string]string) []string {
	t.Helper()
	o, err := theOutside()
	if err != nil {
		t.Fatal(err)
	}
	fsys := make(fstest.MapFS)
	for name, source := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(source)}
	}
	m, err := readModule(fsys)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range check(m, o) {
		if v.why == "" || v.at.Line == 0 {
			t.Errorf("%v: without a reason or a place", v)
		}
		got = append(got, v.at.Filename+": "+v.what)
	}
	return got
}

func compare(t *testing.T, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("reported:\n%s\nwant:\n%s", g, w)
	}
}

// TestPureCode checks one function body, or what else stands in a file of abd,
// at a time. Lines that must be reported are named in order.
func TestPureCode(t *testing.T) {
	for _, test := range []struct {
		name, source string
		want         []string
	}{
		{"go", `func f() { go f() }`, []string{"starts a goroutine"}},
		{"select", `func f() { select {} }`, []string{"selects"}},
		{"channel type", `type c chan int`, []string{"names a channel type"}},
		{"channel parameter", `func f(c <-chan int) {}`, []string{"names a channel type"}},
		{"make a channel", `func f() { _ = make(chan int) }`, []string{"gets a channel from a call", "names a channel type"}},
		{"send and receive", "type c chan int\nfunc f(x c) {\nx <- 1\n<-x\nfor range x {\n}\n}",
			[]string{"names a channel type", "sends on a channel", "receives from a channel", "receives from a channel"}},
		{"channel by type parameter", "func f[C ~chan int](c C) {\nfor range c {\n}\n}", []string{"names a channel type", "receives from a channel"}},

		{"map", `func f(m map[int]int) { for range m {} }`, []string{"ranges over a map"}},
		{"map type", "type m map[int]int\nfunc f(x m) {\nfor k := range x { _ = k }\n}", []string{"ranges over a map"}},
		{"map alias", "type m = map[int]int\nfunc f(x m) {\nfor k := range x { _ = k }\n}", []string{"ranges over a map"}},
		{"map field", "type s struct { m map[string]int }\nfunc (x *s) f() {\nfor range x.m {}\n}", []string{"ranges over a map"}},
		{"map from a call", "func g() map[int]int { return nil }\nfunc f() {\nfor range g() {}\n}", []string{"ranges over a map"}},
		{"map by type parameter", "func f[M ~map[int]int](m M) {\nfor range m {\n}\n}", []string{"ranges over a map"}},
		{"map by interface", "type u interface { interface { ~map[int]int } }\nfunc f[M u](m M) {\nfor range m {\n}\n}", []string{"ranges over a map"}},
		{"slice by type parameter", "func f[S ~[]int](s S) {\nfor range s {\n}\n}", nil},
		{"other ranges", "func f(s []int, t string, n int, m map[int]int) {\nfor range s {}\nfor range t {}\nfor range n {}\n_ = m[1]\ndelete(m, 1)\nclear(m)\n}", nil},
		{"keys", "import \"maps\"\nfunc f(m map[int]int) {\nfor range maps.Keys(m) {}\n}", []string{"uses maps.Keys"}},
		{"values, collected", "import (\n\"maps\"\n\"slices\"\n)\nfunc f(m map[int]int) []int {\nreturn slices.Collect(maps.Values(m))\n}", []string{"uses maps.Values"}},
		{"all, renamed", "import mm \"maps\"\nfunc f(m map[int]int) {\nfor range mm.All(m) {}\n}", []string{"uses maps.All"}},
		{"keys as a value", "import \"maps\"\nfunc f() any { return maps.Keys[map[int]int] }", []string{"uses maps.Keys"}},
		{"keys, sorted", "import (\n\"maps\"\n\"slices\"\n)\nfunc f(m map[int]int) []int { return slices.Sorted(maps.Keys(m)) }", nil},
		{"keys, sorted by", "import (\n\"cmp\"\n\"maps\"\n\"slices\"\n)\nfunc f(m map[int]int) []int { return slices.SortedFunc(maps.Keys(m), cmp.Compare[int]) }", nil},
		{"values, sorted by what may tie", "import (\n\"cmp\"\n\"maps\"\n\"slices\"\n)\nfunc f(m map[int]int) []int { return slices.SortedFunc(maps.Values(m), cmp.Compare[int]) }", []string{"uses maps.Values"}},
		{"sorted by a namesake", "import \"maps\"\nfunc Sorted(any) {}\nfunc f(m map[int]int) { Sorted(maps.Keys(m)) }", []string{"uses maps.Keys"}},
		{"delete by a function", "import \"maps\"\nfunc f(m map[int]int) { maps.DeleteFunc(m, nil) }", []string{"uses maps.DeleteFunc"}},
		{"clone", "import \"maps\"\nfunc f(m map[int]int) map[int]int { return maps.Clone(m) }", nil},

		{"duration", "import \"time\"\nconst d time.Duration = 3*time.Second + time.Hour\nfunc f() string { return d.Round(time.Minute).String() }\nfunc g() { time.ParseDuration(\"1s\") }", nil},
		{"now", "import \"time\"\nfunc f() { time.Now() }", []string{"uses time.Now"}},
		{"now as a value", "import t \"time\"\nfunc f() any { return t.Now }", []string{"uses time.Now"}},
		{"now by dot", "import . \"time\"\nfunc f() { Now() }", []string{"uses time.Now"}},
		{"sleep", "import \"time\"\nfunc f() { time.Sleep(1) }", []string{"uses time.Sleep"}},
		{"after", "import \"time\"\nfunc f() { time.After(1) }", []string{"gets a channel from a call", "uses time.After"}},
		{"a time", "import \"time\"\ntype s struct { t time.Time }\nfunc (x s) f() int64 {\nreturn x.t.Unix()\n}", []string{"uses time.Time", "uses Unix of time.Time"}},

		{"print", "import \"fmt\"\nfunc f() { fmt.Println() }", []string{"uses fmt.Println"}},
		{"scan", "import \"fmt\"\nfunc f() { fmt.Scan() }", []string{"uses fmt.Scan"}},
		{"sprint", "import \"fmt\"\nfunc f() string { return fmt.Sprint() }", nil},
		{"builtin print", `func f() { println() }`, []string{"prints"}},
		{"not the builtin", "func println() {}\nfunc f() { println() }", nil},
		{"pull", "import \"iter\"\nfunc f(s iter.Seq[int]) { iter.Pull(s) }", []string{"uses iter.Pull"}},
		{"sequence", "import \"iter\"\nfunc f(s iter.Seq[int]) { for range s {} }", nil},

		{"init", `func init() {}`, []string{"has an init function"}},
		{"a method called init", "type s struct{}\nfunc (s) init() {}", nil},
		{"a broken file", `func f() { undefined() }`, []string{"doesn't type-check: undefined: undefined"}},
		{"an unknown range", "func f() {\nfor range undefined {}\n}", []string{"doesn't type-check: undefined: undefined", "ranges over something of unknown type"}},
		{"for one system", "//go:build linux\n\npackage abd", []string{"is built on some systems only"}},
		{"for costly checks", "//go:build invariants\n\npackage abd\n\nfunc f() { go f() }", []string{"starts a goroutine"}},
		{"for no build", "//go:build custom\n\npackage abd", []string{"is never built"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			source := test.source
			if !strings.Contains(source, "package abd") {
				source = "package abd\n" + source
			}
			var want []string
			for _, w := range test.want {
				want = append(want, "abd/x.go: "+w)
			}
			compare(t, reports(t, map[string]string{"abd/x.go": source, "abd/doc.go": "package abd"}), want...)
		})
	}
}

func TestPackageVariables(t *testing.T) {
	for _, test := range []struct {
		name, source string
		want         []string
	}{
		{"number", "var n int", []string{"package variable n"}},
		{"struct", "var s = struct{ n int }{1}", []string{"package variable s"}},
		{"pointer", "var p = new(int)", []string{"package variable p"}},
		{"function", "var f = func() {}", []string{"package variable f"}},
		{"map to fill", "var m = make(map[int]int)", []string{"package variable m"}},
		{"two from one call", "func two() (int, int) { return 1, 2 }\nvar a, b = two()", []string{"package variable a", "package variable b"}},

		{"errors", "import (\n\"errors\"\n\"fmt\"\n)\nvar (\nErrA = errors.New(\"a\")\nerrB = fmt.Errorf(\"b: %w\", ErrA)\n)", nil},
		{"error type", "type e struct{}\nfunc (*e) Error() string { return \"\" }\nvar ErrE = &e{}\nvar ErrF error = &e{}", nil},
		{"error without a value", "var Err error", []string{"package variable Err"}},
		{"error from elsewhere", "func g() error { return nil }\nvar Err = g()", []string{"package variable Err"}},
		{"error, assigned", "import \"errors\"\nvar Err = errors.New(\"a\")\nfunc f() {\nErr = nil\n}", []string{"assigns to package variable Err"}},
		{"error, by address", "import \"errors\"\nvar Err = errors.New(\"a\")\nfunc f() *error {\nreturn &Err\n}", []string{"takes the address of package variable Err"}},
		{"error, by ranging", "import \"errors\"\nvar Err = errors.New(\"a\")\nfunc f(es []error) {\nfor _, Err = range es {\n}\n}", []string{"assigns to package variable Err"}},
		{"error, its field", "type e struct{ n int }\nfunc (*e) Error() string { return \"\" }\nvar Err = &e{1}\nfunc f() {\nErr.n = 2\n}", []string{"assigns to package variable Err"}},

		{"assertion", "type e struct{}\nfunc (*e) Error() string { return \"\" }\nvar _ error = (*e)(nil)\nvar _ error = &e{}", nil},
		{"assertion that runs code", "func g() error { return nil }\nvar _ error = g()", []string{"package variable _"}},
		{"nameless", "var _ = 1", []string{"package variable _"}},

		{"tables", "var array = [...]string{0: \"a\", 1: \"b\"}\nvar nested = [2]struct{ x, y int }{{1, 2}, {3, 4}}\n" +
			"var list = []int{1, 2}\nvar byName = map[string]int{\"a\": 1}\n" +
			"func f(i int) (int, string, int, int, int) {\nfor _, s := range array { _ = s }\nfor _, s := range list { _ = s }\n" +
			"return len(array) + len(list) + cap(list), array[i], nested[i].x, list[i], byName[\"a\"]\n}", nil},
		{"strings of a table", "var array = [...]string{\"abc\"}\nfunc f() string { return array[0][1:2] + string(array[0][0]) }", nil},
		{"methods of a table's values", "type n int\nfunc (n) get() int { return 0 }\nvar array = [1]n{1}\nfunc f() int { return array[0].get() }", nil},
		{"exported table", "var Table = [1]int{1}", []string{"package variable Table"}},
		{"table of pointers", "var table = []*int{nil}", []string{"package variable table"}},
		{"table of slices", "var table = map[string][]int{\"a\": {1}}", []string{"package variable table"}},
		{"table of computed values", "func g() int { return 1 }\nvar table = [1]int{g()}", []string{"package variable table"}},
		{"table with computed keys", "func g() int { return 1 }\nvar table = map[int]int{g(): 1}", []string{"package variable table"}},
		{"table without a value", "var table [3]int", []string{"package variable table"}},
		{"table, element assigned", "var table = [1]int{1}\nfunc f() {\ntable[0] = 2\n}", []string{"assigns to package variable table"}},
		{"table, element counted", "var table = map[int]int{1: 1}\nfunc f() {\n(table[0])++\n}", []string{"assigns to package variable table"}},
		{"table, deep element assigned", "var table = [1]struct{ a [2]int }{}\nfunc f() {\ntable[0].a[1] += 2\n}", []string{"assigns to package variable table"}},
		{"table, address of element", "var table = [1]int{1}\nfunc f() *int {\nreturn &table[0]\n}", []string{"takes the address of package variable table"}},
		{"table, pointer method", "type n int\nfunc (*n) set() {}\nvar table = [1]n{1}\nfunc f() {\ntable[0].set()\n}", []string{"takes the address of package variable table"}},
		{"table, sliced", "var table = [1]int{1}\nfunc f() []int {\nreturn table[:]\n}", []string{"slices package variable table"}},
		{"table, passed on", "var table = []int{1}\nfunc f() []int {\nreturn table\n}", []string{"passes on package variable table"}},
		{"table, an argument", "var table = map[int]int{1: 1}\nfunc f() {\nclear(table)\ndelete(table, 1)\n}", []string{"passes on package variable table", "passes on package variable table"}},
		{"array, copied", "var table = [1]int{1}\nfunc f() [1]int { return table }", nil},
		{"local of the same name", "var table = [1]int{1}\nfunc f() {\ntable := []int{1}\ntable[0] = 2\n_ = table[:]\n}", nil},
		{"another package's", "import \"time\"\nfunc f() {\ntime.Local = nil\n}", []string{"assigns to package variable Local", "uses time.Local"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var want []string
			for _, w := range test.want {
				want = append(want, "abd/x.go: "+w)
			}
			compare(t, reports(t, map[string]string{"abd/x.go": "package abd\n" + test.source}), want...)
		})
	}
}

// TestBannedImports imports one package at a time into abd.
func TestBannedImports(t *testing.T) {
	for _, p := range []string{
		"context", "sync", "sync/atomic", "os", "os/exec", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "syscall",
		"runtime", "runtime/debug", "unsafe", "C", "reflect", "log", "log/slog", "hash/maphash", "testing", "io",
		"github.com/quic-go/quic-go", "github.com/vmihailenco/msgpack/v5", "golang.org/x/sync/errgroup",
	} {
		compare(t, reports(t, map[string]string{"abd/x.go": "package abd\nimport _ \"" + p + "\""}), "abd/x.go: imports "+p)
	}
	for _, p := range pureImports {
		compare(t, reports(t, map[string]string{"abd/x.go": "package abd\nimport _ \"" + p + "\""}))
	}
	// What is noise beside a banned import isn't reported.
	compare(t, reports(t, map[string]string{
		"abd/x.go": "package abd\nimport \"os\"\nfunc f() {\nfor range os.Args {}\nos.Exit(1)\n}",
	}), "abd/x.go: imports os")
}

func TestOrderOfImports(t *testing.T) {
	files := map[string]string{
		"tags/x.go":                  "package tags",
		"quorum/x.go":                "package quorum\nimport _ \"atoll/tags\"",
		"abd/x.go":                   "package abd\nimport _ \"atoll/quorum\"",
		"internal/store/store.go":    "package store\nimport _ \"atoll/abd\"",
		"internal/live/live.go":      "package live\nimport _ \"atoll/tags\"",
		"client/client.go":           "package client\nimport (\n_ \"atoll/internal/live\"\n_ \"os\"\n_ \"sync\"\n)",
		"cmd/client/main.go":         "package main\nimport _ \"atoll/client\"",
		"abd/outer_test.go":          "package abd_test\nimport (\n_ \"atoll/client\"\n_ \"os\"\n)",
		"abd/inner_test.go":          "package abd\nimport (\n_ \"atoll/quorum\"\n_ \"os\"\n_ \"testing\"\n)\nvar n int\nfunc f() { go f() }",
		"abd/testdata/bad.go":        "package bad\nimport _ \"os\"",
		".hidden/x.go":               "package hidden",
		"_ignored/x.go":              "package ignored",
		"internal/store/_backup.go":  "package nothing",
		"internal/store/testdata/go": "no Go source",
	}
	compare(t, reports(t, files))

	for name, test := range map[string]struct {
		source string
		want   []string
	}{
		"tags/up.go":               {"package tags\nimport _ \"atoll/quorum\"", []string{"tags imports quorum"}},
		"tags/self.go":             {"package tags\nimport _ \"atoll/tags\"", []string{"tags imports tags"}},
		"abd/world.go":             {"package abd\nimport _ \"atoll/internal/store\"", []string{"abd imports internal/store"}},
		"abd/nowhere.go":           {"package abd\nimport _ \"atoll/nowhere\"", []string{"abd imports nowhere"}},
		"internal/live/s.go":       {"package live\nimport _ \"atoll/internal/store\"", []string{"internal/live imports internal/store"}},
		"internal/store/c.go":      {"package store\nimport _ \"atoll/client\"", []string{"internal/store imports client"}},
		"internal/live/in_test.go": {"package live\nimport _ \"atoll/client\"", []string{"internal/live imports client"}},
	} {
		files[name] = test.source
		var got []string
		for _, r := range reports(t, files) {
			if !strings.Contains(r, "type-check") && !strings.Contains(r, "pure package") {
				got = append(got, r)
			}
		}
		var want []string
		for _, w := range test.want {
			want = append(want, name+": "+w)
		}
		compare(t, got, want...)
		delete(files, name)
	}
}

// TestTypesOfOtherPackages: what another pure package declares is known.
func TestTypesOfOtherPackages(t *testing.T) {
	compare(t, reports(t, map[string]string{
		"tags/x.go": "package tags\nimport \"errors\"\ntype Set map[int]bool\ntype Has struct { Set Set }\nvar Err = errors.New(\"x\")",
		"abd/x.go":  "package abd\nimport \"atoll/tags\"\nfunc f(h tags.Has) {\nfor range h.Set {\n}\ntags.Err = nil\n_ = tags.Err\n}",
	}), "abd/x.go: ranges over a map", "abd/x.go: assigns to package variable Err")
}

func TestExceptions(t *testing.T) {
	pull := "import \"iter\"\nfunc f(s iter.Seq[int]) {\niter.Pull(s)\n}"
	compare(t, reports(t, map[string]string{"sim/x.go": "package sim\n" + pull}))
	compare(t, reports(t, map[string]string{"rambo/x.go": "package rambo\n" + pull}), "rambo/x.go: uses iter.Pull")

	compare(t, reports(t, map[string]string{
		"sim/x.go": "package sim\nimport (\n\"reflect\"\n\"runtime/debug\"\n)\nfunc f(v reflect.Value) []byte {\n" +
			"v.MapKeys()\nreflect.Select(nil)\ndebug.FreeOSMemory()\n_ = reflect.TypeOf(v)\nreturn debug.Stack()\n}",
	}), "sim/x.go: uses MapKeys of package reflect", "sim/x.go: uses Select of package reflect", "sim/x.go: uses debug.FreeOSMemory")

	for _, p := range []string{"os", "net", "math/rand/v2", "sync", "context", "testing/synctest"} {
		compare(t, reports(t, map[string]string{"sim/x.go": "package sim\nimport _ \"" + p + "\""}), "sim/x.go: imports "+p)
	}
	compare(t, reports(t, map[string]string{
		"internal/wire/x.go": "package wire\nimport (\n_ \"github.com/vmihailenco/msgpack/v5\"\n_ \"io\"\n)\nfunc f() { go f() }",
	}), "internal/wire/x.go: starts a goroutine")
}

func TestNewFolder(t *testing.T) {
	for _, name := range []string{"newproto/x.go", "internal/util/x.go", "abd/sub/x.go", "x.go", "newproto/only_test.go"} {
		got := reports(t, map[string]string{name: "package x"})
		if len(got) != 1 || !strings.HasSuffix(got[0], "is not in the table") {
			t.Errorf("%s: reported %q", name, got)
		}
	}
	if !strings.Contains(whyTable, "add it to the table in internal/purity/table_test.go") {
		t.Errorf("the reason doesn't say what to do: %s", whyTable)
	}
}

func TestEverywhere(t *testing.T) {
	sleep := "import \"time\"\nfunc f() {\ntime.Sleep(1)\n}"
	compare(t, reports(t, map[string]string{
		"client/init.go":        "package client\nfunc init() {}",
		"client/init_test.go":   "package client_test\nfunc init() {}",
		"client/a_test.go":      "package client_test\n" + sleep,
		"client/b_test.go":      "package client\nimport t \"time\"\nfunc g() any {\nreturn t.Sleep\n}",
		"client/c_test.go":      "package client\nimport . \"time\"\nfunc h() {\nSleep(1)\n}",
		"client/d_test.go":      "package client\ntype time struct{}\nfunc (time) Sleep() {}\nfunc i(time time) { time.Sleep() }",
		"client/e_test.go":      "package client\nimport (\n_ \"testing/synctest\"\n\"time\"\n)\nfunc j() { time.Sleep(1) }",
		"client/client.go":      "package client\n" + sleep, // not a test
		"env/envtest/x.go":      "package envtest\n" + sleep,
		"cmd/replica/main.go":   "package main\nfunc init() {}",
		"internal/live/x.go":    "package live\nvar n int\nfunc f(m map[int]int) { go f(m); for range m {} }",
		"internal/live/init.go": "package live\nfunc initialize() { init := 1; _ = init }",
	}),
		"client/a_test.go: sleeps in a test",
		"client/b_test.go: sleeps in a test",
		"client/c_test.go: sleeps in a test",
		"client/init.go: has an init function",
		"client/init_test.go: has an init function",
		"cmd/replica/main.go: has an init function",
		"env/envtest/x.go: sleeps in a test",
		"env/envtest/x.go: uses time.Sleep",
	)
}
