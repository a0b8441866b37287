package core

import (
	"encoding/binary"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// Where in a DATA or I-DATA chunk its TSN and the stream number are, in a DATA chunk the
// SSN, and in an I-DATA chunk the MID and, if it does not begin a message, the FSN. The
// PPID is where an I-DATA chunk has the MID, or the FSN.
const (
	tsnInChunk = 4
	sidInChunk = 8
	ssnInChunk = 10
	midInChunk = 12
	fsnInChunk = 16
)

// Flags of DATA and I-DATA chunks (RFC 9260, Section 3.3.1).
const (
	flagEnd       = 1
	flagBegin     = 2
	flagUnordered = 4
)

// HandleInSequence is the bulk fast path of the receiver. It takes in packets of a GRO batch
// that follow p, which HandlePacket took in last without dropping it: b has them, of size
// bytes each, and perhaps others behind them. Each may hold only the next fragment of the
// message that is being received, or the next of several unordered messages of one fragment,
// as bulkData builds them. It returns how many it took; the rest is for HandlePacket. b
// changes during the call, see wire.VerifyInPlace.
func (a *Assoc) HandleInSequence(now clock.Time, p *Packet, b []byte, size int) int {
	over := wire.HeaderLen + a.tx.q.HeaderLen()
	if size <= over || len(b) < size || a.slow&slowBulkReceive != 0 {
		return 0
	}
	// The first chunk has to fill the packet.
	head := binary.BigEndian.Uint32(b[wire.HeaderLen:])
	n := int(head&0xffff) - (over - wire.HeaderLen)
	if n <= 0 || over+(n+3)&^3 != size || !a.inSequenceExpected(now, p, wire.ChunkType(head>>24)) {
		return 0
	}
	x := inSequence{a: a, p: p, b: b, size: size, over: over, n: n, head: head, zero: p.mayBeZero(&a.cfg),
		ports: uint32(a.peer.port)<<16 | uint32(a.port), sid: binary.BigEndian.Uint32(b[wire.HeaderLen+sidInChunk:])}
	k := 0
	switch uint8(head >> 16) {
	case 0, flagUnordered:
		k = x.nextFragments()
	case flagUnordered | flagBegin | flagEnd:
		k = x.unfragmented()
	}
	if k > 0 {
		a.countInSequence(now, k, x.n)
	}
	return k
}

// inSequenceExpected reports whether nothing but the DATA chunks of the packets has to be
// looked at.
func (a *Assoc) inSequenceExpected(now clock.Time, p *Packet, t wire.ChunkType) bool {
	rx, in := &a.rx, &a.in
	s := &rx.sack
	if a.tx.deferredSack.on || p.ECN == ECNCE || a.auth.Need.Has(t) || rx.tsns.HasGaps() {
		return false
	}
	want := wire.ChunkData
	if a.peer.features.Has(feature.IData) {
		want = wire.ChunkIData
	}
	if t != want {
		return false
	}
	if in.path >= len(a.paths) || in.from.Local != p.Local || in.from.Remote != address.Unmap(p.Remote) ||
		a.paths[in.path].Remote != in.from.Remote {
		return false
	}
	return s.Delayable(now) && s.SamePath(in.path)
}

// inSequence is an in-sequence batch: packets with consecutive TSNs that differ in little else.
type inSequence struct {
	a          *Assoc
	p          *Packet
	b          []byte
	size, over int    // of a packet, and of what is in front of its data
	n          int    // bytes of data
	head       uint32 // type, flags and length of the chunk
	ports, sid uint32 // sid with the two bytes behind it
	zero       bool   // a checksum of zero is accepted (RFC 9653)
}

// next returns packet i if its ports, verification tag, chunk length and flags, TSN and stream
// are those of the batch. The caller checks the rest of the chunk header, and then the
// checksum by checksumOK.
func (x *inSequence) next(i int) (pkt []byte, ok bool) {
	at := i * x.size
	if len(x.b)-at < x.size {
		return nil, false
	}
	pkt = x.b[at:][:x.size:x.size]
	a := x.a
	return pkt, binary.BigEndian.Uint32(pkt) == x.ports && binary.BigEndian.Uint32(pkt[4:]) == a.tag &&
		binary.BigEndian.Uint32(pkt[wire.HeaderLen:]) == x.head &&
		seq.TSN(binary.BigEndian.Uint32(pkt[wire.HeaderLen+tsnInChunk:])) == a.rx.tsns.CumTSN()+1+seq.TSN(i) &&
		binary.BigEndian.Uint32(pkt[wire.HeaderLen+sidInChunk:]) == x.sid
}

// checksumOK reports whether the checksum of a packet is right, or zero if that is accepted.
func (x *inSequence) checksumOK(pkt []byte) bool {
	if binary.LittleEndian.Uint32(pkt[checksumField:]) == 0 {
		return x.zero
	}
	return wire.VerifyInPlace(pkt)
}

// nextFragments takes in the packets that have the next fragments of the message that the
// last fragment belongs to.
func (x *inSequence) nextFragments() (k int) {
	a := x.a
	r := a.rx.reasm
	m, ok := r.Unfinished()
	if !ok {
		return 0
	}
	sid, unordered := m.Stream()
	if unordered != (x.head>>16&flagUnordered != 0) || uint32(sid) != x.sid>>16 {
		return 0
	}
	interleaved := r.Interleaved()
	if !interleaved && (seq.TSN(m.NextFragment()) != a.rx.tsns.CumTSN()+1 || !unordered && x.sid&0xffff != m.Number()) {
		return 0
	}
	for r.RoomForFragment() {
		pkt, ok := x.next(k)
		if !ok || interleaved && (binary.BigEndian.Uint32(pkt[wire.HeaderLen+midInChunk:]) != m.Number() ||
			binary.BigEndian.Uint32(pkt[wire.HeaderLen+fsnInChunk:]) != m.NextFragment()) || !x.checksumOK(pkt) {
			break
		}
		ppid := uint32(0)
		if !interleaved {
			ppid = binary.BigEndian.Uint32(pkt[wire.HeaderLen+midInChunk:])
		}
		r.AppendFragment(m, a.rx.tsns.CumTSN()+1+seq.TSN(k), ppid, pkt[x.over:][:x.n], x.p.Buf)
		k++
	}
	if k > 0 {
		r.Appended(m)
	}
	return k
}

// unfragmented takes in the packets that each have an unordered message of one fragment.
func (x *inSequence) unfragmented() (k int) {
	a := x.a
	r := a.rx.reasm
	sid := uint16(x.sid >> 16)
	if int(sid) >= a.rx.streams {
		return 0
	}
	st, ok := r.ExpectsUnfragmented(sid)
	if !ok {
		return 0
	}
	interleaved := r.Interleaved()
	mid := uint32(0)
	for r.RoomForFragment() {
		pkt, ok := x.next(k)
		if !ok {
			break
		}
		if interleaved {
			if k == 0 {
				mid = binary.BigEndian.Uint32(pkt[wire.HeaderLen+midInChunk:])
			} else if binary.BigEndian.Uint32(pkt[wire.HeaderLen+midInChunk:]) != mid+uint32(k) {
				break
			}
		}
		if !x.checksumOK(pkt) {
			break
		}
		ppidAt := midInChunk
		if interleaved {
			ppidAt = fsnInChunk
		}
		r.PushNext(st, a.rx.tsns.CumTSN()+1+seq.TSN(k), mid+uint32(k), binary.BigEndian.Uint32(pkt[wire.HeaderLen+ppidAt:]),
			pkt[x.over:][:x.n], x.p.Buf)
		k++
	}
	a.rx.messages += uint64(k)
	return k
}

// countInSequence counts k packets, each with the next chunk in order, of n bytes.
func (a *Assoc) countInSequence(now clock.Time, k, n int) {
	rx := &a.rx
	a.stats.PacketsReceived += uint64(k)
	a.shut.gotData = true
	rx.chunks += uint64(k)
	rx.bytes += uint64(k) * uint64(n)
	rx.tsns.ObserveNext(k)
	rx.reasm.Accepted(k * n)
	rx.sack.PacketsInOrder(now, a.in.path, k)
}
