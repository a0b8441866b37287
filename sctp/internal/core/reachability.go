package core

import (
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/asconf"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// reachability is what an association knows of the ways to its peer: the paths, which of them
// work, and how large their packets may be. It knows nothing of handshake, shutdown and the
// data, but from the scoreboard what is in flight. That the peer cannot be reached is its
// verdict; to end the association is the caller's.
type reachability struct {
	situation
	pathSet
	local address.Local
	asc   asconf.Sender  // changes of our addresses
	sb    *tx.Scoreboard // nil until there is a sender

	// preferred is an address that the peer wants to be the primary one, as soon as it is confirmed.
	preferred netip.Addr
	errors    int // association error counter (RFC 9260, Section 8.1)
	// chargedAt is when a heartbeat was last counted there, with HBRetry.
	chargedAt clock.Time
}
