package tx

import "github.com/weftstack/weft/sctp/internal/core/seq"

// rtxCopy is the memory of a batch of packets, from which they are retransmitted.
type rtxCopy struct {
	mem   []byte
	owner Owner // is released when all TSNs below hi are acknowledged
	hi    seq.TSN
}

// rtxCopies are the retransmission copies in the order of their TSNs.
type rtxCopies struct {
	list []rtxCopy // those before head were released
	head int
	base uint16 // the number of list[0]
	open bool   // the last one is being built
}

// maxRtxCopies bounds how many there are: so many have different numbers.
const maxRtxCopies = 1 << 15

// begin adds a retransmission copy, which is open.
func (x *rtxCopies) begin(mem []byte, owner Owner) {
	if x.head == len(x.list) {
		x.base += uint16(x.head)
		x.list, x.head = x.list[:0], 0
	} else if x.head >= 64 && x.head >= len(x.list)/2 {
		n := copy(x.list, x.list[x.head:])
		clear(x.list[n:])
		x.base += uint16(x.head)
		x.list, x.head = x.list[:n], 0
	}
	x.list = append(x.list, rtxCopy{mem: mem, owner: owner})
	x.open = true
}

func (x *rtxCopies) live() int { return len(x.list) - x.head }

func (x *rtxCopies) last() *rtxCopy { return &x.list[len(x.list)-1] }

// ref names the byte at offset at of the one that is open; 0 if none is.
func (x *rtxCopies) ref(at int) uint32 {
	if !x.open {
		return 0
	}
	return uint32(x.base+uint16(len(x.list)-1))<<16 | uint32(at)
}

// bytes returns n bytes from what ref named.
func (x *rtxCopies) bytes(ref uint32, n int) []byte {
	return x.list[uint16(ref>>16)-x.base].mem[ref&0xffff:][:n]
}

// releaseRtxCopies releases the retransmission copies that hold no TSN from base on; with all
// set it releases every one.
func (s *Scoreboard) releaseRtxCopies(all bool) {
	x := &s.rtxCopies
	for x.head < len(x.list) {
		i := &x.list[x.head]
		if !all && (x.open && x.head == len(x.list)-1 || s.base.Less(i.hi)) {
			return
		}
		s.q.released = append(s.q.released, Release{Owner: i.owner})
		*i = rtxCopy{}
		x.head++
	}
	x.open = false
}

// RtxCopies returns how many retransmission copies there are.
func (s *Scoreboard) RtxCopies() int { return s.rtxCopies.live() }

// CanRetain reports whether there may be another retransmission copy.
func (s *Scoreboard) CanRetain() bool { return s.rtxCopies.live() < maxRtxCopies }

// Retain makes mem, in which packets are built from now on, a retransmission copy, which is
// open until EndRetain or DropRetained is called. Its owner, which is not nil, is released
// when it is not needed any more.
func (s *Scoreboard) Retain(mem []byte, owner Owner) { s.rtxCopies.begin(mem, owner) }

// Retaining reports whether a retransmission copy is open.
func (s *Scoreboard) Retaining() bool { return s.rtxCopies.open }

// Retained returns the memory of the retransmission copy that is open.
func (s *Scoreboard) Retained() []byte { return s.rtxCopies.last().mem }

// EndRetain closes the retransmission copy: no other packet is built in it.
func (s *Scoreboard) EndRetain() {
	s.rtxCopies.open = false
	s.rtxCopies.last().hi = s.next
}

// DropRetained takes the retransmission copy back, in which no packet was built.
func (s *Scoreboard) DropRetained() {
	x := &s.rtxCopies
	*x.last() = rtxCopy{}
	x.list, x.open = x.list[:len(x.list)-1], false
}

// SetUnsent tells that the last n TSNs are in packets that have not left.
func (s *Scoreboard) SetUnsent(n int) { s.unsent = n }

// FirstUnsent returns the first of the TSNs that SetUnsent told of, or that of the next new
// chunk.
func (s *Scoreboard) FirstUnsent() seq.TSN { return s.next - seq.TSN(s.unsent) }
