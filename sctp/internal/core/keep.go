package core

// maxKept is how many times the receive buffer the user may keep before chunks are
// refused that the peer sent by a window that it was told before.
const maxKept = 2

// KeepReceived counts n bytes against the receive window that the user keeps of
// pieces it has taken, beyond ReleasePiece: data that waits for what was lost, say.
// A negative n tells that it keeps fewer.
//
// Chunks that fill gaps are taken nevertheless: what is kept may wait for them.
func (a *Assoc) KeepReceived(n int) {
	if a.rx.reasm == nil {
		return
	}
	w := &a.rx.reasm.window
	w.kept = max(w.kept+n, 0)
	a.consumed()
}
