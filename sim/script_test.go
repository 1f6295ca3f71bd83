package sim_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
)

// script returns a script over the toy of kernel_test.go, whose one operation
// is "take p 5".
func script(t *testing.T) *sim.Script {
	s := sim.NewScript(sim.ScriptConfig{
		Boot: bootTaker,
		Operations: map[string]sim.Operation{
			"take": func(_ quorum.NodeID, e env.Env, args []string) (string, error) {
				n, err := strconv.Atoi(args[0])
				if err != nil {
					return "", err
				}
				return "taken", take(e, n)
			},
		},
		Commands: map[string]func([]string) (string, error){
			"greet": func(args []string) (string, error) {
				if len(args) == 0 {
					return "", errors.New("whom?")
				}
				return "hello   " + args[0], nil
			},
		},
		Describe: func(m env.Message) string {
			switch m := m.(type) {
			case *number:
				return fmt.Sprintf("number %d", m.n)
			case *taken:
				return fmt.Sprintf("taken %d", m.n)
			}
			return "unknown"
		},
	})
	t.Cleanup(s.World.Close)
	return s
}

func TestScript(t *testing.T) {
	for _, c := range []struct{ name, commands, want string }{
		{"deliver", `
			node a
			client p
			take p 5
			deliver p->a number
			deliver *->p
		`, `
			send    p->a: number 5
			deliver p->a: number 5
			sync    a
			send    a->p: taken 5
			deliver a->p: taken 5
			done    p: take 5: taken
		`},
		{"nothing to deliver", `
			node a
			client p
			take p 5
			deliver a->p
			deliver p->* taken
		`, `
			send    p->a: number 5
			nothing a->p
			nothing p->* taken
		`},
		{"lost and sent again", `
			node a
			client p
			take p 5
			drop p->a
			held
			advance 50ms
			held
			exchange
		`, `
			send    p->a: number 5
			lost    p->a: number 5
			send    p->a: number 5
			held    p->a: number 5
			deliver p->a: number 5
			sync    a
			send    a->p: taken 5
			deliver a->p: taken 5
			done    p: take 5: taken
		`},
		{"a copy", `
			node a
			client p
			take p 5
			copy p->a
			deliver-all *->*
			deliver-all *->*
		`, `
			send    p->a: number 5
			deliver p->a: number 5
			sync    a
			send    a->p: taken 5
			deliver p->a: number 5
			sync    a
			send    a->p: taken 5
			deliver a->p: taken 5
			done    p: take 5: taken
			late    a->p: taken 5
		`},
		{"cut and mend", `
			node a
			client p
			cut p->*
			take p 5
			deliver p->a
			mend p->*
			advance 50ms
			deliver p->a
		`, `
			send    p->a: number 5
			lost    p->a: number 5
			send    p->a: number 5
			deliver p->a: number 5
			sync    a
			send    a->p: taken 5
		`},
		{"partition", `
			node a b
			client p
			partition a
			take p 5
			deliver p->a
			mend *->*
			advance 50ms
			deliver p->a
			partition p a
			deliver a->p
		`, `
			send    p->a: number 5
			lost    p->a: number 5
			send    p->a: number 5
			deliver p->a: number 5
			sync    a
			send    a->p: taken 5
			deliver a->p: taken 5
			done    p: take 5: taken
		`},
		{"a command of the script's own", `
			node a
			greet b
			greet
			client p
		`, `
			hello   b
			error: greet: whom?
		`},
		{"a stalled disk", `
			node a
			client p
			stall a
			take p 5
			deliver p->a
			disk a k
			sync a
			disk a k
		`, `
			send    p->a: number 5
			deliver p->a: number 5
			disk    a: k 5@00000000000000010001000000000001=5, not durable (0 is)
			sync    a
			send    a->p: taken 5
			disk    a: k 5@00000000000000010001000000000001=5
		`},
		{"power loss that keeps a group", `
			node a
			client p
			stall a
			take p 5
			deliver p->a
			powerloss a 1
			restart a
			disk a k
		`, `
			send    p->a: number 5
			deliver p->a: number 5
			send    p->a: number 5
			disk    a: k 5@00000000000000010001000000000001=5
		`}, // p asks again as soon as there is a connection
		{"cancel", `
			node a
			client p
			take p 5
			pending
			cancel p
			pending
		`, `
			send    p->a: number 5
			pending p: take 5
			failed  p: take 5: canceled; a: no answer
		`},
		{"crash", `
			node a
			client p
			crash a
			take p 5
			crash p
			restart a
			take p 6
		`, `
			failed  p: take 5: sim: the process has died: stopped
			failed  p: take 6: stopped
		`},
		{"no such command", "take p 5\nnode a", "error: take p 5: no process \"p\"\n"},
		{"no such command", "jump p", "error: jump p: no such command\n"},
		{"no process", "node", "error: node: want a process\n"},
		{"twice", "client p\nnode p", "error: node p: there is a process \"p\" already\n"},
		{"not a node", "client p\nstall p", "error: stall p: not a node\n"},
		{"not down", "client p\nrestart p", "error: restart p: it is up\n"},
		{"no side", "partition", "error: partition: want the processes of one side\n"},
		{"nobody on a side", "partition z", "error: partition z: no process \"z\"\n"},
		{"no link", "deliver p", "error: deliver p: \"p\" is not from->to\n"},
		{"no duration", "advance soon", "error: advance soon: time: invalid duration \"soon\"\n"},
		{"no process to exchange with", "exchange z", "error: exchange z: no process \"z\"\n"},
		{"comments and empty lines", "# node a\n\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := script(t).Do(c.commands)
			if want := strings.TrimPrefix(strings.ReplaceAll(c.want, "\t", ""), "\n"); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}
