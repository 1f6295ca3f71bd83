package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"atoll/client"
	"atoll/internal/identity"
)

// exampleCluster starts three replicas in this process. A program gets its
// configuration with client.LoadContext, from the client.json that
// `replica init` or `replica dev` wrote.
func exampleCluster(spec identity.Spec) (cluster *cluster, cfg client.Config, end func()) {
	dir, err := os.MkdirTemp("", "atoll-example-")
	if err != nil {
		log.Fatal(err)
	}
	if cluster, err = newCluster(filepath.Join(dir, "cluster"), 3, spec); err != nil {
		log.Fatal(err)
	}
	if cfg, err = cluster.config(); err != nil {
		log.Fatal(err)
	}
	return cluster, cfg, func() {
		if err := errors.Join(cluster.close(), os.RemoveAll(dir)); err != nil {
			log.Fatal(err)
		}
	}
}

func Example() {
	_, cfg, end := exampleCluster(identity.Spec{})
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	c, err := client.Open(ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	written, err := c.Put(ctx, "greeting", []byte("hello"))
	if err != nil {
		log.Fatal(err)
	}
	value, err := c.Get(ctx, "greeting")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, under the tag that was written: %v\n", value.Bytes, value.Tag == written)

	if _, err := c.Delete(ctx, "greeting"); err != nil {
		log.Fatal(err)
	}
	_, err = c.Get(ctx, "greeting")
	fmt.Println(err, errors.Is(err, client.ErrNotFound))
	// Output:
	// hello, under the tag that was written: true
	// not found true
}

func ExampleClient_List() {
	_, cfg, end := exampleCluster(identity.Spec{})
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.Open(ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	for _, key := range []string{"planet/venus", "planet/mars", "star/sun", "planet/earth"} {
		if _, err := c.Put(ctx, key, nil); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := c.Delete(ctx, "planet/mars"); err != nil {
		log.Fatal(err)
	}
	for entry, err := range c.List(ctx, "planet/") {
		if err != nil {
			log.Fatal(err) // the last thing that a list yields
		}
		fmt.Println(entry.Key)
	}
	// Output:
	// planet/earth
	// planet/venus
}

// A put whose outcome is unknown is resumed, not repeated: a second put could
// undo what others wrote in the meantime.
func ExampleClient_Resume() {
	// With get=1,put=3 a put needs all three replicas. One is down.
	cluster, cfg, end := exampleCluster(identity.Spec{Quorum: "get=1,put=3"})
	defer end()
	c, err := client.Open(context.Background(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := cluster.stop("c"); err != nil {
		log.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = c.Put(ctx, "balance", []byte("42"))
	unknown, ok := errors.AsType[*client.UnknownError](err)
	if !ok {
		log.Fatal("the put has ended: ", err)
	}
	fmt.Println("unknown:", unknown.Cause)

	if err := cluster.start("c"); err != nil {
		log.Fatal(err)
	}
	tag, err := c.Resume(context.Background(), unknown.Operation)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("done, and the same put as before:", tag == unknown.Operation.Tag)
	// Output:
	// unknown: context deadline exceeded
	// done, and the same put as before: true
}
