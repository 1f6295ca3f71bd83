package wire

import (
	"fmt"

	"atoll/abd"
	"atoll/env"
	"atoll/join"
	"atoll/rambo"
	"atoll/reconfig"
	"atoll/repair"
	"atoll/replica"
	"atoll/synod"
)

// Kind is the number of a message on the wire. Each protocol has a range.
type Kind uint16

// The connection itself.
const (
	KindHello   Kind = 1
	KindRefused Kind = 2
)

// abd.
const (
	KindGet     Kind = 16
	KindGetAck  Kind = 17
	KindPut     Kind = 18
	KindPutAck  Kind = 19
	KindConfirm Kind = 20
	KindList    Kind = 21
	KindPage    Kind = 22
	KindMoved   Kind = 23
)

// replica.
const (
	KindDescribe    Kind = 32
	KindDescription Kind = 33
	KindStatusQuery Kind = 34
	KindStatus      Kind = 35
)

// repair.
const (
	KindSummarize Kind = 48
	KindSummary   Kind = 49
	KindOffer     Kind = 50
	KindMissing   Kind = 51
	KindAttest    Kind = 52
	KindAttested  Kind = 53
)

// synod.
const (
	KindPrepare  Kind = 64
	KindPromise  Kind = 65
	KindAccept   Kind = 66
	KindAccepted Kind = 67
	KindRejected Kind = 68
	KindClosed   Kind = 69
)

// reconfig.
const (
	KindReady   Kind = 80
	KindReadied Kind = 81
	KindUnready Kind = 82
	KindInquire Kind = 83
	KindPending Kind = 84
)

// rambo.
const (
	KindGossip    Kind = 96
	KindGossiped  Kind = 97
	KindAnnounce  Kind = 98
	KindAnnounced Kind = 99
	KindFence     Kind = 100
	KindFenced    Kind = 101
	KindInstall   Kind = 102
	KindInstalled Kind = 103
	KindHowFar    Kind = 104
	KindSoFar     Kind = 105
)

// join.
const (
	KindJoin    Kind = 112
	KindJoined  Kind = 113
	KindGreet   Kind = 114
	KindGreeted Kind = 115
)

// String returns the name of the message, for logs.
func (k Kind) String() string {
	switch k {
	case KindHello:
		return "hello"
	case KindRefused:
		return "refused"
	case KindGet:
		return "get"
	case KindGetAck:
		return "get-ack"
	case KindPut:
		return "put"
	case KindPutAck:
		return "put-ack"
	case KindConfirm:
		return "confirm"
	case KindList:
		return "list"
	case KindPage:
		return "page"
	case KindMoved:
		return "moved"
	case KindDescribe:
		return "describe"
	case KindDescription:
		return "description"
	case KindStatusQuery:
		return "status-query"
	case KindStatus:
		return "status"
	case KindSummarize:
		return "summarize"
	case KindSummary:
		return "summary"
	case KindOffer:
		return "offer"
	case KindMissing:
		return "missing"
	case KindAttest:
		return "attest"
	case KindAttested:
		return "attested"
	case KindPrepare:
		return "prepare"
	case KindPromise:
		return "promise"
	case KindAccept:
		return "accept"
	case KindAccepted:
		return "accepted"
	case KindRejected:
		return "rejected"
	case KindClosed:
		return "closed"
	case KindReady:
		return "ready"
	case KindReadied:
		return "readied"
	case KindUnready:
		return "unready"
	case KindInquire:
		return "inquire"
	case KindPending:
		return "pending"
	case KindGossip:
		return "gossip"
	case KindGossiped:
		return "gossiped"
	case KindAnnounce:
		return "announce"
	case KindAnnounced:
		return "announced"
	case KindFence:
		return "fence"
	case KindFenced:
		return "fenced"
	case KindInstall:
		return "install"
	case KindInstalled:
		return "installed"
	case KindHowFar:
		return "how-far"
	case KindSoFar:
		return "so-far"
	case KindJoin:
		return "join"
	case KindJoined:
		return "joined"
	case KindGreet:
		return "greet"
	case KindGreeted:
		return "greeted"
	}
	return fmt.Sprintf("kind %d", uint16(k))
}

