package sockets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/weftstack/weft/sctp"
)

// Notification is an event (RFC 6458, Section 6.1) as a typed value: *AssocChange,
// *PeerAddrChange, *SendFailed, *RemoteError, *ShutdownEvent, *PartialDelivery, *Adaptation or
// *SenderDry.
type Notification interface {
	// Type returns the type of the notification.
	Type() SCTPNotificationType
	// append appends the notification in the layout of Linux.
	append(b []byte) []byte
	// parse reads what append wrote, header included; b has fixed bytes at least.
	parse(b []byte)
	fixed() int
}

// AssocChange tells that an association begins or ends (Section 6.1.1). Error is the cause code
// of an ABORT (RFC 9260, Section 3.3.10).
type AssocChange struct {
	AssocID               SCTPAssocID
	State                 SCTPState
	Error                 uint16
	OutStreams, InStreams uint16
}

// PeerAddrState is what happened to an address.
type PeerAddrState int32

// States of a PeerAddrChange, with the values of Linux.
const (
	SCTP_ADDR_AVAILABLE PeerAddrState = iota
	SCTP_ADDR_UNREACHABLE
	SCTP_ADDR_REMOVED
	SCTP_ADDR_ADDED
	SCTP_ADDR_MADE_PRIM
	SCTP_ADDR_CONFIRMED
	SCTP_ADDR_POTENTIALLY_FAILED
)

// PeerAddrChange tells what happened to an address of the peer (Section 6.1.2).
type PeerAddrChange struct {
	AssocID SCTPAssocID
	Addr    netip.Addr
	Port    uint16
	State   PeerAddrState
	Error   uint32
}

// RemoteError tells that the peer sent an ERROR chunk with the cause code Error (Section
// 6.1.3), without the rest of the chunk.
type RemoteError struct {
	AssocID SCTPAssocID
	Error   uint16
}

// Flags of a SendFailed.
const (
	SCTP_DATA_UNSENT = iota
	SCTP_DATA_SENT
)

// SendFailed tells that a message was not delivered for certain (Section 6.1.4): no part of it
// was sent within its TTL (SCTP_DATA_UNSENT), or the association has ended and it may not have
// arrived (SCTP_DATA_SENT). Info and Data are those of the SCTPWrite; Error is the cause code of
// an ABORT.
type SendFailed struct {
	AssocID SCTPAssocID
	Flags   uint16
	Error   uint32
	Info    SndRcvInfo
	Data    []byte
}

// ShutdownEvent tells that the peer has shut the association down (Section 6.1.5); all its
// messages were read before.
type ShutdownEvent struct{ AssocID SCTPAssocID }

// PartialDelivery tells that the rest of a message of which parts were read will never come
// (Section 6.1.7).
type PartialDelivery struct {
	AssocID          SCTPAssocID
	Indication       uint32
	Stream, Sequence uint32
}

// Adaptation is the Adaptation Layer Indication of the peer (Section 6.1.6).
type Adaptation struct {
	AssocID    SCTPAssocID
	Indication uint32
}

// SenderDry tells that all that was written is acknowledged (Section 6.1.9).
type SenderDry struct{ AssocID SCTPAssocID }

func (*AssocChange) Type() SCTPNotificationType     { return SCTP_ASSOC_CHANGE }
func (*PeerAddrChange) Type() SCTPNotificationType  { return SCTP_PEER_ADDR_CHANGE }
func (*RemoteError) Type() SCTPNotificationType     { return SCTP_REMOTE_ERROR }
func (*SendFailed) Type() SCTPNotificationType      { return SCTP_SEND_FAILED }
func (*ShutdownEvent) Type() SCTPNotificationType   { return SCTP_SHUTDOWN_EVENT }
func (*PartialDelivery) Type() SCTPNotificationType { return SCTP_PARTIAL_DELIVERY_EVENT }
func (*Adaptation) Type() SCTPNotificationType      { return SCTP_ADAPTATION_INDICATION }
func (*SenderDry) Type() SCTPNotificationType       { return SCTP_SENDER_DRY_EVENT }

const (
	notificationHeader = 8
	sockaddrStorage    = 128
)

var native = binary.NativeEndian

// header appends the header of a notification with n bytes in all.
func header(b []byte, t SCTPNotificationType, flags uint16, n int) []byte {
	b = native.AppendUint16(b, uint16(t))
	b = native.AppendUint16(b, flags)
	return native.AppendUint32(b, uint32(n))
}

