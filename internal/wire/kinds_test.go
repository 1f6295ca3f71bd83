package wire_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/wire"
	"atoll/quorum"
	"atoll/repair"
	"atoll/replica"
	"atoll/sim"
	"atoll/tags"
)

// A message that is declared somewhere and forgotten here would be noticed
// first by a cluster.
func TestEveryMessageHasAKindAndAGolden(t *testing.T) {
	declared := declaredMessages(t)
	for _, want := range []string{"env.Refused", "abd.Put", "replica.Status", "wire.Hello"} {
		if !declared[want] {
			t.Fatalf("the search found %v and not %s: it is broken", declared, want)
		}
	}
	sampled := make(map[string]bool)
	for _, s := range samples() {
		sampled[strings.TrimPrefix(reflect.TypeOf(s.message).String(), "*")] = true
	}
	for name := range declared {
		if !sampled[name] {
			t.Errorf("%s is a message: give it a kind, two functions, and samples in golden_test.go", name)
		}
	}
}

// declaredMessages returns every exported type with a method Message on its
// pointer in the module's root folders and in this one, as "abd.Put".
func declaredMessages(t *testing.T) map[string]bool {
	files, err := filepath.Glob("../../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for _, name := range append(files, own...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if receiver := messageReceiver(decl); ast.IsExported(receiver) {
				found[file.Name.Name+"."+receiver] = true
			}
		}
	}
	return found
}

// messageReceiver returns T for a declaration of func (*T) Message(), and ""
// for any other.
func messageReceiver(decl ast.Decl) string {
	f, ok := decl.(*ast.FuncDecl)
	if !ok || f.Recv == nil || f.Name.Name != "Message" || f.Type.Params.NumFields()+f.Type.Results.NumFields() > 0 {
		return ""
	}
	pointer, ok := f.Recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return ""
	}
	return pointer.X.(*ast.Ident).Name
}

// The numbers are fixed for good; the ranges keep the protocols apart.
func TestKindsAreInTheirRanges(t *testing.T) {
	ranges := map[string][2]wire.Kind{"wire": {1, 1}, "env": {2, 15}, "abd": {16, 31}, "replica": {32, 47}, "repair": {48, 63}, "synod": {64, 79}, "reconfig": {80, 95}, "rambo": {96, 111}, "join": {112, 127}}
	byKind := make(map[wire.Kind]string)
	for name, frame := range readGoldens(t) {
		kind := wire.Kind(frame[wire.HeaderSize+1]) // all are below 128: one byte behind the array's
		_, m, err := wire.DecodeFrame(body(t, frame))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		typ := strings.TrimPrefix(reflect.TypeOf(m).String(), "*")
		protocol, _, _ := strings.Cut(typ, ".")
		if r := ranges[protocol]; kind < r[0] || kind > r[1] {
			t.Errorf("%s has kind %d, not in the range %v of %s", typ, kind, r, protocol)
		}
		if other, ok := byKind[kind]; ok && other != typ {
			t.Errorf("%s and %s share kind %d", typ, other, kind)
		}
		byKind[kind] = typ
	}
}

// Over one session with another node come its requests and its answers to ours.
// What is neither in replica.IsAnswer nor taken by a node's step would get lost,
// and what is both, to the wrong side.
func TestEveryMessageIsARequestOrAnAnswer(t *testing.T) {
	other, err := quorum.NewConfiguration(0, []quorum.NodeID{"n1"}, quorum.System{})
	if err != nil {
		t.Fatal(err)
	}
	// A node that is no member refuses what it isn't asked for, but not as a
	// message that no node takes.
	n, err := replica.New(replica.Config{Self: "n2", Configurations: quorum.Configurations{other}, MaxValue: 1}, sim.NewDisk())
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[bool]int)
	for _, s := range samples() {
		if _, ok := s.message.(*wire.Hello); ok {
			continue // the connection's own: the transport takes it
		}
		out, err := n.Step(env.Address{Node: "n1", Session: 1, Conversation: 1}, s.message, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, refusal := s.message.(*env.Refused) // is taken, and for nothing
		stepped := !refusal
		for _, o := range out {
			if r, ok := o.Message.(*env.Refused); ok && strings.HasPrefix(r.Text, "a node takes no ") {
				stepped = false
			}
		}
		if answer := replica.IsAnswer(s.message); answer == stepped {
			t.Errorf("%T is an answer: %v, is a request that nodes take: %v; want one of the two", s.message, answer, stepped)
		} else {
			seen[answer]++
		}
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("saw %d answers and %d requests: the test is broken", seen[true], seen[false])
	}
}

// The three tables (name, encoder, decoder) know the same kinds.
func TestUnknownKind(t *testing.T) {
	known := make(map[wire.Kind]bool)
	for _, frame := range readGoldens(t) {
		known[wire.Kind(frame[wire.HeaderSize+1])] = true
	}
	for k := range wire.Kind(512) {
		conversation, m, err := wire.DecodeFrame(pack(t, k, 77, []any{"from the future", []any{1, nil}, map[string]any{"a": 1.5}}))
		var unknown *wire.UnknownKindError
		isUnknown := errors.As(err, &unknown)
		if isUnknown == known[k] {
			t.Errorf("kind %d: decoding says %v, goldens have it: %v", k, err, known[k])
		}
		if isUnknown && (unknown.Kind != k || conversation != 77 || m != nil) {
			t.Errorf("kind %d: got conversation %d, message %v, error %v", k, conversation, m, err)
		}
		if named := !strings.HasPrefix(k.String(), "kind "); named != known[k] {
			t.Errorf("kind %d: named %q, goldens have it: %v", k, k, known[k])
		}
	}
}

// A frame of an unknown kind that is damaged is damaged.
func TestUnknownKindInABadFrame(t *testing.T) {
	whole := pack(t, 400, 77, []any{"from the future", 3})
	for n := range whole {
		wantFormatError(t, whole[:n])
	}
	wantFormatError(t, append(whole, 0))
	wantFormatError(t, element(t, []any{1 << 16, 77, []any{}}))
}

func TestTypeWithoutEncoding(t *testing.T) {
	var e wire.Encoder
	b, err := e.AppendFrame([]byte("kept"), 1, &foreign{})
	if err == nil || string(b) != "kept" {
		t.Errorf("got %q, %v, want the slice as it was and an error", b, err)
	}
}

type foreign struct{}

func (*foreign) Message() {}

// TestLargestOffer: what a member that merges tells of a page, its own tags and
// those that it was given, goes into one frame.
func TestLargestOffer(t *testing.T) {
	m := &repair.Offer{Terms: repair.Terms{Knows: 1}, Limit: repair.LargestPage}
	for i := range repair.MaxItems {
		m.Items = append(m.Items, abd.Item{Key: abd.Key(fmt.Sprintf("k%06d", i)), Tag: tags.Tag{Seq: 1, PID: tags.NewPID(1, 1, 1)}})
	}
	m.Sketch.Digests = make([]uint64, repair.MaxDigests)
	var e wire.Encoder
	frame, err := e.AppendFrame(nil, 1, m)
	if err != nil {
		t.Fatal(err)
	}
	if _, got, err := wire.DecodeFrame(body(t, frame)); err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("it comes out as another: %v", err)
	}
}
