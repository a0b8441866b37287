// Package ddpmpa carries DDP over TCP: MPA (RFC 5044) with the enhanced
// connection setup of RFC 6581.
//
// Either side of a TCP connection starts MPA: Initiate sends a request frame
// and waits for the reply, Respond waits for a request, to be accepted or
// rejected. Each ends with a Channel, which is the ddp.Channel of one DDP
// stream: it frames segments with length, padding and CRC32c, puts in markers
// if the peer wants them, and unframes what comes.
//
// A Channel owns two goroutines, one for each direction, from Run until its TCP
// connection is closed. TCP keeps the order, so segments are placed in the
// order they were sent.
package ddpmpa
