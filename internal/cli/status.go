package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"atoll/client"
	"atoll/internal/identity"
	"atoll/quorum"
	"atoll/replica"
)

// statusObject is what `status -o json` prints.
type statusObject struct {
	Cluster string         `json:"cluster"`
	Config  ConfigObject   `json:"config"`
	Live    liveObject     `json:"live"`
	Members []memberObject `json:"members"`
	// Standby are nodes that no active configuration names.
	Standby []memberObject `json:"standby"`
	// Active are the configurations whose quorums operations need: one, or more
	// while the step to another one is under way.
	Active []uint64 `json:"active"`
	// Waiting are those of them that lack a quorum.
	Waiting       []WantObject `json:"waiting_for"`
	Disagreements []string     `json:"disagreements"`
}

// ConfigObject is a configuration in JSON.
type ConfigObject struct {
	Index     uint64           `json:"index"`
	Quorum    string           `json:"quorum"`
	Members   []NodeObject     `json:"members"`
	Tolerates quorum.Tolerance `json:"tolerates"`
}

// NodeObject is a node in JSON.
type NodeObject struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// liveObject says what the members that answered can do together.
type liveObject struct {
	Members int  `json:"members"`
	Reads   bool `json:"reads"`
	Writes  bool `json:"writes"`
}

type memberObject struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"`
	// State is "up" or "silent"; the fields after Silence are there when it
	// is up.
	State   string      `json:"state"`
	Role    string      `json:"role"`
	Silence string      `json:"silence,omitempty"`
	Node    *nodeObject `json:"node,omitempty"`
}

type nodeObject struct {
	Version string  `json:"version"`
	PID     int     `json:"pid"`
	Uptime  float64 `json:"uptime_s"`
	Config  uint64  `json:"config_index"`
	// Role is "member", "standby" or "removed", as far as the node knows.
	Role string `json:"role"`
	// Fenced: the step to another configuration is under way, for this node.
	Fenced bool `json:"fenced"`
	// Behind is by how many configurations it lags behind the newest.
	Behind     uint64 `json:"config_lag"`
	Keys       int64  `json:"keys"`
	Tombstones int64  `json:"tombstones"`
	Bytes      int64  `json:"bytes"`
	Appended   uint64 `json:"journal_appended"`
	Durable    uint64 `json:"journal_durable"`

	// Lag is how many records aren't durable yet.
	Lag uint64 `json:"journal_lag"`

	Repair repairObject `json:"repair"`
	// Merge is how far the node has come with what it lacked as a new member.
	Merge *mergeObject `json:"merge,omitempty"`
	// CertificateEnd is a time as RFC 3339 writes it.
	CertificateEnd string `json:"certificate_end,omitempty"`
	// Trouble is what keeps the node from taking writes.
	Trouble string `json:"trouble,omitempty"`
	// Unreached says which others can't dial the node where it says that it is.
	Unreached string `json:"unreached,omitempty"`
}

// mergeObject is how far a node has come with merging what the configuration before
// one held.
type mergeObject struct {
	Config uint64 `json:"config_index"`
	Keys   int64  `json:"keys"`
	Bytes  int64  `json:"bytes"`
	Done   bool   `json:"done"`
}

// repairObject is what a node has done about missed and damaged records since
// its process started.
type repairObject struct {
	Passes   int64 `json:"passes"`
	Compared int64 `json:"keys_compared"`
	Merged   int64 `json:"records_merged"`
	Bytes    int64 `json:"bytes_merged"`
	Examined int64 `json:"records_examined"`
	Healed   int64 `json:"records_healed"`
	Damaged  int64 `json:"records_damaged"`
}

// PrintStatus prints what a cluster says of itself, in any format but raw.
func PrintStatus(w io.Writer, format Format, s client.Status) error {
	if format != TableFormat {
		return PrintObject(w, format, statusJSON(s))
	}
	name := namesIn(s)
	tolerance := s.Configuration.Tolerance().Text(func(id quorum.NodeID) string { return cmp.Or(name(id), string(id)) })
	live := liveOf(s)
	pairs := []string{
		"cluster", string(s.Cluster),
		"configuration", fmt.Sprintf("%d: %s of %s", s.Configuration.Index(), s.Configuration.System().Text(labelsIn(s)), plural(int64(len(s.Configuration.Members())), "member")),
		"tolerates deaths", tolerance,
		"now", fmt.Sprintf("%d of %s; %s", live.Members, answering(len(s.Members)), live),
	}
	if len(s.Active) > 1 {
		pairs = append(pairs, "under way", fmt.Sprintf("the step from configuration %d to %d", s.Active[0].Index(), s.Configuration.Index()))
	}
	for _, want := range s.Wants() {
		pairs = append(pairs, "WAITING", want.String())
	}
	if err := Pairs(w, pairs...); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return printMembers(w, s)
}

