package core

// KeepReceived counts n bytes against the receive window that the user keeps of
// pieces it has taken, beyond ReleasePiece: data that waits for what was lost, say.
// A negative n tells that it keeps fewer.
//
// Chunks that fill gaps are taken nevertheless: what is kept may wait for them.
func (a *Assoc) KeepReceived(n int) {
	if a.rx.reasm == nil {
		return
	}
	a.rx.reasm.Keep(n)
	a.consumed()
}
