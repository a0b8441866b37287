// Package sctp has the names of github.com/pion/sctp v1.12.0 on top of weft, so that programs for
// WebRTC run on weft's SCTP by one line of their go.mod:
//
//	replace github.com/pion/sctp => ../weft/interop/pion
//
// An association runs over a net.Conn that keeps message boundaries, such as DTLS (RFC 8261), owns
// it, and closes it at its end. Methods may be called by several goroutines at once.
//
// Received messages are assembled in pooled memory by the goroutine that reads the connection, and
// wait in a queue for each stream. What waits counts against the receive window, so that a peer
// stops when nobody reads. A goroutine for each association writes the packets, so that neither
// writes nor acknowledgements wait for the connection.
//
// README.md lists what differs from the package whose names these are, and why.
package sctp
