package identity_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"atoll/internal/identity"
)

func TestContextRoundTrip(t *testing.T) {
	t.Parallel()
	dir := cluster(t, identity.Spec{})
	path := filepath.Join(dir, "client.json")
	c := must[identity.Context](t)(identity.LoadContext(path))
	copied := filepath.Join(t.TempDir(), "copy.json")
	write(t, []byte("something else"), copied)
	if err := identity.SaveContext(copied, c); err != nil {
		t.Fatal(err)
	}
	if again := must[identity.Context](t)(identity.LoadContext(copied)); !reflect.DeepEqual(c, again) {
		t.Errorf("saved %+v, loaded %+v", c, again)
	}
	if entries := must[[]os.DirEntry](t)(os.ReadDir(filepath.Dir(copied))); len(entries) != 1 {
		t.Errorf("saving left %v", entries)
	}
	if err := os.Chmod(copied, 0o644); err != nil {
		t.Fatal(err)
	}
	c = must[identity.Context](t)(identity.LoadContext(copied))
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "chmod 600 "+copied) {
		t.Errorf("warnings are %q", c.Warnings)
	}
	c.Endpoints = nil
	if err := identity.SaveContext(copied, c); err == nil {
		t.Error("a context without endpoints was saved")
	}
	c.Endpoints = []string{"localhost:1"}
	err := identity.SaveContext(filepath.Join(copied, "x"), c)
	contains(t, err, copied, "can't be written")
	if identity.ClassOf(err) != identity.Precondition {
		t.Errorf("%v has class %v", err, identity.ClassOf(err))
	}
}

func TestBadContexts(t *testing.T) {
	t.Parallel()
	ours, theirs := cluster(t, identity.Spec{}), cluster(t, identity.Spec{})
	whole := read(t, ours, "client.json")
	c := must[identity.Context](t)(identity.LoadContext(filepath.Join(ours, "client.json")))
	other := must[identity.Context](t)(identity.LoadContext(filepath.Join(theirs, "client.json")))
	// quoted is a PEM text as JSON has it.
	quoted := func(s string) string { return strings.ReplaceAll(s, "\n", `\n`) }
	for _, tc := range []struct {
		name  string
		data  []byte
		want  string
		class identity.Class
	}{
		{"empty", nil, "is empty", identity.Precondition},
		{"blank", []byte(" \n"), "is empty", identity.Precondition},
		{"cut off", whole[:len(whole)-5], "is not a whole JSON object", identity.Precondition},
		{"doubled", append(whole[:len(whole):len(whole)], whole...), "is not a whole JSON object", identity.Precondition},
		{"garbage", []byte("\xff\x00"), "is not a whole JSON object", identity.Precondition},
		{"an array", []byte("[]"), "is not a whole JSON object", identity.Precondition},
		{"null", []byte("null"), "no format number", identity.Precondition},
		{"newer", replace(t, whole, `"format": 1`, `"format": 7`), "format 7, of a newer version", identity.Precondition},
		{"older", replace(t, whole, `"format": 1`, `"format": -1`), "no format number", identity.Precondition},
		{"unknown field", replace(t, whole, `"format": 1`, `"format": 1, "user": "x"`), `unknown field "user"`, identity.Precondition},
		{"no endpoints", replace(t, whole, `"endpoints"`, `"endpoints": [], "Endpoints"`), "", identity.NoClass},
		{"bad endpoint", replace(t, whole, `"localhost:7400"`, `"::1:7400"`), "write [::1]:7400", identity.Precondition},
		{"other cluster", replace(t, whole, string(c.Cluster), "c1"), "it is of cluster " + string(c.Cluster) + ", the context of cluster c1", identity.Certificate},
		{"other CA", replace(t, whole, quoted(c.CA), quoted(other.CA)), "the CA is of cluster " + string(other.Cluster), identity.Certificate},
		{"other key", replace(t, whole, quoted(c.Key), quoted(other.Key)), "wrong key", identity.Certificate},
		{"no key", replace(t, whole, quoted(c.Key), ""), "holds no PEM block", identity.Certificate},
		{"cut certificate", replace(t, whole, quoted(c.Certificate), quoted(c.Certificate[:100])), "cut off", identity.Certificate},
		{"oversized", append(whole[:len(whole):len(whole)], make([]byte, identity.MaxFileSize)...), "larger than", identity.Precondition},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "context.json")
			write(t, tc.data, path)
			_, err := identity.LoadContext(path)
			if tc.class == identity.NoClass {
				if err != nil {
					t.Error(err)
				}
				return
			}
			contains(t, err, path, tc.want)
			if _, ok := errors.AsType[*identity.ContextError](err); !ok || identity.ClassOf(err) != tc.class {
				t.Errorf("%v is a %T of class %v, want class %v", err, err, identity.ClassOf(err), tc.class)
			}
		})
	}
	_, err := identity.LoadContext(filepath.Join(ours, "none.json"))
	contains(t, err, "none.json doesn't exist")
	_, err = identity.LoadContext(ours)
	contains(t, err, ours, "can't be read: is a directory")
}

