package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Kinds of records.
const (
	KindEnvironment = "environment"
	KindRun         = "run"
	KindGap         = "gap"
	KindSustained   = "sustained"
	KindChaos       = "chaos"
	KindSilence     = "silence"
	KindChanging    = "changing"
	KindStart       = "start"
	KindConnections = "connections"
	KindIdle        = "idle"
	KindReplacement = "replacement"
	KindSummary     = "summary" // derived: not read again
)

// maxLine is the longest line of a file of results, in bytes.
const maxLine = 64 << 20

// Environment says where and how measurements were made.
type Environment struct {
	Kind       string    `json:"kind"`
	Time       time.Time `json:"time"`
	Command    []string  `json:"command"`
	CPU        string    `json:"cpu"`
	Cores      int       `json:"cores"`
	Memory     int64     `json:"memory_bytes"`
	Kernel     string    `json:"kernel"`
	FileSystem string    `json:"file_system"`
	Go         string    `json:"go"`
}

// Run is one measurement of one target in one round of a cell. Times are in
// milliseconds where their name ends in _ms, otherwise in seconds.
type Run struct {
	Kind    string `json:"kind"`
	Target  string `json:"target"`
	Version string `json:"version"`
	Cell
	Round int `json:"round"`
	// Turn is the target's place in its round, from 0.
	Turn       int     `json:"turn"`
	Seconds    float64 `json:"seconds"`
	Operations uint64  `json:"operations"`
	Errors     uint64  `json:"errors"`
	FirstError string  `json:"first_error,omitempty"`
	PerSecond  float64 `json:"ops_per_s"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	P999       float64 `json:"p999_ms"`
	Max        float64 `json:"max_ms"`
	Stall      float64 `json:"max_stall_ms"`
	// Processor time that was used meanwhile: by the target's nodes, by the
	// load generator, by the nodes of the other targets, which are idle, and
	// by everything else on the machine.
	CPUTarget  float64 `json:"cpu_target_s"`
	CPULoad    float64 `json:"cpu_load_s"`
	CPUIdle    float64 `json:"cpu_idle_targets_s"`
	CPUForeign float64 `json:"cpu_foreign_s"`
	// Session counts the Environment records before this one.
	Session int `json:"-"`
}

// Cell is what is done in a run.
type Cell struct {
	Op      string `json:"op"`
	Clients int    `json:"clients"`
	Value   int    `json:"value"` // bytes
	Keys    int    `json:"keys"`
}

// Gap is one death of a node under writes.
type Gap struct {
	Kind    string `json:"kind"`
	Target  string `json:"target"`
	Version string `json:"version"`
	Round   int    `json:"round"`
	Clients int    `json:"clients"`
	// Killed is the node; Leader says that it led, and Stopped that it was
	// stopped with SIGSTOP instead.
	Killed  string `json:"killed"`
	Leader  bool   `json:"leader"`
	Stopped bool   `json:"stopped,omitempty"`
	// The longest times in which no write of any client was done, before the
	// kill and after.
	StallBefore float64 `json:"stall_before_ms"`
	StallAfter  float64 `json:"stall_after_ms"`
	// The longest times that one client waited for a write to be done.
	ClientBefore float64 `json:"client_stall_before_ms"`
	ClientAfter  float64 `json:"client_stall_after_ms"`
	// Writes per second, before and after.
	Before float64 `json:"ops_per_s_before"`
	After  float64 `json:"ops_per_s_after"`
	Errors uint64  `json:"errors"`
	First  string  `json:"first_error,omitempty"`
}

// Sustained is one long run of a target that was alone on the machine.
type Sustained struct {
	Run
	// Series has the operations done in each second.
	Series  []uint64 `json:"series"`
	Samples []Sample `json:"samples"`
}

// Sample is the state of a target's nodes at a time.
type Sample struct {
	// Second is since the beginning of the run; the first sample is before it.
	Second float64      `json:"second"`
	Nodes  []NodeSample `json:"nodes"`
}

// NodeSample is the state of a node, in bytes.
type NodeSample struct {
	Name string `json:"name"`
	// Resident memory, and how much of it isn't backed by files.
	Resident  int64 `json:"rss_bytes"`
	Anonymous int64 `json:"rss_anonymous_bytes"`
	// Disk is the length of all its files; Journal that of its journal's, of
	// atoll only.
	Disk    int64 `json:"disk_bytes"`
	Journal int64 `json:"journal_bytes,omitempty"`
}

// Silence is one replica that can't be heard while clients go on.
type Silence struct {
	Kind    string `json:"kind"`
	Version string `json:"version"`
	Round   int    `json:"round"`
	Op      string `json:"op"`
	Clients int    `json:"clients"`
	Value   int    `json:"value"`
	// Mode is what was done to it.
	Mode   string `json:"mode"`
	Victim string `json:"victim"`
	// Before nothing is wrong, during it is, after nothing is again.
	Before Phase `json:"before"`
	During Phase `json:"during"`
	After  Phase `json:"after"`
}

// Phase is what clients saw in a stretch of time.
type Phase struct {
	PerSecond float64 `json:"ops_per_s"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	P999      float64 `json:"p999_ms"`
	// Max is the longest operation, and Stall the longest time in which no
	// operation of any client was done.
	Max    float64 `json:"max_ms"`
	Stall  float64 `json:"max_stall_ms"`
	Errors uint64  `json:"errors"`
	First  string  `json:"first_error,omitempty"`
}

