package scenario

import (
	"fmt"
	"strings"

	"atoll/abd"
	"atoll/replica"
	"atoll/sim"
)

// Mutants are the rules that a run breaks: of nodes and their protocols, and
// of the simulated world. The zero value breaks none.
type Mutants struct {
	Replica replica.Rules // the replica's, and abd's for nodes and clients
	World   sim.Rules
}

// rule is a rule that a scenario can break by its name.
type rule struct {
	name  string
	field func(*Mutants) *bool
}

// rules are all of them. The name is the package and the name of the field.
func rules() []rule {
	return []rule{
		{"abd.NoWriteBack", func(m *Mutants) *bool { return &m.abd().NoWriteBack }},
		{"abd.FastOnReadQuorum", func(m *Mutants) *bool { return &m.abd().FastOnReadQuorum }},
		{"abd.NewTagOnRetry", func(m *Mutants) *bool { return &m.abd().NewTagOnRetry }},
		{"abd.ConfirmEarly", func(m *Mutants) *bool { return &m.abd().ConfirmEarly }},
		{"abd.ConfirmAnyTag", func(m *Mutants) *bool { return &m.abd().ConfirmAnyTag }},
		{"abd.PutOneShort", func(m *Mutants) *bool { return &m.abd().PutOneShort }},
		{"abd.StoreAnything", func(m *Mutants) *bool { return &m.abd().StoreAnything }},
		{"abd.AckDuplicateAtOnce", func(m *Mutants) *bool { return &m.abd().AckDuplicateAtOnce }},
		{"abd.RevealUnsynced", func(m *Mutants) *bool { return &m.abd().RevealUnsynced }},
		{"abd.TrustPages", func(m *Mutants) *bool { return &m.abd().TrustPages }},
		{"abd.MergeWholePages", func(m *Mutants) *bool { return &m.abd().MergeWholePages }},
		{"abd.WaitForAll", func(m *Mutants) *bool { return &m.abd().WaitForAll }},
		{"abd.TagFromClock", func(m *Mutants) *bool { return &m.abd().TagFromClock }},
		{"abd.TimeoutIsFailure", func(m *Mutants) *bool { return &m.abd().TimeoutIsFailure }},
		{"abd.TrustRefusals", func(m *Mutants) *bool { return &m.abd().TrustRefusals }},
		{"abd.EraseTombstones", func(m *Mutants) *bool { return &m.abd().EraseTombstones }},
		{"abd.DamagedIsAbsent", func(m *Mutants) *bool { return &m.abd().DamagedIsAbsent }},
		{"replica.AckBeforeSync", func(m *Mutants) *bool { return &m.Replica.AckBeforeSync }},
		{"sim.MatchAnyConversation", func(m *Mutants) *bool { return &m.World.MatchAnyConversation }},
		{"sim.ReuseIDs", func(m *Mutants) *bool { return &m.World.ReuseIDs }},
		{"sim.RetrySync", func(m *Mutants) *bool { return &m.World.RetrySync }},
		{"sim.TrustTorn", func(m *Mutants) *bool { return &m.World.TrustTorn }},
		{"sim.TrustDamaged", func(m *Mutants) *bool { return &m.World.TrustDamaged }},
		{"sim.TrustMisplaced", func(m *Mutants) *bool { return &m.World.TrustMisplaced }},
		{"sim.BootEmpty", func(m *Mutants) *bool { return &m.World.BootEmpty }},
		{"sim.NeverResend", func(m *Mutants) *bool { return &m.World.NeverResend }},
	}
}

func (m *Mutants) abd() *abd.Rules { return &m.Replica.ABD }

// RuleNames returns the names of all rules that a scenario can break, each
// "package.Field".
func RuleNames() []string {
	var names []string
	for _, r := range rules() {
		names = append(names, r.name)
	}
	return names
}

// rules returns the mutants that a scenario names.
func (s Scenario) rules() (Mutants, error) {
	var m Mutants
	for _, name := range s.Rules {
		if err := m.violate(name); err != nil {
			return m, err
		}
	}
	return m, nil
}

func (m *Mutants) violate(name string) error {
	for _, r := range rules() {
		if r.name == name {
			*r.field(m) = true
			return nil
		}
	}
	return fmt.Errorf("rules: no rule %q; there are %s", name, strings.Join(RuleNames(), ", "))
}
