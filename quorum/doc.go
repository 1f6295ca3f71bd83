// Package quorum defines node ids, configurations and quorums that intersect.
//
// A [Configuration] is a set of member nodes and a quorum [System] over them.
// The system says which sets of members are read quorums R and which are
// write quorums W. All that the registers need is that every R meets every W:
// tags come from an R, so two writers needn't meet at a W. (GeoQuorums and
// RAMBO call them get- and put-quorums.)
//
//	majority             R and W: more than half of the members
//	get=2,put=4          R: any 2 members; W: any 4; get+put must exceed n
//	weights=a:3,b:1,c:1  R and W: members with more than half of the weight
//	grid=3x3             members in rows and columns, sorted by id, row by
//	                     row; R: one full row; W: one full column
//
// A set of members that contains a quorum is a quorum too.
//
// A caller counts answers in a [Tally], which spans one or several
// configurations: a phase is complete when what answered contains a quorum of
// each. What a configuration tolerates is computed by
// [Configuration.Tolerance], never estimated.
//
// What safety hangs on here is checked against a brute-force twin that
// enumerates every subset (twin_test.go).
package quorum