// Changing is what clients see without and with changes of the members.
type Changing struct {
	Kind    string `json:"kind"`
	Version string `json:"version"`
	Round   int    `json:"round"`
	Cell
	// Asked is how many changes were to be made in a second, and PerSecond how
	// many were. A change that is due while one is under way is left out.
	Asked     float64 `json:"asked_per_s"`
	PerSecond float64 `json:"changes_per_s"`
	// How long a change took, from the call until it was installed.
	P50 float64 `json:"change_p50_ms"`
	Max float64 `json:"change_max_ms"`
	// Alone the clients have the cluster for themselves.
	Alone     Stretch `json:"alone"`
	Meanwhile Stretch `json:"meanwhile"`
	// What one change costs in a cluster that does nothing else, in milliseconds
	// of processor time, of all nodes and of whoever changes the members; and
	// how long it takes.
	CostNodes   float64 `json:"cost_nodes_ms"`
	CostChanger float64 `json:"cost_changer_ms"`
	IdleP50     float64 `json:"idle_change_p50_ms"`
}

// Stretch is a phase and what it cost: processor time in microseconds for an
// operation, of all nodes, and of the load and whoever changes the members.
type Stretch struct {
	Phase
	CPUNodes float64 `json:"cpu_nodes_us"`
	CPULoad  float64 `json:"cpu_load_us"`
}

// Start is one start of a replica that has keys, alone in its cluster.
type Start struct {
	Kind    string `json:"kind"`
	Version string `json:"version"`
	Round   int    `json:"round"`
	Keys    int    `json:"keys"`
	Value   int    `json:"value"`
	// Asked is how much was to be in the journal only, so that the start had to
	// read it from there, in MiB. Unapplied is how many records that were, and
	// Journal their bytes in its files.
	Asked int `json:"journal_mib"`
	// Killed: the replica was killed under writes, when Asked MiB of segments were
	// in use. Journal is the size of those then, and Unapplied is how many records
	// are in them.
	Killed    bool  `json:"killed"`
	Unapplied int64 `json:"unapplied"`
	Journal   int64 `json:"journal_bytes"`
	// Disk is the length of all its files before the start.
	Disk int64 `json:"disk_bytes"`
	// Ready is the time from the start of the process until it serves, First
	// until a client that was there all along had an answer.
	Ready float64 `json:"ready_ms"`
	First float64 `json:"first_answer_ms"`
	// CPU is what the process used of a processor until it served.
	CPU float64 `json:"cpu_s"`
	// Memory when it served, and after Loaded seconds of reads and writes.
	Resident        int64   `json:"rss_bytes"`
	Anonymous       int64   `json:"rss_anonymous_bytes"`
	LoadedResident  int64   `json:"loaded_rss_bytes"`
	LoadedAnonymous int64   `json:"loaded_rss_anonymous_bytes"`
	Loaded          float64 `json:"loaded_s"`
	LoadedPerSecond float64 `json:"loaded_ops_per_s"`
}