func (n *AssocChange) fixed() int { return 20 }
func (n *AssocChange) append(b []byte) []byte {
	b = header(b, n.Type(), 0, n.fixed())
	b = native.AppendUint16(b, uint16(n.State))
	b = native.AppendUint16(b, n.Error)
	b = native.AppendUint16(b, n.OutStreams)
	b = native.AppendUint16(b, n.InStreams)
	return native.AppendUint32(b, uint32(n.AssocID))
}
func (n *AssocChange) parse(b []byte) {
	n.State, n.Error = SCTPState(native.Uint16(b[8:])), native.Uint16(b[10:])
	n.OutStreams, n.InStreams = native.Uint16(b[12:]), native.Uint16(b[14:])
	n.AssocID = SCTPAssocID(native.Uint32(b[16:]))
}

func (n *PeerAddrChange) fixed() int { return notificationHeader + sockaddrStorage + 12 }
func (n *PeerAddrChange) append(b []byte) []byte {
	b = header(b, n.Type(), 0, n.fixed())
	at := len(b)
	if n.Addr.IsValid() {
		b = appendSockaddr(b, n.Addr, n.Port)
	}
	b = append(b, make([]byte, sockaddrStorage-(len(b)-at))...)
	b = native.AppendUint32(b, uint32(n.State))
	b = native.AppendUint32(b, n.Error)
	return native.AppendUint32(b, uint32(n.AssocID))
}
func (n *PeerAddrChange) parse(b []byte) {
	n.Addr, n.Port, _ = parseSockaddr(b[notificationHeader:][:sockaddrStorage])
	b = b[notificationHeader+sockaddrStorage:]
	n.State, n.Error = PeerAddrState(native.Uint32(b)), native.Uint32(b[4:])
	n.AssocID = SCTPAssocID(native.Uint32(b[8:]))
}

func (n *RemoteError) fixed() int { return 16 }
func (n *RemoteError) append(b []byte) []byte {
	b = header(b, n.Type(), 0, n.fixed())
	b = binary.BigEndian.AppendUint16(b, n.Error) // as it was received
	b = append(b, 0, 0)
	return native.AppendUint32(b, uint32(n.AssocID))
}
func (n *RemoteError) parse(b []byte) {
	n.Error, n.AssocID = binary.BigEndian.Uint16(b[8:]), SCTPAssocID(native.Uint32(b[12:]))
}

func (n *SendFailed) fixed() int { return 16 + sndRcvInfoLen }
func (n *SendFailed) append(b []byte) []byte {
	b = header(b, n.Type(), n.Flags, n.fixed()+len(n.Data))
	b = native.AppendUint32(b, n.Error)
	b = n.Info.append(b)
	b = native.AppendUint32(b, uint32(n.AssocID))
	return append(b, n.Data...)
}
func (n *SendFailed) parse(b []byte) {
	n.Flags, n.Error = native.Uint16(b[2:]), native.Uint32(b[8:])
	n.Info.parse(b[12:])
	n.AssocID = SCTPAssocID(native.Uint32(b[12+sndRcvInfoLen:]))
	n.Data = append([]byte(nil), b[n.fixed():]...)
}

func (n *ShutdownEvent) fixed() int { return 12 }
func (n *ShutdownEvent) append(b []byte) []byte {
	return native.AppendUint32(header(b, n.Type(), 0, n.fixed()), uint32(n.AssocID))
}
func (n *ShutdownEvent) parse(b []byte) { n.AssocID = SCTPAssocID(native.Uint32(b[8:])) }

func (n *PartialDelivery) fixed() int { return 24 }
func (n *PartialDelivery) append(b []byte) []byte {
	b = header(b, n.Type(), 0, n.fixed())
	b = native.AppendUint32(b, n.Indication)
	b = native.AppendUint32(b, uint32(n.AssocID))
	b = native.AppendUint32(b, n.Stream)
	return native.AppendUint32(b, n.Sequence)
}
func (n *PartialDelivery) parse(b []byte) {
	n.Indication, n.AssocID = native.Uint32(b[8:]), SCTPAssocID(native.Uint32(b[12:]))
	n.Stream, n.Sequence = native.Uint32(b[16:]), native.Uint32(b[20:])
}

func (n *Adaptation) fixed() int { return 16 }
func (n *Adaptation) append(b []byte) []byte {
	b = native.AppendUint32(header(b, n.Type(), 0, n.fixed()), n.Indication)
	return native.AppendUint32(b, uint32(n.AssocID))
}
func (n *Adaptation) parse(b []byte) {
	n.Indication, n.AssocID = native.Uint32(b[8:]), SCTPAssocID(native.Uint32(b[12:]))
}

func (n *SenderDry) fixed() int { return 12 }
func (n *SenderDry) append(b []byte) []byte {
	return native.AppendUint32(header(b, n.Type(), 0, n.fixed()), uint32(n.AssocID))
}
func (n *SenderDry) parse(b []byte) { n.AssocID = SCTPAssocID(native.Uint32(b[8:])) }

