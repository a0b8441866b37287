package sctp

// Extensions are the optional parts of SCTP that are in use, because both ends of
// an association announced them.
type Extensions struct {
	// PartialReliability lets messages be abandoned (RFC 3758, RFC 7496). Without
	// it lifetimes and limits of retransmissions end with the first transmission.
	PartialReliability bool
	// Interleaving lets large messages of several streams share the association
	// (RFC 8260).
	Interleaving bool
	// Reconfig is what ResetStreams and AddStreams need (RFC 6525).
	Reconfig bool
	// Authentication is chunk authentication (RFC 4895).
	Authentication bool
	// AddressChange is what AddAddr, RemoveAddr and SetPeerPrimary need (RFC
	// 5061).
	AddressChange bool
	// ECN is explicit congestion notification.
	ECN bool
	// ZeroChecksum means that packets are sent without a checksum (RFC 9653).
	ZeroChecksum bool
}

// Extensions returns what both ends support: sac_info of RFC 6458, Section 6.1.1.
// Everything is false before the association is established. It does not block.
func (a *Association) Extensions() Extensions {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Extensions(a.core.Extensions())
}
