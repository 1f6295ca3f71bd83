package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"atoll/bench/load"
)

// etcdQuota is how large a database may get, in bytes. It keeps all versions,
// and would refuse writes from 2 GiB on, which large values fill in a minute.
const etcdQuota = 32 << 30

type etcd struct {
	nodes       []*Process
	endpoints   []string
	connections []*clientv3.Client
}

func startEtcd(ctx context.Context, cfg Config) (_ Target, err error) {
	ports, err := freePorts("tcp", 2*nodes)
	if err != nil {
		return nil, err
	}
	t := &etcd{endpoints: addresses(ports[:nodes])}
	defer func() {
		if err != nil {
			t.Stop()
		}
	}()
	if t.nodes, err = launchNodes(cfg, Etcd, ports[:nodes], ports[nodes:]); err != nil {
		return nil, err
	}
	for i := range cfg.Connections {
		c, err := dialEtcd(t.endpoints[i%nodes])
		if err != nil {
			return nil, err
		}
		t.connections = append(t.connections, c)
	}
	for i := range min(nodes, cfg.Connections) {
		if err := eventually(ctx, t.nodes, func(ctx context.Context) error { return t.Client(i).Put(ctx, "ready", nil) }); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func dialEtcd(endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: startTimeout, Logger: zap.NewNop()})
}

// runEtcd runs a node in this process.
func runEtcd(n nodeSpec) (stop func(), err error) {
	var cluster []string
	for i, port := range n.Peers {
		peer := loopbackURL("http", port)
		cluster = append(cluster, nodeName(i)+"="+peer.String())
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.InitialCluster = n.name(), n.Dir, strings.Join(cluster, ",")
	cfg.ListenClientUrls = []url.URL{loopbackURL("http", n.Clients[n.Index])}
	cfg.ListenPeerUrls = []url.URL{loopbackURL("http", n.Peers[n.Index])}
	cfg.AdvertiseClientUrls, cfg.AdvertisePeerUrls = cfg.ListenClientUrls, cfg.ListenPeerUrls
	cfg.MaxRequestBytes = maxRequest
	cfg.QuotaBackendBytes = etcdQuota
	cfg.LogLevel = "error"
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	return e.Close, nil
}

func (t *etcd) Client(i int) load.Client { return etcdClient{t.connections[i%len(t.connections)]} }

func (t *etcd) Roaming(context.Context, int) (load.Client, io.Closer, error) {
	c, err := dialEtcd(t.endpoints...)
	if err != nil {
		return nil, nil, err
	}
	return etcdClient{c}, c, nil
}

// Fill writes the keys in one transaction.
func (t *etcd) Fill(ctx context.Context, keys []string, value []byte) error {
	puts := make([]clientv3.Op, len(keys))
	for i, k := range keys {
		puts[i] = clientv3.OpPut(k, string(value))
	}
	_, err := t.connections[0].Txn(ctx).Then(puts...).Commit()
	return err
}

// Victim returns the leader of the group.
func (t *etcd) Victim(ctx context.Context, _ int) (int, bool, error) {
	var errs []error
	for i, e := range t.endpoints {
		s, err := t.connections[0].Status(ctx, e)
		if err == nil && s.Header.MemberId == s.Leader {
			return i, true, nil
		}
		errs = append(errs, err)
	}
	return 0, false, errors.Join(append(errs, errNoLeader)...)
}

func (t *etcd) Access() Access    { return Access{Target: Etcd, Endpoints: t.endpoints} }
func (t *etcd) Victims() int      { return 1 }
func (t *etcd) Nodes() []*Process { return t.nodes }
func (t *etcd) Version() string   { return version.Version }

func (t *etcd) Stop() {
	for _, c := range t.connections {
		_ = c.Close()
	}
	killAll(t.nodes)
}

type etcdClient struct{ c *clientv3.Client }

func (c etcdClient) Put(ctx context.Context, key string, value []byte) error {
	_, err := c.c.Put(ctx, key, string(value))
	return err
}

// Get is linearizable: that is etcd's default.
func (c etcdClient) Get(ctx context.Context, key string) error {
	r, err := c.c.Get(ctx, key)
	if err == nil && len(r.Kvs) == 0 {
		err = fmt.Errorf("key %s has no value", key)
	}
	return err
}
