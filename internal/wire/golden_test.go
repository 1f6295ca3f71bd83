package wire_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/wire"
	"atoll/join"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/reconfig"
	"atoll/repair"
	"atoll/replica"
	"atoll/synod"
	"atoll/tags"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata/frames.golden from what the encoder writes now")

const goldenFile = "testdata/frames.golden"

const goldenHead = `# The bytes of every message on the wire, header included, in several shapes:
# the name, the body as MessagePack sees it (bin is in hexadecimal), the bytes.
#
# A difference here means that two versions of atoll no longer understand each
# other. See "Two versions at once" in the package doc before you rewrite
# this file (go test ./internal/wire -run TestGolden -rewrite).
`

// A sample is a frame that the goldens pin and the fuzz targets start from.
type sample struct {
	name         string
	conversation uint64
	message      env.Message
}

func samples() []sample {
	pid := tags.NewPID(0x0123456789abcdef, 0xfedc, 0x112233445566)
	tag := tags.Tag{Seq: 300, PID: pid, RMW: 2}
	largest := tags.Tag{Seq: 1<<64 - 1, PID: tags.NewPID(1<<64-1, 1<<16-1, tags.MaxCount), RMW: 1<<64 - 1}
	known := abd.Standing{Horizon: quorum.Horizon{Installed: 3, Next: 5}}
	news := known
	news.News = &quorum.News{Map: configMap(3, 4), Members: []quorum.Member{{ID: "n1", Name: "one", Addresses: []string{"h:1"}, Version: 7, Proof: []byte{1, 2}}}}
	later := abd.Standing{Life: 2, Others: []abd.LifeOf{{Node: "n1", Life: 1}, {Node: "n4y2a", Life: 1<<64 - 1}}}
	anyBytes := abd.Key("\x00\xff\n/é")
	ballot := synod.Ballot{Index: 6, Round: 1<<64 - 1, ID: pid}
	horizon := quorum.Horizon{Installed: 6, Next: 7}
	told := synod.Told{Horizon: horizon, News: &quorum.News{Map: configMap(6), Members: []quorum.Member{{ID: "n1", Name: "one", Addresses: []string{"h:1"}}}}}
	return append(joinSamples(), []sample{
		{"hello of a node", 0, &wire.Hello{Version: wire.Version, Cluster: "c-7hq2", Node: "n4y2a", Bulk: true}},
		{"hello of a client", 0, &wire.Hello{Version: 65535, Cluster: "c-7hq2"}},
		{"refused", 9, &env.Refused{Reason: env.ReasonTooLarge, Text: "the value has 9 bytes, at most 8 are allowed"}},
		{"refused without a text", 9, &env.Refused{Reason: env.ReasonDenied}},

		{"get", 1, &abd.Get{Key: "color"}},
		{"get of the tag only", 1 << 40, &abd.Get{Key: anyBytes, TagOnly: true}},
		{"get of a small value", 300, &abd.Get{Key: "color", ValueLimit: abd.DefaultInline}},
		{"get-ack", 1, &abd.GetAck{Record: abd.Record{Tag: tag, Value: []byte("blue")}, Confirmed: true}},
		{"get-ack, never written", 1, &abd.GetAck{}},
		{"gossip", 0, &rambo.Gossip{Knowledge: rambo.Knowledge{News: news.News, Lives: later.Others}}},
		{"gossip of who knows nothing", 0, &rambo.Gossip{}},
		{"gossip of who knows members only", 0, &rambo.Gossip{Knowledge: rambo.Knowledge{News: &quorum.News{Members: news.News.Members}}}},
		{"gossiped", 3, &rambo.Gossiped{Knowledge: rambo.Knowledge{News: news.News}}},
		{"announce", 3, &rambo.Announce{News: news.News}},
		{"announced", 3, &rambo.Announced{Horizon: quorum.Horizon{Installed: 3, Next: 5}}},
		{"fence", 3, &rambo.Fence{Index: 3, Knowledge: rambo.Knowledge{News: news.News, Lives: later.Others}}},
		{"fenced", 3, &rambo.Fenced{Index: 3, Knowledge: rambo.Knowledge{News: news.News, Lives: later.Others}}},
		{"install", 3, &rambo.Install{Index: 4, Knowledge: rambo.Knowledge{News: news.News}}},
		{"installed", 3, &rambo.Installed{Index: 4}},
		{"how-far", 3, &rambo.HowFar{}},
		{"so-far", 3, &rambo.SoFar{Progress: rambo.Progress{Index: 4, Keys: 70000, Bytes: 1 << 40, After: anyBytes, Done: true}}},
		{"summarize for a merge", 3, &repair.Summarize{Range: repair.Range{After: "a", To: "b"}, Keys: 3, Terms: repair.Terms{Knows: 4}}},
		{"summarize that is cut", 3, &repair.Summarize{Range: repair.Range{After: "a"}, Keys: 3, Terms: repair.Terms{Knows: 4}, Cut: true}},
		{"summary that was cut", 3, &repair.Summary{Keys: 3, Hash: 5, Last: "b"}},
		{"offer for a merge", 3, &repair.Offer{Range: repair.Range{After: "a"}, Terms: repair.Terms{Knows: 4}, Limit: 4000}},
		{"offer by a sketch", 3, &repair.Offer{Range: repair.Range{After: "a"}, Sketch: repair.Sketch{Salt: 300, Digests: []uint64{1, 1 << 63}}, Terms: repair.Terms{Knows: 4}, Limit: 4000}},
		{"summary of a later life", 3, &repair.Summary{Keys: 3, Hash: 7, Standing: later}},
		{"missing of a later life", 3, &repair.Missing{Standing: later}},
		{"missing with a vote", 5, &repair.Missing{Votes: []synod.Carried{{Instance: "key/k",
			Vote: synod.Vote{Ballot: synod.Ballot{Index: 1, Round: 2, ID: tag.PID}, Value: []byte("v")}}}}},
		{"attest of somebody behind", 3, &repair.Attest{Life: 1, Horizon: quorum.Horizon{Installed: 3, Next: 4}}},
		{"get of somebody behind", 1, &abd.Get{Key: "k", Horizon: quorum.Horizon{Installed: 1, Next: 2}}},
		{"put of somebody behind", 1, &abd.Put{Key: "k", Horizon: quorum.Horizon{Installed: 1, Next: 2}}},
		{"list of somebody behind", 1, &abd.List{Limit: 1, Horizon: quorum.Horizon{Installed: 1, Next: 2}}},
		{"get-ack with news", 1, &abd.GetAck{Standing: news}},
		{"put-ack with news", 1, &abd.PutAck{Standing: news}},
		{"put-ack of two configurations", 1, &abd.PutAck{Standing: known}},
		{"page with news", 1, &abd.Page{Standing: news}},
		{"moved", 1, &abd.Moved{Standing: news}},
		{"get-ack of a later life", 1, &abd.GetAck{Standing: later}},
		{"get-ack, empty value", 1, &abd.GetAck{Record: abd.Record{Tag: tag}}},
		{"get-ack, large value", 300, &abd.GetAck{Record: abd.Record{Tag: tag}, Omitted: abd.LargestMaxValue}},
		{"get-ack, deleted", 127, &abd.GetAck{Record: abd.Record{Tag: tag, Deleted: true}}},
		{"put", 128, &abd.Put{Key: "color", Record: abd.Record{Tag: tag, Value: []byte{0, 0xff, '\n'}}}},
		{"put of a tombstone", 256, &abd.Put{Key: "color", Record: abd.Record{Tag: largest, Deleted: true}}},
		{"put, long value", 65536, &abd.Put{Key: "color", Record: abd.Record{Tag: tag, Value: bytes.Repeat([]byte("ab"), 150)}}},
		{"put-ack", 1<<64 - 1, &abd.PutAck{}},
		{"put-ack of a later life", 1, &abd.PutAck{Standing: later}},
		{"confirm", 0, &abd.Confirm{Key: "color", Tag: tag}},
		{"list from the first", 3, &abd.List{Limit: abd.MaxPage}},
		{"list goes on", 3, &abd.List{Prefix: "user/", After: "user/42", Limit: 7}},
		{"page", 3, &abd.Page{Items: []abd.Item{
			{Key: "user/1", Tag: tag, Confirmed: true},
			{Key: "user/2", Tag: largest, Deleted: true},
		}, More: true}},
		{"page, empty", 3, &abd.Page{}},
		{"page of a later life", 3, &abd.Page{Standing: later}},

		{"describe", 4, &replica.Describe{}},
		{"description", 4, &replica.Description{
			Cluster: "c-7hq2", Node: "n4y2a",
			Configurations: quorum.Configurations{
				configuration(0, "majority", "n4y2a"),
				configuration(5, "weights=n1:1,n2:0,n4y2a:4294967295", "n4y2a", "n1", "n2"),
				configuration(6, "grid=2x1", "n1", "n2"),
				configuration(300, "get=1,put=2", "n1", "n2"),
			},
			Members: []quorum.Member{
				{ID: "n4y2a", Name: "Zürich 1", Addresses: []string{"10.0.0.1:7450", "[fe80::1]:7450"}},
				{ID: "n1"},
			},
			MaxValue: abd.DefaultMaxValue,
		}},
		{"description of little", 4, &replica.Description{Cluster: "c", Node: "n1"}},
		{"status-query", 5, &replica.StatusQuery{}},
		{"status", 5, &replica.Status{
			Node: "n4y2a", Version: "1.2.3-dev", Process: 4711, Uptime: 90 * time.Minute, Configuration: 6,
			Usage:    replica.Usage{Keys: 70000, Tombstones: 3, Bytes: 1<<63 - 1},
			Appended: 1 << 33, Durable: 1<<33 - 1, CertificateEnd: 1_800_000_000, Trouble: "no space",
			Repair: repair.Progress{Passes: 1, Compared: 70000, Merged: 3, Bytes: 512, Examined: 9, Healed: 2, Damaged: 1},
		}},

		{"summarize", 6, &repair.Summarize{Range: repair.Range{After: "a", To: anyBytes}, Keys: abd.MaxPage}},
		{"summarize everything", 6, &repair.Summarize{}},
		{"summary", 6, &repair.Summary{Keys: 3, Hash: 1<<64 - 1}},
		{"offer", 7, &repair.Offer{Range: repair.Range{After: "a", To: "b"}, Items: []abd.Item{{Key: "b", Tag: tag}}}},
		{"missing", 7, &repair.Missing{Records: repair.Records{Entries: []repair.Entry{
			{Key: "b", Record: abd.Record{Tag: tag, Value: []byte("blue")}},
			{Key: anyBytes, Record: abd.Record{Tag: largest, Deleted: true}},
		}, More: true, Last: anyBytes}}},
		{"missing, nothing", 7, &repair.Missing{}},
		{"attest", 8, &repair.Attest{After: "a", Life: 3}},
		{"attested", 8, &repair.Attested{Records: repair.Records{Entries: []repair.Entry{{Key: "b", Record: abd.Record{Tag: tag}}}}}},

		{"prepare", 9, &synod.Prepare{Instance: "recon/4", Ballot: ballot, Horizon: horizon}},
		{"prepare by nobody", 9, &synod.Prepare{Instance: "recon/18446744073709551615"}},
		{"promise", 9, &synod.Promise{Ballot: ballot, Accepted: synod.Vote{Ballot: ballot, Value: []byte("value")}, Told: told}},
		{"promise, nothing accepted", 9, &synod.Promise{Ballot: ballot}},
		{"accept", 9, &synod.Accept{Instance: "recon/4", Ballot: ballot, Value: []byte{0, 0xff}, Horizon: horizon}},
		{"accepted", 9, &synod.Accepted{Ballot: ballot, Told: told}},
		{"rejected", 9, &synod.Rejected{Ballot: synod.Ballot{Round: 1, ID: pid}, Promised: ballot, Told: told}},
		{"closed", 9, &synod.Closed{Told: told}},

		{"ready", 10, &reconfig.Ready{Cluster: "c-7hq2", Configuration: configuration(7, "get=1,put=2", "n1", "n2"), Horizon: horizon, News: told.News}},
		{"ready without news", 10, &reconfig.Ready{Cluster: "c", Configuration: configuration(1, "majority", "n1")}},
		{"readied", 10, &reconfig.Readied{Facts: reconfig.Facts{Node: "n4y2a", Build: "1.2.3", Wire: wire.Version, Keys: 70000}, Told: told}},
		{"unready", 10, &reconfig.Unready{Text: "the next configuration here is 8, not 7", Told: told}},
		{"inquire", 11, &reconfig.Inquire{Horizon: horizon}},
		{"pending", 11, &reconfig.Pending{
			Index: 7, Ready: []*quorum.Configuration{configuration(7, "majority", "n1"), configuration(7, "majority", "n1", "n2")},
			Promised: ballot, Accepted: configuration(7, "majority", "n2"), Ballot: synod.Ballot{Round: 1, ID: pid}, Told: told,
		}},
		{"pending, nothing", 11, &reconfig.Pending{}},
	}...)
}

