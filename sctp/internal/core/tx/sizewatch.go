package tx

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
)

// holeLosses is how many times in a row retransmissions in large packets must
// get lost, with nothing in large packets being acknowledged, for the path to
// count as a black hole for them.
const holeLosses = 2

// sizeWatch watches the fate of large packets on one path.
type sizeWatch struct {
	mtu   int        // the size of the largest packet
	slack int        // how much longer than a size that is not in question packets may be
	lost  int        // losses in a row
	began clock.Time // of the first of them
	since clock.Time // of the last loss that was counted

	// A chunk that is acknowledged proves that the path takes packets of the size that it
	// came in. wanted is the least size to be proven; chunk is in a packet of size bytes,
	// 0 if no packet is waited for; shown is what an acknowledgement has proven.
	wanted, size, shown int
	chunk               seq.TSN
}

// WatchSizes has the scoreboard watch packets on a path that are up to mtu bytes long:
// for the loss of those that are up to slack bytes shorter, none if slack is 0 or less,
// and for an acknowledgement of those of wanted bytes or more.
func (s *Scoreboard) WatchSizes(path, mtu, slack, wanted int) {
	s.paths[path].size = sizeWatch{mtu: mtu, slack: slack, wanted: wanted}
}

// noteSize remembers whether a chunk that was just sent is, wholly or in part,
// what makes its packet large; space is what the packet had left before it.
func (s *Scoreboard) noteSize(t seq.TSN, r *record, f *pathFlight, space int) {
	r.state &^= recBig
	w := &f.size
	left := space - s.chunkSize(r)
	if left >= w.slack {
		return
	}
	r.state |= recBig
	// What is sent for the second time may be in a packet that IP fragments.
	if n := w.mtu - left; n >= w.wanted && r.tx == 1 && (n > w.size || w.chunk.Less(s.base)) {
		w.size, w.chunk = n, t
	}
}

// bigAcked notes that chunks from lo to hi in large packets were acknowledged.
func (w *sizeWatch) bigAcked(lo, hi seq.TSN) {
	w.lost = 0
	if w.size > 0 && lo.LessEq(w.chunk) && w.chunk.LessEq(hi) {
		w.shown, w.size = max(w.shown, w.size), 0
	}
}

// bigLost counts the loss of a retransmission in a large packet. Those sent
// before the last such loss was noticed do not count again: they may have been
// lost together with it.
func (w *sizeWatch) bigLost(now clock.Time, t seq.TSN, r *record) {
	if w.size > 0 && w.chunk == t {
		w.size = 0 // another transmission may be what is acknowledged
	}
	if r.tx > 1 && r.sent >= w.since {
		if w.lost++; w.lost == 1 {
			w.began = now
		}
		w.since = now
	}
}

// BlackHole reports, once, that a path loses large packets and nothing shows
// that it carries any (RFC 8899, Section 4.3).
func (s *Scoreboard) BlackHole(path int) bool {
	w := &s.paths[path].size
	if w.lost < holeLosses {
		return false
	}
	w.lost = 0
	return w.slack > 0
}

// BigLossesBegan returns when the first of the losses of large packets on a path was noticed
// that BlackHole reports.
func (s *Scoreboard) BigLossesBegan(path int) clock.Time { return s.paths[path].size.began }

// TakeProvenSize returns, once, the size of a packet on a path that was acknowledged and that
// WatchSizes asked for, 0 if there is none.
func (s *Scoreboard) TakeProvenSize(path int) int {
	w := &s.paths[path].size
	n := w.shown
	w.shown = 0
	return n
}
