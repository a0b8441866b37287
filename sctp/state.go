package sctp

import "github.com/weftstack/weft/sctp/internal/core"

// State is the state of an association (RFC 9260, Section 4).
type State uint8

// The states of RFC 9260, Figure 3.
const (
	Closed           = State(core.Closed)
	CookieWait       = State(core.CookieWait)
	CookieEchoed     = State(core.CookieEchoed)
	Established      = State(core.Established)
	ShutdownPending  = State(core.ShutdownPending)
	ShutdownSent     = State(core.ShutdownSent)
	ShutdownReceived = State(core.ShutdownReceived)
	ShutdownAckSent  = State(core.ShutdownAckSent)
)

// String returns the name that RFC 9260 gives the state.
func (s State) String() string { return core.State(s).String() }

// State returns the state of the association (RFC 6458, Section 8.2.1).
func (a *Association) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return State(a.core.State())
}
