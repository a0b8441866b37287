package core

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/wire"
)

// maxAbortReason bounds the reason of an abort, in both directions.
const maxAbortReason = 512

// AbortError is the end of an association by an ABORT chunk.
type AbortError struct {
	// Cause is the code of the first error cause, 0 if there is none (RFC 9260,
	// Section 3.3.10), and Reason what is readable of it.
	Cause  wire.CauseCode
	Reason string
	// ByPeer tells whether the peer sent the ABORT.
	ByPeer bool
}

// Error implements error.
func (e *AbortError) Error() string {
	who := "locally"
	if e.ByPeer {
		who = "by peer"
	}
	if e.Reason == "" {
		return fmt.Sprintf("core: aborted %s: cause %d (%s)", who, uint16(e.Cause), e.Cause)
	}
	return fmt.Sprintf("core: aborted %s: cause %d (%s): %q", who, uint16(e.Cause), e.Cause, e.Reason)
}

// newAbortError describes the first of a list of causes.
func newAbortError(causes []byte, byPeer bool) *AbortError {
	e := &AbortError{ByPeer: byPeer}
	it := wire.NewCauses(causes)
	if it.Next() {
		c := it.Cause()
		e.Cause = c.Code
		switch c.Code {
		case wire.CauseUserAbort, wire.CauseProtocolViolation:
			e.Reason = string(c.Value[:min(len(c.Value), maxAbortReason)])
		}
	}
	return e
}

// Abort ends the association at once; the peer is told reason, of which at most
// 512 bytes are sent (RFC 9260, Section 9.1). PollTransmit yields the ABORT.
func (a *Assoc) Abort(now clock.Time, reason []byte) {
	if a.state == Closed {
		return
	}
	if a.ProcessDeferredSack(); a.state == Closed {
		return
	}
	if a.shut.sendAck && a.state == ShutdownAckSent {
		// The user may have seen the end of the data before anybody could transmit:
		// it is a graceful one all the same.
		a.sendAlone(a.paths[a.shut.path].Tuple, a.header(), wire.AppendShutdownAck)
	}
	// "a 'User-Initiated Abort' error cause SHOULD be present".
	a.abort(wire.AppendUserAbort(nil, reason[:min(len(reason), maxAbortReason)]))
}

// abort sends an ABORT with the given causes and ends the association.
func (a *Assoc) abort(causes []byte) {
	if a.state == Closed {
		return
	}
	if a.peer.tag != 0 { // in COOKIE-WAIT nobody knows of us yet
		a.sendAlone(a.paths[a.dataPath()].Tuple, a.header(), func(b []byte) []byte {
			return wire.AppendAbort(b, wire.Abort{Causes: causes})
		})
	}
	a.close(newAbortError(causes, false))
}

// violate aborts the association with a Protocol Violation cause (RFC 9260,
// Section 3.3.10.13).
func (a *Assoc) violate(what string) { a.abort(wire.AppendProtocolViolation(nil, what)) }

// handleAbort ends the association: the verification tag was checked (RFC 9260,
// Section 8.5.1, B), and nothing is answered. It reports false for a chunk with a
// format error, which "MUST" be discarded silently (Section 3.3.7).
func (a *Assoc) handleAbort(c wire.Chunk) bool {
	x, err := wire.ParseAbort(c)
	if err != nil {
		return false
	}
	it := wire.NewCauses(x.Causes)
	for it.Next() {
	}
	if it.Err() != nil {
		return false
	}
	if a.state == ShutdownAckSent && x.Reflected && len(x.Causes) == 0 {
		// The peer knows nothing of the association any more (Section 8.4, rule 8), and
		// something of ours came late. In this state all data of both sides has been
		// acknowledged: the peer has ended it gracefully, and its SHUTDOWN COMPLETE
		// is on its way or was lost.
		a.close(nil)
		return true
	}
	a.close(newAbortError(x.Causes, true))
	return true
}