func FuzzContext(f *testing.F) {
	dir := cluster(f, oneMember)
	f.Add(read(f, dir, "client.json"))
	f.Add([]byte(`{"format":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := identity.ParseContext(data)
		if err != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "c")
		if err := identity.SaveContext(path, c); err != nil {
			t.Fatal(err)
		}
		if again, err := identity.LoadContext(path); err != nil || !reflect.DeepEqual(c, again) {
			t.Errorf("parsed %+v, after a round trip %+v, %v", c, again, err)
		}
	})
}

func FuzzClusterFile(f *testing.F) {
	dir := cluster(f, oneMember)
	f.Add(read(f, dir, "a", "cluster.json"))
	f.Add([]byte(`{"format":1,"cluster":"c","quorum":"weights=n1:1,n2:0","max_value":1,"members":[{"id":"n1","name":"a","addresses":["h:1"]},{"id":"n2","name":"b","addresses":["h:2"]}]}`))
	f.Add([]byte(`{"format":2,"cluster":"c","max_value":1,"joined":{"listen":[":1"],"contacts":[{"id":"n1","name":"a","addresses":["h:1"]}],"expires":"2026-01-01T00:00:00Z","signature":"` +
		strings.Repeat("A", 86) + `=="}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := identity.ParseClusterFile(data)
		if err != nil {
			return
		}
		configuration, err := c.Configuration()
		if c.Joined != nil {
			if err != nil || configuration != nil || len(c.Members) > 0 {
				t.Errorf("%q passed and gives %v, %v", data, configuration, err)
			}
			return
		}
		if err != nil || len(configuration.Members()) != len(c.Members) || len(c.Endpoints()) < len(c.Members) {
			t.Errorf("%q passed and gives %v, %v", data, configuration, err)
		}
	})
}

func FuzzIdentityFile(f *testing.F) {
	dir := cluster(f, oneMember)
	f.Add(read(f, dir, "a", "identity.json"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := identity.ParseIdentityFile(data); err == nil && !strings.Contains(string(data), "{") {
			t.Errorf("%q passed", data)
		}
	})
}

func FuzzPEM(f *testing.F) {
	dir := cluster(f, oneMember)
	f.Add(read(f, dir, "ca", "ca.crt"), read(f, dir, "a", "node.crt"), read(f, dir, "a", "node.key"))
	f.Fuzz(func(t *testing.T, ca, cert, key []byte) {
		n, err := identity.ParseCAs(ca)
		if err == nil && (n < 1 || n > identity.MaxCAs) {
			t.Errorf("%d CAs in %q", n, ca)
		}
		c, err := identity.ParseCredentials(ca, cert, key)
		if err == nil && c.Expiry().IsZero() {
			t.Errorf("credentials of %v don't expire", c.Self())
		}
	})
}
