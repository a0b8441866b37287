package sctp

import (
	"net/netip"
	"time"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/cc"
)

// maxDSCP is the largest Differentiated Services Code Point: it has six bits.
const maxDSCP = 63

// PathParams are the parameters of one path (RFC 6458, Section 8.1.12; RFC 7829, Section 7.2).
type PathParams struct {
	// HeartbeatInterval is how often the idle path is probed; negative means never.
	HeartbeatInterval time.Duration
	// MaxRetransmits is Config.PathMaxRetransmits of this path, and
	// PotentiallyFailedRetransmits the field of Config of that name.
	MaxRetransmits, PotentiallyFailedRetransmits int
	// MTU is the size in bytes of the largest SCTP packet, without the IP and UDP headers
	// that Config.MTU includes. Discover is true if the path MTU is discovered (RFC 8899).
	MTU      int
	Discover bool
	// DSCP is the Differentiated Services Code Point of packets on the path; see
	// Config.DSCP.
	DSCP uint8
}

// PathParams returns the parameters of the path to addr. It does not block. It returns
// ErrAddress if addr is not an address of the peer.
func (a *Association) PathParams(addr netip.AddrPort) (PathParams, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, err := a.core.PathParams(a.t.unshown(addr))
	if err != nil {
		return PathParams{}, ErrAddress
	}
	return PathParams{HeartbeatInterval: p.HBInterval, MaxRetransmits: p.MaxRetrans,
		PotentiallyFailedRetransmits: p.PFMaxRetrans, MTU: p.MTU, Discover: p.Discover, DSCP: p.DSCP}, nil
}

// SetPathParams changes the parameters of the path to addr. It does not block.
// HeartbeatInterval, MaxRetransmits and MTU stay as they are if they are 0, and MTU is ignored
// with Discover; the other fields always take effect, so begin with the result of
// [Association.PathParams]. It returns ErrAddress if addr is not an address of the peer, and
// ErrConfig for a DSCP above 63.
func (a *Association) SetPathParams(addr netip.AddrPort, p PathParams) error {
	if p.DSCP > maxDSCP {
		return ErrConfig
	}
	a.mu.Lock()
	err := a.core.SetPathParams(a.t.now(), a.t.unshown(addr), core.PathParams{HBInterval: p.HeartbeatInterval,
		MaxRetrans: p.MaxRetransmits, PFMaxRetrans: p.PotentiallyFailedRetransmits, MTU: p.MTU, Discover: p.Discover, DSCP: p.DSCP})
	w := a.drainAndUnlock()
	a.goCallbacks(w | a.flush())
	if err != nil {
		return ErrAddress
	}
	return nil
}

// SetCongestion replaces Config.Congestion. All windows start anew. It does not block.
func (a *Association) SetCongestion(c Congestion) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.core.SetCongestion(cc.Algorithm(c))
}

// SetPrimary makes addr the preferred destination (RFC 9260, Section 11.1.6). It does not
// block. It returns ErrAddress unless addr is a confirmed address of the peer (RFC 9260,
// Section 5.4).
func (a *Association) SetPrimary(addr netip.AddrPort) error {
	a.mu.Lock()
	err := a.core.SetPrimary(a.t.unshown(addr))
	a.goCallbacks(a.drainAndUnlock())
	if err != nil {
		return ErrAddress
	}
	return nil
}

// Heartbeat probes the path to addr now (RFC 9260, Section 11.1.10). It does not block; the
// answer shows in the statistics of the path, and a change of its state as a notification. Over a
// connection, see [Client], addr is the zero AddrPort, as in these statistics: also for the other
// methods of paths. Heartbeat returns ErrAddress if addr is not an address of the peer, or the
// association is not established: not yet, or no longer because a shutdown is almost complete or
// it has ended.
func (a *Association) Heartbeat(addr netip.AddrPort) error {
	a.mu.Lock()
	err := a.core.RequestHeartbeat(a.t.now(), a.t.unshown(addr))
	w := a.drainAndUnlock()
	a.goCallbacks(w | a.flush())
	if err != nil {
		return ErrAddress
	}
	return nil
}
