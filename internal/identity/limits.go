package identity

import "time"

// The limits and spans of this package.
const (
	// MaxName is the largest length in bytes of the name of a member, a
	// client or an admin.
	MaxName = 32
	// MaxClusterID is the largest length of a cluster's id in bytes.
	MaxClusterID = 64
	// MaxFileSize is the largest size in bytes of any file that this package
	// reads. The largest cluster file fits.
	MaxFileSize = 1 << 20
	// MaxCAs is how many CA certificates may be trusted at a time: one, and
	// its successors while they replace it.
	MaxCAs = 8
	// MaxAddresses is how many addresses a member may have.
	MaxAddresses = 8
	// MaxContacts is how many nodes a ticket names.
	MaxContacts = 128
	// MaxTicket is the largest length of a ticket's text.
	MaxTicket = 64 << 10
	// MaxEndpoints is how many endpoints a context file may hold.
	MaxEndpoints = 1024

	// CAValidity is how long a CA lives.
	CAValidity = 10 * 365 * 24 * time.Hour
	// DefaultValidity is how long other certificates live unless asked
	// otherwise.
	DefaultValidity = 365 * 24 * time.Hour
	// MinValidity is the shortest life that commands give a certificate: what
	// ends sooner has ended before it is carried to its host.
	MinValidity = time.Hour
	// Backdate is by how much a certificate's life begins before it is made,
	// so that hosts whose clocks are behind by less accept it.
	Backdate = time.Hour
	// ExpiryWarning is how long before its end a certificate is warned about.
	ExpiryWarning = 30 * 24 * time.Hour
	// ReloadInterval is how often credential files are looked at, at most.
	ReloadInterval = time.Second

	// DefaultTicketTTL is how long a ticket can be used unless asked otherwise,
	// MinTicketTTL and MaxTicketTTL what may be asked.
	DefaultTicketTTL = time.Hour
	MinTicketTTL     = time.Minute
	MaxTicketTTL     = 7 * 24 * time.Hour
	// latestExpiry is the latest time that a ticket can end, in seconds of Unix
	// time: the last one that RFC 3339 can write.
	latestExpiry = 253402300799

	// ticketNameChars is how many characters of its id a node's name has if
	// nobody gave it one.
	ticketNameChars = 6
	// listedEntries is how many entries of a folder an error names.
	listedEntries = 5
)
