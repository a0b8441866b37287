package sctp

import (
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// Congestion selects a congestion control algorithm.
type Congestion uint8

// Congestion control algorithms.
const (
	// Cubic is RFC 9438 CUBIC, the default. A loss reduces the window by 3/10, or by 1/16
	// if round-trip times show that no queue has built up.
	Cubic   Congestion = iota
	NewReno            // the algorithm of RFC 9260, Section 7.2
	// BBR (draft-ietf-ccwg-bbr) paces by the rate and round-trip time that it measures, and
	// reacts to a timeout, and to losses of more than 5 %, only: against Section 7.2 of RFC 9260.
	BBR
)

// Scheduler selects how outgoing streams share an association (RFC 8260,
// Section 3).
type Scheduler uint8

// Stream schedulers.
const (
	// RoundRobin takes one message of each stream in turn; one fragment, if
	// the peer knows I-DATA. It is the default: no stream has to wait until
	// everything queued before on another one was sent.
	RoundRobin Scheduler = iota
	// FirstCome sends messages in the order of the Send calls.
	FirstCome
	// RoundRobinPacket fills each packet from one stream, in turn.
	RoundRobinPacket
	// PriorityBased serves the stream with the smallest priority value first.
	PriorityBased
	// FairCapacity shares bytes equally.
	FairCapacity
	// WeightedFair shares bytes by weight.
	WeightedFair
)

// Config holds the parameters of associations. The zero value is usable; a
// nil *Config means the zero value. It must not be changed after it was passed
// to this package. Times and limits follow RFC 9260, Section 16, unless said.
type Config struct {
	// OutStreams is the number of outgoing streams to ask for, InStreams how
	// many incoming ones to allow (default 10 and 2048). The peer's limits
	// cut them down, see Association.Streams.
	OutStreams, InStreams uint16

	// Adaptation, if not nil, is sent as Adaptation Layer Indication (RFC
	// 5061, Section 4.2.6).
	Adaptation *uint32

	// RTOInitial, RTOMin and RTOMax bound the retransmission timer (defaults
	// 1 s, 200 ms and 60 s). RACK-TLP repairs most losses without it.
	RTOInitial, RTOMin, RTOMax time.Duration

	// HeartbeatInterval is how often an idle path is probed (default 30 s;
	// negative: never).
	HeartbeatInterval time.Duration

	// HeartbeatRetry repeats a heartbeat that is not answered after one
	// retransmission timeout, like data, instead of after HeartbeatInterval more: a
	// dead peer is then found as soon on an idle association as on a busy one.
	HeartbeatRetry bool

	// SackDelay is the longest delay of an acknowledgement (default 200 ms,
	// at most 500 ms); negative acknowledges every receive batch at once.
	SackDelay time.Duration

	// SackEvery is after how many packets an acknowledgement is due at the
	// latest (default 2); one is sent per receive batch, which may be more.
	SackEvery int

	// MaxRetransmits, PathMaxRetransmits and MaxInitRetransmits are the error
	// thresholds Association.Max.Retrans (10), Path.Max.Retrans (5) and
	// Max.Init.Retransmits (8).
	MaxRetransmits, PathMaxRetransmits, MaxInitRetransmits int

	// MaxInitTimeout, if positive, is the longest time to wait for the answer to an
	// INIT or COOKIE ECHO before it is sent again, however often it was sent (default:
	// RTOMax).
	MaxInitTimeout time.Duration

	// PotentiallyFailedRetransmits is after how many timeouts in a row data takes
	// another path (PotentiallyFailed.Max.Retrans, RFC 7829; default 0, that is,
	// the first one; negative: only when the path is inactive). With SwitchPrimary
	// the primary path becomes another one after more than SwitchRetransmits of
	// them (Primary.Switchover.Max.Retrans; default: as soon as data takes another
	// path; ErrConfig if it is to happen before).
	PotentiallyFailedRetransmits int
	SwitchPrimary                bool
	SwitchRetransmits            int

	// Multipath sends data on all active paths at once, not on the primary one
	// only.
	Multipath bool

	// CookieLifetime is how long a state cookie is valid (default 60 s).
	CookieLifetime time.Duration

	// SendBuffer and RecvBuffer bound the bytes queued in each direction of
	// an association (default 4 MiB each). A message larger than the send
	// buffer is taken whole when the buffer is empty.
	//
	// The receive buffer is the window that is advertised at first. Received messages count
	// with the memory that they take: some 400 bytes each in addition to the payload, half of
	// that if they are unordered, not fragmented, and taken by OnPiece. With a slow reader an
	// association therefore holds fewer bytes of small messages than of large ones. Whatever
	// the peer sends, the heap held for it stays within 2*RecvBuffer + 64 KiB: a part of the
	// factor is for chunks that fill gaps and for what a chunk keeps of the buffer that it was
	// received in.
	SendBuffer, RecvBuffer int

	// MTU is the size in bytes of IP packets to send on every path, at least 576. With 0 it
	// is discovered for each path (RFC 8899), from 1200 bytes up to the MTU of the route;
	// with NoPathMTUDiscovery it is the MTU of the route. If a path loses packets of a size
	// that was given or assumed, and carries smaller ones, its MTU is discovered all the
	// same (RFC 8899, Section 4.3).
	MTU                int
	NoPathMTUDiscovery bool

	// Congestion and Scheduler select algorithms.
	Congestion Congestion
	Scheduler  Scheduler

	// Bundle holds small messages back while others are in flight (the Nagle
	// algorithm, RFC 9260, Section 6.1). Without it they are sent at once.
	Bundle bool

	// DSCP is the Differentiated Services Code Point of the packets of associations
	// on Linux, at most 63, unless SetPathParams gives the path another one. INIT
	// ACK chunks and other replies that are not of an association have none.
	DSCP uint8

	// NoFragmentation refuses messages longer than Association.MaxPayload with
	// ErrMessageTooLong, instead of sending them in several chunks (RFC 9260,
	// Section 6.9).
	NoFragmentation bool

	// NoPacing turns off spreading packets over the round-trip time. MaxBurst,
	// if positive, bounds the packets sent at once (Max.Burst, RFC 9260, Section
	// 6.1, D), which pacing makes unnecessary.
	NoPacing bool
	MaxBurst int

	// NoInterleaving turns off user message interleaving (RFC 8260),
	// NoPartialReliability FORWARD-TSN (RFC 3758), NoECN explicit congestion
	// notification (RFC 9260, Appendix A), NoReconfig stream reset (RFC 6525),
	// NoRACK loss detection by time (RFC 8985).
	NoInterleaving, NoPartialReliability, NoECN, NoReconfig, NoRACK bool

	// MaxOutStreams is up to how many outgoing streams the peer may ask us to
	// use (RFC 6525, Section 5.1.6; default: any number).
	MaxOutStreams uint16

	// ChangeAddrs lets this side and the peer add and remove addresses (RFC 5061), see
	// Association.AddAddr. It implies Auth. A primary address that the peer asks for in its
	// INIT or INIT ACK is used, too, once it is confirmed.
	ChangeAddrs bool

	// Auth asks for the authentication of chunks (RFC 4895); nil is none.
	Auth *AuthConfig

	// ZeroChecksum leaves the checksum out if the peer agrees (RFC 9653). It is for
	// transports on Conns that protect packets by other means, such as DTLS.
	ZeroChecksum bool

	// ZeroChecksumLocal leaves the checksum out of packets that do not leave the
	// host, those between equal or loopback addresses, if the peer agrees (RFC 9653,
	// with an error detection method of this package's own). Nothing can damage such
	// packets that would not damage the memory of a process as well; the kernel does
	// not compute a checksum either.
	ZeroChecksumLocal bool

	// AutoClose, if positive, shuts an association down after that much time
	// without user data in either direction (RFC 6458, Section 8.1.8).
	AutoClose time.Duration

	// Probation, if not nil, limits what peers that open associations get before
	// Association.Admit is called, in programs that authenticate their peers. By default
	// such associations are not limited.
	Probation *Probation

	// Linger bounds how long a shutdown goes on in the background, after Close for
	// example (default DefaultLinger; negative: as long as the peer answers). In each period
	// of this length the peer must acknowledge 64 KiB more of what was sent, or the rest of
	// it, or at last the shutdown; otherwise the association is aborted: Association.Err is
	// ErrTimeout then and tells how much was lost. With Conn.SetLinger Close waits instead.
	Linger time.Duration

	// Backlog bounds the associations waiting for Accept (default
	// DefaultBacklog); beyond it new peers are not answered.
	Backlog int

	// OneToMany makes an endpoint keep associations without Accept: the program reads
	// them with Endpoint.Recv. OnAssociation or OnPiece imply it.
	OneToMany bool

	// OnAssociation, if not nil, is called for each association that a peer
	// opened, before any of its message fragments and notifications, with no lock held.
	// For associations opened by Connect it is called too.
	OnAssociation func(*Association)

	// OnPiece, if not nil, selects upcall mode: it is called on the goroutine
	// that received the packet, with no lock held, for one message fragment at a time
	// per association, in delivery order. It must not block; it may call
	// TrySend, or Send with Force, also for other associations. Goroutines that
	// receive packets are the readers of the sockets and those in Poll, Wait.Poll,
	// Waiter.Wait and Recv: they must not hold locks that OnPiece takes; callers of
	// TrySend, Abort and the like may. Recv must not be used then.
	OnPiece func(*Association, *Piece)

	// OnNotify, if not nil, is called like OnPiece, in any mode. In upcall mode it comes
	// before the message fragments that arrive later; NotifyShutdown and NotifyDown also come
	// after those that arrived earlier, but on paused streams, and NotifyStreamsReset after
	// those of its streams, NotifyRestart after those of the peer's earlier life that are not
	// lost. Others may overtake them. To what Recv returns there is no such order.
	OnNotify func(*Association, Notification)

	// SenderDry passes NotifySenderDry to OnNotify, too, which with requests and responses
	// comes once for each message (RFC 6458, Section 6.1.9).
	SenderDry bool
}

// PacketConn is what a Transport sends and receives datagrams with. A
// *net.UDPConn, or *net.IPConn of protocol 132 (see TransportConfig.IPAddrs), is
// replaced by a batching socket of the same file descriptor;
// anything else (sctptest links, packet filters) is used as it is, one
// datagram at a time. Addresses must be *net.UDPAddr unless the value also has
// the methods of AddrPortConn.
type PacketConn = net.PacketConn

// AddrPortConn is an optional refinement of PacketConn that does not allocate
// addresses.
type AddrPortConn interface {
	ReadFromUDPAddrPort(b []byte) (n int, addr netip.AddrPort, err error)
	WriteToUDPAddrPort(b []byte, addr netip.AddrPort) (int, error)
}

// TransportConfig holds the parameters of a Transport. The zero value listens
// on DefaultUDPPort of all addresses.
type TransportConfig struct {
	// LocalAddrs are the UDP addresses to bind, one socket each. Port 0 asks
	// for a free one. Several addresses make a multihomed transport.
	LocalAddrs []netip.AddrPort

	// Conns are used in addition to, or instead of, sockets for LocalAddrs.
	// The transport owns and closes them. A read that returns net.ErrClosed, io.EOF or
	// io.ErrClosedPipe, or other errors than timeouts and those of system calls for about
	// a second, is the end of a connection. With the last one the transport is closed;
	// associations, Accept and all that blocks end with an error that names the cause.
	Conns []PacketConn

	// IPAddrs are addresses for SCTP directly over IP (protocol 132), without UDP: one raw
	// socket each, instead of sockets for LocalAddrs. ErrConfig is returned if there are
	// both. Kernels speak SCTP this way unless they are told to use UDP, and each packet has
	// room for 8 bytes more of data. All addresses, those of peers too, have the port 0. An
	// unspecified address stands for all addresses of its own family; no two may overlap.
	//
	// Raw sockets need privileges: CAP_NET_RAW on Linux, root on other systems, where each
	// call carries one packet. Each socket sees all SCTP packets to its address, so packets
	// to ports without an endpoint are not answered; the processes of a host have to use
	// different ports, which nothing enforces. Other stacks on the host abort associations of
	// ports that they do not know: the stack of the kernel, which Linux has once its module is
	// loaded, and usrsctp, also if it uses UDP. A host without SCTP answers by ICMP, which
	// is ErrRefused on Linux.
	IPAddrs []netip.Addr

	// AutoAddrs, if not nil, has the transport follow the addresses of the host.
	// LocalAddrs must be one unspecified address then, or none, for all addresses
	// of both families on DefaultUDPPort, and Conns and IPAddrs none.
	AutoAddrs *AutoAddrs

	// BusyPoll is the spin budget: how long a waiting goroutine polls the sockets itself
	// without a datagram before it parks, which buys latency with processor time (default
	// DefaultBusyPoll; negative: not at all). Datagrams that are not what it waits for renew
	// the budget, up to 16 times the budget in all. Where waits that spin usually end within
	// 100 µs, or within twice BusyPoll if that is less, the budget is 8 times as long, but
	// extended to no more than 400 µs. Goroutines poll only where that makes waits shorter,
	// which is measured, and at most GOMAXPROCS at a time. See also Transport.SetBusyRead.
	BusyPoll time.Duration

	// SocketBuffer is the size asked for kernel socket buffers, per direction
	// (default 7 MiB).
	SocketBuffer int

	// NoOffload turns segmentation and receive offload off (for tests and for
	// kernels that get it wrong).
	NoOffload bool

	// MaxAssociations bounds the associations of the transport (default
	// DefaultMaxAssociations).
	MaxAssociations int

	// RecvMemory bounds the bytes of memory that received messages of all associations of
	// the transport together take (default DefaultRecvMemory; negative: no bound). An
	// association may use its receive buffer, but no more than an eighth of what is left of
	// RecvMemory, on probation a 64th. As memory becomes short receive windows shrink, first
	// those of the associations that hold most, until all have about the same; refused data
	// is not lost, because the peer sends it again. When hardly any is left, new associations
	// are not answered.
	RecvMemory int

	// Tap, if not nil, is called for each datagram sent and received.
	Tap func(TapEvent)

	// Log, if not nil, receives a line for each event that is rare and matters to an operator.
	// Warn: a path fails (RFC 9260, Section 8.2); a peer restarts; an association ends by an
	// ABORT, with its cause, or because the peer does not answer; a connection under the
	// transport ends. Info: an association could not be established; a path is potentially
	// failed (RFC 7829), comes back, is added, removed or made primary. Debug: an association
	// is established, shut down by the peer or ended; its state changes, with the reason; an
	// address is confirmed. Each line has the local and the peer's addresses and, where there
	// are any, the path and the error.
	//
	// Packets are never logged, and nothing is done for the log while it is nil. It is called
	// with no lock held, by goroutines that serve the network: a handler must not block for
	// long.
	Log *slog.Logger
}

// TapEvent is one datagram seen by a TransportConfig.Tap. It is called on
// the sending or receiving goroutine, possibly on several at once.
type TapEvent struct {
	// Sent tells whether this side sent the datagram.
	Sent bool
	// Local and Remote are its UDP addresses, with port 0 where there is no UDP;
	// Local may be unspecified when the socket is not bound to one address.
	Local, Remote netip.AddrPort
	// ECN is the two-bit codepoint of the IP header.
	ECN uint8
	// Data is one SCTP packet. It must not be kept or
	// written to.
	Data []byte
}

// Defaults and limits of the driver.
const (
	// DefaultBacklog is the default of Config.Backlog.
	DefaultBacklog = 1024
	// DefaultMaxAssociations is the default of
	// TransportConfig.MaxAssociations.
	DefaultMaxAssociations = 65536
	// DefaultRecvMemory is the default of TransportConfig.RecvMemory: 1 GiB.
	DefaultRecvMemory = 1 << 30
	// MaxPorts bounds the SCTP ports listened on by one Transport.
	MaxPorts = 16384
)
