package core

import (
	"encoding/binary"
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// A PostedBuffer is the pre-posted receive buffer of a reader that waits. The next message
// may be copied there directly, past the reassembly queue.
type PostedBuffer struct {
	Stream int    // the one that the reader waits for, or AnyStream
	Dst    []byte // belongs to the reader again once it takes the buffer back

	// The length of the message that was delivered there, and its description.
	N    int
	Info reasm.RecvInfo
}

// AnyStream is the Stream of a PostedBuffer for the next message of any stream.
const AnyStream = reasm.AnyStream

// A SmallPacket is a [Packet] for [Assoc.HandleSmall]. It points to the addresses, which are
// only compared: copying them would stall on stores that have just been made.
type SmallPacket struct {
	Data   []byte
	Local  *netip.Addr
	Remote *netip.AddrPort
	ECN    uint8
}

// HandleSmall is the small-message fast path of the receiver. It takes in a packet with one
// unfragmented message, and a SACK at most, and copies the message to the buffer of the
// reader that waits for it. The outcome is that of HandlePacket with Packet.DeferSack,
// EndBatch and Read. It reports false if the packet needs the slow path, and has then done
// nothing but process a SACK that had been deferred. Data changes during the call, see
// wire.VerifyInPlace.
func (a *Assoc) HandleSmall(now clock.Time, p *SmallPacket, post *PostedBuffer) bool {
	d := p.Data
	if len(d) < wire.HeaderLen+wire.DataHeaderLen+1 || len(d)&3 != 0 {
		return false
	}
	at, acked, rwnd := wire.HeaderLen, seq.TSN(0), uint32(0)
	ack := d[at] == byte(wire.ChunkSack)
	if ack {
		if binary.BigEndian.Uint16(d[at+2:]) != wire.SackHeaderLen || binary.BigEndian.Uint32(d[at+12:]) != 0 {
			return false // gaps or duplicates
		}
		acked, rwnd = seq.TSN(binary.BigEndian.Uint32(d[at+4:])), binary.BigEndian.Uint32(d[at+8:])
		at += wire.SackHeaderLen
	}
	rx, r := &a.rx, a.rx.reasm
	if r == nil || !a.smallExpected(now, p) {
		return false
	}
	over, typ := wire.DataHeaderLen, wire.ChunkData
	if r.Interleaved() {
		over, typ = wire.IDataHeaderLen, wire.ChunkIData
	}
	c := d[at:]
	if len(c) <= over || binary.BigEndian.Uint16(c) != uint16(typ)<<8|flagBegin|flagEnd {
		return false
	}
	n := int(binary.BigEndian.Uint16(c[2:])) - over
	sid := binary.BigEndian.Uint16(c[sidInChunk:])
	if n <= 0 || over+(n+3)&^3 != len(c) || n > len(post.Dst) ||
		post.Stream != int(sid) && post.Stream != reasm.AnyStream ||
		seq.TSN(binary.BigEndian.Uint32(c[tsnInChunk:])) != rx.tsns.CumTSN()+1 {
		return false
	}
	st := r.IdleStream(sid)
	if st == nil {
		return false
	}
	ppidAt := midInChunk
	if r.Interleaved() {
		if ppidAt = fsnInChunk; binary.BigEndian.Uint32(c[midInChunk:]) != st.NextNumber() {
			return false
		}
	} else if uint32(binary.BigEndian.Uint16(c[ssnInChunk:])) != st.NextNumber() {
		return false
	}
	if a.tx.deferredSack.on {
		if a.processDeferredSack(); a.slow != 0 {
			return false
		}
	}
	if ack && !a.canDeferSack(acked, rwnd) {
		return false
	}
	// Last, as it takes longest.
	if binary.LittleEndian.Uint32(d[checksumField:]) == 0 || !wire.VerifyInPlace(d) {
		return false
	}
	if ack {
		a.tx.deferSack(now, acked, rwnd)
	}
	copy(post.Dst, c[over:over+n])
	rx.messages++
	a.countInSequence(now, 1, n)
	rx.sack.EndBatch()
	post.N = n
	r.DeliverDirect(st, rx.tsns.CumTSN(), binary.BigEndian.Uint32(c[ppidAt:]), &post.Info)
	return true
}

// smallExpected reports whether nothing but the chunks of the packet has to be looked at, and
// no SACK is due after it.
func (a *Assoc) smallExpected(now clock.Time, p *SmallPacket) bool {
	rx, s, in := &a.rx, &a.rx.sack, &a.in
	if a.slow != 0 || p.ECN == ECNCE || in.path != 0 {
		return false
	}
	d := p.Data
	if binary.BigEndian.Uint32(d) != uint32(a.peer.port)<<16|uint32(a.port) || binary.BigEndian.Uint32(d[4:]) != a.tag {
		return false
	}
	if *p.Remote != in.from.Remote || *p.Local != in.from.Local.Addr() || a.paths[0].Remote != in.from.Remote {
		return false
	}
	if rx.tsns.HasGaps() || len(rx.tsns.Duplicates()) > 0 {
		return false
	}
	return s.NoneDueAfterNext(now)
}
