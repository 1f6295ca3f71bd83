package wire

import (
	"atoll/abd"
	"atoll/quorum"
	"atoll/replica"
	"atoll/synod"
	"atoll/tags"
)

// The limits that tests go up to and beyond.
const (
	MaxText           = maxText
	MaxName           = maxName
	MaxAddress        = maxAddress
	MaxAddresses      = maxAddresses
	MaxCluster        = maxCluster
	MaxConfigurations = maxConfigurations
)

// A Part is an element below a message, with its two functions.
type Part[T any] struct {
	encode func(*Encoder, T)
	decode func(*Decoder) T
}

// The parts of messages.
func TagPart() Part[tags.Tag]        { return Part[tags.Tag]{encodeTag, decodeTag} }
func RecordPart() Part[abd.Record]   { return Part[abd.Record]{byValue(encodeRecord), decodeRecord} }
func ItemPart() Part[abd.Item]       { return Part[abd.Item]{byValue(encodeItem), decodeItem} }
func BallotPart() Part[synod.Ballot] { return Part[synod.Ballot]{encodeBallot, decodeBallot} }
func VotePart() Part[synod.Vote]     { return Part[synod.Vote]{byValue(encodeVote), decodeVote} }
func MemberPart() Part[quorum.Member] {
	return Part[quorum.Member]{byValue(encodeMember), decodeMember}
}
func UsagePart() Part[replica.Usage] {
	return Part[replica.Usage]{byValue(encodeUsage), decodeUsage}
}
func ConfigurationPart() Part[*quorum.Configuration] {
	return Part[*quorum.Configuration]{encodeConfiguration, decodeConfiguration}
}

func byValue[T any](encode func(*Encoder, *T)) func(*Encoder, T) {
	return func(e *Encoder, v T) { encode(e, &v) }
}

// Encode returns v alone, without a frame.
func (p Part[T]) Encode(v T) ([]byte, error) {
	var e Encoder
	if _, err := e.AppendFrame(nil, 0, &abd.PutAck{}); err != nil { // makes e ready
		return nil, err
	}
	p.encode(&e, v) // e.out is empty again
	return e.out.b, e.err
}

// Decode reads what Encode returned from the front of b, and returns how much
// that was.
func (p Part[T]) Decode(b []byte) (T, int, error) {
	d := readyDecoder(b)
	v := p.decode(d)
	return v, d.in.off, d.err
}

// Skip skips one element in front of b, and returns how long it was.
func Skip(b []byte) (int, error) {
	d := readyDecoder(b)
	d.skip(1)
	return d.in.off, d.err
}

func readyDecoder(b []byte) *Decoder {
	d := new(Decoder)
	_, _, _ = d.DecodeFrame(nil) // makes d ready
	d.in, d.err = reader{b: b}, nil
	return d
}
