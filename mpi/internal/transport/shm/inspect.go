package shm

import "math/bits"

// What tests of whole jobs see of a link.

// Copies reports whether this process copies bodies from the memory of the peer.
func (l *Link) Copies() bool { return l.in.ctl.copies.Load() != 0 }

// RefuseCopies makes the peer offer no more bodies.
func (l *Link) RefuseCopies() { l.in.ctl.copies.Store(0) }

// Offered returns the number of bodies that the peer may copy or is copying.
func (l *Link) Offered() int {
	l.offers.mu.Lock()
	defer l.offers.mu.Unlock()
	return bits.OnesCount64(l.offers.used)
}

// Copying reports whether the body in a slot is being copied, by the peer if out is true, else by this process.
func (l *Link) Copying(slot int, out bool) bool {
	ctl := l.in.ctl
	if out {
		ctl = l.out.ctl
	}
	return ctl.offers[slot%MaxOffers].Load()&offerStates == offerTaken
}
