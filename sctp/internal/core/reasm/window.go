package reasm

import "github.com/weftstack/weft/sctp/internal/core/seq"

// Carried returns what the queue after a restart of the peer has to go on with.
func (r *Queue) Carried() (msgID uint64, kept int) { return r.msgID, r.window.kept }

// DeferredUntil returns up to which TSN a reset of all streams waits.
func (r *Queue) DeferredUntil() seq.TSN { return r.deferTSN }

// Keep counts n bytes more that the user keeps of what it took, or fewer if n is
// negative, which may come first: only the sum counts.
func (r *Queue) Keep(n int) { r.window.kept += n }

// SetShare bounds the receive buffer by a share of a common budget. counts tells
// whether the share is less than the buffer, changed whether it is another one.
func (r *Queue) SetShare(n int) (counts, changed bool) {
	w := &r.window
	if n >= w.limit {
		n = noShare
	}
	changed = w.share != n
	w.share = n
	return n != noShare, changed
}

// Memory returns how many bytes what is held takes, and with it what the user keeps.
func (r *Queue) Memory() int { return r.window.held + r.window.idle + r.window.keeps() }

// Payload returns how many bytes of user data are held.
func (r *Queue) Payload() int { return r.window.payload }

// Rwnd returns the a_rwnd to advertise now.
func (r *Queue) Rwnd() uint32 { return r.window.open() }

// Advertised notes that a SACK carried the window rwnd.
func (r *Queue) Advertised(rwnd uint32) { r.window.advertised(rwnd) }

// WindowGrown reports whether the peer should be told of a larger window.
func (r *Queue) WindowGrown() bool { return r.window.grown() }

// Pressed reports whether the buffer is nearly full.
func (r *Queue) Pressed() bool { return r.window.pressed() }

// Scarce reports whether less than half of the buffer was advertised once.
func (r *Queue) Scarce() bool { return r.window.scarce }
