package scenario

import (
	"slices"
	"time"
)

// Builtins returns the scenarios that have a name of their own.
func Builtins() []Scenario {
	crashes := []string{"crash", "powerloss", "pause"}
	network := []string{"cut", "isolate", "disconnect", "break", "slow", "gray", "lossy", "double", "minimal", "reach"}
	disks := []string{"powerloss", "torn", "failsync", "lose", "slowdisk", "stall", "full", "damage", "misdirect", "rot"}
	clocks := []string{"jump", "drift", "pause"}
	base := Scenario{
		Repair:  anyRepair,
		Clients: 8, Keys: 4, Nodes: 5,
		Duration: Duration(2 * time.Second),
		Mix:      Mix{Read: 50, Write: 38, Delete: 8, List: 4},
		Think:    Duration(4 * time.Millisecond),
		Timeout:  Duration(400 * time.Millisecond),
		Retry:    500_000,
	}
	named := func(name, about string, kinds ...string) Scenario {
		s := base
		s.Name, s.About, s.Faults.Kinds = name, about, kinds
		return s.WithDefaults()
	}
	quiet := named("quiet", "no faults: what an operation costs")
	quiet.Mix, quiet.Repair = Mix{Read: 50, Write: 50}, repairOff
	// What a node has forgotten others notice only where nodes greet, and a copy is put
	// back only where all of them can notice.
	all := slices.DeleteFunc(FaultKinds(), func(kind string) bool { return kind == "restore" })
	registers := named("registers", "registers of five nodes and eight clients, under every kind of fault", all...)
	registers.Quorum = anyQuorum
	lists := named("lists", "many keys, and lists of them", slices.Concat(crashes, network)...)
	// A read quorum of majorities shows what is settled: any other doesn't.
	lists.Quorum = anyQuorum
	lists.Keys, lists.Mix = 60, Mix{Read: 10, Write: 50, Delete: 10, List: 30}
	healing := named("healing", "three nodes whose records are damaged, again and again, and healed", "damage", "rot", "minimal", "reach", "lossy", "slow", "crash")
	healing.Nodes, healing.Keys, healing.Repair = 3, 2, repairOn
	healing.Faults.Every, healing.Faults.Lasts = Duration(60*time.Millisecond), Duration(60*time.Millisecond)
	churn := named("churn", "members that change all the time, by two operators, under faults of every kind", all...)
	churn.Nodes, churn.Clients, churn.Keys = 3, 4, 3
	churn.Quorum = anyQuorum
	churn.Membership = Membership{Operators: 2, Blank: 5}
	churn = churn.WithDefaults()
	copies := named("copies", "members that are restored from older copies of their disks, when all others know better", "restore", "crash", "powerloss", "pause", "slow", "lossy", "double")
	copies.Nodes, copies.Clients, copies.Keys, copies.Repair = 3, 4, 3, repairOff
	copies.Membership = Membership{Operators: 1, Blank: 2}
	copies.Faults.All, copies.Faults.Every = true, Duration(250*time.Millisecond)
	copies = copies.WithDefaults()
	return []Scenario{
		registers,
		quiet,
		lists,
		named("lossy", "messages that are lost, doubled, slow, or reach only some", "lossy", "double", "slow", "gray", "minimal", "reach"),
		named("crashes", "processes that die, lose power or freeze, and come back", crashes...),
		named("partitions", "ways that are cut in one or both directions, connections that break", network...),
		named("disks", "disks that lose, stall, fill up, are damaged or gone", disks...),
		healing,
		churn,
		copies,
		named("clocks", "clocks that jump and drift", clocks...),
	}
}

// Builtin returns the built-in scenario of that name.
func Builtin(name string) (Scenario, bool) {
	for _, s := range Builtins() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}