// encode writes kind, conversation and message: the table from a message to
// its kind and its encoder.
func (e *Encoder) encode(conversation uint64, m env.Message) {
	switch m := m.(type) {
	case *Hello:
		e.open(KindHello, conversation)
		encodeHello(e, m)
	case *env.Refused:
		e.open(KindRefused, conversation)
		encodeRefused(e, m)
	case *abd.Get:
		e.open(KindGet, conversation)
		encodeGet(e, m)
	case *abd.GetAck:
		e.open(KindGetAck, conversation)
		encodeGetAck(e, m)
	case *abd.Put:
		e.open(KindPut, conversation)
		encodePut(e, m)
	case *abd.PutAck:
		e.open(KindPutAck, conversation)
		encodePutAck(e, m)
	case *abd.Confirm:
		e.open(KindConfirm, conversation)
		encodeConfirm(e, m)
	case *abd.List:
		e.open(KindList, conversation)
		encodeList(e, m)
	case *abd.Page:
		e.open(KindPage, conversation)
		encodePage(e, m)
	case *abd.Moved:
		e.open(KindMoved, conversation)
		encodeMoved(e, m)
	case *replica.Describe:
		e.open(KindDescribe, conversation)
		encodeDescribe(e, m)
	case *replica.Description:
		e.open(KindDescription, conversation)
		encodeDescription(e, m)
	case *replica.StatusQuery:
		e.open(KindStatusQuery, conversation)
		encodeStatusQuery(e, m)
	case *replica.Status:
		e.open(KindStatus, conversation)
		encodeStatus(e, m)
	case *repair.Summarize:
		e.open(KindSummarize, conversation)
		encodeSummarize(e, m)
	case *repair.Summary:
		e.open(KindSummary, conversation)
		encodeSummary(e, m)
	case *repair.Offer:
		e.open(KindOffer, conversation)
		encodeOffer(e, m)
	case *repair.Missing:
		e.open(KindMissing, conversation)
		encodeMissing(e, m)
	case *repair.Attest:
		e.open(KindAttest, conversation)
		encodeAttest(e, m)
	case *repair.Attested:
		e.open(KindAttested, conversation)
		encodeAttested(e, m)
	case *synod.Prepare:
		e.open(KindPrepare, conversation)
		encodePrepare(e, m)
	case *synod.Promise:
		e.open(KindPromise, conversation)
		encodePromise(e, m)
	case *synod.Accept:
		e.open(KindAccept, conversation)
		encodeAccept(e, m)
	case *synod.Accepted:
		e.open(KindAccepted, conversation)
		encodeAccepted(e, m)
	case *synod.Rejected:
		e.open(KindRejected, conversation)
		encodeRejected(e, m)
	case *synod.Closed:
		e.open(KindClosed, conversation)
		encodeClosed(e, m)
	case *reconfig.Ready:
		e.open(KindReady, conversation)
		encodeReady(e, m)
	case *reconfig.Readied:
		e.open(KindReadied, conversation)
		encodeReadied(e, m)
	case *reconfig.Unready:
		e.open(KindUnready, conversation)
		encodeUnready(e, m)
	case *reconfig.Inquire:
		e.open(KindInquire, conversation)
		encodeInquire(e, m)
	case *reconfig.Pending:
		e.open(KindPending, conversation)
		encodePending(e, m)
	case *rambo.Gossip:
		e.open(KindGossip, conversation)
		encodeGossip(e, m)
	case *rambo.Gossiped:
		e.open(KindGossiped, conversation)
		encodeGossiped(e, m)
	case *rambo.Announce:
		e.open(KindAnnounce, conversation)
		encodeAnnounce(e, m)
	case *rambo.Announced:
		e.open(KindAnnounced, conversation)
		encodeAnnounced(e, m)
	case *rambo.Fence:
		e.open(KindFence, conversation)
		encodeFence(e, m)
	case *rambo.Fenced:
		e.open(KindFenced, conversation)
		encodeFenced(e, m)
	case *rambo.Install:
		e.open(KindInstall, conversation)
		encodeInstall(e, m)
	case *rambo.Installed:
		e.open(KindInstalled, conversation)
		encodeInstalled(e, m)
	case *rambo.HowFar:
		e.open(KindHowFar, conversation)
		encodeHowFar(e, m)
	case *rambo.SoFar:
		e.open(KindSoFar, conversation)
		encodeSoFar(e, m)
	case *join.Join:
		e.open(KindJoin, conversation)
		encodeJoin(e, m)
	case *join.Joined:
		e.open(KindJoined, conversation)
		encodeJoined(e, m)
	case *join.Greet:
		e.open(KindGreet, conversation)
		encodeGreet(e, m)
	case *join.Greeted:
		e.open(KindGreeted, conversation)
		encodeGreeted(e, m)
	default:
		e.fail(fmt.Errorf("wire: %T has no encoding", m))
	}
}