// joinSamples are those of package join.
func joinSamples() []sample {
	instance := join.Instance{1, 2, 0xff, 15: 9}
	member := quorum.Member{ID: "n1", Name: "one", Addresses: []string{"h:1"}, Version: 7, Proof: []byte{1, 2}}
	seen := []join.Seen{{Node: "n4y2a", Instance: instance}, {Node: "n5", Instance: join.Instance{}}}
	life := join.Life{Instance: instance, Starts: 3, Run: 1<<64 - 1, Position: 70000}
	return []sample{
		{"join", 12, &join.Join{Instance: instance, Member: member, Horizon: quorum.Horizon{Installed: 6, Next: 7},
			Grant: join.Grant{Name: "one", Expires: 1_800_000_000, Signature: bytes.Repeat([]byte{7}, 64)}}},
		{"joined", 12, &join.Joined{Horizon: quorum.Horizon{Installed: 6, Next: 8}, Seen: seen}},
		{"joined, nobody seen", 12, &join.Joined{}},
		{"greet", 13, &join.Greet{Life: life, Member: member}},
		{"greeted", 13, &join.Greeted{Life: life, Seen: seen}},
		{"greeted, and not dialed", 13, &join.Greeted{Life: life, Unreached: "h:1: no answer within 2s"}},
		{"greeted, an older copy", 13, &join.Greeted{Verdict: join.OlderCopy, Life: life}},
	}
}

