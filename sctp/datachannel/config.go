package datachannel

import (
	"fmt"

	"github.com/weftstack/weft/sctp"
)

// Role is the part that a side has in the DTLS handshake. It decides about the numbers of the
// channels that the side opens (RFC 8832, Section 6), and is independent of which side opens the
// SCTP association.
type Role uint8

// Roles.
const (
	// Client is the DTLS client: its channels have even numbers.
	Client Role = iota + 1
	// Server is the DTLS server: its channels have odd numbers.
	Server
)

// String returns the name of the role.
func (r Role) String() string {
	switch r {
	case Client:
		return "Client"
	case Server:
		return "Server"
	}
	return fmt.Sprintf("Role(%d)", uint8(r))
}

// Defaults of [Config].
const (
	// DefaultMaxMessageSize is the default of Config.MaxMessageSize: 256 KiB, as in browsers.
	DefaultMaxMessageSize = 256 << 10
	// DefaultPeerMaxMessageSize is the default of Config.PeerMaxMessageSize: 64 KiB, which
	// holds for a peer that does not say (RFC 8841, Section 6.1).
	DefaultPeerMaxMessageSize = 64 << 10
	// DefaultMaxChannels is the default of Config.MaxChannels.
	DefaultMaxChannels = 1024
	// DefaultBacklog is the default of Config.Backlog.
	DefaultBacklog = 128
)

const (
	// defaultBuffer is the default of sctp.Config.SendBuffer and RecvBuffer.
	defaultBuffer = 4 << 20
	// numStreams is how many streams are asked for (RFC 8831, Section 6.2: "SHOULD be
	// 65535"). Stream 65535 does not exist.
	numStreams = 65535
)

// Config holds the parameters of a [Session]. Only Role has to be set.
type Config struct {
	// Role is this side's. ErrConfig is returned without one.
	Role Role

	// MaxMessageSize is the length in bytes of the longest message to receive, what the
	// max-message-size of the own session description says (RFC 8841; default
	// DefaultMaxMessageSize). A longer message closes its channel with ErrMessageTooLong.
	MaxMessageSize int

	// PeerMaxMessageSize is the max-message-size of the peer's description: longer messages
	// are not sent, but refused with ErrMessageTooLong (default DefaultPeerMaxMessageSize;
	// negative: the peer takes any, which its description says by 0).
	PeerMaxMessageSize int

	// MaxBufferedAmount bounds Channel.BufferedAmount, in bytes (default: half of the send
	// buffer of the association). A channel may also have no more buffered than is left of the
	// send buffer, so that n channels that send as much as they can have an (n+1)th of it each.
	// Sends wait while there is no such room. A channel with nothing buffered may always send a
	// message, of any length.
	MaxBufferedAmount int

	// MaxUnread, if positive, is how many bytes of memory the received messages of a channel
	// may take that Recv has not taken; one more closes the channel with ErrUnread. SCTP has
	// one receive window for all channels: without this limit a channel that is not read can
	// fill the window, and no channel receives anything until it is read again.
	MaxUnread int

	// AssemblyBuffer bounds the bytes of memory that incomplete messages of all channels
	// together take (default: the receive buffer of the association, at least
	// MaxMessageSize). The channel of a message that exceeds it is closed with ErrAssembly.
	AssemblyBuffer int

	// MaxChannels bounds the channels that the peer has opened and that are not closed, and
	// Backlog those that wait for Session.Accept (defaults DefaultMaxChannels and
	// DefaultBacklog). What exceeds them is refused: closed without an acknowledgement.
	MaxChannels, Backlog int

	// OnChannel, if not nil, is called for each channel that the peer opens, before its first
	// message, instead of Session.Accept.
	OnChannel func(*Channel)

	// OnMessage, if not nil, is called for each message of each channel as soon as it is
	// there, instead of Channel.Recv; messages of one channel in their order. A message that
	// fits one packet is not copied.
	//
	// Both callbacks are made with no lock held, on the goroutine that received the packet,
	// one at a time for a session. They must not block; they may call methods that do not.
	OnMessage func(*Channel, Message)
}

// SCTP returns a configuration for the associations of sessions with configuration c: a copy of
// base, which may be nil, with what data channels need. OnAssociation, OnPiece and OnNotify
// belong to the session; those of base but OnPiece, which must be nil, are called after it, so
// that an OnAssociation of base can get the session by [From]. If not set in base there are
// 65,535 streams (RFC 8831, Section 6.2), and streams are scheduled by weight (Section 6.4).
//
// It returns ErrConfig if c or base contradicts itself, or base turns off stream resets or partial
// reliability, which are required (RFC 8831, Section 6.1).
func (c Config) SCTP(base *sctp.Config) (*sctp.Config, error) {
	var sc sctp.Config
	if base != nil {
		sc = *base
	}
	switch {
	case c.Role != Client && c.Role != Server:
		return nil, fmt.Errorf("%w: Role %d is neither Client nor Server", ErrConfig, c.Role)
	case sc.OnPiece != nil:
		return nil, fmt.Errorf("%w: OnPiece of the association is set", ErrConfig)
	case sc.NoReconfig || sc.NoPartialReliability:
		return nil, fmt.Errorf("%w: NoReconfig and NoPartialReliability of the association are %v and %v",
			ErrConfig, sc.NoReconfig, sc.NoPartialReliability)
	}
	if sc.OutStreams == 0 {
		sc.OutStreams = numStreams
	}
	if sc.InStreams == 0 {
		sc.InStreams = numStreams
	}
	if sc.Scheduler == sctp.RoundRobin {
		sc.Scheduler = sctp.WeightedFair
	}
	recv, send := positive(sc.RecvBuffer, defaultBuffer), positive(sc.SendBuffer, defaultBuffer)
	c.MaxMessageSize = positive(c.MaxMessageSize, DefaultMaxMessageSize)
	if c.PeerMaxMessageSize == 0 {
		c.PeerMaxMessageSize = DefaultPeerMaxMessageSize
	}
	c.MaxBufferedAmount = positive(c.MaxBufferedAmount, send/2)
	c.AssemblyBuffer = positive(c.AssemblyBuffer, max(recv, 2*c.MaxMessageSize))
	c.MaxChannels = positive(c.MaxChannels, DefaultMaxChannels)
	c.Backlog = positive(c.Backlog, DefaultBacklog)
	if c.AssemblyBuffer < c.MaxMessageSize {
		return nil, fmt.Errorf("%w: AssemblyBuffer of %d bytes is less than MaxMessageSize, %d",
			ErrConfig, c.AssemblyBuffer, c.MaxMessageSize)
	}
	onAssociation, onNotify := sc.OnAssociation, sc.OnNotify
	sc.OnAssociation = func(a *sctp.Association) {
		a.SetValue(newSession(a, c, send, recv))
		if onAssociation != nil {
			onAssociation(a)
		}
	}
	sc.OnPiece = func(a *sctp.Association, p *sctp.Piece) { From(a).piece(p) }
	sc.OnNotify = func(a *sctp.Association, n sctp.Notification) {
		if s := From(a); s != nil {
			s.notify(n)
		}
		if onNotify != nil {
			onNotify(a, n)
		}
	}
	return &sc, nil
}

func positive(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}
