package core

import "github.com/weftstack/weft/sctp/internal/core/seq"

// carried returns what the queue after a restart of the peer has to go on with.
func (r *reassembly) carried() (msgID uint64, kept int) { return r.msgID, r.window.kept }

// deferredUntil returns up to which TSN a reset of all streams waits.
func (r *reassembly) deferredUntil() seq.TSN { return r.deferTSN }

// keep counts n bytes more that the user keeps of what it took, or fewer if n is
// negative.
func (r *reassembly) keep(n int) { r.window.kept = max(r.window.kept+n, 0) }

// setShare bounds the receive buffer by a share of a common budget. counts tells
// whether the share is less than the buffer, changed whether it is another one.
func (r *reassembly) setShare(n int) (counts, changed bool) {
	w := &r.window
	if n >= w.limit {
		n = noShare
	}
	changed = w.share != n
	w.share = n
	return n != noShare, changed
}

// memory returns how many bytes what is held takes, and with it what the user keeps.
func (r *reassembly) memory() int { return r.window.held + r.window.idle + r.window.kept }

// payload returns how many bytes of user data are held.
func (r *reassembly) payload() int { return r.window.payload }

// rwnd returns the a_rwnd to advertise now.
func (r *reassembly) rwnd() uint32 { return r.window.open() }

// advertised notes that a SACK carried the window rwnd.
func (r *reassembly) advertised(rwnd uint32) { r.window.advertised(rwnd) }

// windowGrown reports whether the peer should be told of a larger window.
func (r *reassembly) windowGrown() bool { return r.window.grown() }

// pressed reports whether the buffer is nearly full.
func (r *reassembly) pressed() bool { return r.window.pressed() }

// scarce reports whether less than half of the buffer was advertised once.
func (r *reassembly) scarce() bool { return r.window.scarce }
