package core

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

// drop takes the last one back.
func (x *rtxCopies) drop() {
	*x.last() = rtxCopy{}
	x.list, x.open = x.list[:len(x.list)-1], false
}

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
