// Package sctptest provides networks in memory for testing programs that use
// SCTP, as httptest does for HTTP.
//
// A [Network] has hosts with one or more addresses. Between every two
// addresses there is a link in each direction, whose delay, rate, queue, loss,
// duplication, reordering, corruption and MTU a test sets with [Link]; it can
// be cut and restored while traffic flows. [Host.ListenPacket] opens a
// [PacketConn], which goes into sctp.TransportConfig.Conns:
//
//	n := sctptest.NewNetwork(seed)
//	n.SetDefault(sctptest.Link{Delay: 10 * time.Millisecond, Loss: 0.01})
//	a := n.NewHost("10.0.0.1")
//	pc, err := a.ListenPacket(":9899")
//	t, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})
//
// [Network.NewConns] makes the two ends of a connection that keeps the boundaries of messages, as DTLS
// does, for sctp.Client and sctp.Server:
//
//	a, b := n.NewConns(sctptest.Link{Loss: 0.01}, sctptest.Link{})
//
// Everything random is drawn from generators derived from the seed, one per
// link, so the fate of the nth packet of a link depends on the seed and n only.
//
// A network works in real time and, faster, in the virtual time of a
// testing/synctest bubble, where hours pass in milliseconds. Packets of a link
// arrive in the order sent unless Link.Reorder says otherwise.
package sctptest
