package sim_test

import (
	"strings"
	"testing"
)

// Commands that are about faults: what each does is in the tests of the fault,
// here is that it does it, and to whom.
func TestScriptFaults(t *testing.T) {
	const begin = "node a\nclient p q\n"
	for _, c := range []struct{ name, commands, want string }{
		{"pause and resume", begin + `
			pause a
			take p 5
			deliver p->a
			disk a k
			resume a
			disk a k
		`, `
			send    p->a: number 5
			disk    a: k 0
			deliver p->a: number 5
			sync    a
			send    a->p: taken 5
			disk    a: k 5@00000000000000010001000000000001=5
		`},
		{"limit and clock", begin + `
			limit p 5s
			take p 5
			take q 6
			clock p 4999ms
			pending
			clock p 1ms
			pending
		`, `
			send    p->a: number 5
			send    q->a: number 6
			send    p->a: number 5
			pending p: take 5
			pending q: take 6
			failed  p: take 5: deadline exceeded; a: no answer
			pending q: take 6
		`},
		{"a fast clock", begin + `
			limit p 6s
			clock p 500000ppm
			crash a
			take p 5
			advance 3999ms
			pending
			advance 1ms
		`, `
			pending p: take 5
			failed  p: take 5: deadline exceeded; a: connection refused
		`},
		{"flow", begin + `
			flow 1ms
			gray a 2s
			slowdisk a 5ms
			take p 5
			advance 10s
			gray a 0s
			slowdisk a 0s
			take q 6
			when-done q take p 7
			advance 10s
			hold
			take q 8
		`, `
			done    p: take 5: taken, after 4.007s
			done    q: take 6: taken, after 2ms
			done    p: take 7: taken, after 2ms
			send    q->a: number 8
		`},
		{"break", begin + `
			take p 5
			break p a
			deliver p->a
			deliver p->a
		`, `
			send    p->a: number 5
			send    p->a: number 5
			late    p->a: number 5
			deliver p->a: number 5
			sync    a
			send    a->p: taken 5
		`},
		{"disk", begin + `
			take p 5
			deliver p->a
			save a
			damage a k
			disk a k
			restore a
			restart a
			disk a k
			stall a
			take q 6
			deliver q->a
			tear a
			restart a
			disk a k
			lose a
			restart a
		`, `
			send    p->a: number 5
			deliver p->a: number 5
			sync    a
			send    a->p: taken 5
			disk    a: k: damaged record: key "k" of a simulated disk
			send    p->a: number 5
			disk    a: k 5@00000000000000010001000000000001=5
			send    q->a: number 6
			deliver q->a: number 6
			send    p->a: number 5
			send    q->a: number 6
			disk    a: k 5@00000000000000010001000000000001=5
			down    a: sim: boot a: sim: the disk was lost, and with it what the node has promised
		`},
		{"a disk that fails", begin + `
			failsync a
			take p 5
			deliver p->a
			restart a
			fill a
			take q 6
			deliver q->a
			free a
		`, `
			send    p->a: number 5
			deliver p->a: number 5
			down    a: sim: fsync failed
			send    p->a: number 5
			send    q->a: number 6
			deliver q->a: number 6
			down    a: no space: a simulated disk of 50 bytes
		`},
		{"no node", begin + "lose p", "error: lose p: not a node\n"},
		{"no backup", begin + "restore a", "error: restore a: nothing was saved\n"},
		{"no key", begin + "damage a", "error: damage a: want a key, or a cell\n"},
		{"no cell", begin + "damagecell a", "error: damagecell a: want a key, or a cell\n"},
		{"no drift", begin + "clock p 600000ppm", "error: clock p 600000ppm: want a drift of up to 500000ppm\n"},
		{"no duration", begin + "limit p", "error: limit p: want a duration\n"},
		{"no connection", begin + "break p p", "error: break p p: want two processes\n"},
		{"no share", begin + "flow 1ms 101%", "error: flow 1ms 101%: want a share in percent\n"},
		{"no operation", begin + "when-done p pending", "error: when-done p pending: p has no operation under way\n"},
		{"no process", "pause", "error: pause: want a process\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := script(t).Do(c.commands)
			if want := strings.TrimPrefix(strings.ReplaceAll(c.want, "\t", ""), "\n"); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}
