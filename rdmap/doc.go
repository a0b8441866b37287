// Package rdmap implements the Remote Direct Memory Access Protocol (RFC 5040)
// with its extensions, immediate data and atomic operations (RFC 7306), above
// package ddp.
//
// A Stream has a send queue of Ops and a receive queue of buffers, as package
// verbs presents them, and answers the peer's reads and atomics by itself:
// everything a peer asks for happens in the calls of the lower layer, and the
// consumer whose memory is read and written takes no part in it.
//
// Order: operations start in the order they were posted and complete in that
// order. A Send is delivered after all writes before it have been placed. A
// read is answered after all messages before it have been delivered; later
// writes may overtake the answer unless they carry FlagFence (RFC 5040, Section
// 5.5).
//
// Memory: segments reference the memory of operations, so an operation is
// complete when the lower layer no longer needs it, which for SCTP is when the
// peer has acknowledged it. Messages that fit one segment of at most
// ddp.MaxCopied bytes are copied and complete at once.
//
// Errors end the stream. The first one found is sent to the peer in a Terminate
// message and is the TerminateError of both sides; other streams are not
// affected.
package rdmap