// printMembers prints a row for each member, and below them why those are
// silent or in trouble that are, and whose certificates end: in the table that
// would make lines of any length.
func printMembers(w io.Writer, s client.Status) error {
	t := NewTable(w, "NAME", "ADDRESS", "STATE", "ROLE", "CONFIG", "PID", "UPTIME", "KEYS", "DELETED", "DISK")
	var notes strings.Builder
	for _, m := range slices.Concat(s.Members, s.Standby) {
		name := m.Label()
		cells := []string{name, orDash(strings.Join(m.Addresses, ","))}
		if m.Status == nil {
			cells = append(cells, "silent", roleOf(s, m), "", "", "", "", "", "")
			fmt.Fprintf(&notes, "%s is silent: %s\n", name, strings.TrimPrefix(oneLine(m.Silence), fmt.Sprintf("node %s: ", m.ID)))
		} else {
			u := m.Status.Usage
			state := "up"
			if m.Status.Trouble != "" {
				state = "NOT READY"
				fmt.Fprintf(&notes, "%s takes no writes: %s\n", name, oneLine(m.Status.Trouble))
			}
			cells = append(cells, state, m.Status.Role.String(), viewOf(m.Status), strconv.Itoa(m.Status.Process), m.Status.Uptime.Round(time.Second).String(),
				strconv.FormatInt(u.Keys, 10), strconv.FormatInt(u.Tombstones, 10), Bytes(u.Bytes))
			if m.Status.Unreached != "" {
				fmt.Fprintf(&notes, "%s: %s\n", name, oneLine(m.Status.Unreached))
			}
			notes.WriteString(mergeNote(name, m.Status))
			notes.WriteString(certificateNote(name, m.Status.CertificateEnd, time.Now()))
			if r := m.Status.Repair; r.Damaged > 0 {
				what := "damaged records"
				if r.Damaged == 1 {
					what = "damaged record"
				}
				fmt.Fprintf(&notes, "%s: %s %s, on which it abstains until healed from other members\n", name, r.DamagedText(), what)
			}
		}
		if err := t.Row(cells...); err != nil {
			return err
		}
	}
	notes.WriteString(disagreements(s))
	if err := t.Flush(); err != nil || notes.Len() == 0 {
		return err
	}
	_, err := io.WriteString(w, "\n"+notes.String())
	return err
}

// disagreements is a line for each node that isn't what it takes itself for.
func disagreements(s client.Status) string {
	var lines strings.Builder
	for _, d := range s.Disagreements {
		lines.WriteString("DISAGREEMENT: " + d + "\n")
	}
	return lines.String()
}

// viewOf is what a node knows of the configurations: the newest, and ", fenced" while
// it knows of one that isn't the only one.
func viewOf(s *replica.Status) string {
	view := strconv.FormatUint(uint64(s.Configuration), 10)
	if fenced(s) {
		view += ", fenced"
	}
	return view
}

func fenced(s *replica.Status) bool { return s.Horizon.Next > s.Horizon.Installed+1 }

// mergeNote is a line about a merge that goes on.
func mergeNote(name string, s *replica.Status) string {
	if s.Merge.Index == 0 || s.Merge.Done {
		return ""
	}
	return fmt.Sprintf("%s takes over what it lacks for configuration %d: %s, %s so far\n", name, s.Merge.Index, plural(s.Merge.Keys, "record"), Bytes(s.Merge.Bytes))
}

// answering is of how many members some answer: "1 member answers".
func answering(members int) string {
	if members == 1 {
		return "1 member answers"
	}
	return plural(int64(members), "member") + " answer"
}

// plural counts things whose name takes an s.
func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// certificateNote is a line about a certificate that ends soon, or has ended.
func certificateNote(name string, end int64, now time.Time) string {
	at := time.Unix(end, 0)
	switch left := at.Sub(now); {
	case end == 0 || left >= identity.ExpiryWarning:
		return ""
	case left <= 0:
		return fmt.Sprintf("%s: its certificate has ended, %s: replica renew makes a new one\n", name, at.UTC().Format(time.RFC3339))
	default:
		return fmt.Sprintf("%s: its certificate ends in %s, %s: replica renew makes a new one\n", name, wholeUnits(left), at.UTC().Format(time.RFC3339))
	}
}

