package verbs

import (
	"runtime"
	"time"
)

const (
	// spinAfter is the number of calls of Poll in a row that found nothing after which
	// the caller counts as one that spins: it makes progress then.
	spinAfter = 16
	// spinYield is the number of such calls after which others may run. Where others
	// read the sockets, as over TCP, the caller sleeps for a moment: the runtime looks
	// at the network for a processor that has nothing to run, and else every 10 ms.
	spinYield = 64
)

// progress does for a program that spins on an empty queue what Wait does while it
// polls: it reads the sockets, and lets others run. It reports whether there is
// something now.
func (cq *CQ) progress() bool {
	n := cq.empty.Add(1)
	if n < spinAfter {
		return false
	}
	t := cq.dev.cfg.Transport
	reads := t != nil && t.CanPoll()
	if reads {
		t.Poll()
	}
	if n%spinYield == 0 && cq.n.Load() == 0 {
		if !reads || cq.dev.overTCP() {
			time.Sleep(time.Microsecond)
		} else {
			runtime.Gosched()
		}
	}
	return cq.n.Load() > 0
}

// overTCP reports whether the device has connections over TCP.
func (d *Device) overTCP() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.tcp.channels) > 0
}
