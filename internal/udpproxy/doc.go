// Package udpproxy forwards datagrams between clients and one server, and
// loses, delays, reorders, duplicates, damages or swallows them on the way.
//
// A [Proxy] is a bad network for programs that don't know of it: put the
// address of the proxy where the server's would stand, and tell the proxy
// where the server is. To the server, each client is a port of the proxy's
// own, a flow, so the server's answers find back.
//
//	p, err := udpproxy.New(udpproxy.Config{To: "127.0.0.1:7400", Seed: 1})
//	...
//	defer p.Close()
//	dial(p.Addr())                            // as if it were the server
//	p.Set(udpproxy.Faults{Loss: 0.3})         // 30 % of all datagrams get lost
//	p.Set(udpproxy.Faults{Blackhole: true})   // an endpoint that is silent
//	p.SetWay(udpproxy.ToServer, udpproxy.Faults{MTU: 1250})
//	p.Set(udpproxy.Faults{})                  // all is well again
//
// # What is faulty, and when
//
// [Faults] say what becomes of datagrams that arrive from now on, in one
// direction or in both; they may be changed at any time. What was delayed
// already is still delivered, unless a Blackhole has begun by then.
//
// Of each datagram the proxy asks in this order: is the way a black hole, is
// the datagram larger than MTU, is it lost; is it truncated, is it corrupted;
// how long does it take; is there a second copy.
//
// # What a seed repeats
//
// The fate of the n-th datagram of the m-th flow in one direction is drawn
// from the seed, n, m and the direction, and from nothing else: the faults in
// force say which of the draws count, and don't shift those that follow. What
// programs send, and in which order it arrives, isn't the proxy's to decide,
// so a run is repeated as far as its programs repeat themselves.
//
// # What it isn't
//
// It knows nothing of what it carries. Marks of the IP header, such as those
// for congestion (ECN), don't pass, nor does the system's word that a port is
// closed: behind a proxy a dead server is silent. Datagrams that wait take
// memory up to the limits in limits.go; beyond, they are lost, as in a router.
package udpproxy
