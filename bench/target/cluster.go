package target

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"atoll/client"
	"atoll/internal/identity"
)

// ClusterConfig says how to make a cluster of atoll's replicas.
type ClusterConfig struct {
	// Dir is the folder that `replica init` makes: of all members, and of the
	// context file of clients.
	Dir string
	// Program is atoll's replica.
	Program string
	// Members is how many there are, at least 1.
	Members int
	// Reach, if given, is called with the addresses on which the members will
	// listen, and returns those at which the others and the clients find them:
	// those of something that stands between them.
	Reach func(listen []string) ([]string, error)
	// Flags are given to every member's process as well.
	Flags []string
}

// Cluster is a cluster of atoll's replicas on loopback whose members are
// launched, stopped and killed one by one. Different members may be handled at
// the same time.
type Cluster struct {
	// Version is the commit that the program was built from.
	Version string
	// Listen are the members' own addresses.
	Listen []string

	cfg     ClusterConfig
	mu      sync.Mutex
	latest  []*Process // by member: the last one that was launched, or nil
	metrics []string   // by member: the address of its metrics, once it serves
}

// CreateCluster makes the folders of a cluster. None of its members runs yet.
func CreateCluster(ctx context.Context, cfg ClusterConfig) (*Cluster, error) {
	c := &Cluster{cfg: cfg, latest: make([]*Process, cfg.Members), metrics: make([]string, cfg.Members)}
	var err error
	if c.Version, err = replicaVersion(ctx, cfg.Program); err != nil {
		return nil, err
	}
	ports, err := freePorts("udp", cfg.Members)
	if err != nil {
		return nil, err
	}
	c.Listen = addresses(ports)
	reached := c.Listen
	if cfg.Reach != nil {
		if reached, err = cfg.Reach(c.Listen); err != nil {
			return nil, err
		}
	}
	var members []string
	for i, a := range reached {
		members = append(members, memberName(i)+"="+a)
	}
	_, err = replica(ctx, cfg.Program, "init", "--members", strings.Join(members, ","), "--data-dir", cfg.Dir)
	return c, err
}

// memberName: a, b, c, as `replica dev` names them.
func memberName(i int) string { return string(rune('a' + i)) }

// Folder returns the data folder of a member.
func (c *Cluster) Folder(i int) string { return filepath.Join(c.cfg.Dir, memberName(i)) }

// Name returns the name of a member.
func (c *Cluster) Name(i int) string { return memberName(i) }

// ClientConfig returns the settings of a client.
func (c *Cluster) ClientConfig() (client.Config, error) {
	return client.LoadContext(c.contextFile())
}

// AdminConfig returns the settings of a client that may change the members.
func (c *Cluster) AdminConfig() (client.Config, error) {
	return client.LoadContext(filepath.Join(c.cfg.Dir, "admin.json"))
}

func (c *Cluster) contextFile() string { return filepath.Join(c.cfg.Dir, "client.json") }

// Launch starts a member and returns when it serves.
func (c *Cluster) Launch(ctx context.Context, i int) error {
	serves, err := c.Begin(i)
	if err != nil {
		return err
	}
	return serves(ctx)
}

