// Package ddpsctp carries DDP streams over SCTP associations as RFC 5043 says,
// with the enhanced connection establishment of RFC 6581.
//
// An Endpoint has an SCTP port of its own and indicates the DDP adaptation layer
// (0x00000001); associations whose peer does not are refused. Two endpoints share
// one Association, whoever opened it. A DDP stream is a Session on a pair of
// like-numbered SCTP streams: opened by an Initiate, answered by an Accept,
// Reject or Terminate, ended by a Terminate in each direction. Every message is
// unordered and numbered by a DDP-SSN, which starts at 0 with each session; a
// segment is one message, sized to fit one packet.
//
// Where both sides may choose a stream, the side with the larger verification tag
// takes even ones and the other side odd ones, and the other's when its own are used
// up. If both choose the same nevertheless, neither session goes on there: both
// Initiates move to other streams, chosen at random. A stream is used again when
// nothing of its last session can be on its way: this side's messages are acknowledged,
// and the peer's have come up to its Terminate. Streams whose peer never says that are
// used when there is no other.
//
// The package calls the stream above it (ddp.Sink) on the goroutine that received
// the packet, and owns none itself. It keeps the rules that let a stream be used
// for one session after another, and ends a session that breaks the sequences the
// RFC allows.
package ddpsctp