// ProtocolUnreachable takes in an ICMP message that says that the host to which a
// packet went, which began as quoted, has no SCTP. It reports whether that ends the
// association. RFC 9260, Section 10, ICMP6: enough of an INIT of ours is quoted to
// tell. ICMP8: in COOKIE-WAIT the message is handled like an ABORT.
//
// Deviation (ICMP8, MUST): one about another packet is not. Linux says so, too, when
// the buffer of a raw socket is full, which does not matter to who waits for a SACK.
func (a *Assoc) ProtocolUnreachable(quoted []byte) bool {
	if !a.quotesInit(quoted) {
		return false
	}
	a.close(newAbortError(nil, true))
	return true
}

// quotesInit reports whether quoted is the beginning of an INIT of ours that was not
// answered.
func (c *situation) quotesInit(quoted []byte) bool {
	const initTag = wire.HeaderLen + wire.ChunkHeaderLen
	return c.state == CookieWait && len(quoted) >= initTag+4 && binary.BigEndian.Uint32(quoted[4:]) == 0 &&
		wire.ChunkType(quoted[wire.HeaderLen]) == wire.ChunkInit && binary.BigEndian.Uint32(quoted[initTag:]) == c.tag
}

// PortUnreachable takes in an ICMP message that says that nothing uses the UDP port of
// remote, to which a packet went that began as quoted. RFC 6951, Section 5.5, has it
// treated like Protocol Unreachable, but it is about one address: the association ends
// when all addresses that the user gave have refused the INIT; before, the next one is
// tried at once. It reports whether the message was about an INIT of this association.
func (a *Assoc) PortUnreachable(now clock.Time, remote netip.AddrPort, quoted []byte) bool {
	if !a.quotesInit(quoted) {
		return false
	}
	i := a.pathByAddr(address.Unmap(remote))
	if i < 0 {
		return false
	}
	h := &a.hs
	a.paths[i].refused = true
	for n := range a.paths {
		next := (h.path + n) % len(a.paths)
		if p := a.paths[next]; p.confirmed && !p.refused {
			if next != h.path {
				h.path, h.sendInit = next, true
				h.sentAt = 0
				a.timers.Start(timer.T1, now+h.rto)
			}
			return true
		}
	}
	a.close(newAbortError(nil, true))
	return true
}

// handleError takes in an ERROR chunk.
func (a *Assoc) handleError(now clock.Time, c wire.Chunk) {
	x, err := wire.ParseOpError(c)
	if err != nil {
		return
	}
	it := wire.NewCauses(x.Causes)
	for it.Next() {
		cause := it.Cause()
		if cause.Code == wire.CauseStaleCookie {
			a.handleStaleCookie(now, cause)
			return
		}
		if x, err := wire.ParseUnrecognizedChunk(cause); err == nil && x.Type == wire.ChunkAsconf {
			a.asconfUnknown()
		}
		if list, err := wire.ParseUnrecognizedParams(cause); err == nil {
			a.refuse(list)
		}
		a.events.push(Event{Kind: EventPeerError, Cause: uint16(cause.Code)})
	}
}

// refuse does without the features that a peer does not recognize which reports
// these parameters of our INIT or INIT ACK, in the packet with its COOKIE ECHO:
// RFC 3758, Section 3.3.3, "the endpoint MUST just mark the association as not
// supporting partial reliability".
func (a *Assoc) refuse(params []byte) {
	for it := wire.NewParams(params); it.Next(); {
		if f := feature.OfParam(it.Param()); f != 0 && a.tx.q != nil && !a.senderBegun() {
			a.peer.features &^= f
			a.tx.q.SetPartialReliability(a.peer.features.Has(feature.PartialReliability))
		}
	}
}

// close ends the association; err is nil for a graceful end. What was received
// can still be read.
func (a *Assoc) close(err error) {
	if a.state == Closed {
		return
	}
	a.setState(Closed, endReason(err))
	a.err = err
	a.timers.StopAll()
	a.ctl.clear()
	a.hs.clear()
	a.shut.clear()
	a.tx.close(err)
	a.rc.Fail(endError(err))
	a.failAsconf(endError(err))
	a.events.push(Event{Kind: EventDown, Err: err})
}
