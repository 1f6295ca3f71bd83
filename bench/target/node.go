package target

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// NodeCommand is the first argument of an executable that is to call RunNode
// with the second.
const NodeCommand = "node"

// nodeSpec is a node of etcd or NATS. It travels as an argument, in JSON.
type nodeSpec struct {
	Target string
	Index  int
	Dir    string
	// Clients and Peers are the ports of all nodes, by index.
	Clients, Peers []int
}

func (n nodeSpec) name() string { return nodeName(n.Index) }

func nodeName(i int) string { return "n" + strconv.Itoa(i) }

// launchNodes starts a cluster of nodes that this executable runs.
func launchNodes(cfg Config, target string, clients, peers []int) ([]*Process, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	var all []*Process
	for i := range nodes {
		spec, err := json.Marshal(nodeSpec{target, i, filepath.Join(cfg.Dir, nodeName(i)), clients, peers})
		if err != nil {
			return all, err
		}
		p, err := launch(cfg.Dir, nodeName(i), exec.Command(cfg.Self, NodeCommand, string(spec)), nil)
		if err != nil {
			return all, err
		}
		all = append(all, p)
	}
	return all, nil
}

// RunNode runs a node of etcd or NATS until its standard input ends. Its
// argument is made by Start.
func RunNode(argument string) error {
	var spec nodeSpec
	if err := json.Unmarshal([]byte(argument), &spec); err != nil {
		return fmt.Errorf("not a node: %w", err)
	}
	var stop func()
	var err error
	switch spec.Target {
	case Etcd:
		stop, err = runEtcd(spec)
	case NATS:
		stop, err = runNATS(spec)
	default:
		err = fmt.Errorf("no node of %q", spec.Target)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	stop()
	return err
}

// freePorts returns ports of loopback that nobody has now, for "tcp" or "udp".
// Somebody may take one before its node does; then the node says so and ends.
func freePorts(network string, n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		var held io.Closer
		if network == "udp" {
			c, err := net.ListenUDP(network, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				return nil, err
			}
			held, ports[i] = c, c.LocalAddr().(*net.UDPAddr).Port
		} else {
			l, err := net.ListenTCP(network, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				return nil, err
			}
			held, ports[i] = l, l.Addr().(*net.TCPAddr).Port
		}
		defer held.Close() // all at the end, so that they differ
	}
	return ports, nil
}

// address returns host and port of loopback.
func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func addresses(ports []int) []string {
	all := make([]string, len(ports))
	for i, p := range ports {
		all[i] = address(p)
	}
	return all
}

func loopbackURL(scheme string, port int) url.URL {
	return url.URL{Scheme: scheme, Host: address(port)}
}