// Connections is a run whose clients are in processes of their own, each with
// connections of its own.
type Connections struct {
	Run
	Processes int `json:"processes"`
	// Shared: the clients of a process shared the connections of one.
	Shared bool `json:"shared,omitempty"`
	// Connecting is how long it took until all clients were connected.
	Connecting float64 `json:"connecting_s"`
	// Resident is the memory of all the target's nodes with all clients
	// connected, before the run, in bytes; Empty that of before the first.
	Empty    int64 `json:"empty_rss_bytes"`
	Resident int64 `json:"rss_bytes"`
}

// Idle is what many idle clients cost, and do to a few busy ones.
type Idle struct {
	Kind      string `json:"kind"`
	Version   string `json:"version"`
	Round     int    `json:"round"`
	Clients   int    `json:"clients"`
	Processes int    `json:"processes"`
	// Connecting is how long it took until all were connected.
	Connecting float64 `json:"connecting_s"`
	// Alone is what the replicas cost before, and Idle what they and the idle
	// clients do while nobody does anything.
	Alone Cost `json:"alone"`
	Idle  Cost `json:"idle"`
	// Busy is what so many busy clients saw.
	BusyClients int      `json:"busy_clients"`
	Busy        []Beside `json:"busy"`
	Back        Return   `json:"back"`
}

// Cost is what was used in a stretch of time: memory at its end, in bytes, and
// processor time, of all nodes together and of all idle clients.
type Cost struct {
	Seconds  float64 `json:"seconds"`
	Nodes    int64   `json:"nodes_rss_bytes"`
	CPUNodes float64 `json:"nodes_cpu_s"`
	Load     int64   `json:"load_rss_bytes"`
	CPULoad  float64 `json:"load_cpu_s"`
}

// Beside is what busy clients saw without idle ones and beside them.
type Beside struct {
	Op     string `json:"op"`
	Alone  Phase  `json:"alone"`
	Beside Phase  `json:"beside"`
}

// Return is how idle clients find a replica again that was killed and started:
// when it serves, when nine in ten are connected and when all are, in seconds
// from its start.
type Return struct {
	Replica  string  `json:"replica"`
	Serves   float64 `json:"serves_s"`
	MostBack float64 `json:"most_back_s"`
	AllBack  float64 `json:"all_back_s"`
	// CPU is what the replica used of a processor until then.
	CPU float64 `json:"cpu_s"`
	// Busy is what busy clients saw from a second before the kill until then.
	Busy Phase `json:"busy"`
}

// Replacement is one member whose place another node takes, which has nothing at
// first, in a cluster of three. Times are in seconds.
type Replacement struct {
	Kind    string `json:"kind"`
	Target  string `json:"target"`
	Version string `json:"version"`
	Cell
	// Rate is how many MiB of records a second the new node may take over; 0: no
	// limit, -1: the replica's own.
	Rate  int `json:"rate_mib"`
	Round int `json:"round"`
	Turn  int `json:"turn"`
	// Deciding is how long it took to have the change decided, and Installing
	// from then until the new configuration was installed.
	Deciding   float64 `json:"deciding_s"`
	Installing float64 `json:"installing_s"`
	// What the new node has taken over: records, and bytes of keys and values.
	MovedKeys int64 `json:"moved_keys"`
	Moved     int64 `json:"moved_bytes"`
	// Processor time of the new node, and of the others, until then.
	CPUNew float64 `json:"cpu_new_s"`
	CPUOld float64 `json:"cpu_old_s"`
	// What clients saw before, until it was installed, and after.
	Before Phase `json:"before"`
	During Phase `json:"during"`
	After  Phase `json:"after"`
	// Series is their throughput over time, and Began and Ended are the times at
	// which the change was asked for, and installed.
	Series []Point `json:"series,omitempty"`
	Began  float64 `json:"began_s"`
	Ended  float64 `json:"ended_s"`
}