// decode reads the message of a kind: the table from a kind to its decoder.
// It returns nil and reads nothing when it doesn't know the kind.
func (d *Decoder) decode(k Kind) env.Message {
	switch k {
	case KindHello:
		return decodeHello(d)
	case KindRefused:
		return decodeRefused(d)
	case KindGet:
		return decodeGet(d)
	case KindGetAck:
		return decodeGetAck(d)
	case KindPut:
		return decodePut(d)
	case KindPutAck:
		return decodePutAck(d)
	case KindConfirm:
		return decodeConfirm(d)
	case KindList:
		return decodeList(d)
	case KindPage:
		return decodePage(d)
	case KindMoved:
		return decodeMoved(d)
	case KindDescribe:
		return decodeDescribe(d)
	case KindDescription:
		return decodeDescription(d)
	case KindStatusQuery:
		return decodeStatusQuery(d)
	case KindStatus:
		return decodeStatus(d)
	case KindSummarize:
		return decodeSummarize(d)
	case KindSummary:
		return decodeSummary(d)
	case KindOffer:
		return decodeOffer(d)
	case KindMissing:
		return decodeMissing(d)
	case KindAttest:
		return decodeAttest(d)
	case KindAttested:
		return decodeAttested(d)
	case KindPrepare:
		return decodePrepare(d)
	case KindPromise:
		return decodePromise(d)
	case KindAccept:
		return decodeAccept(d)
	case KindAccepted:
		return decodeAccepted(d)
	case KindRejected:
		return decodeRejected(d)
	case KindClosed:
		return decodeClosed(d)
	case KindReady:
		return decodeReady(d)
	case KindReadied:
		return decodeReadied(d)
	case KindUnready:
		return decodeUnready(d)
	case KindInquire:
		return decodeInquire(d)
	case KindPending:
		return decodePending(d)
	case KindGossip:
		return decodeGossip(d)
	case KindGossiped:
		return decodeGossiped(d)
	case KindAnnounce:
		return decodeAnnounce(d)
	case KindAnnounced:
		return decodeAnnounced(d)
	case KindFence:
		return decodeFence(d)
	case KindFenced:
		return decodeFenced(d)
	case KindInstall:
		return decodeInstall(d)
	case KindInstalled:
		return decodeInstalled(d)
	case KindHowFar:
		return decodeHowFar(d)
	case KindSoFar:
		return decodeSoFar(d)
	case KindJoin:
		return decodeJoin(d)
	case KindJoined:
		return decodeJoined(d)
	case KindGreet:
		return decodeGreet(d)
	case KindGreeted:
		return decodeGreeted(d)
	}
	return nil
}
