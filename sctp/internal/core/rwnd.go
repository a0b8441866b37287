package core

// swsSegment is what a window must offer at least, unless half of the receive
// buffer is less: a full packet.
const swsSegment = 1452

// recvWindow keeps the books of a_rwnd (RFC 9260, Section 6.2).
type recvWindow struct {
	limit  int // receive buffer
	held   int // charged for what is buffered, overhead included
	told   int // what the last SACK, INIT or INIT ACK advertised
	credit int // payload the peer may have under way by what it was told before
}

func (w *recvWindow) init(limit int) { *w = recvWindow{limit: limit, told: limit, credit: limit} }

// take notes that n bytes of payload were accepted.
func (w *recvWindow) take(n int) { w.credit = max(w.credit-n, 0) }

// open returns the a_rwnd to advertise now. A window too small for a packet is
// not offered at all: "MUST also have an algorithm for advertising its receive
// window to avoid receiver silly window syndrome".
func (w *recvWindow) open() uint32 {
	n := w.limit - w.held
	if n < min(swsSegment, w.limit/2) {
		return 0
	}
	return uint32(min(int64(n), 1<<32-1))
}

// advertised notes that a SACK carried the window rwnd. A smaller window than
// before does not call back what the peer has sent already.
func (w *recvWindow) advertised(rwnd uint32) {
	w.told = int(rwnd)
	w.credit = max(w.credit, w.told)
}

// grown reports whether the user has consumed so much that the peer should be
// told without waiting for its next DATA: "send a window update only if the
// window can be increased by at least a quarter of the receive buffer". It must
// also matter to the peer, whose window was below half of the buffer.
func (w *recvWindow) grown() bool {
	return w.told < w.limit/2 && int(w.open())-w.told >= w.limit/4
}

// pressed reports whether the buffer is so full that unfinished messages have to
// be delivered in part (RFC 9260, Section 6.9).
func (w *recvWindow) pressed() bool { return w.held >= w.limit-w.limit/4 || w.open() == 0 }
