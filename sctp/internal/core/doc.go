// Package core is the SCTP protocol (RFC 9260) as a deterministic state
// machine. It does no input or output, starts no goroutine and reads no clock:
// the caller hands in packets and the time, and asks for packets, events and
// received data.
//
// An [Assoc] is one association. A [Listener] is what stands at an SCTP port
// before an association exists: it answers INIT with a signed state cookie and
// keeps nothing until the cookie comes back (RFC 9260, Section 5.1.3).
//
// Nothing here is safe for concurrent use; the driver holds a lock per
// association. The calls for one batch of received packets are
//
//	for each packet { a.HandlePacket(now, p) }
//	a.EndBatch(now)             // one decision about the SACK
//	for { buf, tx, ok = a.PollTransmit(now, buf[:0], maxSegs); … }
//	for { ev, ok := a.PollEvent(); … }
//	timer.Reset(a.NextTimeout())
//
// A call that comes too early, or after the association has ended, does
// nothing.
package core
