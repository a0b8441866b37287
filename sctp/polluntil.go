package sctp

// PollUntil makes the calling goroutine read the sockets itself until ready
// reports true, or the time that TransportConfig.BusyPoll allows is up; it
// returns at once if polling is off or enough goroutines do it already. It
// reports whether ready did. It is for waits that end with an upcall, as those
// of Recv do: a goroutine calls it before it parks.
func (t *Transport) PollUntil(ready func() bool) bool {
	d := t.startSpin()
	if d == 0 {
		return false
	}
	end := t.now() + d
	for i := 0; ; i++ {
		t.spinOnce(i)
		if ready() {
			t.endSpin(true)
			return true
		}
		if i%clockEvery == 0 && t.now() >= end {
			t.endSpin(false)
			t.readersWake()
			return false
		}
	}
}
