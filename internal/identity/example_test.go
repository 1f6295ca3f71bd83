package identity_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"atoll/internal/identity"
)

func ExampleCreateCluster() {
	parent, err := os.MkdirTemp("", "identity-example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "cluster")

	members, err := identity.ParseMembers("a=10.0.0.1:7400,b=10.0.0.2:7400,c=[2001:db8::3]:7400")
	if err != nil {
		fmt.Println(err)
		return
	}
	cluster, err := identity.CreateCluster(dir, identity.Spec{Members: members})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cluster.Quorum, "of", len(cluster.Members), "members at", cluster.Endpoints())

	_ = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			fmt.Println(path)
		}
		return err
	})

	folder, err := identity.OpenFolder(filepath.Join(dir, "b"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("member", folder.Name, "is a", folder.Credentials.Self().Role)

	_, err = identity.CreateCluster(dir, identity.Spec{Members: members})
	fmt.Println(identity.ClassOf(err) == identity.Precondition)

	// Output:
	// majority of 3 members at [10.0.0.1:7400 10.0.0.2:7400 [2001:db8::3]:7400]
	// a/ca.crt
	// a/client.json
	// a/cluster.json
	// a/identity.json
	// a/node.crt
	// a/node.key
	// admin.json
	// b/ca.crt
	// b/client.json
	// b/cluster.json
	// b/identity.json
	// b/node.crt
	// b/node.key
	// c/ca.crt
	// c/client.json
	// c/cluster.json
	// c/identity.json
	// c/node.crt
	// c/node.key
	// ca/ca.crt
	// ca/ca.key
	// client.json
	// member b is a node
	// true
}
