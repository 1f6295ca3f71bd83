package schedule

import (
	"errors"

	"atoll/env"
	"atoll/quorum"
	"atoll/repair"
	"atoll/sim"
)

// Repair are the tasks of package repair, each once and on the node that is
// named first:
//
//	heal a           it heals the damage at one place, over the configurations
//	                 that it knows
//	pull a b         it takes from b what it has missed
func Repair(r *Run) Table {
	return Table{Operations: map[string]sim.Operation{
		"heal": func(node quorum.NodeID, e env.Env, _ []string) (string, error) {
			m, err := r.mapOn(node)
			if err != nil {
				return "", err
			}
			tasks := repair.Tasks{Configurations: m.Active(), Horizon: m.Horizon(), Rules: r.Rules.Repair}
			healed, err := tasks.HealGap(e)
			if err == nil && !healed {
				return "nothing to heal", nil
			}
			return "", err
		},
		"pull": func(node quorum.NodeID, e env.Env, args []string) (string, error) {
			if len(args) != 1 {
				return "", errors.New("want the node to pull from")
			}
			return "", repair.Tasks{Rules: r.Rules.Repair}.Pass(e, quorum.NodeID(args[0]))
		},
	}}
}
