package udpio

import (
	"github.com/weftstack/weft/sctp/internal/slab"
	"golang.org/x/sys/unix"
)

// joins decides whether the kernel hands a train over in one piece (UDP_GRO). Trains
// are of long datagrams; where only short ones come it takes a twentieth of a small
// round trip to be told of each that it is alone.
type groSwitch struct {
	able, on bool
	short    int // datagrams since the last long one
	after    int // how many turn it off
	// mixed tells that it was turned off and the socket has not been empty since: a
	// long datagram may be a train of which nobody knows where to cut it.
	maybeMerged bool
}

const (
	// longDatagram is the size of a datagram that may be one of a train.
	longDatagram = 512
	// groOffAfter is how many short datagrams in a row turn GRO off. As a train that
	// comes then is dear, the number grows by groOffBackoff with each, up to maxGROOffAfter.
	groOffAfter    = 1024
	groOffBackoff  = 2
	maxGROOffAfter = 1 << 20
)

func (j *groSwitch) init(able bool) { j.able, j.on, j.after = able, able, groOffAfter }

// note takes in the trains that were read. It reports whether they are to be dropped.
func (s *source) noteSizes(bufs []*slab.Buf) (drop bool) {
	for _, b := range bufs {
		if len(b.B) < longDatagram {
			s.short++
			continue
		}
		s.short = 0
		if !s.on {
			drop = drop || s.maybeMerged
			s.setGRO(true)
			s.after = min(s.after*groOffBackoff, maxGROOffAfter)
		}
	}
	if s.on && s.short >= s.after {
		s.setGRO(false)
	}
	return drop
}

// join turns GRO on or off.
func (s *source) setGRO(on bool) {
	v := 0
	if on {
		v = 1
	}
	if unix.SetsockoptInt(s.fd, unix.IPPROTO_UDP, unix.UDP_GRO, v) != nil {
		s.able = false // it stays as it is
		return
	}
	s.on, s.maybeMerged, s.short = on, !on, 0
}
