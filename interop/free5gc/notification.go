package sctp

import "github.com/weftstack/weft/sctp/sockets"

// Notification is an event that SCTPRead returns: an *SCTPAssocChangeEvent or an
// *SCTPShutdownEvent.
type Notification interface {
	Type() SCTPNotificationType
	Flags() uint16
	Length() uint32
}

// header has what is common.
type header struct {
	flags  uint16
	length uint32
}

func (h header) Flags() uint16  { return h.flags }
func (h header) Length() uint32 { return h.length }

// SCTPAssocChangeEvent tells that an association begins or ends (RFC 6458, Section 6.1.1).
type SCTPAssocChangeEvent struct {
	header
	n sockets.AssocChange
}

func (e *SCTPAssocChangeEvent) Type() SCTPNotificationType { return SCTP_ASSOC_CHANGE }
func (e *SCTPAssocChangeEvent) State() SCTPState           { return e.n.State }
func (e *SCTPAssocChangeEvent) OutboundStreams() uint16    { return e.n.OutStreams }
func (e *SCTPAssocChangeEvent) InboundStreams() uint16     { return e.n.InStreams }
func (e *SCTPAssocChangeEvent) AssocID() SCTPAssocID       { return e.n.AssocID }

// Info returns nil: the features of the association are told by sctp.Association.Extensions.
func (e *SCTPAssocChangeEvent) Info() []uint8 { return nil }

// SCTPShutdownEvent tells that the peer has shut the association down (RFC 6458, Section 6.1.5).
type SCTPShutdownEvent struct {
	header
	id SCTPAssocID
}

func (e *SCTPShutdownEvent) Type() SCTPNotificationType { return SCTP_SHUTDOWN_EVENT }
func (e *SCTPShutdownEvent) AssocID() SCTPAssocID       { return e.id }

// parse returns a notification that was read, nil for one that the fork does not know.
func parse(b []byte) Notification {
	n, err := sockets.ParseNotification(b)
	if err != nil {
		return nil
	}
	h := header{length: uint32(len(b))}
	switch n := n.(type) {
	case *sockets.AssocChange:
		return &SCTPAssocChangeEvent{h, *n}
	case *sockets.ShutdownEvent:
		return &SCTPShutdownEvent{h, n.AssocID}
	}
	return nil
}