// configuration makes a configuration that the test knows to be right.
func configuration(index quorum.ConfigIndex, system string, members ...quorum.NodeID) *quorum.Configuration {
	s, err := quorum.ParseSystem(system)
	if err != nil {
		panic(err)
	}
	c, err := quorum.NewConfiguration(index, members, s)
	if err != nil {
		panic(err)
	}
	return c
}

// configMap returns a map of majorities of n1 with the given indices.
func configMap(indices ...quorum.ConfigIndex) *quorum.Map {
	var cs []*quorum.Configuration
	for _, i := range indices {
		cs = append(cs, configuration(i, "majority", "n1"))
	}
	m, err := quorum.NewMap(cs...)
	if err != nil {
		panic(err)
	}
	return m
}

func TestGolden(t *testing.T) {
	if *rewrite {
		rewriteGoldens(t)
	}
	goldens := readGoldens(t)
	var e wire.Encoder
	var d wire.Decoder
	for _, s := range samples() {
		want, ok := goldens[s.name]
		if !ok {
			t.Errorf("%s: no golden", s.name)
			continue
		}
		delete(goldens, s.name)
		got, err := e.AppendFrame(nil, s.conversation, s.message)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s: encoded as\n%x, want\n%x", s.name, got, want)
		}
		conversation, m, err := d.DecodeFrame(body(t, want))
		if err != nil {
			t.Errorf("%s: decode: %v", s.name, err)
		} else if conversation != s.conversation || !reflect.DeepEqual(m, s.message) {
			t.Errorf("%s: decoded as %d %+v, want %d %+v", s.name, conversation, m, s.conversation, s.message)
		}
	}
	for name := range goldens {
		t.Errorf("%s: a golden without a sample: old frames must stay readable", name)
	}
}

