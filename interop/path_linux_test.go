package interop

import (
	"testing"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
)

// firstPath returns what is known of the primary path once ok says so.
func (s *session) firstPath(what string, ok func(sctp.PathStats) bool) sctp.PathStats {
	s.t.Helper()
	var p sctp.PathStats
	s.until(what, func() bool {
		p = s.a.Stats().Paths[0]
		return ok(p)
	})
	return p
}

// multiPathMTU finds the MTU of a path with probes (RFC 8899, with the PAD chunk
// of RFC 4820) and sends packets of that size.
func multiPathMTU(t *testing.T, o setup) {
	o.discover = true
	o.at = [2]addrList{{linkAddr(0, ours)}, {linkAddr(0, theirs)}}
	s := o.open(t)
	base := s.a.MaxPayload()
	// It is not more than that of the route, which is looked up outside of the
	// emulated network.
	found := s.firstPath("the path MTU is not found", func(p sctp.PathStats) bool { return p.MTU > 1300 }).MTU
	t.Logf("MTU %d, at first %d", found, base)
	if sent, _ := s.chunks(wire.ChunkPad); sent == 0 {
		t.Error("no PAD chunk was sent")
	}
	s.bothWays()
	s.shutdown()
}

// multiECN has packets marked in both directions (RFC 9260, Appendix A): the
// receiver echoes it, the sender slows down and confirms.
func multiECN(t *testing.T, o setup) {
	o.at = [2]addrList{{linkAddr(0, ours)}, {linkAddr(0, theirs)}}
	o.opts = append(o.opts, "ecn 1")
	defer o.net.mark()()
	s := o.open(t)
	for range 3 {
		s.bothWays()
	}
	s.shutdown() // what is under way arrives before
	st := s.a.Stats()
	t.Logf("%d packets came marked; %d reductions", st.MarkedPackets, st.CongestionMarks)
	if st.MarkedPackets == 0 || st.CongestionMarks == 0 {
		t.Error("marks want to be seen and reacted to")
	}
	s.wantChunks(wire.ChunkECNE, true)
	s.wantChunks(wire.ChunkCWR, true)
}
