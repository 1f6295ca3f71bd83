package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"atoll/bench/load"
)

const (
	// natsBucket is the key-value bucket that clients use, and natsStream the
	// stream that JetStream keeps it in.
	natsBucket = "B"
	natsStream = "KV_" + natsBucket
	// natsReconnect is how soon a client that lost its node tries another: well
	// below the library's 2 s, so that what is measured is the servers.
	natsReconnect = 50 * time.Millisecond
	natsReadyIn   = 10 * time.Second
)

type natsCluster struct {
	nodes       []*Process
	urls        []string
	connections []*nats.Conn
	buckets     []jetstream.KeyValue
}

func startNATS(ctx context.Context, cfg Config) (_ Target, err error) {
	ports, err := freePorts("tcp", 2*nodes)
	if err != nil {
		return nil, err
	}
	t := &natsCluster{}
	defer func() {
		if err != nil {
			t.Stop()
		}
	}()
	for _, port := range ports[:nodes] {
		u := loopbackURL("nats", port)
		t.urls = append(t.urls, u.String())
	}
	if t.nodes, err = launchNodes(cfg, NATS, ports[:nodes], ports[nodes:]); err != nil {
		return nil, err
	}
	for i := range cfg.Connections {
		var c *nats.Conn
		err := eventually(ctx, t.nodes, func(context.Context) (err error) {
			c, err = nats.Connect(t.urls[i%nodes])
			return err
		})
		if err != nil {
			return nil, err
		}
		t.connections = append(t.connections, c)
	}
	for _, c := range t.connections {
		bucket, err := t.openBucket(ctx, c)
		if err != nil {
			return nil, err
		}
		t.buckets = append(t.buckets, bucket)
	}
	return t, eventually(ctx, t.nodes, func(ctx context.Context) error { return t.Client(0).Put(ctx, "ready", nil) })
}

// openBucket returns the bucket, through one connection. It makes it if there
// is none, with a copy on each node, on disk. The cluster must elect first.
func (t *natsCluster) openBucket(ctx context.Context, c *nats.Conn) (bucket jetstream.KeyValue, err error) {
	js, err := jetstream.New(c)
	if err != nil {
		return nil, err
	}
	err = eventually(ctx, t.nodes, func(context.Context) (err error) {
		// Making the bucket takes longer than an attempt of eventually may.
		ctx, cancel := context.WithTimeout(ctx, natsReadyIn)
		defer cancel()
		bucket, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: natsBucket, Replicas: nodes, Storage: jetstream.FileStorage})
		return err
	})
	return bucket, err
}

// runNATS runs a node in this process. It syncs each write before it
// acknowledges it, which isn't the default (every two minutes is).
func runNATS(n nodeSpec) (stop func(), err error) {
	var routes []*url.URL
	for _, port := range n.Peers {
		u := loopbackURL("nats", port)
		routes = append(routes, &u)
	}
	s, err := server.NewServer(&server.Options{
		ServerName: n.name(), Host: "127.0.0.1", Port: n.Clients[n.Index],
		Cluster: server.ClusterOpts{Name: "bench", Host: "127.0.0.1", Port: n.Peers[n.Index]},
		Routes:  routes, JetStream: true, StoreDir: n.Dir, SyncAlways: true,
		MaxPayload: maxRequest, NoSigs: true,
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	return s.Shutdown, nil
}

func (t *natsCluster) Client(i int) load.Client { return natsClient{t.buckets[i%len(t.buckets)]} }

func (t *natsCluster) Roaming(ctx context.Context, i int) (load.Client, io.Closer, error) {
	// The library shuffles the nodes, so that clients are spread by chance;
	// here they are by count.
	urls := slices.Concat(t.urls[i%nodes:], t.urls[:i%nodes])
	c, err := nats.Connect(strings.Join(urls, ","), nats.DontRandomize(), nats.MaxReconnects(-1), nats.ReconnectWait(natsReconnect))
	if err != nil {
		return nil, nil, err
	}
	bucket, err := t.openBucket(ctx, c)
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return natsClient{bucket}, closer(c.Close), nil
}

// closer is a function that closes, as an io.Closer.
type closer func()

func (c closer) Close() error {
	c()
	return nil
}

func (t *natsCluster) Fill(ctx context.Context, keys []string, value []byte) error {
	return FillByPuts(ctx, t.Client(0), keys, value)
}

// Victim returns the leader of the bucket's stream.
func (t *natsCluster) Victim(ctx context.Context, _ int) (int, bool, error) {
	js, err := jetstream.New(t.connections[0])
	if err != nil {
		return 0, false, err
	}
	s, err := js.Stream(ctx, natsStream)
	if err != nil {
		return 0, false, err
	}
	if info := s.CachedInfo(); info.Cluster != nil {
		for i, p := range t.nodes {
			if p.Name == info.Cluster.Leader {
				return i, true, nil
			}
		}
	}
	return 0, false, errNoLeader
}

func (t *natsCluster) Access() Access    { return Access{Target: NATS, Endpoints: t.urls} }
func (t *natsCluster) Victims() int      { return 1 }
func (t *natsCluster) Nodes() []*Process { return t.nodes }
func (t *natsCluster) Version() string   { return server.VERSION }

func (t *natsCluster) Stop() {
	for _, c := range t.connections {
		c.Close()
	}
	killAll(t.nodes)
}

type natsClient struct{ bucket jetstream.KeyValue }

func (c natsClient) Put(ctx context.Context, key string, value []byte) error {
	_, err := c.bucket.Put(ctx, key, value)
	return err
}

// Get is answered by any node that has a copy, and may be stale.
func (c natsClient) Get(ctx context.Context, key string) error {
	_, err := c.bucket.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		err = fmt.Errorf("key %s has no value", key)
	}
	return err
}