// Point is the throughput in a short time that ends at At seconds.
type Point struct {
	At        float64 `json:"at_s"`
	PerSecond float64 `json:"ops_per_s"`
}

// Chaos is one campaign of killing and stopping replicas.
type Chaos struct {
	Kind     string  `json:"kind"`
	Version  string  `json:"version"`
	Seed     uint64  `json:"seed"`
	Replicas int     `json:"replicas"`
	Clients  int     `json:"clients"`
	Seconds  float64 `json:"seconds"`
	// How many times one, two or all replicas were killed at once, and one
	// while it started; Processes is how many were killed altogether.
	One       int `json:"killed_one"`
	Two       int `json:"killed_two"`
	All       int `json:"killed_all"`
	Starting  int `json:"killed_starting"`
	Processes int `json:"killed_processes"`
	// How many times replicas were stopped for a while, and second processes
	// refused.
	Stopped      int     `json:"stopped"`
	Twins        int     `json:"twins"`
	SlowestStart float64 `json:"slowest_start_ms"`
	// What clients were told.
	Operations int    `json:"operations"`
	Puts       uint64 `json:"puts"`
	Gets       uint64 `json:"gets"`
	Deletes    uint64 `json:"deletes"`
	Failed     uint64 `json:"failed"`
	Unknown    uint64 `json:"unknown"`
	Resumed    uint64 `json:"resumed"`
	Surprising uint64 `json:"failed_with_a_quorum"`
	// Keys were read at the end. Of those written once, so many writes were
	// acknowledged or stayed unknown, and of the latter so many were there.
	Keys        int `json:"keys"`
	OnceAcked   int `json:"once_acked"`
	OnceUnknown int `json:"once_unknown"`
	OnceThere   int `json:"once_unknown_there"`
	// What went wrong.
	Complaints int    `json:"complaints"`
	Violation  string `json:"violation,omitempty"`
	Error      string `json:"error,omitempty"`
}

// Records is what was read.
type Records struct {
	Environments []Environment
	Runs         []Run
	Gaps         []Gap
	Silences     []Silence
	Changing     []Changing
	Sustained    []Sustained
	Starts       []Start
	Connections  []Connections
	Idle         []Idle
	Chaos        []Chaos
	Replacements []Replacement
}

// Empty reports whether nothing was measured.
func (r *Records) Empty() bool {
	return len(r.Runs)+len(r.Gaps)+len(r.Silences)+len(r.Changing)+len(r.Sustained)+len(r.Starts)+len(r.Connections)+len(r.Idle)+len(r.Chaos)+len(r.Replacements) == 0
}

// Read adds the records of a file to those of r. It skips lines that don't
// begin an object, so that what was printed can be read again, tables and all.
func (r *Records) Read(from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if !bytes.HasPrefix(lines.Bytes(), []byte("{")) {
			continue
		}
		if err := r.add(lines.Bytes()); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return lines.Err()
}

func (r *Records) add(line []byte) error {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return err
	}
	switch head.Kind {
	case KindEnvironment:
		return decode(line, &r.Environments)
	case KindRun:
		if err := decode(line, &r.Runs); err != nil {
			return err
		}
		r.Runs[len(r.Runs)-1].Session = len(r.Environments)
		return nil
	case KindGap:
		return decode(line, &r.Gaps)
	case KindSustained:
		return decode(line, &r.Sustained)
	case KindChaos:
		return decode(line, &r.Chaos)
	case KindReplacement:
		return decode(line, &r.Replacements)
	case KindSilence:
		return decode(line, &r.Silences)
	case KindChanging:
		return decode(line, &r.Changing)
	case KindStart:
		return decode(line, &r.Starts)
	case KindConnections:
		return decode(line, &r.Connections)
	case KindIdle:
		return decode(line, &r.Idle)
	case KindSummary:
		return nil
	case "":
		return errors.New("an object without a kind")
	}
	return fmt.Errorf("unknown kind %q", head.Kind)
}

func decode[T any](line []byte, to *[]T) error {
	var v T
	if err := json.Unmarshal(line, &v); err != nil {
		return err
	}
	*to = append(*to, v)
	return nil
}
