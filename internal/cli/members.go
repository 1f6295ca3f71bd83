package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"atoll/client"
	"atoll/quorum"
	"atoll/replica"
)

// membersObject is what `member list -o json` prints.
type membersObject struct {
	Config  ConfigObject `json:"config"`
	Members []listObject `json:"members"`
	Standby []listObject `json:"standby"`
	// Disagreements say of which nodes the roles aren't what they take themselves for.
	Disagreements []string `json:"disagreements,omitempty"`
}

type listObject struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"`
	// State is "up" or "silent", and Role "member", "standby" or "removed", or
	// "no member" of a silent one of the last two.
	State string `json:"state"`
	Role  string `json:"role"`
}

// PrintMembers prints who is in a cluster, in any format but raw.
func PrintMembers(w io.Writer, format Format, s client.Status) error {
	if format != TableFormat {
		return PrintObject(w, format, membersObject{ConfigOf(s.Configuration, namesIn(s)), listJSON(s, s.Members), listJSON(s, s.Standby), s.Disagreements})
	}
	_, err := fmt.Fprintf(w, "configuration %d: %v\n\n", s.Configuration.Index(), s.Configuration.System().Text(labelsIn(s)))
	if err != nil {
		return err
	}
	t := NewTable(w, "NAME", "ID", "ADDRESS", "STATE", "ROLE")
	for _, m := range slices.Concat(s.Members, s.Standby) {
		state := "silent"
		if m.Status != nil {
			state = "up"
		}
		if err := t.Row(m.Label(), string(m.ID), orDash(strings.Join(m.Addresses, ",")), state, roleOf(s, m)); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil || len(s.Disagreements) == 0 {
		return err
	}
	_, err = io.WriteString(w, "\n"+disagreements(s))
	return err
}

// roleOf is what a node is: what it takes itself for, and of one that is silent what
// the active configurations say, which don't tell a removed node from a new one.
func roleOf(s client.Status, m client.MemberStatus) string {
	if m.Status != nil {
		return m.Status.Role.String()
	}
	for _, c := range s.Active {
		if _, ok := c.Place(m.ID); ok {
			return replica.RoleMember.String()
		}
	}
	return "no member"
}

func listJSON(s client.Status, members []client.MemberStatus) []listObject {
	all := []listObject{}
	for _, m := range members {
		o := listObject{ID: string(m.ID), Name: m.Name, Addresses: append([]string{}, m.Addresses...), State: "silent", Role: roleOf(s, m)}
		if m.Status != nil {
			o.State = "up"
		}
		all = append(all, o)
	}
	return all
}

// ConfigOf describes a configuration in JSON. name says what people call a node.
func ConfigOf(c *quorum.Configuration, name func(quorum.NodeID) string) ConfigObject {
	return ConfigObject{Index: uint64(c.Index()), Quorum: c.System().String(), Members: NodesOf(c.Members(), name), Tolerates: c.Tolerance()}
}

// NodesOf names nodes in JSON.
func NodesOf(ids []quorum.NodeID, name func(quorum.NodeID) string) []NodeObject {
	all := []NodeObject{}
	for _, id := range ids {
		all = append(all, NodeObject{string(id), name(id)})
	}
	return all
}

// namesIn is what people call the nodes of a status.
func namesIn(s client.Status) func(quorum.NodeID) string {
	names := make(map[quorum.NodeID]string)
	for _, m := range slices.Concat(s.Members, s.Standby) {
		names[m.ID] = m.Name
	}
	return func(id quorum.NodeID) string { return names[id] }
}

// labelsIn is namesIn, and the ids of those that have no name.
func labelsIn(s client.Status) func(quorum.NodeID) string {
	name := namesIn(s)
	return func(id quorum.NodeID) string { return cmp.Or(name(id), string(id)) }
}

// ContextPath returns the path of the context file that the ConnectionFlags, or
// what stands in for them, mean; "" if there is none.
func ContextPath(c *urfave.Context) (string, error) {
	if path := c.Path(FlagContext); path != "" {
		return path, nil
	}
	if len(c.StringSlice(FlagEndpoints)) > 0 {
		return "", nil
	}
	dev, alive, err := FindDev()
	if err != nil || !alive {
		return "", err
	}
	return dev.Context, nil
}

// IsFolder reports whether there is a folder at a path.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
