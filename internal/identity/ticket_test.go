package identity_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"atoll/internal/identity"
)

var rewriteTicket = flag.Bool("rewrite-ticket", false, "write another ticket to testdata/ticket.golden")

// ticketGolden is a ticket as an earlier version has printed it.
const ticketGolden = "testdata/ticket.golden"

func contacts() []identity.Member {
	return []identity.Member{{ID: "n1", Name: "a", Addresses: []string{"10.0.0.1:7400", "[::1]:7400"}}, {ID: "n2", Name: "b", Addresses: []string{"h:1"}}}
}

func ticket(t testing.TB, dir string, r identity.TicketRequest) identity.Ticket {
	t.Helper()
	ca, err := identity.LoadCA(filepath.Join(dir, "ca"))
	if err != nil {
		t.Fatal(err)
	}
	if r.MaxValue == 0 {
		r.MaxValue = 1000
	}
	if r.Now.IsZero() {
		r.Now = start
	}
	r.Contacts, r.Endpoints = contacts(), []string{"atoll.example:7400"}
	made, err := ca.Ticket(r)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestTickets(t *testing.T) {
	t.Parallel()
	ours, theirs := two(t)
	made := ticket(t, ours, identity.TicketRequest{Name: "d"})
	text := made.String()
	read := must[identity.Ticket](t)(identity.ParseTicket("  " + text + "\n"))
	if read.String() != text || !reflect.DeepEqual(read.Grant, made.Grant) || !reflect.DeepEqual(read.Contacts, contacts()) || read.MaxValue != 1000 {
		t.Errorf("read as %+v, made as %+v", read, made)
	}
	if strings.ContainsAny(text, " \n") || !identity.IsTicket(text) {
		t.Errorf("%q isn't one word", text)
	}
	if unnamed := ticket(t, ours, identity.TicketRequest{}).Grant; !strings.HasPrefix(string(unnamed.Node), unnamed.Name) || unnamed.Name == "" {
		t.Errorf("without a name it is called %q, and is %s", unnamed.Name, unnamed.Node)
	}
	// Who gave its word, and until when.
	credentials := func(dir string) *identity.Credentials {
		return must[*identity.Folder](t)(identity.OpenFolderAt(filepath.Join(dir, "a"), start)).Credentials
	}
	if err := credentials(ours).VerifyGrant(made.Grant); err != nil {
		t.Error(err)
	}
	if credentials(theirs).VerifyGrant(made.Grant) == nil {
		t.Error("another cluster takes it")
	}
	forged := made.Grant
	forged.Expires = forged.Expires.Add(time.Second)
	if credentials(ours).VerifyGrant(forged) == nil {
		t.Error("it can be made to last")
	}
	for after, want := range map[time.Duration]bool{0: true, identity.DefaultTicketTTL - time.Second: true, identity.DefaultTicketTTL: false} {
		err := made.Grant.Expired(start.Add(after))
		if _, typed := errors.AsType[*identity.TicketError](err); (err == nil) != want || err != nil && !typed {
			t.Errorf("%v after it was made: %v", after, err)
		}
	}
	for _, ttl := range []time.Duration{identity.MinTicketTTL - 1, identity.MaxTicketTTL + 1, -1} {
		ca := must[*identity.CA](t)(identity.LoadCA(filepath.Join(ours, "ca")))
		if _, err := ca.Ticket(identity.TicketRequest{Now: start, TTL: ttl, MaxValue: 1, Contacts: contacts()}); err == nil {
			t.Errorf("a ticket for %v", ttl)
		}
	}
}

// Every character counts, and a ticket that isn't whole says what to do.
func TestDamagedTickets(t *testing.T) {
	t.Parallel()
	text := ticket(t, cluster(t, identity.Spec{Now: start}), identity.TicketRequest{}).String()
	for i := 0; i < len(text); i += 7 {
		for _, bad := range []string{text[:i], text[:i] + "_" + text[i+1:], text[:i] + text[i+1:]} {
			if bad == text {
				continue
			}
			_, err := identity.ParseTicket(bad)
			if _, ok := errors.AsType[*identity.TicketError](err); !ok {
				t.Errorf("changed at %d: %v", i, err)
			}
		}
	}
	_, err := identity.ParseTicket(strings.Replace(text, "-1.", "-2.", 1))
	contains(t, err, "newer version")
}

// Tickets that were made stay readable.
func TestTicketGolden(t *testing.T) {
	if *rewriteTicket {
		made := ticket(t, cluster(t, identity.Spec{Now: start}), identity.TicketRequest{Name: "d"})
		if err := os.WriteFile(ticketGolden, []byte(made.String()+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(ticketGolden)
	if err != nil {
		t.Fatal(err)
	}
	read := must[identity.Ticket](t)(identity.ParseTicket(string(text)))
	if read.String() != strings.TrimSpace(string(text)) || read.Grant.Name != "d" || !reflect.DeepEqual(read.Contacts, contacts()) ||
		!reflect.DeepEqual(read.Endpoints, []string{"atoll.example:7400"}) || !read.Grant.Expires.Equal(start.Add(identity.DefaultTicketTTL).Truncate(time.Second)) {
		t.Errorf("it is read as %+v", read.Grant)
	}
}

// A node's folder is made of a ticket, all or nothing, and is that ticket's.
func TestCreateMember(t *testing.T) {
	t.Parallel()
	ours := cluster(t, identity.Spec{Now: start})
	made := ticket(t, ours, identity.TicketRequest{Name: "d"})
	dir := filepath.Join(t.TempDir(), "d")
	spec := identity.JoinSpec{Ticket: made, Listen: []string{":7400"}, Advertise: []string{"d.example:7400"}}
	failing := spec
	failing.Prepare = func(string) error { return errors.New("no room") }
	if err := identity.CreateMember(dir, failing); err == nil {
		t.Error("made, though its store couldn't be")
	}
	if is := must[bool](t)(made.IsTicketOf(dir)); is {
		t.Error("something was left")
	}
	if err := identity.CreateMember(dir, spec); err != nil {
		t.Fatal(err)
	}
	f := must[*identity.Folder](t)(identity.OpenFolderAt(dir, start))
	grant, ok := f.Grant()
	if !ok || !reflect.DeepEqual(grant, made.Grant) || f.ID != made.Grant.Node || f.Name != "d" || f.Configuration != nil ||
		!reflect.DeepEqual(f.Listen(), spec.Listen) || !reflect.DeepEqual(f.Advertise(), spec.Advertise) {
		t.Errorf("opened as %+v", f)
	}
	if known, ok := f.Cluster.Member("n2"); !ok || known.Addresses[0] != "h:1" {
		t.Errorf("it knows of n2: %+v", known)
	}
	if is := must[bool](t)(made.IsTicketOf(dir)); !is {
		t.Error("it isn't its own ticket's")
	}
	if _, err := ticket(t, ours, identity.TicketRequest{}).IsTicketOf(dir); identity.ClassOf(err) != identity.Precondition {
		t.Errorf("another ticket: %v", err)
	}
	if err := identity.CreateMember(dir, spec); identity.ClassOf(err) != identity.Precondition {
		t.Errorf("made twice: %v", err)
	}
	// The first members need no ticket.
	if _, ok := must[*identity.Folder](t)(identity.OpenFolderAt(filepath.Join(ours, "a"), start)).Grant(); ok {
		t.Error("a first member has a grant")
	}
}

// A folder is tied to its store, and to no other one.
func TestBind(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(cluster(t, identity.Spec{Now: start}), "a")
	one, other := identity.Instance{1}, identity.Instance{2}
	for range 2 {
		if err := identity.Bind(dir, one); err != nil {
			t.Error(err)
		}
	}
	err := identity.Bind(dir, other)
	contains(t, err, "holds another store", "client member ticket", "replica join")
	if identity.ClassOf(err) != identity.Damaged {
		t.Errorf("another store is of class %v", identity.ClassOf(err))
	}
	gone := errors.New("gone")
	err = identity.Lost(dir, gone)
	contains(t, err, dir, "holds no store", "goes on with the others", "client member ticket", "replica join")
	if !errors.Is(err, gone) || identity.ClassOf(err) != identity.Damaged {
		t.Errorf("a store that is gone: %v, of class %v", err, identity.ClassOf(err))
	}
	write(t, []byte(`{"format":1,"instance":"0100"}`), dir, identity.FileInstance)
	if err := identity.Bind(dir, one); identity.ClassOf(err) != identity.Damaged {
		t.Errorf("a damaged file: %v", err)
	}
	if must[*identity.Folder](t)(identity.OpenFolderAt(dir, start)) == nil {
		t.Error("the folder doesn't open any more")
	}
}

func FuzzParseTicket(f *testing.F) {
	text, err := os.ReadFile(ticketGolden)
	if err != nil {
		f.Fatal(err)
	}
	whole := must[identity.Ticket](f)(identity.ParseTicket(string(text)))
	body := identity.TicketBody(whole)
	f.Add(body)
	for i := range 20 {
		f.Add(body[:len(body)*i/20])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		text := identity.TicketOfBody(body) // with a checksum that fits
		read, err := identity.ParseTicket(text)
		if err != nil {
			return
		}
		if again, err := identity.ParseTicket(read.String()); err != nil || !reflect.DeepEqual(again.Grant, read.Grant) {
			t.Errorf("read %+v, and written and read %+v, %v", read.Grant, again.Grant, err)
		}
	})
}

func FuzzParseInstance(f *testing.F) {
	f.Add([]byte(`{"format":1,"instance":"00000000000000000000000000000001"}`))
	f.Add([]byte(`{"format":2}`))
	f.Fuzz(func(t *testing.T, data []byte) { _ = identity.ParseInstance(data) })
}
