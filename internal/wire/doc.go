// Package wire encodes protocol messages as MessagePack.
//
// # Frames
//
// A stream between two nodes is a sequence of frames:
//
//	4 bytes   length of the body, big-endian, at most MaxFrame
//	body      one MessagePack array: [kind, conversation, message]
//
// kind says which message it is (see [Kind]); conversation is the sender's
// number for the request and is repeated by the answer, 0 where no answer is
// expected. The first frame each way is a [Hello].
//
// [Encoder.AppendFrame] appends a frame, header included. Who reads a stream
// takes the header off, has it checked by [BodySize] before making room for
// the body, and gives the body to [Decoder.DecodeFrame].
//
// # Messages
//
// Every message is an array of its fields in the order of the table; names in
// brackets are arrays again, and a star marks a field that may be missing.
//
//	 1  Hello         version cluster node bulk*
//	 2  env.Refused   reason text*
//	16  abd.Get       key tagOnly* valueLimit* horizon*
//	17  abd.GetAck    record confirmed life [lifeOf…] omitted* horizon* [news]*
//	18  abd.Put       key record horizon*
//	19  abd.PutAck    life [lifeOf…] horizon* [news]*
//	20  abd.Confirm   key tag
//	21  abd.List      prefix after limit horizon*
//	22  abd.Page      [item…] more life [lifeOf…] horizon* [news]*
//	23  abd.Moved     life [lifeOf…] horizon [news]
//	32  Describe      (none)
//	33  Description   cluster node [configuration…] [member…] maxValue
//	34  StatusQuery   (none)
//	35  Status        node version process uptime configuration [usage] appended durable certificateEnd* trouble* [progress]* horizon* role* [merge]* unreached*
//	48  Summarize     after to keys knows* cut*
//	49  Summary       keys hash life* [lifeOf…]* last*
//	50  Offer         after to [item…] knows* limit* salt* digests*
//	51  Missing       [entry…] more last life* [lifeOf…]* [carried…]*
//	52  Attest        after before life horizon*
//	53  Attested      [entry…] more last
//	64  Prepare       instance ballot horizon
//	65  Promise       ballot vote horizon [news]
//	66  Accept        instance ballot value horizon
//	67  Accepted      ballot horizon [news]
//	68  Rejected      ballot promised horizon [news]
//	69  Closed        horizon [news]
//	80  Ready         cluster configuration horizon [news]
//	81  Readied       node build wire keys horizon [news]
//	82  Unready       text horizon [news]
//	83  Inquire       horizon
//	84  Pending       index [configuration…] promised [configuration] ballot horizon [news]
//	96  Gossip        [news] [lifeOf…]
//	97  Gossiped      [news] [lifeOf…]
//	98  Announce      [news]
//	99  Announced     horizon
//	100 Fence         index [news] [lifeOf…]
//	101 Fenced        index [news] [lifeOf…]
//	102 Install       index [news] [lifeOf…]
//	103 Installed     index
//	104 HowFar        (none)
//	105 SoFar         [merge]
//	112 Join          instance [member] name expires signature horizon
//	113 Joined        horizon [seen…]
//	114 Greet         [life] [member]
//	115 Greeted       verdict [life] [seen…] unreached*
//
//	tag               seq pid rmw
//	record            tag deleted value
//	item              key tag deleted confirmed*
//	configuration     index system [node…]
//	member            node name [address…] version* proof*
//	horizon           installed next
//	news              [configuration…] [member…], or nothing at all
//	usage             keys tombstones bytes
//	lifeOf            node life
//	life (of Greet)   instance starts run position
//	seen              node instance
//	entry             key record
//	carried           instance vote
//	ballot, promised  index round id
//	vote              ballot value
//	merge             index keys bytes after done
//	progress          passes compared merged bytes examined healed damaged
//
// Numbers are unsigned integers, the shortest form is written and any width is
// read. Keys, values, operation ids (16 bytes) and digests (8 bytes each) are
// bin, because they are any bytes; node ids, names, addresses and quorum systems
// are str. Uptime is in nanoseconds. Nothing is nil: a value of no bytes is an
// empty bin, and what tells an absent register is the record's deleted or its
// zero tag.
//
// # Two versions at once
//
// A cluster is upgraded node by node, so each format must bear its neighbours.
//
//   - A field is added at the end of its array. An older decoder skips what it
//     doesn't know, a newer one takes the zero value for what isn't there. So a
//     field may be added only if its zero value is always safe. The starred
//     fields are of that kind (a hint that isn't given, a text or a fact for people);
//     Page's more isn't: a page that lost it would end the list.
//   - A message is added under a new number. Who doesn't know the number gets
//     an [UnknownKindError] together with the conversation, and can refuse the
//     request and keep the connection. It can be sure that it is a request,
//     because a request keeps the kinds of its answers: a new kind of answer
//     comes with a new kind of request.
//   - A reason of a refusal that isn't known is read as env.ReasonUnknown.
//   - Anything else (another order, type or meaning) is a new version, with a
//     new [ALPN], so that two ends that don't share one never get to a frame.
//
// Numbers of messages that are gone are never given out again.
//
// # What a decoder believes
//
// Nothing. A count is held against the bytes that are left before room is made
// for it, lengths and numbers against the limits in limits.go, a configuration
// goes through quorum.NewConfiguration, and bytes behind the frame are an
// error. What is skipped costs neither stack nor heap, however it is nested.
// Decoding a frame therefore takes memory in proportion to its bytes. Whether
// a well-formed request makes sense (an empty key, a page of no keys, a value
// above the cluster's own limit) is for the protocol to say, which can answer
// it; here an error means that the connection can't be trusted any more.
//
// The encoder keeps to the same limits, so what it writes is always read.
//
// # Adding a message
//
// Declare the struct in its protocol's messages.go, with a method Message.
// Then give it here a number in its protocol's range and a name (kinds.go), a
// case in each of the two tables (kinds.go), two functions in the protocol's
// file, a line in the table above, and samples in golden_test.go; run
//
//	go test ./internal/wire -run TestGolden -rewrite
//
// and read the difference. A message that was forgotten fails a test.
//
// # History
//
//	version 1   atoll/1   the messages above, but for valueLimit and omitted,
//	                      which were added at the end of Get and GetAck: a Get
//	                      without the one has no limit, and a node that skips
//	                      it sends every value whole, so omits nothing;
//	                      and horizon and news, at the end of requests and
//	                      answers of registers: who says nothing of horizons
//	                      knows of no configuration, and is refused once the
//	                      members have changed; and limit, at the end of
//	                      Offer: who doesn't send it takes as many records as
//	                      ever, and who skips it sends no more. Since then an
//	                      Offer for a merge tells more than a thousand tags
//	                      when members differ. And the votes at the end of
//	                      Missing: who doesn't send them has none. And salt and
//	                      digests at the end of Offer, in place of items: who
//	                      skips them is told of none, and sends all records
package wire
