package cli_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"atoll/client"
	"atoll/internal/cli"
	"atoll/quorum"
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
			},
		}
	}
	return client.Status{Cluster: "c1", Configuration: c, Members: []client.MemberStatus{
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
tolerates deaths  reads: any 2 of 3; writes: any 0 of 3
now               2 of 3 members answer; reads work, writes have NO QUORUM

NAME  ADDRESS         STATE   PID  UPTIME  KEYS  DELETED  DISK
a     127.0.0.1:7400  up      42   1m30s   3     1        5.0 MiB
b     127.0.0.1:7401  silent
n3    [::1]:7402      up      42   1m30s   3     1        5.0 MiB

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
	const node = `"node":{"version":"v1","pid":42,"uptime_s":90,"config_index":0,"keys":3,"tombstones":1,"bytes":5242880,"journal_appended":7,"journal_durable":6,"repair":{"passes":0,"keys_compared":0,"records_merged":0,"bytes_merged":0,"records_examined":0,"records_healed":0,"records_damaged":0},` +
		`"certificate_end":"2100-01-01T00:00:00Z"}`
	const want = `{"cluster":"c1",` +
		`"config":{"index":0,"quorum":"get=1,put=3","tolerates":{"members":3,"reads":{"any":2,"best":2},"writes":{"any":0,"best":0}}},` +
		`"live":{"members":2,"reads":true,"writes":false},"members":[` +
		`{"id":"n1","name":"a","addresses":["127.0.0.1:7400"],"state":"up",` + node + `},` +
		`{"id":"n2","name":"b","addresses":["127.0.0.1:7401"],"state":"silent","silence":"no answer"},` +
		`{"id":"n3","name":"","addresses":["[::1]:7402"],"state":"up",` + node + `}]}` + "\n"
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
	s.Members[1].Status.Repair.Damaged = 1
	var table, object bytes.Buffer
	if err := cli.PrintStatus(&table, cli.TableFormat, s); err != nil {
		t.Fatal(err)
	}
	if err := cli.PrintStatus(&object, cli.LinesFormat, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 of 3 members answer; reads work, writes have NO QUORUM",
		"127.0.0.1:7401  NOT READY  0 ",
		"\n\nb takes no writes: no space: 1 byte is free\n",
		"b: 1 damaged record, on which it abstains",
	} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q isn't in\n%s", want, table.String())
		}
	}
	for _, want := range []string{`"live":{"members":3,"reads":true,"writes":false}`, `"trouble":"no space: 1 byte is free"`} {
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
