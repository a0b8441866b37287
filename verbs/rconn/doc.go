// Package rconn is a blocking connection over a queue pair of package verbs, for
// programs that want the transport of RDMA without work requests, completions and posted
// receives.
//
// A Conn carries messages of any length, whole and in order, in both directions:
// Send and Recv. Its Stream is a net.Conn over the same connection.
//
// Flow control is by credits: each side announces the number of its receive buffers and
// returns a credit for each buffer that its consumer has emptied. Send blocks without
// credits, so a peer that does not read blocks its own connection and no other. Each
// connection has its own protection domain and registers nothing for remote access: the peer
// can only send.
//
// The wire format is specific to this package, which both sides must use. The private data
// of the connection requests carries the buffer sizes. Each RDMAP message begins with a
// header of 8 octets: a flag, the number of returned credits, and zeros.
package rconn
