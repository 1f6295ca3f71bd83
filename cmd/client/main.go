// Command client reads and writes the registers of a cluster.
//
//	client put KEY VALUE|-       store a value
//	client get KEY               print it
//	client delete KEY            make the key absent
//	client list [PREFIX]         print the keys that have a value
//	client status                what the cluster says of itself
//	client member {list,ticket}  who is in the cluster, and who may come
//	client refresh               write where the members are into a context file
//	client bench {put,get,mixed} measure
//	client version
//
// It finds the cluster through --context FILE, or --endpoints with
// certificates; without either it uses the dev cluster of this machine that
// `replica dev` started. `client COMMAND --help` tells more; internal/cli has
// what it shares with the other programs: flags, output, exit codes.
package main

import (
	"os"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
)

func main() { os.Exit(cli.Run(app(), os.Args)) }

func app() *urfave.App {
	return cli.App("client", "read and write the registers of a cluster",
		put(), get(), remove(), list(), status(), member(), refresh(), bench(), cli.Version("client"))
}
