package reasm

import "math"

// swsSegment is what a window must offer at least, unless half of the receive
// buffer is less: a full packet.
const swsSegment = 1452

// window accounts for a_rwnd (RFC 9260, Section 6.2) and the memory
// behind it. limit is in bytes of heap, so a window of small messages is smaller than
// what they have of payload: their records count too.
type window struct {
	limit   int  // receive buffer
	share   int  // of a common budget, if that is less; else noShare
	held    int  // heap of what is buffered: payload and records
	kept    int  // what the user keeps of what it took, or less than 0 for a moment: see Queue.Keep
	payload int  // user data in it
	idle    int  // of receive buffers that are pinned, what is not needed
	largest int  // the most that a fragment took that went beyond limit
	told    int  // what the last SACK, INIT or INIT ACK advertised
	credit  int  // payload the peer may have under way by what it was told before
	scarce  bool // less than half of the buffer was advertised once
}

// maxKept is how many times the receive buffer the user may keep before chunks are
// refused that the peer sent by a window that it was told before.
const maxKept = 2

// noShare is a share that does not count.
const noShare = math.MaxInt

func (w *window) init(limit int) {
	*w = window{limit: limit, share: noShare, told: limit, credit: limit}
}

// size is how much may be used now.
func (w *window) size() int { return min(w.limit, w.share) }

// idleShare is how many bytes of receive buffers may be pinned for nothing, as long as
// they do not count.
func (w *window) idleShare() int { return w.size() / 4 }

// keeps is how much the user keeps.
func (w *window) keeps() int { return max(w.kept, 0) }

// used is what counts against limit.
func (w *window) used() int { return w.held + max(w.idle-w.idleShare(), 0) }

// bound is how much may be used before the chunk that lets everything else be
// delivered is refused, too. Other chunks leave at least a quarter of the buffer for it,
// less what the last of them took.
func (w *window) bound() int { return w.limit + w.limit/2 + w.largest + messageRecord }

// most is how much may be held: the last chunk goes beyond bound, with the record of a message, and a
// FORWARD-TSN may leave the record of what swallows the rest of a message.
func (w *window) most() int { return w.bound() + w.largest + 2*messageRecord }

// take notes that n bytes of payload were accepted.
func (w *window) take(n int) { w.credit = max(w.credit-n, 0) }

// open returns the a_rwnd to advertise now. A window too small for a packet is
// not offered at all: "MUST also have an algorithm for advertising its receive
// window to avoid receiver silly window syndrome".
//
// The peer counts payload. While most of what is held is records, and more than half
// of the buffer is in use, the window is as much payload as there is room for with the
// records that it comes with: else a peer that sends tiny messages, and does as it is
// told, would send far more than fits.
func (w *window) open() uint32 {
	used, size := w.used(), w.size()
	n := size - used - w.keeps()
	if n < min(swsSegment, w.limit/2) {
		return 0
	}
	if used > size/2 && w.payload < w.held/2 {
		n = int(int64(n) * int64(w.payload) / int64(w.held))
	}
	return uint32(min(int64(n), 1<<32-1))
}

// advertised notes that a SACK carried the window rwnd. A smaller window than
// before does not call back what the peer has sent already.
func (w *window) advertised(rwnd uint32) {
	w.told = int(rwnd)
	w.scarce = w.scarce || w.told < w.size()/2
	w.credit = max(w.credit, w.told)
}

// grown reports whether the user has consumed so much that the peer should be
// told without waiting for its next DATA: "send a window update only if the
// window can be increased by at least a quarter of the receive buffer". It must
// also matter to the peer, whose window was below half of the buffer.
func (w *window) grown() bool {
	size := w.size()
	return w.told < size/2 && int(w.open())-w.told >= size/4
}

// pressed reports whether the buffer is so full that unfinished messages have to
// be delivered in part (RFC 9260, Section 6.9).
func (w *window) pressed() bool { return w.used() >= w.size()-w.size()/4 || w.open() == 0 }
