package sctp

import (
	"math"
	"net/netip"
	"time"

	weft "github.com/weftstack/weft/sctp"
)

// BufferedAmount returns the bytes of messages that were written and that the peer has not acknowledged:
// of each all or none.
func (a *Association) BufferedAmount() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.buffered
}

// BytesSent returns the bytes of the packets that were written to the connection.
func (a *Association) BytesSent() uint64 {
	if w := a.lower(); w != nil && a.conn.isUDP() {
		return w.Endpoint().Transport().Stats().BytesSent
	}
	return a.conn.sent.Load()
}

// BytesReceived returns the bytes of the packets that were read from the connection.
func (a *Association) BytesReceived() uint64 {
	if w := a.lower(); w != nil && a.conn.isUDP() {
		return w.Endpoint().Transport().Stats().BytesReceived
	}
	return a.conn.received.Load()
}

// path returns the state of the only path.
func (a *Association) path() (p weft.PathStats) {
	if w := a.lower(); w != nil {
		if st := w.Stats(); len(st.Paths) > 0 {
			p = st.Paths[0]
		}
	}
	return p
}

// MTU returns the size of the largest SCTP packet in bytes.
func (a *Association) MTU() uint32 { return clamp(a.path().MTU) }

// CWND returns the congestion window in bytes.
func (a *Association) CWND() uint32 { return clamp(a.path().CWND) }

// RWND returns the bytes that the peer would still receive.
func (a *Association) RWND() uint32 {
	if w := a.lower(); w != nil {
		return clamp(w.Stats().PeerWindow)
	}
	return 0
}

func clamp(n int) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

// SRTT returns the smoothed round-trip time in milliseconds, 0 before the first measurement.
func (a *Association) SRTT() float64 {
	return float64(a.path().SRTT) / float64(time.Millisecond)
}

// MaxMessageSize returns the largest message in bytes that may be written.
func (a *Association) MaxMessageSize() uint32 { return a.maxMessageSize.Load() }

// SetMaxMessageSize sets the largest message in bytes that may be written.
func (a *Association) SetMaxMessageSize(maxMsgSize uint32) { a.maxMessageSize.Store(maxMsgSize) }

// Metadata returns what both sides have agreed on. It reports false unless the association is
// established.
func (a *Association) Metadata() (AssociationMetadata, bool) {
	w := a.lower()
	if w == nil || w.State() != weft.Established {
		return AssociationMetadata{}, false
	}
	x := w.Extensions()
	m := AssociationMetadata{
		MessageInterleavingEnabled:   x.Interleaving,
		ZeroChecksumSendingEnabled:   x.ZeroChecksum,
		ZeroChecksumReceivingEnabled: a.zeroReceive,
	}
	switch {
	case x.PartialReliability && x.Interleaving:
		m.PartialReliabilityMode = PartialReliabilityModeIForwardTSN
	case x.PartialReliability:
		m.PartialReliabilityMode = PartialReliabilityModeForwardTSN
	}
	return m, true
}

// ActiveHeartbeat measures the round-trip time by a HEARTBEAT chunk (RFC 9260, Section 8.3). It does
// nothing unless the association is established.
func (a *Association) ActiveHeartbeat() {
	if w := a.lower(); w != nil {
		_ = w.Heartbeat(netip.AddrPort{})
	}
}