func rewriteGoldens(t *testing.T) {
	var e wire.Encoder
	var out strings.Builder
	out.WriteString(goldenHead)
	for _, s := range samples() {
		frame, err := e.AppendFrame(nil, s.conversation, s.message)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		var element any
		if err := msgpack.Unmarshal(frame[wire.HeaderSize:], &element); err != nil {
			t.Fatalf("%s: not MessagePack: %v", s.name, err)
		}
		fmt.Fprintf(&out, "\n# %s\n%s: %x\n", render(element), s.name, frame)
	}
	if err := os.WriteFile(goldenFile, []byte(out.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

// render shows an element as a person reads it.
func render(element any) string {
	switch v := element.(type) {
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = render(v[i])
		}
		return "[" + strings.Join(parts, " ") + "]"
	case []byte:
		return fmt.Sprintf("<%x>", v)
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(element)
}

// readGoldens returns the frames of the golden file by name.
func readGoldens(t testing.TB) map[string][]byte {
	f, err := os.Open(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	goldens := make(map[string][]byte)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		name, text, _ := strings.Cut(line, ": ")
		frame, err := hex.DecodeString(text)
		if err != nil {
			t.Fatalf("%s: %s: %v", goldenFile, name, err)
		}
		goldens[name] = frame
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return goldens
}

// body takes the header off a frame and checks it.
func body(t testing.TB, frame []byte) []byte {
	t.Helper()
	size, err := wire.BodySize([wire.HeaderSize]byte(frame))
	if err != nil {
		t.Fatal(err)
	}
	if size != len(frame)-wire.HeaderSize {
		t.Fatalf("the header says %d bytes, the body has %d", size, len(frame)-wire.HeaderSize)
	}
	return frame[wire.HeaderSize:]
}
