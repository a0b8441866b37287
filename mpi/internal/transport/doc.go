// Package transport says what the message engine of MPI expects of a transport: how messages travel between two
// processes, by associations, connections or memory.
//
// A transport makes a [Link] to each process. The engine sends with [Link.Send] and [Link.Flush]; whatever arrives the
// transport delivers by upcalls, to the parsers of the peer and its Down (package p2p). It knows nothing of tags and
// communicators: a message is a stream number, a header of a few bytes and a body. Only links through memory know
// requests, since they copy long bodies from buffer to buffer (MemoryLink of package p2p).
//
// # What a transport guarantees
//
//   - Order: messages of one stream arrive in the order of the calls of Send. Between streams there is no order, and a
//     transport may carry all streams as one.
//   - Boundaries need not be kept: the bytes of messages say where they end, and may be delivered cut anywhere.
//   - Nothing is lost, doubled or changed. A link that cannot keep this promise ends.
//   - Flow control: Send never waits. A body without an owner is copied, and refused with [ErrFull] when too much is
//     queued; a body with an owner, and a message without a body, are always taken. The engine bounds what it sends
//     with owners: credit for eager messages, and a rendezvous for long ones.
//   - Buffers: the header is the caller's again when Send returns. A body with an owner is read until [Owner.Released],
//     which is called exactly once, also when the link ends. Delivered bytes are the transport's again when the upcall
//     returns.
//   - End: after the last message the end of the link is reported once, with nil as the error if the peer has shut it
//     down.
//   - Identity: a link to another process belongs to one that has proved that it knows the key of the job (package
//     handshake).
//
// # Goroutines and locks
//
// Upcalls come from whatever goroutine receives: one of the transport's own, or one that waits for a message and polls.
// For one link they never overlap. An upcall may send on any link, this one included, so the transport holds no lock
// during an upcall that Send, Flush or Abort takes. The engine calls Send and Flush with the lock of the peer held,
// which upcalls therefore do not take; Released may come within Send. No upcall waits for a peer.
//
// The path of a message allocates nothing: a link costs the engine one dynamic call to queue a message and one to
// transmit, and the transport one for each piece of a message that it delivers.
package transport
