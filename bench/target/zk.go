package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"atoll/bench/load"
)

const (
	// zkJar is what Debian's package of ZooKeeper installs; its manifest names
	// the others that it needs.
	zkJar     = "/usr/share/java/zookeeper.jar"
	zkServer  = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
	zkPackage = "ZooKeeper isn't installed: on Debian, apt-get install zookeeper"
	// zkSession is how long a session outlives silence. Long for the measured
	// clients, which may starve while another target is driven; short for
	// clients that watch a node die.
	zkSession        = 20 * time.Second
	zkRoamingSession = 6 * time.Second
	// zkAnswer is how long a node may take to say how it is.
	zkAnswer = 2 * time.Second
)

type zookeeper struct {
	nodes       []*Process
	endpoints   []string
	connections []*zk.Conn
	version     string
}

func startZK(ctx context.Context, cfg Config) (_ Target, err error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, &MissingError{zkPackage + " (no java)"}
	}
	if _, err := os.Stat(zkJar); err != nil {
		return nil, &MissingError{zkPackage + " (no " + zkJar + ")"}
	}
	ports, err := freePorts("tcp", 3*nodes)
	if err != nil {
		return nil, err
	}
	t := &zookeeper{endpoints: addresses(ports[:nodes])}
	defer func() {
		if err != nil {
			t.Stop()
		}
	}()
	for i := range nodes {
		file, err := configureZK(cfg.Dir, i, ports)
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(java, "-cp", zkJar, fmt.Sprintf("-Djute.maxbuffer=%d", maxRequest), zkServer, file)
		p, err := launch(cfg.Dir, nodeName(i), cmd, nil)
		if err != nil {
			return nil, err
		}
		t.nodes = append(t.nodes, p)
	}
	for i := range cfg.Connections {
		c, err := dialZK(zkSession, t.endpoints[i%nodes])
		if err != nil {
			return nil, err
		}
		t.connections = append(t.connections, c)
	}
	return t, t.await(ctx)
}

// configureZK writes a node's settings: those of ZooKeeper's own example of a
// cluster, without the limit of connections from one address.
func configureZK(dir string, i int, ports []int) (file string, err error) {
	data := filepath.Join(dir, nodeName(i))
	if err := os.MkdirAll(data, 0o700); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=%s\n", data)
	fmt.Fprintf(&b, "clientPort=%d\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n", ports[i])
	fmt.Fprintf(&b, "admin.enableServer=false\n4lw.commands.whitelist=srvr\n")
	for j := range nodes {
		fmt.Fprintf(&b, "server.%d=127.0.0.1:%d:%d\n", j+1, ports[nodes+j], ports[2*nodes+j])
	}
	file = filepath.Join(data, "zoo.cfg")
	return file, errors.Join(
		os.WriteFile(filepath.Join(data, "myid"), []byte(strconv.Itoa(i+1)), 0o600),
		os.WriteFile(file, []byte(b.String()), 0o600))
}

func dialZK(session time.Duration, endpoints ...string) (*zk.Conn, error) {
	c, _, err := zk.Connect(endpoints, session, zk.WithLogger(silence{}), zk.WithMaxBufferSize(maxRequest))
	return c, err
}

// silence is a logger that logs nothing.
type silence struct{}

func (silence) Printf(string, ...any) {}

// await returns when all nodes serve.
func (t *zookeeper) await(ctx context.Context) error {
	for i := range t.endpoints {
		err := eventually(ctx, t.nodes, func(context.Context) error {
			said, err := t.ask(i)
			if err != nil {
				return err
			}
			t.version = said["Zookeeper version"]
			if said["Mode"] == "" {
				return errors.New("it has no mode yet")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	// "3.8.0-HASH, built on DATE"
	t.version, _, _ = strings.Cut(t.version, "-")
	return eventually(ctx, t.nodes, func(ctx context.Context) error {
		if t.connections[0].State() != zk.StateHasSession {
			return errors.New("no session yet")
		}
		return t.Client(0).Put(ctx, "ready", nil)
	})
}

// ask returns what a node says of itself, line by line.
func (t *zookeeper) ask(i int) (map[string]string, error) {
	c, err := net.DialTimeout("tcp", t.endpoints[i], zkAnswer)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(zkAnswer))
	if _, err := io.WriteString(c, "srvr"); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(c)
	if err != nil {
		return nil, err
	}
	said := make(map[string]string)
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			said[name] = value
		}
	}
	return said, nil
}

func (t *zookeeper) Client(i int) load.Client { return zkClient{t.connections[i%len(t.connections)]} }

func (t *zookeeper) Roaming(context.Context, int) (load.Client, io.Closer, error) {
	c, err := dialZK(zkRoamingSession, slices.Clone(t.endpoints)...)
	if err != nil {
		return nil, nil, err
	}
	return zkClient{c}, closer(c.Close), nil
}

// Fill creates the keys in one transaction.
func (t *zookeeper) Fill(_ context.Context, keys []string, value []byte) error {
	creates := make([]any, len(keys))
	for i, k := range keys {
		creates[i] = &zk.CreateRequest{Path: "/" + k, Data: value, Acl: zk.WorldACL(zk.PermAll)}
	}
	_, err := t.connections[0].Multi(creates...)
	return err
}

// Victim returns the leader.
func (t *zookeeper) Victim(context.Context, int) (int, bool, error) {
	var errs []error
	for i := range t.endpoints {
		said, err := t.ask(i)
		if err == nil && said["Mode"] == "leader" {
			return i, true, nil
		}
		errs = append(errs, err)
	}
	return 0, false, errors.Join(append(errs, errNoLeader)...)
}

func (t *zookeeper) Access() Access    { return Access{Target: ZK, Endpoints: t.endpoints} }
func (t *zookeeper) Victims() int      { return 1 }
func (t *zookeeper) Nodes() []*Process { return t.nodes }
func (t *zookeeper) Version() string   { return t.version }

func (t *zookeeper) Stop() {
	// Nodes first: a connection waits for their goodbye.
	killAll(t.nodes)
	for _, c := range t.connections {
		c.Close()
	}
}

// zkClient is a client. The library takes no contexts: an operation ends by its
// answer, or with its connection.
type zkClient struct{ c *zk.Conn }

func (c zkClient) Put(_ context.Context, key string, value []byte) error {
	path := "/" + key
	_, err := c.c.Set(path, value, -1)
	if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if _, err = c.c.Create(path, value, 0, zk.WorldACL(zk.PermAll)); errors.Is(err, zk.ErrNodeExists) {
		_, err = c.c.Set(path, value, -1)
	}
	return err
}

// Get syncs first: the node that a client is connected to may be behind.
func (c zkClient) Get(_ context.Context, key string) error {
	path := "/" + key
	if _, err := c.c.Sync(path); err != nil {
		return err
	}
	_, _, err := c.c.Get(path)
	return err
}
