package scenario

import (
	"fmt"
	"slices"
	"strings"

	"atoll/abd"
	"atoll/join"
	"atoll/replica"
	"atoll/sim"
)

// Mutants are the rules that a run breaks: of nodes and their protocols, and
// of the simulated world. The zero value breaks none.
type Mutants struct {
	Replica replica.Rules // the replica's, and abd's for nodes and clients
	Join    join.Rules
	World   sim.Rules
}

// rule is a rule that a scenario can break by its name.
type rule struct {
	name  string
	about string // what is done when it is broken, for people
	field func(*Mutants) *bool
}

// rules are all of them. The name is the package and the name of the field.
func rules() []rule {
	return []rule{
		{"abd.NoWriteBack", "a read ends after its get phase whatever it found",
			func(m *Mutants) *bool { return &m.abd().NoWriteBack }},
		{"abd.FastOnReadQuorum", "the one-round read is judged on a read quorum of holders instead of a write quorum",
			func(m *Mutants) *bool { return &m.abd().FastOnReadQuorum }},
		{"abd.FastOnAsked", "the one-round read is judged on those that were asked first",
			func(m *Mutants) *bool { return &m.abd().FastOnAsked }},
		{"abd.FastOnNewest", "it is judged on the newest configuration alone",
			func(m *Mutants) *bool { return &m.abd().FastOnNewest }},
		{"abd.IgnoreNews", "a phase needs the quorums that it knew of when it began",
			func(m *Mutants) *bool { return &m.abd().IgnoreNews }},
		{"abd.FollowOthers", "a phase goes by what other operations have learned of configurations, too",
			func(m *Mutants) *bool { return &m.abd().FollowOthers }},
		{"abd.WakeByMap", "a phase that is woken goes by the map alone, and not by what new members answer",
			func(m *Mutants) *bool { return &m.abd().WakeByMap }},
		{"abd.SleepOn", "a phase that is woken goes on waiting",
			func(m *Mutants) *bool { return &m.abd().SleepOn }},
		{"abd.MovedTellsNothing", "what a node that is out says of lives isn't heard",
			func(m *Mutants) *bool { return &m.abd().MovedTellsNothing }},
		{"abd.DropInTheMiddle", "a get phase goes on without a configuration that is out meanwhile",
			func(m *Mutants) *bool { return &m.abd().DropInTheMiddle }},
		{"abd.CountEarly", "a get phase that begins anew where it stands counts answers of whoever gives them",
			func(m *Mutants) *bool { return &m.abd().CountEarly }},
		{"abd.ForgetWhoAnswered", "a get phase that begins anew where it stands doesn't ask those again who answered before",
			func(m *Mutants) *bool { return &m.abd().ForgetWhoAnswered }},
		{"abd.ServeTheOutdated", "a replica answers who can't hear of configurations",
			func(m *Mutants) *bool { return &m.abd().ServeTheOutdated }},
		{"abd.KeepSpares", "a refusal, or an answer to something else, brings in nobody",
			func(m *Mutants) *bool { return &m.abd().KeepSpares }},
		{"abd.ValueFromAnyone", "a value that was left out is taken from whoever sends one",
			func(m *Mutants) *bool { return &m.abd().ValueFromAnyone }},
		{"abd.TrustSecondAnswer", "a value that comes under a larger tag is taken to be as settled as the one that was left out",
			func(m *Mutants) *bool { return &m.abd().TrustSecondAnswer }},
		{"abd.WaitForHolder", "a value that was left out is waited for, whoever else answers",
			func(m *Mutants) *bool { return &m.abd().WaitForHolder }},
		{"abd.NewTagOnRetry", "an operation that is tried again chooses another tag",
			func(m *Mutants) *bool { return &m.abd().NewTagOnRetry }},
		{"abd.ConfirmEarly", "a tag is called confirmed before its put phase has ended",
			func(m *Mutants) *bool { return &m.abd().ConfirmEarly }},
		{"abd.ConfirmAnyTag", "a replica takes a confirmation for whatever it holds",
			func(m *Mutants) *bool { return &m.abd().ConfirmAnyTag }},
		{"abd.PutOneShort", "a put phase ends with one member less than a quorum",
			func(m *Mutants) *bool { return &m.abd().PutOneShort }},
		{"abd.StoreAnything", "a replica stores smaller tags over larger ones",
			func(m *Mutants) *bool { return &m.abd().StoreAnything }},
		{"abd.AckDuplicateAtOnce", "the ack of a put that wrote nothing doesn't wait for the record that made it a duplicate",
			func(m *Mutants) *bool { return &m.abd().AckDuplicateAtOnce }},
		{"abd.RevealUnsynced", "an answer to a get doesn't wait for the record that it shows",
			func(m *Mutants) *bool { return &m.abd().RevealUnsynced }},
		{"abd.TrustPages", "a list takes each page's largest tags as they are",
			func(m *Mutants) *bool { return &m.abd().TrustPages }},
		{"abd.MergeWholePages", "a list goes on behind the largest end of its pages instead of the smallest",
			func(m *Mutants) *bool { return &m.abd().MergeWholePages }},
		{"abd.WaitForAll", "a phase ends when every member has answered",
			func(m *Mutants) *bool { return &m.abd().WaitForAll }},
		{"abd.TagFromClock", "a write takes its tag from its caller's clock instead of from a get phase",
			func(m *Mutants) *bool { return &m.abd().TagFromClock }},
		{"abd.TimeoutIsFailure", "what ran out of time is reported as not applied",
			func(m *Mutants) *bool { return &m.abd().TimeoutIsFailure }},
		{"abd.TrustRefusals", "what every member refused is reported as not applied, whatever copies are still under way",
			func(m *Mutants) *bool { return &m.abd().TrustRefusals }},
		{"abd.TrustWhenWoken", "it is, though a phase that was woken has asked others, too",
			func(m *Mutants) *bool { return &m.abd().TrustWhenWoken }},
		{"abd.EraseTombstones", "a replica forgets deleted keys",
			func(m *Mutants) *bool { return &m.abd().EraseTombstones }},
		{"abd.DamagedIsAbsent", "a replica takes a damaged record for one that was never written",
			func(m *Mutants) *bool { return &m.abd().DamagedIsAbsent }},
		{"abd.CountForgotten", "an acknowledgement counts though its node has taken it back since",
			func(m *Mutants) *bool { return &m.abd().CountForgotten }},
		{"repair.HealInSameLife", "a node heals a damaged record without beginning another life",
			func(m *Mutants) *bool { return &m.Replica.Repair.HealInSameLife }},
		{"repair.RenewOnce", "a node begins another life for the first damage only",
			func(m *Mutants) *bool { return &m.Replica.Repair.RenewOnce }},
		{"repair.AttestUnsaved", "a node that attests doesn't note the life of the one that heals",
			func(m *Mutants) *bool { return &m.Replica.Repair.AttestUnsaved }},
		{"repair.HealFromAny", "a node heals from the first other one that answers",
			func(m *Mutants) *bool { return &m.Replica.Repair.HealFromAny }},
		{"repair.HealFromSelf", "a node counts itself to the quorum that it heals from",
			func(m *Mutants) *bool { return &m.Replica.Repair.HealFromSelf }},
		{"repair.TrustTags", "a node goes on by the tags of records whose values are known to be damaged",
			func(m *Mutants) *bool { return &m.Replica.Repair.TrustTags }},
		{"repair.HealOneKey", "a node heals a damaged record alone, and not the gap that it stands in",
			func(m *Mutants) *bool { return &m.Replica.Repair.HealOneKey }},
		{"repair.MergeAnything", "a node that pulls takes smaller tags over larger ones",
			func(m *Mutants) *bool { return &m.Replica.Repair.MergeAnything }},
		{"repair.SkipTheDamaged", "an answer that is to leave no record out leaves out those that are damaged",
			func(m *Mutants) *bool { return &m.Replica.Repair.SkipTheDamaged }},
		{"repair.TrustSketch", "a member that is asked by a sketch takes all that it has for known",
			func(m *Mutants) *bool { return &m.Replica.Repair.TrustSketch }},
		{"rambo.FenceUnsaved", "a member says that it is fenced before that is durable",
			func(m *Mutants) *bool { return &m.Replica.Rambo.FenceUnsaved }},
		{"rambo.ForgetPosition", "a node whose disk takes no more forgets that what it knows of configurations isn't durable yet",
			func(m *Mutants) *bool { return &m.Replica.Rambo.ForgetPosition }},
		{"rambo.FenceTooEarly", "a configuration is fenced, and the next one installed, before it is installed itself",
			func(m *Mutants) *bool { return &m.Replica.Rambo.FenceTooEarly }},
		{"rambo.FenceReadQuorum", "a read quorum is fenced, and no write quorum",
			func(m *Mutants) *bool { return &m.Replica.Rambo.FenceReadQuorum }},
		{"rambo.ServeUnfenced", "a page of a merge is given by who doesn't know for whom",
			func(m *Mutants) *bool { return &m.Replica.Rambo.ServeUnfenced }},
		{"rambo.PageUnsaved", "a page of a merge is given by who could forget for whom",
			func(m *Mutants) *bool { return &m.Replica.Rambo.PageUnsaved }},
		{"rambo.LeaveBehind", "who refuses a page for want of knowledge isn't told and asked again",
			func(m *Mutants) *bool { return &m.Replica.Rambo.LeaveBehind }},
		{"rambo.MergeFromOne", "a member has merged when one other has given its pages",
			func(m *Mutants) *bool { return &m.Replica.Rambo.MergeFromOne }},
		{"rambo.MergeWriteQuorum", "a member has merged when a write quorum has given its pages",
			func(m *Mutants) *bool { return &m.Replica.Rambo.MergeWriteQuorum }},
		{"rambo.CountLocated", "the member that has said where a page ends counts for it, whatever it has",
			func(m *Mutants) *bool { return &m.Replica.Rambo.CountLocated }},
		{"rambo.CountByKeys", "the member that has said where a page ends counts for it if it has as many keys",
			func(m *Mutants) *bool { return &m.Replica.Rambo.CountByKeys }},
		{"rambo.LeaveGaps", "a page of a merge that was fetched early is taken, though the one before it has become shorter",
			func(m *Mutants) *bool { return &m.Replica.Rambo.LeaveGaps }},
		{"rambo.StoreUnfetched", "a page of a merge of which too many refuse their part is stored as it is",
			func(m *Mutants) *bool { return &m.Replica.Rambo.StoreUnfetched }},
		{"rambo.SkipUnstored", "a page of a merge that couldn't be stored counts as merged",
			func(m *Mutants) *bool { return &m.Replica.Rambo.SkipUnstored }},
		{"rambo.StoreBehind", "what was fetched behind a page that couldn't be stored is stored all the same",
			func(m *Mutants) *bool { return &m.Replica.Rambo.StoreBehind }},
		{"rambo.DropVotes", "the votes that come with a page of a merge are left out",
			func(m *Mutants) *bool { return &m.Replica.Rambo.DropVotes }},
		{"rambo.MergedUnsaved", "a member says that it has merged before that is durable",
			func(m *Mutants) *bool { return &m.Replica.Rambo.MergedUnsaved }},
		{"rambo.InstallTooFew", "a configuration is installed when one member has merged",
			func(m *Mutants) *bool { return &m.Replica.Rambo.InstallTooFew }},
		{"rambo.StayersHaveAll", "members that stay are taken for such that have merged",
			func(m *Mutants) *bool { return &m.Replica.Rambo.StayersHaveAll }},
		{"rambo.DropLives", "lives of nodes that no active configuration names are forgotten",
			func(m *Mutants) *bool { return &m.Replica.Rambo.DropLives }},
		{"rambo.ForgetLives", "who retires a configuration says nothing of lives",
			func(m *Mutants) *bool { return &m.Replica.Rambo.ForgetLives }},
		{"rambo.AttestForTheOutdated", "a node attests a life to who counts fewer configurations",
			func(m *Mutants) *bool { return &m.Replica.Rambo.AttestForTheOutdated }},
		{"reconfig.TolerateNothing", "a target that survives no death is proposed like any other",
			func(m *Mutants) *bool { return &m.Replica.Reconfig.TolerateNothing }},
		{"reconfig.ProposeUnready", "a target is proposed before its members are asked",
			func(m *Mutants) *bool { return &m.Replica.Reconfig.ProposeUnready }},
		{"reconfig.NewUnready", "it is proposed when a read and a write quorum of it are ready, whoever they are",
			func(m *Mutants) *bool { return &m.Replica.Reconfig.NewUnready }},
		{"reconfig.QuorumUnready", "it is proposed when its new members are ready",
			func(m *Mutants) *bool { return &m.Replica.Reconfig.QuorumUnready }},
		{"reconfig.ReadyUnsaved", "a node says that it is ready without having noted it",
			func(m *Mutants) *bool { return &m.Replica.Reconfig.ReadyUnsaved }},
		{"reconfig.ReadyUnsynced", "it says so before the note is durable",
			func(m *Mutants) *bool { return &m.Replica.Reconfig.ReadyUnsynced }},
		{"reconfig.ReadyForAny", "a node says that it is ready for whatever index",
			func(m *Mutants) *bool { return &m.Replica.Reconfig.ReadyForAny }},
		{"reconfig.VoteOnAny", "an acceptor votes on an index under ballots of whatever configuration",
			func(m *Mutants) *bool { return &m.Replica.Reconfig.VoteOnAny }},
		{"reconfig.AcceptAnything", "it accepts what is no configuration",
			func(m *Mutants) *bool { return &m.Replica.Reconfig.AcceptAnything }},
		{"reconfig.AbortBlindly", "what an abort has decided is taken to be what it proposed",
			func(m *Mutants) *bool { return &m.Replica.Reconfig.AbortBlindly }},
		{"reconfig.FinishAtOnce", "a node finishes what it has just accepted",
			func(m *Mutants) *bool { return &m.Replica.Reconfig.FinishAtOnce }},
		{"synod.RevealUnsynced", "answers don't wait until the record that they show is durable",
			func(m *Mutants) *bool { return &m.Replica.Synod.RevealUnsynced }},
		{"synod.PromiseUnsaved", "a promise isn't stored",
			func(m *Mutants) *bool { return &m.Replica.Synod.PromiseUnsaved }},
		{"synod.AcceptBelowPromise", "a value is accepted under a smaller ballot than was promised",
			func(m *Mutants) *bool { return &m.Replica.Synod.AcceptBelowPromise }},
		{"synod.PromiseBackwards", "a promise is given to a smaller ballot than was promised",
			func(m *Mutants) *bool { return &m.Replica.Synod.PromiseBackwards }},
		{"synod.DamagedIsAbsent", "a record that can't be read counts as one that was never written",
			func(m *Mutants) *bool { return &m.Replica.Synod.DamagedIsAbsent }},
		{"synod.VoteWhenClosed", "an acceptor votes whatever its guard says",
			func(m *Mutants) *bool { return &m.Replica.Synod.VoteWhenClosed }},
		{"synod.MergeOverwrites", "a vote that comes from elsewhere replaces a larger one",
			func(m *Mutants) *bool { return &m.Replica.Synod.MergeOverwrites }},
		{"synod.EmptyVotes", "a node whose vote can't be read hands over the others",
			func(m *Mutants) *bool { return &m.Replica.Synod.EmptyVotes }},
		{"synod.IgnoreAccepted", "a proposer proposes its own value whatever was accepted",
			func(m *Mutants) *bool { return &m.Replica.Synod.IgnoreAccepted }},
		{"synod.AnyAccepted", "it proposes the first accepted value that it hears of, not that of the highest ballot",
			func(m *Mutants) *bool { return &m.Replica.Synod.AnyAccepted }},
		{"synod.CountAnyBallot", "it counts answers to other ballots than its own",
			func(m *Mutants) *bool { return &m.Replica.Synod.CountAnyBallot }},
		{"synod.PrepareOnWrite", "it is content with the promises of a write quorum",
			func(m *Mutants) *bool { return &m.Replica.Synod.PrepareOnWrite }},
		{"synod.AcceptOnRead", "it calls chosen what a read quorum has accepted",
			func(m *Mutants) *bool { return &m.Replica.Synod.AcceptOnRead }},
		{"synod.ReuseBallots", "ballots are told apart by their rounds alone",
			func(m *Mutants) *bool { return &m.Replica.Synod.ReuseBallots }},
		{"synod.RejectedIsFailure", "what was overtaken after an accept has left is reported as certainly not chosen",
			func(m *Mutants) *bool { return &m.Replica.Synod.RejectedIsFailure }},
		{"replica.AckBeforeSync", "no message waits for the journal",
			func(m *Mutants) *bool { return &m.Replica.AckBeforeSync }},
		{"sim.MatchAnyConversation", "an answer to an earlier conversation with the same node is passed to the one that is under way",
			func(m *Mutants) *bool { return &m.World.MatchAnyConversation }},
		{"sim.ReuseIDs", "a process that has restarted draws the operation ids of its first life again",
			func(m *Mutants) *bool { return &m.World.ReuseIDs }},
		{"sim.RetrySync", "an fsync that failed is tried again, and believed",
			func(m *Mutants) *bool { return &m.World.RetrySync }},
		{"join.AnyInstance", "a member notes whatever instance comes",
			func(m *Mutants) *bool { return &m.Join.AnyInstance }},
		{"join.AnswerUnsaved", "it answers before that is durable",
			func(m *Mutants) *bool { return &m.Join.AnswerUnsaved }},
		{"join.OneIsEnough", "a node is in when one member has noted it",
			func(m *Mutants) *bool { return &m.Join.OneIsEnough }},
		{"join.AnyPosition", "what a node has forgotten isn't noticed",
			func(m *Mutants) *bool { return &m.Join.AnyPosition }},
		{"sim.TrustTorn", "what is left of a torn group of records is kept",
			func(m *Mutants) *bool { return &m.World.TrustTorn }},
		{"sim.TrustDamaged", "a disk shows records whose checksum is wrong",
			func(m *Mutants) *bool { return &m.World.TrustDamaged }},
		{"sim.TrustMisplaced", "a disk shows a record that was written in the place of another as that other",
			func(m *Mutants) *bool { return &m.World.TrustMisplaced }},
		{"sim.BootEmpty", "a node whose disk was lost boots over an empty one",
			func(m *Mutants) *bool { return &m.World.BootEmpty }},
		{"sim.NeverResend", "what was lost isn't sent again",
			func(m *Mutants) *bool { return &m.World.NeverResend }},
		{"sim.NeverHedge", "spares aren't asked when those before them are late",
			func(m *Mutants) *bool { return &m.World.NeverHedge }},
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

// RuleAbout returns one sentence about the rule of that name: what is done when
// it is broken. It is empty if there is no such rule.
func RuleAbout(name string) string {
	for _, r := range rules() {
		if r.name == name {
			return r.about
		}
	}
	return ""
}

// abdRules begins the names of the rules of package abd, which only some
// algorithms have; those of the other packages are in every run.
const abdRules = "abd."

// checkRules returns an error if a scenario of algorithm a breaks a rule that
// a doesn't have: nothing would come of it.
func (s Scenario) checkRules(a Algorithm) error {
	has := a.Traits().Rules
	for _, name := range s.Rules {
		if strings.HasPrefix(name, abdRules) && !slices.Contains(has, name) {
			var apply []string
			for _, other := range RuleNames() {
				if !strings.HasPrefix(other, abdRules) || slices.Contains(has, other) {
					apply = append(apply, other)
				}
			}
			return fmt.Errorf("rules: algorithm %q has no rule %q; it has %s", a.Name(), name, strings.Join(apply, ", "))
		}
	}
	return nil
}

// rules returns the mutants that a scenario names.
func (s Scenario) rules() (Mutants, error) { return Break(s.Rules...) }

// Break returns the mutants that lack the rules of these names.
func Break(names ...string) (Mutants, error) {
	var m Mutants
	for _, name := range names {
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
