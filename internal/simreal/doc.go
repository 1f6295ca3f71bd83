// Package simreal holds the simulator against reality: its tests run one
// workload in a simulated world and over real servers, stores and QUIC on
// loopback, and compare what each operation took.
//
// The workload is sequential, and the cluster falls silent between two
// operations. Then the number of rounds and of messages of each kind is decided
// by the protocol alone, and both worlds must agree to the last message. What
// hangs on timing (copies that are sent again, spares that are asked because
// somebody is late, which members are asked first, which answers come first) is
// left out on both sides.
package simreal
