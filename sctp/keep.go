package sctp

// KeepReceived counts n bytes against the receive buffer of an association in upcall
// mode: memory in which its user keeps what OnPiece has delivered and cannot be used
// yet. A negative n gives bytes back; of calls at the same time it may be the first. The window that the peer is told shrinks by as
// much, so a peer that keeps to its window stops sending before that memory grows
// beyond the receive buffer; what fills gaps is received all the same. KeepReceived
// never blocks and may be called in OnPiece.
func (a *Association) KeepReceived(n int) {
	a.mu.Lock()
	a.core.KeepReceived(n)
	flush := n < 0 && a.core.WantTransmit()
	w := a.drainAndUnlock()
	if flush {
		w |= a.flush()
	}
	a.goCallbacks(w)
}
