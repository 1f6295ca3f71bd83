package target

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-zookeeper/zk"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"atoll/bench/load"
	"atoll/client"
)

// Access says how another process reaches a target's nodes. It travels in JSON.
type Access struct {
	Target string
	// Endpoints are those of a peer's nodes, by index.
	Endpoints []string
	// Context is the path of atoll's context file.
	Context string
}

// Connect returns the i'th client that shares its connection with nobody. A
// peer's is connected to one node, and they are spread over the nodes; atoll's
// is connected to all.
func (a Access) Connect(ctx context.Context, i int) (load.Client, io.Closer, error) {
	switch a.Target {
	case Atoll:
		cfg, err := client.LoadContext(a.Context)
		if err != nil {
			return nil, nil, err
		}
		c, err := client.Open(ctx, cfg)
		if err != nil {
			return nil, nil, err
		}
		return atollClient{c}, c, nil
	case Etcd:
		c, err := dialEtcd(a.Endpoints[i%len(a.Endpoints)])
		if err != nil {
			return nil, nil, err
		}
		return etcdClient{c}, c, nil
	case NATS:
		return a.connectNATS(ctx, i)
	case ZK:
		return a.connectZK(ctx, i)
	}
	return nil, nil, fmt.Errorf("no target %q", a.Target)
}

func (a Access) connectNATS(ctx context.Context, i int) (load.Client, io.Closer, error) {
	c, err := nats.Connect(a.Endpoints[i%len(a.Endpoints)])
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(c)
	if err == nil {
		var bucket jetstream.KeyValue
		if bucket, err = js.KeyValue(ctx, natsBucket); err == nil {
			return natsClient{bucket}, closer(c.Close), nil
		}
	}
	c.Close()
	return nil, nil, err
}

func (a Access) connectZK(ctx context.Context, i int) (load.Client, io.Closer, error) {
	c, err := dialZK(zkSession, a.Endpoints[i%len(a.Endpoints)])
	if err != nil {
		return nil, nil, err
	}
	err = eventually(ctx, nil, func(context.Context) error {
		if c.State() != zk.StateHasSession {
			return errors.New("no session yet")
		}
		return nil
	})
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return zkClient{c}, closer(c.Close), nil
}
