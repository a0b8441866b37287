package sockets

// Constants of the socket, with the values of Linux.
const (
	SOL_SCTP = 132

	SCTP_BINDX_ADD_ADDR = 0x01
	SCTP_BINDX_REM_ADDR = 0x02

	// MSG_NOTIFICATION marks a notification, MSG_EOR the end of a message (RFC 6458,
	// Section 5.1). They are flags of [SCTPConn.ReadMsg].
	MSG_NOTIFICATION = 0x8000
	MSG_EOR          = 0x80

	SCTP_MAX_STREAM = 0xffff
)

// Events to subscribe to with [SCTPConn.SubscribeEvents] (RFC 6458, Section 6.2.1).
// SCTP_EVENT_DATA_IO has reads return an SndRcvInfo. SCTP_EVENT_AUTHENTICATION is accepted, but
// never comes: sockets do not authenticate chunks.
const (
	SCTP_EVENT_DATA_IO = 1 << iota
	SCTP_EVENT_ASSOCIATION
	SCTP_EVENT_ADDRESS
	SCTP_EVENT_SEND_FAILURE
	SCTP_EVENT_PEER_ERROR
	SCTP_EVENT_SHUTDOWN
	SCTP_EVENT_PARTIAL_DELIVERY
	SCTP_EVENT_ADAPTATION_LAYER
	SCTP_EVENT_AUTHENTICATION
	SCTP_EVENT_SENDER_DRY

	SCTP_EVENT_ALL = SCTP_EVENT_SENDER_DRY<<1 - 1
)

// SCTPNotificationType is the type of a notification (RFC 6458, Section 6.1).
type SCTPNotificationType int

// Types of notifications.
const (
	SCTP_SN_TYPE_BASE = SCTPNotificationType(iota + (1 << 15))
	SCTP_ASSOC_CHANGE
	SCTP_PEER_ADDR_CHANGE
	SCTP_SEND_FAILED
	SCTP_REMOTE_ERROR
	SCTP_SHUTDOWN_EVENT
	SCTP_PARTIAL_DELIVERY_EVENT
	SCTP_ADAPTATION_INDICATION
	SCTP_AUTHENTICATION_INDICATION
	SCTP_SENDER_DRY_EVENT
)

// SCTPAssocID names an association within the process. It is never 0.
type SCTPAssocID int32

// SCTPState is the state of an [AssocChange] (RFC 6458, Section 6.1.1).
type SCTPState uint16

// States of an AssocChange.
const (
	SCTP_COMM_UP = SCTPState(iota)
	SCTP_COMM_LOST
	SCTP_RESTART
	SCTP_SHUTDOWN_COMP
	SCTP_CANT_STR_ASSOC
)

// Flags of SndRcvInfo.Flags for [SCTPConn.SCTPWrite] (RFC 6458, Section 5.3.2), with the values
// of the Go binding. SCTP_EOF begins a graceful shutdown and SCTP_ABORT aborts the association,
// the bytes being the reason; SCTP_ADDR_OVER is refused, because writes name no address. Reads
// set SCTP_UNORDERED.
const (
	SCTP_UNORDERED = 1 << iota
	SCTP_ADDR_OVER
	SCTP_ABORT
	SCTP_SACK_IMMEDIATELY
	SCTP_EOF

	// linuxEOF is SCTP_EOF of Linux, MSG_FIN, which is accepted, too.
	linuxEOF = 0x200
)

// States of a path, PeerAddrinfo.State (RFC 6458, Section 8.2.2).
const (
	SCTP_UNCONFIRMED PeerState = iota
	SCTP_ACTIVE
	SCTP_INACTIVE
)

// PeerState is the state of a path.
type PeerState int32

// StatusState is the state of an association (RFC 6458, Section 8.2.1).
type StatusState int32

