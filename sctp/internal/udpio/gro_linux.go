package udpio

import (
	"github.com/weftstack/weft/sctp/internal/slab"
	"golang.org/x/sys/unix"
)

// groSwitch decides whether the kernel coalesces datagrams (UDP_GRO). Senders batch long
// datagrams; where only short ones come GRO is off, because the control message that says
// that a datagram is alone takes a twentieth of a small round trip.
type groSwitch struct {
	able, on bool // GRO can be switched; it is on
	short    int  // consecutive short datagrams
	after    int  // how many of them turn GRO off
	// maybeMerged is true from when GRO is turned off until the socket is empty: a long
	// datagram may be a batch then, and its segment size is unknown.
	maybeMerged bool
}

const (
	// longDatagram is the size from which on a datagram may be part of a GRO batch, 512 bytes.
	longDatagram = 512
	// groOffAfter is how many consecutive short datagrams turn GRO off. A batch that comes
	// while it is off arrives as single datagrams or is dropped, so the number grows by
	// groOffBackoff with each, up to maxGROOffAfter.
	groOffAfter    = 1024
	groOffBackoff  = 2
	maxGROOffAfter = 1 << 20
)

func (j *groSwitch) init(able bool) { j.able, j.on, j.after = able, able, groOffAfter }

// noteSizes counts the datagrams that were read, and turns GRO off or on again. It reports
// whether they must be dropped, because they may be batches of unknown segment size.
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

// setGRO turns GRO on or off.
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