// wholeUnits says how long something still lasts: in days, and below two days in
// hours, and below two hours in minutes.
func wholeUnits(left time.Duration) string {
	switch {
	case left >= 48*time.Hour:
		return plural(int64(left/(24*time.Hour)), "day")
	case left >= 2*time.Hour:
		return plural(int64(left/time.Hour), "hour")
	default:
		return plural(int64(left/time.Minute), "minute")
	}
}

func statusJSON(s client.Status) statusObject {
	o := statusObject{
		Cluster:       string(s.Cluster),
		Config:        ConfigOf(s.Configuration, namesIn(s)),
		Live:          liveOf(s),
		Members:       membersJSON(s, s.Members, s.Configuration.Index()),
		Standby:       membersJSON(s, s.Standby, s.Configuration.Index()),
		Waiting:       WantsOf(s.Wants()),
		Disagreements: append([]string{}, s.Disagreements...),
	}
	for _, c := range s.Active {
		o.Active = append(o.Active, uint64(c.Index()))
	}
	return o
}

func membersJSON(s client.Status, members []client.MemberStatus, newest quorum.ConfigIndex) []memberObject {
	all := []memberObject{}
	for _, m := range members {
		e := memberObject{ID: string(m.ID), Name: m.Name, Addresses: append([]string{}, m.Addresses...), State: "silent", Role: roleOf(s, m), Silence: m.Silence}
		if n := m.Status; n != nil {
			e.State, e.Silence = "up", ""
			e.Node = &nodeObject{
				Version: n.Version, PID: n.Process, Uptime: n.Uptime.Seconds(), Config: uint64(n.Configuration),
				Keys: n.Usage.Keys, Tombstones: n.Usage.Tombstones, Bytes: n.Usage.Bytes,
				Role: n.Role.String(), Fenced: fenced(n), Behind: m.Behind(newest), Lag: uint64(n.Appended - min(n.Appended, n.Durable)),
				Appended: uint64(n.Appended), Durable: uint64(n.Durable), Trouble: n.Trouble, Unreached: n.Unreached,
				Repair: repairObject(n.Repair),
			}
			if n.Merge.Index > 0 {
				e.Node.Merge = &mergeObject{uint64(n.Merge.Index), n.Merge.Keys, n.Merge.Bytes, n.Merge.Done}
			}
			if n.CertificateEnd != 0 {
				e.Node.CertificateEnd = time.Unix(n.CertificateEnd, 0).UTC().Format(time.RFC3339)
			}
		}
		all = append(all, e)
	}
	return all
}

// liveOf counts the members that answered. Reads and writes need quorums of every
// active configuration; writes need read quorums, too.
func liveOf(s client.Status) liveObject {
	live := liveObject{Reads: true, Writes: true}
	for _, m := range s.Members {
		if m.Status != nil {
			live.Members++
		}
	}
	for _, w := range s.Wants() {
		live.Reads, live.Writes = live.Reads && !w.Reads, live.Writes && !w.Reads && !w.Writes
	}
	return live
}

// WantObject is a configuration that lacks a quorum, in JSON.
type WantObject struct {
	Config uint64 `json:"config_index"`
	// Lacks are the kinds of quorum that it hasn't got: "reads", "writes".
	Lacks []string `json:"lacks"`
	// Silent are ids of members that don't answer, Troubled of those that take no
	// writes.
	Silent   []string `json:"silent"`
	Troubled []string `json:"troubled"`
}

// WantsOf are configurations that lack a quorum, as JSON has them.
func WantsOf(wants []client.Want) []WantObject {
	all := []WantObject{}
	ids := func(members []client.MemberStatus) []string {
		texts := []string{}
		for _, m := range members {
			texts = append(texts, string(m.ID))
		}
		return texts
	}
	for _, w := range wants {
		var lacks []string
		if w.Reads {
			lacks = append(lacks, "reads")
		}
		if w.Writes {
			lacks = append(lacks, "writes")
		}
		all = append(all, WantObject{uint64(w.Configuration.Index()), lacks, ids(w.Silent), ids(w.Troubled)})
	}
	return all
}

// String says what works, for people.
func (l liveObject) String() string {
	switch {
	case l.Reads && l.Writes:
		return "reads work, writes work"
	case l.Reads:
		return "reads work that needn't write back, writes have NO QUORUM"
	}
	return "reads and writes have NO QUORUM"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Bytes returns a number of bytes for people: "0 B", "17.3 MiB".
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < len(byteUnits)-1 {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %s", value, byteUnits[unit])
}

var byteUnits = [...]string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
