package identity

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

const (
	maxHost  = 253 // DNS's limit
	maxLabel = 63
)

// ParseAddress reads an address to listen on, HOST:PORT, and returns it in one
// spelling: lower case, IPv6 shortened and in brackets. HOST may be a name, an
// IPv4 address, an IPv6 address in brackets, or nothing, which means all
// interfaces; PORT is a number from 0, which means any free port, to 65535.
func ParseAddress(s string) (string, error) {
	addr, ok, err := parseAddress(s)
	if err == nil && !ok {
		err = fmt.Errorf("the port of %q must be a number from 0, which means any free one, to 65535", s)
	}
	return addr, err
}

// parseAddress also reports whether the port is one.
func parseAddress(s string) (addr string, ok bool, err error) {
	host, port, err := splitAddress(s)
	if err != nil {
		return "", false, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || strconv.FormatUint(n, 10) != port {
		return "", false, nil
	}
	return net.JoinHostPort(host, port), true, nil
}

// ParseEndpoint reads an address to dial: as ParseAddress, but it must say
// which host and which port.
func ParseEndpoint(s string) (string, error) {
	badPort := fmt.Errorf("the port of %q must be a number from 1 to 65535: others dial it", s)
	addr, ok, err := parseAddress(s)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", badPort
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	switch {
	case host == "":
		return "", fmt.Errorf("%q names no host: others dial this address, write HOST:%s", s, port)
	case AllInterfaces(host):
		return "", fmt.Errorf("%q means all interfaces: others dial this address, write one that they can reach", s)
	case port == "0":
		return "", badPort
	}
	return addr, nil
}

// AllInterfaces reports whether who listens on a host listens on all interfaces: nobody can
// dial that.
func AllInterfaces(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// splitAddress cuts s into a host in its one spelling and a port, unchecked.
func splitAddress(s string) (host, port string, err error) {
	if rest, ok := strings.CutPrefix(s, "["); ok {
		inside, port, ok := strings.Cut(rest, "]:")
		if !ok {
			return "", "", fmt.Errorf("%q is not an address: write [IPV6]:PORT, as in [::1]:7400", s)
		}
		ip, err := netip.ParseAddr(inside)
		if err != nil || !ip.Is6() {
			return "", "", fmt.Errorf("%q is not an address: %q is not an IPv6 address", s, inside)
		}
		return ip.String(), port, nil
	}
	if strings.Count(s, ":") > 1 {
		return "", "", bareIPv6(s)
	}
	host, port, ok := strings.Cut(s, ":")
	if !ok {
		return "", "", fmt.Errorf("%q is not an address: write HOST:PORT, as in 10.0.0.1:7400", s)
	}
	if host == "" {
		return "", port, nil
	}
	host = strings.ToLower(host)
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.String(), port, nil
	}
	if !isHostname(host) {
		return "", "", fmt.Errorf("%q is not an address: %q is neither a host name nor an IP address", s, host)
	}
	return host, port, nil
}

// bareIPv6 says how to write an address that has several colons and no
// brackets. Guessing would be wrong at times: ::1:7400 is an address, too.
func bareIPv6(s string) error {
	_, wholeErr := netip.ParseAddr(s)
	i := strings.LastIndexByte(s, ':')
	_, frontErr := netip.ParseAddr(s[:i])
	_, portErr := strconv.ParseUint(s[i+1:], 10, 16)
	split := frontErr == nil && portErr == nil
	switch {
	case split && wholeErr == nil:
		return fmt.Errorf("%q is ambiguous: write [%s]:%s (or [%s]:PORT)", s, s[:i], s[i+1:], s)
	case split:
		return fmt.Errorf("%q is ambiguous: an IPv6 address stands in brackets, write [%s]:%s", s, s[:i], s[i+1:])
	case wholeErr == nil:
		return fmt.Errorf("%q has no port: write [%s]:PORT, as in [%s]:7400", s, s, s)
	}
	return fmt.Errorf("%q is not an address: write HOST:PORT, or [IPV6]:PORT with brackets", s)
}

func isHostname(s string) bool {
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > maxHost {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' }
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' || strings.ContainsFunc(label, bad) {
			return false
		}
		last = label
	}
	// No top-level domain is a number: 10.0.0.256 is a mistyped address.
	return strings.Trim(last, "0123456789") != ""
}
