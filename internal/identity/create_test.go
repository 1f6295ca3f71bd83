package identity_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"atoll/abd"
	"atoll/internal/identity"
	"atoll/quorum"
)

func TestCreateCluster(t *testing.T) {
	t.Parallel()
	prepared := map[string]bool{}
	dir := cluster(t, identity.Spec{
		Quorum:   "weights=c:3,a:1,b:1",
		MaxValue: 4096,
		Prepare: func(member string) error {
			folder, err := identity.OpenFolder(member)
			if err != nil {
				return err
			}
			prepared[folder.Name] = true
			return os.WriteFile(filepath.Join(member, "store"), []byte(folder.Name), 0o600)
		},
	})
	if got := slices.Sorted(maps.Keys(prepared)); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("Prepare was called for %q", got)
	}
	ids := map[quorum.NodeID]bool{}
	for _, name := range []string{"a", "b", "c"} {
		f := must[*identity.Folder](t)(identity.OpenFolder(filepath.Join(dir, name)))
		if f.Name != name || string(read(t, f.Dir, "store")) != name || len(f.Warnings) > 0 {
			t.Errorf("folder %s: %+v", name, f)
		}
		ids[f.ID] = true
		if f.Cluster.MaxValue != 4096 || f.Configuration.Index() != 0 || len(f.Configuration.Members()) != 3 {
			t.Errorf("folder %s: cluster %+v", name, f.Cluster)
		}
		weights := map[string]uint32{}
		for _, w := range f.Configuration.System().Weights {
			m, ok := f.Cluster.Member(w.Node)
			if !ok {
				t.Errorf("%s has a weight and is no member", w.Node)
			}
			weights[m.Name] = w.Value
		}
		if want := map[string]uint32{"a": 1, "b": 1, "c": 3}; !maps.Equal(weights, want) {
			t.Errorf("weights are %v, want %v", weights, want)
		}
		if self := f.Credentials.Self(); self.Node != f.ID || self.Role != identity.RoleNode || self.Cluster != f.Cluster.Cluster {
			t.Errorf("folder %s: certificate of %+v", name, self)
		}
	}
	if len(ids) != 3 {
		t.Errorf("three members have the ids %v", ids)
	}
	c := must[identity.Context](t)(identity.LoadContext(filepath.Join(dir, "client.json")))
	if want := []string{"localhost:7400", "localhost:7401", "[::1]:7402"}; !slices.Equal(c.Endpoints, want) {
		t.Errorf("endpoints are %q, want %q", c.Endpoints, want)
	}
	if self := must[*identity.Credentials](t)(c.Credentials()).Self(); self.Role != identity.RoleClient {
		t.Errorf("the context is of %v", self)
	}
	c = must[identity.Context](t)(identity.LoadContext(filepath.Join(dir, identity.FileAdmin)))
	if self := must[*identity.Credentials](t)(c.Credentials()).Self(); self.Role != identity.RoleAdmin {
		t.Errorf("the admin's context is of %v", self)
	}
	for path, want := range map[string]os.FileMode{
		".": 0o700, "ca": 0o700, "a": 0o700, "ca/ca.key": 0o600, "a/node.key": 0o600, "client.json": 0o600, "admin.json": 0o600,
	} {
		info := must[os.FileInfo](t)(os.Stat(filepath.Join(dir, path)))
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestClusterOfOne(t *testing.T) {
	t.Parallel()
	dir := cluster(t, identity.Spec{Members: []identity.MemberSpec{{Name: "only", Address: "localhost:1"}}})
	f := must[*identity.Folder](t)(identity.OpenFolder(filepath.Join(dir, "only")))
	if f.Cluster.Quorum != "majority" || f.Cluster.MaxValue != abd.DefaultMaxValue || len(f.Cluster.Members) != 1 {
		t.Errorf("cluster is %+v", f.Cluster)
	}
}

// The file of the largest cluster is a file that we read.
func TestLargestClusterFile(t *testing.T) {
	t.Parallel()
	f := identity.ClusterFile{Format: 1, Cluster: identity.NewClusterID(), Quorum: "weights=", MaxValue: abd.LargestMaxValue}
	for i := range quorum.MaxMembers {
		m := identity.Member{
			ID:        quorum.NodeID(fmt.Sprintf("n%03d%s", i, strings.Repeat("x", quorum.MaxNodeID-4))),
			Name:      fmt.Sprintf("m%03d%s", i, strings.Repeat("x", identity.MaxName-4)),
			Addresses: slices.Repeat([]string{strings.Repeat(strings.Repeat("h", 62)+".", 4) + ":65535"}, identity.MaxAddresses),
		}
		f.Members = append(f.Members, m)
		f.Quorum += fmt.Sprintf("%s:%d,", m.ID, math.MaxUint32)
	}
	f.Quorum = strings.TrimSuffix(f.Quorum, ",")
	data := must[[]byte](t)(json.MarshalIndent(f, "", "  "))
	if len(data) > identity.MaxFileSize {
		t.Errorf("it has %d bytes, more than %d", len(data), identity.MaxFileSize)
	}
	if got := must[identity.ClusterFile](t)(identity.ParseClusterFile(data)); !reflect.DeepEqual(got, f) {
		t.Error("it isn't read as it was written")
	}
}

func TestSpecErrors(t *testing.T) {
	t.Parallel()
	two := []identity.MemberSpec{{Name: "a", Address: "h:1"}, {Name: "b", Address: "h:2"}}
	for _, c := range []struct {
		spec identity.Spec
		want string
	}{
		{identity.Spec{}, "1 to 256 members"},
		{identity.Spec{Members: make([]identity.MemberSpec, 257)}, "1 to 256 members"},
		{identity.Spec{Members: []identity.MemberSpec{{Name: "ca", Address: "h:1"}}}, `can't have the name "ca"`},
		{identity.Spec{Members: []identity.MemberSpec{{Name: "", Address: "h:1"}}}, "1 to 32 characters"},
		{identity.Spec{Members: []identity.MemberSpec{{Name: "../x", Address: "h:1"}}}, "is not a name"},
		{identity.Spec{Members: []identity.MemberSpec{{Name: "a", Address: "h:1"}, {Name: "a", Address: "h:2"}}}, `two members have the name "a"`},
		{identity.Spec{Members: []identity.MemberSpec{{Name: "a", Address: "h:1"}, {Name: "b", Address: "H:1"}}}, `"a" and "b" have the same address`},
		{identity.Spec{Members: []identity.MemberSpec{{Name: "a", Address: "::1:7400"}}}, "write [::1]:7400"},
		{identity.Spec{Members: []identity.MemberSpec{{Name: "a", Address: ":7400"}}}, "names no host"},
		{identity.Spec{Members: two, Quorum: "most"}, "unknown kind"},
		{identity.Spec{Members: two, Quorum: "get=1,put=1"}, "get+put must exceed 2"},
		{identity.Spec{Members: two, Quorum: "grid=3x3"}, "grid=3x3 doesn't fit 2 members"},
		{identity.Spec{Members: two, Quorum: "weights=a:1,x:1"}, `"x" is not a member`},
		{identity.Spec{Members: two, Quorum: "weights=a:1"}, "1 weights for 2 members"},
		{identity.Spec{Members: two, MaxValue: -1}, "from 1 to"},
		{identity.Spec{Members: two, MaxValue: abd.LargestMaxValue + 1}, "from 1 to"},
		{identity.Spec{Members: two, Validity: -1}, "a certificate lives"},
		{identity.Spec{Members: two, Validity: identity.CAValidity + 1}, "a certificate lives"},
	} {
		parent := t.TempDir()
		_, err := identity.CreateCluster(filepath.Join(parent, "p", "x"), c.spec)
		contains(t, err, c.want)
		if identity.ClassOf(err) != identity.NoClass {
			t.Errorf("%v has class %v", err, identity.ClassOf(err))
		}
		if got := tree(t, parent); len(got) != 1 {
			t.Errorf("after %v there are %v", err, got)
		}
	}
}

func TestParseMembers(t *testing.T) {
	t.Parallel()
	got := must[[]identity.MemberSpec](t)(identity.ParseMembers("a=h:1,b=[::1]:2"))
	if want := []identity.MemberSpec{{Name: "a", Address: "h:1"}, {Name: "b", Address: "[::1]:2"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, bad := range []string{"", "a", "a=", "=h:1", "a=h:1,", "a=h:1,a=h:2", "a=h:1 ,b=h:2"} {
		if got, err := identity.ParseMembers(bad); err == nil {
			t.Errorf("ParseMembers(%q) = %v, want an error", bad, got)
		}
	}
}

var oneMember = identity.Spec{Members: []identity.MemberSpec{{Name: "a", Address: "localhost:1"}}}

func TestEmptyFolderIsTaken(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	real := filepath.Join(parent, "real")
	link := filepath.Join(parent, "link")
	if err := errors.Join(os.Mkdir(real, 0o755), os.Symlink("real", link)); err != nil {
		t.Fatal(err)
	}
	must[identity.ClusterFile](t)(identity.CreateCluster(link, oneMember))
	must[*identity.Folder](t)(identity.OpenFolder(filepath.Join(real, "a")))
	must[*identity.Folder](t)(identity.OpenFolder(filepath.Join(link, "a")))
	entries := must[[]os.DirEntry](t)(os.ReadDir(parent))
	if len(entries) != 2 {
		t.Errorf("beside the folder there are %v", entries)
	}
}

func TestOccupiedPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		lay  func(dir string) error
		want string
	}{
		{"few files", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600), os.Mkdir(filepath.Join(dir, "a"), 0o700))
		}, "is not empty (it holds a, notes)"},
		{"many files", func(dir string) error {
			err := os.Mkdir(dir, 0o755)
			for i := range 8 {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
			}
			return err
		}, "(it holds 0, 1, 2, 3, 4 and 3 more)"},
		{"a file", func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, "is not a folder"},
		{"a dangling link", func(dir string) error { return os.Symlink("nowhere", dir) }, "a link to something that doesn't exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "x")
			if err := c.lay(dir); err != nil {
				t.Fatal(err)
			}
			before := must[[]os.DirEntry](t)(os.ReadDir(parent))
			_, err := identity.CreateCluster(dir, oneMember)
			contains(t, err, dir, c.want)
			if identity.ClassOf(err) != identity.Precondition {
				t.Errorf("%v has class %v", err, identity.ClassOf(err))
			}
			after := must[[]os.DirEntry](t)(os.ReadDir(parent))
			if len(before) != len(after) {
				t.Errorf("before: %v, after: %v", before, after)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, nil, file)
	_, err := identity.CreateCluster(filepath.Join(file, "x"), oneMember)
	if identity.ClassOf(err) != identity.Precondition {
		t.Errorf("below a file: %v", err)
	}
}

func TestFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	for _, existing := range []bool{false, true} {
		parent := t.TempDir()
		dir := filepath.Join(parent, "p", "q", "x")
		if existing {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		before := tree(t, parent)
		spec := oneMember
		spec.Prepare = func(member string) error {
			write(t, []byte("half"), member, "store")
			return broken
		}
		_, err := identity.CreateCluster(dir, spec)
		if !errors.Is(err, broken) {
			t.Errorf("error is %v", err)
		}
		if after := tree(t, parent); !maps.Equal(before, after) {
			t.Errorf("before: %v, after: %v", before, after)
		}
	}
}

// Somebody else may fill the place while the cluster is made.
func TestPlaceTakenMeanwhile(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "x")
	spec := oneMember
	spec.Prepare = func(string) error {
		return errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "theirs"), nil, 0o600))
	}
	_, err := identity.CreateCluster(dir, spec)
	if identity.ClassOf(err) != identity.Precondition {
		t.Errorf("error is %v", err)
	}
	if got := tree(t, parent); len(got) != 3 {
		t.Errorf("left are %v", got)
	}
}