// append appends the struct sctp_sndrcvinfo of Linux.
func (i *SndRcvInfo) append(b []byte) []byte {
	b = native.AppendUint16(b, i.Stream)
	b = native.AppendUint16(b, i.SSN)
	b = native.AppendUint16(b, i.Flags)
	b = native.AppendUint16(b, 0)
	for _, v := range [...]uint32{i.PPID, i.Context, i.TTL, i.TSN, i.CumTSN, uint32(i.AssocID)} {
		b = native.AppendUint32(b, v)
	}
	return b
}

// parse reads what append wrote.
func (i *SndRcvInfo) parse(b []byte) {
	i.Stream, i.SSN, i.Flags = native.Uint16(b), native.Uint16(b[2:]), native.Uint16(b[4:])
	i.PPID, i.Context, i.TTL = native.Uint32(b[8:]), native.Uint32(b[12:]), native.Uint32(b[16:])
	i.TSN, i.CumTSN, i.AssocID = native.Uint32(b[20:]), native.Uint32(b[24:]), int32(native.Uint32(b[28:]))
}

// ParseNotification returns a notification that was read as a typed value, which does not
// alias b. It returns an error for a type that is not known, and for a length that is not that
// of b: a notification that did not fit the buffer of its read.
func ParseNotification(b []byte) (Notification, error) {
	if len(b) < notificationHeader {
		return nil, fmt.Errorf("sctp: notification of %d bytes: at least %d", len(b), notificationHeader)
	}
	t, length := SCTPNotificationType(native.Uint16(b)), native.Uint32(b[4:])
	var n Notification
	switch t {
	case SCTP_ASSOC_CHANGE:
		n = &AssocChange{}
	case SCTP_PEER_ADDR_CHANGE:
		n = &PeerAddrChange{}
	case SCTP_REMOTE_ERROR:
		n = &RemoteError{}
	case SCTP_SEND_FAILED:
		n = &SendFailed{}
	case SCTP_SHUTDOWN_EVENT:
		n = &ShutdownEvent{}
	case SCTP_PARTIAL_DELIVERY_EVENT:
		n = &PartialDelivery{}
	case SCTP_ADAPTATION_INDICATION:
		n = &Adaptation{}
	case SCTP_SENDER_DRY_EVENT:
		n = &SenderDry{}
	default:
		return nil, fmt.Errorf("sctp: notification of type %#x: not known", int(t))
	}
	if uint64(length) != uint64(len(b)) || len(b) < n.fixed() {
		return nil, fmt.Errorf("sctp: notification %#x of %d bytes says %d: at least %d", int(t), len(b), length, n.fixed())
	}
	n.parse(b)
	return n, nil
}

// maxNotes bounds the bytes of the notifications that wait in a socket, 64 KiB; those of
// messages that were not sent may take as much more as the send buffer. Others are lost, as
// the kernel's are when the receive buffer is full.
const maxNotes = 64 << 10

// noteBudget counts the notifications that wait. The mutex of the socket guards it.
type noteBudget struct {
	bytes int
	lost  uint64
}

// admit counts a notification, and reports whether there is room for it.
func (b *noteBudget) admit(it *item, limit int) bool {
	n := len(it.data) + itemOverhead
	if b.bytes+n > limit {
		b.lost++
		return false
	}
	it.note = n
	b.bytes += n
	return true
}

// taken gives back what an item was counted.
func (b *noteBudget) taken(it *item) { b.bytes -= it.note }

// LostNotifications returns how many notifications were lost because 64 KiB of them, those of
// undelivered messages not counted, waited to be read.
func (c *SCTPConn) LostNotifications() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.notes.lost
}

// notify queues a notification if the socket has subscribed to the event.
func (as *association) notify(event int, n Notification) {
	c := as.lock()
	defer c.mu.Unlock()
	c.note(as, event, n)
}

// note is notify with c.mu held.
func (c *SCTPConn) note(as *association, event int, n Notification) {
	if c.events&event == 0 || c.closed {
		return
	}
	it := newItem()
	it.from, it.flags, it.data = as, MSG_NOTIFICATION|MSG_EOR, n.append(nil)
	limit := maxNotes
	if event == SCTP_EVENT_SEND_FAILURE {
		limit += c.set.WriteBuffer
	}
	if !c.notes.admit(it, limit) {
		it.free()
		return
	}
	c.queue.push(it)
	c.waiters.wake()
}

// causeOf returns the cause code of the ABORT that ended an association.
func causeOf(err error) uint16 {
	var abort *sctp.AbortError
	if errors.As(err, &abort) {
		return abort.Cause
	}
	return 0
}
