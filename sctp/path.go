package sctp

import (
	"net/netip"
	"time"

	"github.com/weftstack/weft/sctp/internal/core"
)

// maxDSCP is the largest Differentiated Services Code Point: it has six bits.
const maxDSCP = 63

// PathParams are the parameters of one path (RFC 6458, Section 8.1.12; RFC 7829,
// Section 7.2).
type PathParams struct {
	// HeartbeatInterval is how often the idle path is probed; negative means
	// never.
	HeartbeatInterval time.Duration
	// MaxRetransmits and PotentiallyFailedRetransmits are those of Config.
	MaxRetransmits, PotentiallyFailedRetransmits int
	// MTU is the size of the largest SCTP packet; Discover tells that it is looked
	// for (RFC 8899).
	MTU      int
	Discover bool
	// DSCP is the Differentiated Services Code Point of packets on the path; see
	// Config.DSCP.
	DSCP uint8
}

// PathParams returns the parameters of the path to addr, an address of the peer;
// else it returns ErrAddress.
func (a *Association) PathParams(addr netip.AddrPort) (PathParams, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, err := a.core.PathParams(addr)
	if err != nil {
		return PathParams{}, ErrAddress
	}
	return PathParams{HeartbeatInterval: p.HBInterval, MaxRetransmits: p.MaxRetrans,
		PotentiallyFailedRetransmits: p.PFMaxRetrans, MTU: p.MTU, Discover: p.Discover, DSCP: p.DSCP}, nil
}

// SetPathParams changes the parameters of the path to addr, an address of the
// peer; else it returns ErrAddress. HeartbeatInterval, MaxRetransmits and MTU stay
// as they are if they are 0; MTU counts only without Discover. ErrConfig is returned
// for a DSCP above 63.
func (a *Association) SetPathParams(addr netip.AddrPort, p PathParams) error {
	if p.DSCP > maxDSCP {
		return ErrConfig
	}
	a.mu.Lock()
	err := a.core.SetPathParams(a.t.now(), addr, core.PathParams{HBInterval: p.HeartbeatInterval,
		MaxRetrans: p.MaxRetransmits, PFMaxRetrans: p.PotentiallyFailedRetransmits, MTU: p.MTU, Discover: p.Discover, DSCP: p.DSCP})
	w := a.drainAndUnlock()
	a.goCallbacks(w | a.flush())
	if err != nil {
		return ErrAddress
	}
	return nil
}

// SetPrimary makes addr, one of the peer's, the preferred destination (RFC
// 9260, Section 11.1.6).
func (a *Association) SetPrimary(addr netip.AddrPort) error {
	a.mu.Lock()
	err := a.core.SetPrimary(addr)
	a.goCallbacks(a.drainAndUnlock())
	if err != nil {
		return ErrAddress
	}
	return nil
}

// Heartbeat probes the path to addr now (RFC 9260, Section 11.1.10).
func (a *Association) Heartbeat(addr netip.AddrPort) error {
	a.mu.Lock()
	err := a.core.RequestHeartbeat(a.t.now(), addr)
	w := a.drainAndUnlock()
	a.goCallbacks(w | a.flush())
	if err != nil {
		return ErrAddress
	}
	return nil
}
