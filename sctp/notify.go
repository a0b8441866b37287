package sctp

import "net/netip"

// NotificationKind tells what a Notification is about.
type NotificationKind uint8

// Notifications, after RFC 6458, Section 6.1.
const (
	// NotifyUp: the association is established.
	NotifyUp NotificationKind = iota + 1
	// NotifyRestart: the peer restarted; undelivered data of its earlier life
	// is lost (RFC 9260, Section 5.2).
	NotifyRestart
	// NotifyShutdown: the peer began a graceful shutdown; sends fail from now
	// on, received data can still be read.
	NotifyShutdown
	// NotifyDown: the association ended; Err tells why, nil for a graceful
	// end. It is the last notification.
	NotifyDown
	// NotifyPathUp, NotifyPathDown: the path to Addr became reachable or
	// unreachable (RFC 9260, Section 8.2).
	NotifyPathUp
	NotifyPathDown
	// NotifyPathFailed: the path to Addr is potentially failed (RFC 7829).
	NotifyPathFailed
	// NotifyPathConfirmed: Addr answered its first heartbeat (RFC 9260,
	// Section 5.4).
	NotifyPathConfirmed
	// NotifyPathMTU: the largest packet for the path to Addr changed (RFC 8899).
	NotifyPathMTU
	// NotifyPrimary: Addr is the new primary address.
	NotifyPrimary
	// NotifyAuthKey: the peer authenticates with the shared key Key from now on
	// (RFC 4895).
	NotifyAuthKey
	// NotifyAuthKeyFree: the shared key Key, which Association.DeactivateAuthKey was
	// called for, will not be used to send any more and can be deleted (RFC 6458,
	// Section 6.1.8).
	NotifyAuthKeyFree
	// NotifyPathAdded, NotifyPathRemoved: the peer's address list changed
	// (RFC 5061).
	NotifyPathAdded
	NotifyPathRemoved
	// NotifyRemoteError: the peer sent an ERROR chunk with Cause.
	NotifyRemoteError
	// NotifySendFailed: a message on Stream with PPID was abandoned, Err is ErrExpired (RFC
	// 3758). What is not acknowledged when the association ends only its SendOwner is told of.
	NotifySendFailed
	// NotifyStreamsReset: the peer reset the incoming streams in Streams, all
	// of them if it is empty (RFC 6525).
	NotifyStreamsReset
	// NotifyOutStreamsReset: our reset of outgoing Streams finished; Err
	// tells whether it was refused.
	NotifyOutStreamsReset
	// NotifyStreamsAdded: the number of streams changed, see
	// Association.Streams.
	NotifyStreamsAdded
	// NotifySenderDry: everything sent has been acknowledged. It comes only if
	// Config.SenderDry is set.
	NotifySenderDry
	// NotifyAborted: partial delivery of a message on Stream was aborted; the
	// rest of it will never come (RFC 3758). In upcall mode Piece.Aborted tells so instead.
	NotifyAborted
)

// Notification is an event of an association that is not data.
type Notification struct {
	Kind    NotificationKind
	Addr    netip.AddrPort
	Stream  uint16
	Streams []uint16
	PPID    uint32
	Cause   uint16
	Key     uint16
	Err     error
}

var notificationNames = [...]string{
	NotifyUp: "up", NotifyRestart: "restart", NotifyShutdown: "shutdown", NotifyDown: "down",
	NotifyPathUp: "path up", NotifyPathDown: "path down", NotifyPathFailed: "path potentially failed",
	NotifyPathConfirmed: "path confirmed", NotifyPathMTU: "path MTU changed", NotifyPrimary: "primary changed",
	NotifyAuthKey: "shared key changed", NotifyAuthKeyFree: "shared key unused", NotifyPathAdded: "path added", NotifyPathRemoved: "path removed",
	NotifyRemoteError: "remote error", NotifySendFailed: "send failed",
	NotifyStreamsReset: "streams reset", NotifyOutStreamsReset: "outgoing streams reset",
	NotifyStreamsAdded: "streams added", NotifySenderDry: "sender dry", NotifyAborted: "message aborted",
}

// String returns a short lower-case name.
func (k NotificationKind) String() string {
	if int(k) < len(notificationNames) && notificationNames[k] != "" {
		return notificationNames[k]
	}
	return "unknown"
}