// LaunchAll starts all members at once and returns when all serve.
func (c *Cluster) LaunchAll(ctx context.Context) error {
	errs := make([]error, c.cfg.Members)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = c.Launch(ctx, i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Begin starts a member. The function that it returns waits until the member
// serves, or until it has ended instead, which is an error with its last words.
func (c *Cluster) Begin(i int) (serves func(context.Context) error, err error) {
	return c.begin(i, c.command(i, "run", "--until-eof"))
}

// begin is Begin with the command to start.
func (c *Cluster) begin(i int, cmd *exec.Cmd) (serves func(context.Context) error, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	p, err := launch(c.cfg.Dir, memberName(i), cmd, write)
	if err != nil {
		read.Close()
		return nil, err
	}
	p.Journal = filepath.Join(p.Dir, "journal")
	c.mu.Lock()
	c.latest[i] = p
	c.mu.Unlock()
	said := make(chan error, 1)
	go func() {
		defer read.Close()
		lines := bufio.NewReader(read)
		line, err := lines.ReadBytes('\n')
		if err == nil {
			err = c.serves(i, line)
		}
		said <- err
		_, _ = io.Copy(io.Discard, lines)
	}()
	return func(ctx context.Context) error {
		select {
		case err := <-said:
			if err != nil {
				<-p.done // it ended instead, and said why
				return Ended([]*Process{p})
			}
			return nil
		case <-ctx.Done():
			return fmt.Errorf("replica %s doesn't serve: %w", p.Name, ctx.Err())
		}
	}, nil
}

// serves takes what a member says when it serves.
func (c *Cluster) serves(i int, line []byte) error {
	var said struct{ Metrics string }
	if err := json.Unmarshal(line, &said); err != nil {
		return fmt.Errorf("replica %s says %q: %w", memberName(i), line, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metrics[i] = said.Metrics
	return nil
}

// Metric returns the value of one of a member's metrics, one without labels.
func (c *Cluster) Metric(ctx context.Context, i int, name string) (float64, error) {
	c.mu.Lock()
	address := c.metrics[i]
	c.mu.Unlock()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, errors.Join(lines.Err(), fmt.Errorf("replica %s has no metric %s", memberName(i), name))
}

// Access is how other processes reach the cluster.
func (c *Cluster) Access() Access { return Access{Target: Atoll, Context: c.contextFile()} }

// Join makes a new node, which is on standby, and returns its number when it
// serves. The admin's client is one of the cluster.
func (c *Cluster) Join(ctx context.Context, admin *client.Client) (int, error) {
	ca, err := identity.LoadCA(filepath.Join(c.cfg.Dir, "ca"))
	if err != nil {
		return 0, err
	}
	s, err := admin.Status(ctx)
	if err != nil {
		return 0, err
	}
	ports, err := freePorts("udp", 1)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	i := len(c.latest)
	c.latest, c.metrics = append(c.latest, nil), append(c.metrics, "")
	c.Listen = append(c.Listen, addresses(ports)...)
	c.mu.Unlock()
	r := identity.TicketRequest{Name: memberName(i), MaxValue: admin.MaxValue(), Endpoints: admin.Endpoints(), Now: time.Now()}
	for _, m := range s.Members {
		r.Contacts = append(r.Contacts, identity.Member{ID: m.ID, Name: m.Name, Addresses: m.Addresses})
	}
	ticket, err := ca.Ticket(r)
	if err != nil {
		return 0, err
	}
	file := c.Folder(i) + ".ticket"
	if err := os.WriteFile(file, []byte(ticket.String()), 0o600); err != nil {
		return 0, err
	}
	serves, err := c.begin(i, c.command(i, "join", file))
	if err != nil {
		return 0, err
	}
	return i, serves(ctx)
}

// command is the command line of a member.
func (c *Cluster) command(i int, words ...string) *exec.Cmd {
	words = append(words, "--data-dir", c.Folder(i), "--listen", c.Listen[i], "--metrics", "127.0.0.1:0", "--output", "json")
	cmd := exec.Command(c.cfg.Program, append(words, c.cfg.Flags...)...)
	cmd.Env = plainEnvironment()
	return cmd
}

// Twin starts a second process on a member's folder, and returns how it ended:
// it must have been refused.
func (c *Cluster) Twin(ctx context.Context, i int) error {
	cmd := exec.CommandContext(ctx, c.cfg.Program, "run", "--data-dir", c.Folder(i), "--listen", "127.0.0.1:0")
	cmd.Env = plainEnvironment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// Member returns the process of a member, nil if it was never launched.
func (c *Cluster) Member(i int) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest[i]
}

// Nodes returns the processes of all members that were ever launched, ended or
// not.
func (c *Cluster) Nodes() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.latest), func(p *Process) bool { return p == nil })
}

// Discard kills a member for good and removes its files.
func (c *Cluster) Discard(i int) error {
	c.mu.Lock()
	p := c.latest[i]
	c.latest[i] = nil
	c.mu.Unlock()
	p.Kill()
	return os.RemoveAll(p.Dir)
}

// Stop kills all members.
func (c *Cluster) Stop() { killAll(c.Nodes()) }
