package reconfig_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"atoll/quorum"
	"atoll/reconfig"
	"atoll/synod"
)

// configuration makes a configuration that the test knows to be right.
func configuration(t testing.TB, index quorum.ConfigIndex, system string, members ...quorum.NodeID) *quorum.Configuration {
	t.Helper()
	s, err := quorum.ParseSystem(system)
	if err != nil {
		t.Fatal(err)
	}
	c, err := quorum.NewConfiguration(index, members, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// largest is the configuration that takes most bytes.
func largest(t testing.TB) *quorum.Configuration {
	var members []quorum.NodeID
	var weights []string
	for i := range quorum.MaxMembers {
		id := fmt.Sprintf("%0*d", quorum.MaxNodeID, i)
		members = append(members, quorum.NodeID(id))
		weights = append(weights, id+":4294967295")
	}
	return configuration(t, 1<<64-1, "weights="+strings.Join(weights, ","), members...)
}

func TestConfigurationsAreEncoded(t *testing.T) {
	for _, c := range []*quorum.Configuration{
		configuration(t, 1, "majority", "a"),
		configuration(t, 300, "get=1,put=3", "a", "b", "c"),
		configuration(t, 7, "grid=2x2", "a", "b", "c", "d"),
		configuration(t, 7, "weights=a:3,b:0,c:1", "c", "b", "a"),
		largest(t),
	} {
		b := c.Append(nil)
		if err := synod.CheckValue(b); err != nil {
			t.Errorf("%.80v: %v", c, err)
		}
		got, err := quorum.ParseConfiguration(b)
		if err != nil || !got.Equal(c) {
			t.Errorf("%.80v: decoded as %.80v, %v", c, got, err)
		}
	}
}

// These bytes are what members of a cluster have on their disks.
func TestTheEncodingStays(t *testing.T) {
	c := configuration(t, 300, "get=1,put=2", "b", "n4y2a")
	want := "\x01\xac\x02\x0bget=1,put=2\x02\x01b\x05n4y2a"
	if got := c.Append(nil); string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatIsNoConfiguration(t *testing.T) {
	whole := configuration(t, 3, "get=1,put=2", "a", "b").Append(nil)
	bad := [][]byte{nil, append(slices.Clone(whole), 0), bytes.Replace(whole, []byte("put=2"), []byte("put=1"), 1),
		bytes.Replace(whole, []byte("get"), []byte("got"), 1), bytes.Replace(whole, []byte("\x01b"), []byte("\x01a"), 1),
		{1, 3, 8, 'm', 'a', 'j', 'o', 'r', 'i', 't', 'y', 0xff, 0xff, 0xff, 0xff, 0x0f}}
	for n := range whole {
		bad = append(bad, whole[:n])
	}
	for _, b := range bad {
		if c, err := quorum.ParseConfiguration(b); err == nil {
			t.Errorf("%q: %v", b, c)
		}
	}
}

func FuzzValue(f *testing.F) {
	f.Add(configuration(f, 3, "get=1,put=2", "a", "b").Append(nil))
	f.Add(configuration(f, 3, "weights=a:1,b:2", "a", "b").Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := quorum.ParseConfiguration(b)
		if err != nil {
			return
		}
		again, err := quorum.ParseConfiguration(c.Append(nil))
		if err != nil || !again.Equal(c) {
			t.Fatalf("%v: encoded and decoded: %v, %v", c, again, err)
		}
	})
}

func TestInstances(t *testing.T) {
	for _, k := range []quorum.ConfigIndex{1, 41, 1<<64 - 1} {
		i := reconfig.Instance(k)
		if got, ok := reconfig.IndexOf(i); got != k || !ok || i.Check() != nil || i.Travels() {
			t.Errorf("%d: %q is index %d, %v", k, i, got, ok)
		}
	}
	for _, i := range []synod.Instance{"", "recon/", "recon/0", "recon/01", "recon/+1", "recon/18446744073709551616", "recon/1 ", "key/1"} {
		if k, ok := reconfig.IndexOf(i); ok {
			t.Errorf("%q decides configuration %d", i, k)
		}
	}
}
