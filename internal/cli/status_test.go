package cli_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"atoll/client"
	"atoll/internal/cli"
	"atoll/quorum"
	"atoll/repair"
	"atoll/replica"
)

func testStatus(t *testing.T) client.Status {
	t.Helper()
	c, err := quorum.NewConfiguration(0, []quorum.NodeID{"n1", "n2", "n3"}, quorum.System{Kind: quorum.Threshold, Get: 1, Put: 3})
	if err != nil {
		t.Fatal(err)
	}
	up := func(id quorum.NodeID, name, address string) client.MemberStatus {
		return client.MemberStatus{
			Member: quorum.Member{ID: id, Name: name, Addresses: []string{address}},
			Status: &replica.Status{
				Node: id, Version: "v1", Process: 42, Uptime: 90 * time.Second, Appended: 7, Durable: 6,
				Usage: replica.Usage{Keys: 3, Tombstones: 1, Bytes: 5 << 20}, CertificateEnd: 4_102_444_800,
				Horizon: quorum.Horizon{Next: 1}, Role: replica.RoleMember,
			},
		}
	}
	return client.Status{Cluster: "c1", Configuration: c, Active: quorum.Configurations{c}, Members: []client.MemberStatus{
		up("n1", "a", "127.0.0.1:7400"),
		{Member: quorum.Member{ID: "n2", Name: "b", Addresses: []string{"127.0.0.1:7401"}}, Silence: "no answer"},
		up("n3", "", "[::1]:7402"),
	}}
}

