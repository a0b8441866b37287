// Package rconn is a blocking connection over a queue pair of package verbs, for
// programs that want RDMA's transport without its bookkeeping: no work requests,
// no completions, no receives that must be posted in time.
//
// A Conn carries messages of any length, whole and in order, in both directions:
// Send and Recv. Its Stream is a net.Conn over the same connection.
//
// Flow control is by credits: each side tells the other how many receive buffers
// it has posted, and gives a credit back for each that its consumer has emptied.
// Send blocks while there is none, so a peer that does not read holds up its own
// connection and no other. Each connection has a protection domain of its own and
// registers nothing for remote access: the peer can send, and do nothing else.
//
// The wire format is this package's own: both sides use it. The private data of
// the connection requests tells sizes; each message of RDMAP begins with 8
// octets of header: a flag, the credits given back, and zeros.
package rconn
