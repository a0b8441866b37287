package stream

// Counters count what an endpoint has seen.
type Counters struct {
	// Opened counts connections that this side opened and the other one accepted, RefusedByPeer those that it
	// refused. Accepted counts those that this side accepted, Refused those that it refused.
	Opened, RefusedByPeer, Accepted, Refused uint64
	// Resets counts connections that this side has reset, ResetByPeer those that the other one has; PeersLost
	// how often a process was found to be gone.
	Resets, ResetByPeer, PeersLost uint64
	// Stale counts what arrived for connections that were over, Violations messages that break the protocol.
	Stale, Violations uint64
	// BytesSent and BytesReceived count bytes of the streams: taken by Write, returned by Read.
	BytesSent, BytesReceived uint64
}

// Stats is a snapshot of an endpoint.
type Stats struct {
	Counters
	Conns int // connections that are not over
}

// Stats returns a snapshot.
func (e *Endpoint) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Stats{Counters: e.counters, Conns: e.conns}
}

func (e *Endpoint) count(add func(*Counters)) {
	e.mu.Lock()
	add(&e.counters)
	e.mu.Unlock()
}