func TestPrintStatusTable(t *testing.T) {
	var out bytes.Buffer
	if err := cli.PrintStatus(&out, cli.TableFormat, testStatus(t)); err != nil {
		t.Fatal(err)
	}
	const want = `cluster           c1
configuration     0: get=1,put=3 of 3 members
tolerates deaths  reads of confirmed values: any 2 of 3; writes: any 0 of 3
now               2 of 3 members answer; reads work that needn't write back, writes have NO QUORUM
WAITING           configuration 0 has no quorum for writes; silent: b

NAME  ADDRESS         STATE   ROLE    CONFIG  PID  UPTIME  KEYS  DELETED  DISK
a     127.0.0.1:7400  up      member  0       42   1m30s   3     1        5.0 MiB
b     127.0.0.1:7401  silent  member
n3    [::1]:7402      up      member  0       42   1m30s   3     1        5.0 MiB

b is silent: no answer
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

// TestPrintStatusJSON pins the names that scripts read.
func TestPrintStatusJSON(t *testing.T) {
	var out bytes.Buffer
	if err := cli.PrintStatus(&out, cli.LinesFormat, testStatus(t)); err != nil {
		t.Fatal(err)
	}
	const node = `"node":{"version":"v1","pid":42,"uptime_s":90,"config_index":0,"role":"member","fenced":false,"config_lag":0,"keys":3,"tombstones":1,"bytes":5242880,"journal_appended":7,"journal_durable":6,"journal_lag":1,"repair":{"passes":0,"keys_compared":0,"records_merged":0,"bytes_merged":0,"records_examined":0,"records_healed":0,"records_damaged":0},` +
		`"certificate_end":"2100-01-01T00:00:00Z"}`
	const want = `{"cluster":"c1",` +
		`"config":{"index":0,"quorum":"get=1,put=3","members":[{"id":"n1","name":"a"},{"id":"n2","name":"b"},{"id":"n3","name":""}],"tolerates":{"members":3,"reads":{"any":2,"best":2},"writes":{"any":0,"best":0},"confirmed_reads":true}},` +
		`"live":{"members":2,"reads":true,"writes":false},"members":[` +
		`{"id":"n1","name":"a","addresses":["127.0.0.1:7400"],"state":"up","role":"member",` + node + `},` +
		`{"id":"n2","name":"b","addresses":["127.0.0.1:7401"],"state":"silent","role":"member","silence":"no answer"},` +
		`{"id":"n3","name":"","addresses":["[::1]:7402"],"state":"up","role":"member",` + node + `}],"standby":[],"active":[0],"waiting_for":[{"config_index":0,"lacks":["writes"],"silent":["n2"],"troubled":[]}],"disagreements":[]}` + "\n"
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

// TestStatusTellsOfCertificates: whose have ended, or end within 30 days.
func TestStatusTellsOfCertificates(t *testing.T) {
	for _, c := range []struct {
		end  time.Duration // from now; 0: not known
		want string
	}{
		{0, ""},
		{31 * 24 * time.Hour, ""},
		{49 * time.Hour, "a: its certificate ends in 2 days, 20"},
		{47*time.Hour + time.Minute, "a: its certificate ends in 47 hours, 20"},
		{119*time.Minute + 30*time.Second, "a: its certificate ends in 119 minutes, 20"},
		{-time.Hour, "a: its certificate has ended, 20"},
	} {
		s := testStatus(t)
		if s.Members[0].Status.CertificateEnd = 0; c.end != 0 {
			s.Members[0].Status.CertificateEnd = time.Now().Add(c.end).Unix()
		}
		var out bytes.Buffer
		if err := cli.PrintStatus(&out, cli.TableFormat, s); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Contains(got, "certificate") != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%v before its end: %s\nwant %q", c.end, got, c.want)
		}
	}
}

// A member in trouble answers, and counts for no write.
func TestPrintStatusOfTrouble(t *testing.T) {
	s := testStatus(t)
	s.Members[1] = client.MemberStatus{Member: s.Members[1].Member, Status: &replica.Status{Node: "n2", Trouble: "no space: 1 byte is free"}}
	s.Members[1].Status.Repair.Damaged, s.Members[1].Status.Unreached = 1, "others can't dial it"
	var table, object bytes.Buffer
	if err := cli.PrintStatus(&table, cli.TableFormat, s); err != nil {
		t.Fatal(err)
	}
	if err := cli.PrintStatus(&object, cli.LinesFormat, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 of 3 members answer; reads work that needn't write back, writes have NO QUORUM",
		"127.0.0.1:7401  NOT READY  unknown  0 ",
		"\n\nb takes no writes: no space: 1 byte is free\n",
		"b: 1 damaged record, on which it abstains",
		"b: others can't dial it\n",
	} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q isn't in\n%s", want, table.String())
		}
	}
	s.Members[1].Status.Repair.Damaged = repair.MaxDamaged
	table.Reset()
	if err := cli.PrintStatus(&table, cli.TableFormat, s); err != nil || !strings.Contains(table.String(), "b: at least 4096 damaged records, on which") {
		t.Errorf("as many as a node keeps in mind: %v, %s", err, table.String())
	}
	for _, want := range []string{`"live":{"members":3,"reads":true,"writes":false}`, `"trouble":"no space: 1 byte is free","unreached":"others can't dial it"`} {
		if !strings.Contains(object.String(), want) {
			t.Errorf("%q isn't in\n%s", want, object.String())
		}
	}
}

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		n    int64
		want string
	}{{0, "0 B"}, {1023, "1023 B"}, {1024, "1.0 KiB"}, {1<<20 - 1, "1024.0 KiB"}, {5 << 30, "5.0 GiB"}, {1<<63 - 1, "8.0 EiB"}} {
		if got := cli.Bytes(c.n); got != c.want {
			t.Errorf("Bytes(%d) = %s, want %s", c.n, got, c.want)
		}
	}
}

// A change of the members under way, a node on standby, and views that differ are
// told.
func TestPrintStatusOfAChange(t *testing.T) {
	s := testStatus(t)
	next, err := quorum.NewConfiguration(1, []quorum.NodeID{"n1", "n3", "n4"}, quorum.System{})
	if err != nil {
		t.Fatal(err)
	}
	s.Configuration, s.Active = next, append(s.Active, next)
	s.Members[0].Status.Configuration, s.Members[0].Status.Horizon = 1, quorum.Horizon{Next: 2}
	s.Members[0].Status.Merge.Index, s.Members[0].Status.Merge.Keys = 1, 1
	s.Standby = []client.MemberStatus{
		{Member: quorum.Member{ID: "n4", Name: "d"}, Status: &replica.Status{Node: "n4", Role: replica.RoleRemoved}}}
	s.Disagreements = []string{"b thinks otherwise"}
	var table, object bytes.Buffer
	if err := cli.PrintStatus(&table, cli.TableFormat, s); err != nil {
		t.Fatal(err)
	}
	if err := cli.PrintStatus(&object, cli.LinesFormat, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the step from configuration 0 to 1\n", "member   1, fenced ", "up      removed  0 ", "DISAGREEMENT: b thinks otherwise\n",
		"a takes over what it lacks for configuration 1: 1 record, 0 B so far\n",
		// The new configuration has all quorums: it isn't the only one that matters.
		"reads work that needn't write back, writes have NO QUORUM\n", "WAITING           configuration 0 has no quorum for writes; silent: b\n"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q isn't in\n%s", want, table.String())
		}
	}
	for _, want := range []string{`"active":[0,1],"waiting_for":[{"config_index":0,"lacks":["writes"],"silent":["n2"],"troubled":[]}],"disagreements":["b thinks otherwise"]`, `"role":"member","fenced":true,"config_lag":0`, `"config_lag":1`, `"role":"removed"`,
		`"merge":{"config_index":1,"keys":1,"bytes":0,"done":false}`} {
		if !strings.Contains(object.String(), want) {
			t.Errorf("%q isn't in\n%s", want, object.String())
		}
	}
}

// TestPrintMembersWhoDisagree: a node that can't note what became of it is told of.
func TestPrintMembersWhoDisagree(t *testing.T) {
	s := testStatus(t)
	s.Disagreements = []string{"b thinks otherwise"}
	for format, want := range map[cli.Format]string{cli.TableFormat: "\n\nDISAGREEMENT: b thinks otherwise\n", cli.LinesFormat: `"disagreements":["b thinks otherwise"]`} {
		var out bytes.Buffer
		if err := cli.PrintMembers(&out, format, s); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%q isn't in\n%s (%v)", want, out.String(), err)
		}
	}
}

// TestPrintMembers pins the names that scripts read.
func TestPrintMembers(t *testing.T) {
	s := testStatus(t)
	s.Standby = []client.MemberStatus{
		{Member: quorum.Member{ID: "n4", Name: "d", Addresses: []string{"h:1"}}, Status: &replica.Status{Role: replica.RoleStandby}},
		{Member: quorum.Member{ID: "n5", Name: "e", Addresses: []string{"h:2"}}},
	}
	var table, object bytes.Buffer
	if err := cli.PrintMembers(&table, cli.TableFormat, s); err != nil {
		t.Fatal(err)
	}
	if err := cli.PrintMembers(&object, cli.LinesFormat, s); err != nil {
		t.Fatal(err)
	}
	const wantTable = `configuration 0: get=1,put=3

NAME  ID  ADDRESS         STATE   ROLE
a     n1  127.0.0.1:7400  up      member
b     n2  127.0.0.1:7401  silent  member
n3    n3  [::1]:7402      up      member
d     n4  h:1             up      standby
e     n5  h:2             silent  no member
`
	const want = `{"config":{"index":0,"quorum":"get=1,put=3","members":[{"id":"n1","name":"a"},{"id":"n2","name":"b"},{"id":"n3","name":""}],"tolerates":{"members":3,"reads":{"any":2,"best":2},"writes":{"any":0,"best":0},"confirmed_reads":true}},"members":[` +
		`{"id":"n1","name":"a","addresses":["127.0.0.1:7400"],"state":"up","role":"member"},` +
		`{"id":"n2","name":"b","addresses":["127.0.0.1:7401"],"state":"silent","role":"member"},` +
		`{"id":"n3","name":"","addresses":["[::1]:7402"],"state":"up","role":"member"}],` +
		`"standby":[{"id":"n4","name":"d","addresses":["h:1"],"state":"up","role":"standby"},` +
		`{"id":"n5","name":"e","addresses":["h:2"],"state":"silent","role":"no member"}]}` + "\n"
	if table.String() != wantTable || object.String() != want {
		t.Errorf("got:\n%s\n%s\nwant:\n%s\n%s", table.String(), object.String(), wantTable, want)
	}
}

// TestWeightsAreShownByName: people name nodes, and don't know their ids.
func TestWeightsAreShownByName(t *testing.T) {
	s := testStatus(t)
	weights, err := quorum.ParseSystem("weights=n1:2,n2:2,n3:1")
	if err != nil {
		t.Fatal(err)
	}
	if s.Configuration, err = quorum.NewConfiguration(0, s.Configuration.Members(), weights); err != nil {
		t.Fatal(err)
	}
	s.Active = quorum.Configurations{s.Configuration}
	for _, show := range []func(io.Writer, cli.Format, client.Status) error{cli.PrintStatus, cli.PrintMembers} {
		var out bytes.Buffer
		if err := show(&out, cli.TableFormat, s); err != nil || !strings.Contains(out.String(), "0: weights=a:2,b:2,n3:1") {
			t.Errorf("%v, got:\n%s", err, out.String())
		}
	}
}