// States of an association, with the values of the Go binding.
const (
	SCTP_CLOSED StatusState = iota
	SCTP_BOUND
	SCTP_LISTEN
	SCTP_COOKIE_WAIT
	SCTP_COOKIE_ECHOED
	SCTP_ESTABLISHED
	SCTP_SHUTDOWN_PENDING
	SCTP_SHUTDOWN_SENT
	SCTP_SHUTDOWN_RECEIVED
	SCTP_SHUTDOWN_ACK_SENT
)

// InitMsg holds what an association is opened with (RFC 6458, Section 8.1.3). A field of 0
// keeps the default: 10 outgoing and 2,048 incoming streams, 8 retransmissions of INIT, at most
// RtoInfo.SrtoMax apart. MaxInitTimeout is in milliseconds.
type InitMsg struct {
	NumOstreams    uint16
	MaxInstreams   uint16
	MaxAttempts    uint16
	MaxInitTimeout uint16
}

// SackTimer holds the parameters of delayed acknowledgements (RFC 6458, Section 8.1.19).
// SackDelay is in milliseconds, at most 500; a field of 0 keeps the default. SackFrequency 1
// acknowledges at once.
type SackTimer struct {
	AssocID       SCTPAssocID
	SackDelay     uint32
	SackFrequency uint32
}

// RtoInfo bounds the retransmission timer, in milliseconds (RFC 6458, Section 8.1.1). A field of
// 0 keeps the default. The names are those of free5gc's fork of the binding.
type RtoInfo struct {
	SrtoAssocID int32
	SrtoInitial uint32
	SrtoMax     uint32
	StroMin     uint32
}

// AssocInfo holds parameters of an association (RFC 6458, Section 8.1.2). AsocMaxRxt and
// CookieLife, in milliseconds, can be chosen, and keep the default if they are 0; the others
// are told by [SCTPConn.GetAssocInfo]. The names are those of free5gc's fork of the binding.
type AssocInfo struct {
	AssocID                SCTPAssocID
	AsocMaxRxt             uint16
	NumberPeerDestinations uint16
	PeerRwnd               uint32
	LocalRwnd              uint32
	CookieLife             uint32
}

// SndRcvInfo describes a message that is sent or was received (RFC 6458, Section 5.3.2). PPID is
// in the byte order of [PPIDOrder]. TTL is in milliseconds: a message of which no part was sent
// within it is dropped. Context comes back in a [SendFailed]. SSN, TSN and CumTSN are of
// received messages; CumTSN is that of unordered ones and equals TSN. AssocID is needed to
// send on a one-to-many socket only.
type SndRcvInfo struct {
	Stream  uint16
	SSN     uint16
	Flags   uint16
	_       uint16
	PPID    uint32
	Context uint32
	TTL     uint32
	TSN     uint32
	CumTSN  uint32
	AssocID int32
}

// sndRcvInfoLen is the size of an SndRcvInfo in bytes.
const sndRcvInfoLen = 32

// NotificationHandler is called by [SCTPConn.SCTPRead] with a notification, which it must not
// keep. If it returns an error the read ends with it.
type NotificationHandler func([]byte) error

// NotificationHeader is what each notification begins with.
type NotificationHeader struct {
	Type   uint16
	Flags  uint16
	Length uint32
}

// PeerAddrinfo describes a path (RFC 6458, Section 8.2.2). Address is a socket address of
// Linux. CWND and MTU are in bytes, SRTT and RTO in milliseconds.
type PeerAddrinfo struct {
	AssocID SCTPAssocID
	Address [128]byte
	State   PeerState
	CWND    uint32
	SRTT    uint32
	RTO     uint32
	MTU     uint32
}

// Status describes an association (RFC 6458, Section 8.2.1). RWND is the window of the peer in
// bytes, FragmentationPoint the largest message in bytes that is not fragmented. Unackdata and
// Penddata count chunks of that size, rounded up: those not acknowledged, and those received
// and not read.
type Status struct {
	AssocID            SCTPAssocID
	State              StatusState
	RWND               uint32
	Unackdata          uint16
	Penddata           uint16
	Instreams          uint16
	Ostreams           uint16
	FragmentationPoint uint32
	PrimaryPeerAddr    PeerAddrinfo
}
