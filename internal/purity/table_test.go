package purity

// folder is one line of the table: a package, what it may import, what it may
// do.
type folder struct {
	path string
	// pure: held to the rules for protocol code.
	pure bool
	// also are imports that this pure folder may have beyond pureImports.
	also []string
	// coroutines: iter.Pull is allowed.
	coroutines bool
	// tests: the package is part of tests, though not in _test.go files, and
	// may not sleep either.
	tests bool
}

// folders are the module's packages in order: each may import those above it.
var folders = []folder{
	{path: "tags", pure: true},
	{path: "internal/cells", pure: true},
	{path: "quorum", pure: true},
	{path: "env", pure: true},
	{path: "env/envtest", pure: true, tests: true},
	{path: "abd", pure: true},
	{path: "synod", pure: true},
	{path: "repair", pure: true},
	{path: "reconfig", pure: true},
	{path: "rambo", pure: true},
	{path: "join", pure: true},
	{path: "stream", pure: true},
	{path: "statesync", pure: true},
	{path: "group", pure: true},
	{path: "replica", pure: true},
	{path: "internal/store/storetest", tests: true},
	{path: "internal/wire", pure: true, also: []string{
		"io", // what msgpack reads from
		"github.com/vmihailenco/msgpack/v5",
		"github.com/vmihailenco/msgpack/v5/msgpcode",
	}},
	{path: "sim/stat", pure: true},
	{path: "sim", pure: true, coroutines: true, also: []string{
		"bufio", "encoding/json", "io", "text/tabwriter", // scenarios and reports
		"reflect",       // the types of messages, and what there is in a world
		"runtime/debug", // the stack of a caller that panicked
		"github.com/anishathalye/porcupine",
	}},
	{path: "sim/history", pure: true, also: []string{
		"bufio", "io", "text/tabwriter", // files of histories, and reports
	}},
	{path: "sim/succession", pure: true},
	{path: "sim/schedule", pure: true, tests: true, also: []string{
		"reflect", // the fields of rules, by name
		"testing", "github.com/cockroachdb/datadriven",
	}},
	{path: "sim/scenario", pure: true, also: []string{"encoding/json", "io"}}, // scenario and plan files
	{path: "sim/explore", pure: true, also: []string{"sync", "sync/atomic"}},  // many small worlds beside each other, each on one thread
	{path: "internal/logtest", tests: true},
	{path: "internal/porttest", tests: true},
	{path: "internal/smalldisk", tests: true},
	{path: "internal/pulse"},
	{path: "internal/udpproxy", tests: true},
	{path: "internal/identity"},
	{path: "internal/transport"},
	{path: "internal/live"},
	{path: "internal/store"},
	{path: "internal/server"},
	{path: "internal/simreal", tests: true},
	{path: "client"},
	{path: "internal/cli"},
	{path: "cmd/replica"},
	{path: "cmd/client"},
	{path: "cmd/sim"},
	{path: "internal/purity"},
}

// pureImports are the packages of the standard library that pure code may
// import: they keep no state, and the same call has the same result.
var pureImports = []string{
	"bytes", "cmp", "container/heap", "container/list", "container/ring",
	"encoding", "encoding/base32", "encoding/base64", "encoding/binary", "encoding/hex",
	"errors", "fmt", "hash", "hash/crc32", "hash/crc64", "hash/fnv", "iter", "maps", "math", "math/bits",
	"slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf16", "unicode/utf8",
}

// The reasons. One is printed with each violation.
const (
	whyTable = "every package has a place in the order of imports: add it to the table in internal/purity/table_test.go, " +
		"and to docs/ARCHITECTURE.md"
	whyOrder    = "imports go one way: a package imports what stands above it in the table, never what stands below"
	whyThread   = "the simulator runs everything on one thread; what runs beside it makes runs differ: a task is started with env.Env.Go"
	whyChannel  = "who receives first is the Go scheduler's choice, which no seed repeats: tasks meet at a mailbox or at Join"
	whyMap      = "the order of a map differs from run to run, so a seed wouldn't replay: keep a sorted slice, or range over slices.Sorted(maps.Keys(m))"
	whyClock    = "time is the simulator's to say: ask env.Env for Now and Sleep; of package time only Duration, its units and its text are pure"
	whyPrint    = "protocol code has no output: tell an observer with env.Env.Trace"
	whyPull     = "a coroutine is the simulator's way to run a caller; protocol code is straight"
	whyStack    = "a stack is for whoever reads a panic; all else that package debug does is the whole process's"
	whyVariable = "several nodes live in one simulation and would share it, and one run would see what another left: " +
		"only errors and unexported tables of constants may be package variables"
	whyConstant = "a package variable is shared by all nodes of a simulation, so it must never change"
	whyTypes    = "what can't be type-checked can't be shown to be pure"
	whyBuild    = "protocol code is the same everywhere, or a seed from one machine wouldn't replay on another; the one tag is " + invariantsTag
	whyInit     = "what runs before main can't be configured, ordered or tested: call a function"
	whySleep    = "a test that sleeps is slow when it passes and flaky when it doesn't: wait for the event itself, or use testing/synctest"
	whyImport   = "it isn't known to be pure: if it keeps no state and does no I/O, add it to the table in internal/purity/table_test.go"
)

// invariantsTag is the build tag of costly checks. Files with it are checked
// too.
const invariantsTag = "invariants"

// whyNot gives the reason why an import is banned, by the first part of its
// path that is listed; whyImport for others.
var whyNot = map[string]string{
	"context":      "an env.Env is the scope of an operation: it says when it ends",
	"sync":         "there is one thread and nothing to wait for; a lock would hide that something is shared",
	"runtime":      "what the process and its collector do differs from run to run",
	"os":           "files, environment and process belong to internal/store, internal/server and cmd",
	"net":          "the network is env.Env's: a simulation has none",
	"syscall":      "the operating system is out of reach in a simulation",
	"unsafe":       "addresses differ from run to run",
	"C":            "C code can do anything",
	"reflect":      "the order and the cost of what it finds are hidden; encode by plain functions",
	"log":          whyPrint,
	"math/rand":    "randomness comes from the seed: env.Env.Rand",
	"crypto/rand":  "randomness comes from the seed: env.Env.Rand and ID",
	"hash/maphash": "its seed differs from process to process",
	"testing":      "tests are in files of their own",
}
