package core

// Stats is a snapshot of the counters of an association.
type Stats struct {
	PacketsSent, PacketsReceived, Dropped uint64
	// BytesSent and MessagesSent count what Send took, BytesReceived and
	// MessagesReceived what came in DATA chunks that were new.
	BytesSent, MessagesSent, BytesReceived, MessagesReceived uint64
	ChunksSent, ChunksReceived                               uint64
	// Retransmits counts chunks sent again, FastRetransmits those marked by
	// SACKs, Timeouts the expirations of T1, T2 and T3, Probes tail loss probes.
	Retransmits, FastRetransmits, Timeouts, Probes uint64
	// DuplicatesReported counts the peer's, DuplicatesReceived ours.
	DuplicatesReported, DuplicatesReceived uint64
	SacksSent, SacksReceived               uint64
	Heartbeats, WindowProbes               uint64
	AbandonedUnsent, AbandonedSent         uint64
	// MarkedPackets counts packets received with a congestion mark (ECN),
	// CongestionMarks the reactions to marks that the peer echoed.
	MarkedPackets, CongestionMarks uint64
	// Queued is the user data not acknowledged yet, InFlight the bytes on the
	// way, Readable the bytes held for the user, PeerWindow what the peer can
	// still take.
	Queued, InFlight, Readable, PeerWindow int
	// Unsent is the part of Queued that has no TSN yet.
	Unsent int
}

// Stats returns a snapshot of the counters.
func (a *Assoc) Stats() Stats {
	c, t, r := &a.stats, &a.tx, &a.rx
	sb := t.sb.Stats()
	s := Stats{
		PacketsSent: c.PacketsSent, PacketsReceived: c.PacketsReceived, Dropped: c.Dropped,
		BytesSent: t.bytes, MessagesSent: t.messages, BytesReceived: r.bytes, MessagesReceived: r.messages,
		ChunksSent: sb.Chunks, ChunksReceived: r.chunks,
		Retransmits: sb.Retransmits, FastRetransmits: sb.FastRetransmits, Timeouts: c.Timeouts, Probes: sb.Probes,
		DuplicatesReported: sb.Duplicates, DuplicatesReceived: r.dups,
		SacksSent: r.sacks, SacksReceived: c.SacksReceived,
		Heartbeats: c.Heartbeats, WindowProbes: c.WindowProbes,
		Queued: int(t.q.Buffered()), Unsent: int(t.q.Unsent()), InFlight: t.sb.TotalFlight(), PeerWindow: t.sb.PeerWindow(),
	}
	s.AbandonedUnsent, s.AbandonedSent = t.q.AbandonedMessages()
	s.MarkedPackets = c.Marked
	for i := range a.paths {
		s.CongestionMarks += a.paths[i].count.marks
	}
	if r.reasm != nil {
		s.Readable = r.reasm.Payload()
	}
	return s
}
