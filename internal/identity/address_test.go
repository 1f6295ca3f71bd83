package identity_test

import (
	"testing"

	"atoll/internal/identity"
)

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		in, want string
		dial     string // what ParseEndpoint's error says; "" if it passes
	}{
		{"localhost:7400", "localhost:7400", ""},
		{"LocalHost:7400", "localhost:7400", ""},
		{"a.b-c.example.:1", "a.b-c.example.:1", ""},
		{"replica_1:7400", "replica_1:7400", ""},
		{"10.0.0.1:65535", "10.0.0.1:65535", ""},
		{"[::1]:7400", "[::1]:7400", ""},
		{"[0:0:0:0:0:0:0:1]:7400", "[::1]:7400", ""},
		{"[2001:DB8::1]:7400", "[2001:db8::1]:7400", ""},
		{"[fe80::1%eth0]:7400", "[fe80::1%eth0]:7400", ""},
		{":7400", ":7400", "names no host"},
		{"0.0.0.0:7400", "0.0.0.0:7400", "all interfaces"},
		{"[::]:7400", "[::]:7400", "all interfaces"},
		{"localhost:0", "localhost:0", "from 1 to 65535"},
	} {
		got, err := identity.ParseAddress(c.in)
		if err != nil || got != c.want {
			t.Errorf("ParseAddress(%q) = %q, %v, want %q", c.in, got, err, c.want)
		}
		if again, err := identity.ParseAddress(got); again != got || err != nil {
			t.Errorf("ParseAddress(%q) = %q, %v: not stable", got, again, err)
		}
		got, err = identity.ParseEndpoint(c.in)
		if c.dial != "" {
			contains(t, err, c.dial)
		} else if err != nil || got != c.want {
			t.Errorf("ParseEndpoint(%q) = %q, %v, want %q", c.in, got, err, c.want)
		}
	}
}

// An address has one range of ports, wherever what is wrong with it is noticed.
func TestPortsToDial(t *testing.T) {
	for _, in := range []string{"a:0", "a:65536", "a:http", "a:-1"} {
		_, err := identity.ParseEndpoint(in)
		contains(t, err, "from 1 to 65535")
	}
}

func TestBadAddresses(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "write HOST:PORT"},
		{"localhost", "write HOST:PORT"},
		{"localhost:", "port"},
		{"localhost:http", "port"},
		{"localhost:-1", "port"},
		{"localhost:+1", "port"},
		{"localhost:07400", "port"},
		{"localhost:65536", "port"},
		{"::1:7400", "write [::1]:7400 (or [::1:7400]:PORT)"},
		{"2001:db8::1:7400", "write [2001:db8::1]:7400"},
		{"1:2:3:4:5:6:7:8:7400", "write [1:2:3:4:5:6:7:8]:7400"},
		{"::1", "write [::1]:PORT"},
		{"fe80::abcd", "write [fe80::abcd]:PORT"},
		{"a:b:c", "[IPV6]:PORT"},
		{"[::1]", "write [IPV6]:PORT"},
		{"[::1]7400", "write [IPV6]:PORT"},
		{"[::1:7400", "write [IPV6]:PORT"},
		{"[localhost]:7400", "not an IPv6 address"},
		{"[127.0.0.1]:7400", "not an IPv6 address"},
		{"10.0.0.256:7400", "neither a host name nor an IP address"},
		{"10.0.0:7400", "neither a host name nor an IP address"},
		{"a b:7400", "neither a host name nor an IP address"},
		{"-a:7400", "neither a host name nor an IP address"},
		{"a..b:7400", "neither a host name nor an IP address"},
		{"http://a:7400", "is not an address"},
		{"a/b:7400", "neither a host name nor an IP address"},
	} {
		_, err := identity.ParseAddress(c.in)
		if err == nil {
			t.Errorf("ParseAddress(%q) passed", c.in)
			continue
		}
		contains(t, err, c.want)
	}
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"localhost:7400", "[::1]:7400", "::1:7400", ":0", "[fe80::1%25]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := identity.ParseAddress(s)
		if err != nil {
			return
		}
		if again, err := identity.ParseAddress(got); err != nil || again != got {
			t.Errorf("ParseAddress(%q) = %q, and of that %q, %v", s, got, again, err)
		}
	})
}
