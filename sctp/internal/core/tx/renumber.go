package tx

import "github.com/weftstack/weft/sctp/internal/core/seq"

// TSNSpace is how far a sender that begins anew moves its TSNs, so that SACKs for
// what it sent before are old. It is a multiple of MaxOutstanding, so that Shift
// moves nothing in a ring.
const TSNSpace seq.TSN = 1 << 30

// Shift adds d, a multiple of TSNSpace, to the TSNs of all that was sent, of which
// nothing has been acknowledged.
func (s *Scoreboard) Shift(d seq.TSN) {
	if d == 0 {
		return
	}
	for t := s.base; t != s.next; t++ {
		r := s.rec(t)
		r.prev, r.next = r.prev+d, r.next+d
		if m := r.msg; m.first == t {
			m.first, m.last = m.first+d, m.last+d
		}
	}
	s.base, s.next, s.adv, s.known = s.base+d, s.next+d, s.adv+d, s.known+d
	for i := range s.rtxCopies.list {
		s.rtxCopies.list[i].hi += d
	}
	for i := range s.paths {
		f := &s.paths[i]
		f.rttMark, f.exit, f.ecnMark, f.undo.mark = f.rttMark+d, f.exit+d, f.ecnMark+d, f.undo.mark+d
		k := &f.rack
		k.head, k.tail, k.end, k.fack = k.head+d, k.tail+d, k.end+d, k.fack+d
		k.dsackRound, k.probeEnd = k.dsackRound+d, k.probeEnd+d
	}
}
