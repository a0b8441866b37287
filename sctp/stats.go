package sctp

import (
	"net/netip"
	"time"
)

// Stats is a snapshot of the counters of an association.
type Stats struct {
	// PacketsSent and PacketsReceived count SCTP packets, BytesSent and
	// BytesReceived user bytes of first transmissions and deliveries.
	PacketsSent, PacketsReceived uint64
	BytesSent, BytesReceived     uint64
	// MessagesSent and MessagesReceived count user messages.
	MessagesSent, MessagesReceived uint64
	// ChunksSent counts DATA and I-DATA chunks, Retransmits those sent again,
	// FastRetransmits the part of those triggered by acknowledgements, and
	// Timeouts the expirations of the retransmission timer.
	ChunksSent, Retransmits, FastRetransmits, Timeouts uint64
	// SpuriousRetransmits counts duplicates the peer reported.
	SpuriousRetransmits uint64
	// DuplicateChunks counts chunks received twice, Dropped packets that
	// failed a check of the association.
	DuplicateChunks, Dropped uint64
	// MarkedPackets counts packets received with a congestion mark (ECN),
	// CongestionMarks the reactions to marks that the peer echoed.
	MarkedPackets, CongestionMarks uint64
	// Queued is the number of bytes in the send buffer, in flight included;
	// InFlight those sent and not acknowledged; Readable the bytes that wait
	// for Recv, or for the rest of their message.
	Queued, InFlight, Readable int
	// PeerWindow is the receive window that the peer advertised, in bytes, less the
	// data in flight.
	PeerWindow int
	// Paths describes each path; the primary is first.
	Paths []PathStats
}

// PathStats describes one path of an association.
type PathStats struct {
	Local, Remote netip.AddrPort
	// Active, Confirmed and Primary are RFC 9260's, PotentiallyFailed is RFC
	// 7829's, of active paths.
	Active, Confirmed, Primary, PotentiallyFailed bool
	// SRTT, RTTVar and RTO are those of RFC 9260, Section 6.3.1.
	SRTT, RTTVar, RTO time.Duration
	// CWND and SSThresh are the congestion window and its threshold, MTU the size of
	// the largest SCTP packet, InFlight what was sent and not acknowledged, all in
	// bytes. Errors is the error counter of the path (RFC 9260, Section 8.2).
	CWND, SSThresh, MTU int
	InFlight, Errors    int
	// PacketsSent and BytesSent count packets with data and the chunks in them,
	// Timeouts the expirations of the retransmission timer, Heartbeats those sent
	// and HeartbeatsAcked those answered, CongestionMarks the reactions to ECN,
	// MTUProbes the probes of path MTU discovery, BlackHoles how often the path
	// MTU had to be given up, SpuriousLosses reductions of the congestion window
	// that were taken back.
	PacketsSent, BytesSent, Timeouts, Heartbeats, HeartbeatsAcked uint64
	CongestionMarks, MTUProbes, BlackHoles, SpuriousLosses        uint64
}

// TransportStats is a snapshot of the counters of a Transport.
type TransportStats struct {
	// DatagramsReceived and DatagramsSent count UDP datagrams; Reads and
	// Writes the calls they took.
	DatagramsReceived, DatagramsSent uint64
	BytesReceived, BytesSent         uint64
	Reads, Writes                    uint64
	// SocketDrops counts datagrams the kernel dropped for lack of socket
	// buffer (Linux only).
	SocketDrops uint64
	// BadPackets counts datagrams that were no SCTP packet or had a wrong
	// checksum, OutOfTheBlue those for no association (RFC 9260, Section
	// 8.4), Suppressed replies that were not sent because of the rate limit.
	BadPackets, OutOfTheBlue, Suppressed uint64
	// WriteErrors counts datagrams the kernel refused.
	WriteErrors uint64
	// Associations is the number of live associations.
	Associations int
	// RecvMemory is what counts against TransportConfig.RecvMemory now, in bytes.
	RecvMemory int
	// Offload tells whether segmentation and receive offload are in use on
	// any socket.
	Offload bool
}

// Unsent returns how many bytes of the send buffer wait for their first transmission.
func (a *Association) Unsent() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.Stats().Unsent
}

// Stats returns a snapshot of the counters.
func (a *Association) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.core.Stats()
	s := Stats{
		PacketsSent: c.PacketsSent, PacketsReceived: c.PacketsReceived,
		BytesSent: c.BytesSent, BytesReceived: c.BytesReceived,
		MessagesSent: c.MessagesSent, MessagesReceived: c.MessagesReceived,
		ChunksSent: c.ChunksSent, Retransmits: c.Retransmits, FastRetransmits: c.FastRetransmits,
		Timeouts: c.Timeouts, SpuriousRetransmits: c.DuplicatesReported,
		DuplicateChunks: c.DuplicatesReceived, Dropped: c.Dropped,
		MarkedPackets: c.MarkedPackets, CongestionMarks: c.CongestionMarks,
		Queued: c.Queued, InFlight: c.InFlight, Readable: c.Readable, PeerWindow: c.PeerWindow,
	}
	for i := range a.core.NumPaths() {
		p := a.core.PathStats(i)
		ps := PathStats{
			Local: a.t.shown(p.Local), Remote: a.t.shown(p.Remote), Active: p.Active, Confirmed: p.Confirmed, Primary: p.Primary,
			SRTT: p.SRTT, RTTVar: p.RTTVar, RTO: p.RTO,
			CWND: p.CWND, SSThresh: p.SSThresh, MTU: p.MTU, InFlight: p.InFlight, Errors: p.Errors,
			PotentiallyFailed: p.PotentiallyFailed, PacketsSent: p.PacketsSent, BytesSent: p.BytesSent,
			Timeouts: p.Timeouts, Heartbeats: p.Heartbeats, HeartbeatsAcked: p.HeartbeatsAcked,
			CongestionMarks: p.CongestionMarks, MTUProbes: p.MTUProbes, BlackHoles: p.BlackHoles, SpuriousLosses: p.SpuriousLosses,
		}
		if p.Primary {
			s.Paths = append([]PathStats{ps}, s.Paths...)
		} else {
			s.Paths = append(s.Paths, ps)
		}
	}
	return s
}
