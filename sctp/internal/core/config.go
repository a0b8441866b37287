package core

import (
	"time"

	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/pmtu"
	"github.com/weftstack/weft/sctp/internal/core/reconfig"
	"github.com/weftstack/weft/sctp/internal/core/rto"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// Defaults of Config. Those that RFC 9260, Section 16, names have its values.
const (
	DefaultOutStreams      = 10
	DefaultInStreams       = 2048
	DefaultMaxBurst        = 4
	DefaultCookieLife      = 60 * time.Second
	DefaultAssocMaxRetrans = 10
	DefaultPathMaxRetrans  = 5
	DefaultMaxInitRetrans  = 8
	DefaultHBInterval      = 30 * time.Second
	DefaultSackDelay       = 200 * time.Millisecond
	DefaultSackEvery       = 2
	DefaultSendBuffer      = 4 << 20
	DefaultRecvBuffer      = 4 << 20
	DefaultMTU             = 1452
	MinRecvBuffer          = cookie.MinRWND
	MaxSackDelay           = 500 * time.Millisecond
	maxCookieLifeExtension = 60 * time.Second
	maxStaleCookies        = 4 // stale cookie errors answered with a new INIT
	maxControlReplies      = 8 // queued replies to one batch of a peer's control chunks
	maxControlReplyBytes   = 4096
)

// Config holds the parameters of associations. Zero fields mean the defaults.
// It is not changed by this package and must not be changed by the caller once
// it was passed in.
type Config struct {
	// OutStreams is the number of outgoing streams to ask for, InStreams the
	// largest number of incoming ones to allow (RFC 9260, Section 5.1.1).
	OutStreams, InStreams uint16
	// Adaptation, if not nil, is sent as Adaptation Layer Indication (RFC 5061,
	// Section 4.2.6).
	Adaptation *uint32

	// RTOInitial, RTOMin and RTOMax bound the retransmission timeouts.
	RTOInitial, RTOMin, RTOMax time.Duration
	// HBInterval is how often an idle path is probed; negative means never.
	HBInterval time.Duration
	// HBRetry repeats an unanswered heartbeat on the path of data once per RTO,
	// without waiting for HBInterval.
	HBRetry bool
	// SackDelay is the longest delay of an acknowledgement, at most
	// MaxSackDelay; negative acknowledges every batch at once. SackEvery is
	// after how many packets an acknowledgement is due at the latest.
	SackDelay time.Duration
	SackEvery int
	// AssocMaxRetrans, PathMaxRetrans and MaxInitRetrans are
	// Association.Max.Retrans, Path.Max.Retrans and Max.Init.Retransmits.
	AssocMaxRetrans, PathMaxRetrans, MaxInitRetrans int
	// CookieLife is Valid.Cookie.Life.
	CookieLife time.Duration
	// MaxInitTimeout, if positive, bounds T1 besides.
	MaxInitTimeout time.Duration
	// DSCP is the Differentiated Services Code Point of packets, unless that of a
	// path is set.
	DSCP uint8
	// NoFragmentation refuses messages that do not fit one chunk.
	NoFragmentation bool
	// ShutdownGuard is T5-shutdown-guard; 0 means five times RTOMax, negative
	// turns it off.
	ShutdownGuard time.Duration
	// MaxBurst is Max.Burst in packets (RFC 9260, Section 6.1, D); 0 means no
	// limit, because the pacer does it better.
	MaxBurst int

	// SendBuffer and RecvBuffer bound the bytes queued in each direction.
	SendBuffer, RecvBuffer int
	// MTU is the size of the largest SCTP packet to send
	// on a path until something better is known (SetPathMTU).
	MTU int

	// Discover finds the largest packet of each path out (RFC 8899), from MTU on
	// up to MaxMTU, unless SetPathLimit says more.
	Discover bool
	MaxMTU   int
	// PFMaxRetrans is PotentiallyFailed.Max.Retrans (RFC 7829): how many timeouts
	// in a row a path may have before data takes another one. Negative means that
	// only Path.Max.Retrans counts.
	PFMaxRetrans int
	// SwitchPrimary makes another path the primary one when the primary path had
	// more than SwitchMaxRetrans (Primary.Switchover.Max.Retrans) timeouts in a
	// row, rather than to go back to it (RFC 7829, Section 5).
	SwitchPrimary    bool
	SwitchMaxRetrans int

	// Congestion and Scheduler select algorithms.
	Congestion cc.Algorithm
	Scheduler  tx.Scheduler
	// NoPacing turns off the pacer, which spreads packets over the round trip
	// time.
	NoPacing bool
	// slowPath has nextPacket build every packet, of which firstData, nextData and bulkData
	// must build the same, and ackCum look at every chunk: for tests.
	slowPath bool

	// TellDry adds EventDry to the events, TellStates EventState.
	TellDry, TellStates bool
	// Bundle holds a small message back while others are in flight (RFC 9260,
	// Section 6.1, the Nagle algorithm).
	Bundle bool

	// NoInterleaving turns off I-DATA (RFC 8260), NoPartialReliability
	// FORWARD-TSN (RFC 3758), NoECN explicit congestion notification, NoRACK
	// the time-based loss detection of RFC 8985.
	NoInterleaving, NoPartialReliability, NoECN, NoRACK bool

	// NoReconfig turns off the re-configuration of streams (RFC 6525).
	// DenyReconfig refuses kinds of requests of the peer's; MaxOutStreams is
	// how many outgoing streams it may ask for.
	NoReconfig    bool
	DenyReconfig  reconfig.Kinds
	MaxOutStreams uint16

	// Auth asks for the authentication of chunks (RFC 4895); nil is none.
	Auth *auth.Config
	// ChangeAddrs lets addresses be added and removed (RFC 5061); it implies
	// Auth, unless InsecureAddrs allows it without, as only tests should.
	ChangeAddrs, InsecureAddrs bool

	// SinglePath ignores the addresses that a peer lists: packets go over a connection that knows
	// where to (RFC 8261).
	SinglePath bool

	// ZeroChecksum announces that packets may have zero in place of the checksum,
	// and sends such if the peer announces it, too: what carries the packets is
	// DTLS (RFC 9653).
	ZeroChecksum bool

	// ZeroChecksumLocal does the same, if ZeroChecksum does not, for packets that do
	// not leave the host.
	ZeroChecksumLocal bool

	// Multipath sends data on all active paths at once.
	Multipath bool

	// Pieces selects delivery by PopPiece instead of Read.
	Pieces bool
}

// WithDefaults returns a copy with every zero field replaced and every field
// inside its limits.
func (c *Config) withDefaults() Config {
	var d Config
	if c != nil {
		d = *c
	}
	setDefault(&d.OutStreams, DefaultOutStreams)
	setDefault(&d.InStreams, DefaultInStreams)
	setDefault(&d.MaxOutStreams, reconfig.MaxStreams)
	if d.ChangeAddrs && !d.InsecureAddrs {
		d.Auth = d.Auth.WithDefaults(wire.ChunkAsconf, wire.ChunkAsconfAck)
	} else if d.Auth != nil {
		d.Auth = d.Auth.WithDefaults()
	}
	setDefault(&d.RTOInitial, rto.DefaultInitial)
	setDefault(&d.RTOMin, rto.DefaultMin)
	setDefault(&d.RTOMax, rto.DefaultMax)
	d.RTOMax = max(d.RTOMax, d.RTOMin)
	d.RTOInitial = min(max(d.RTOInitial, d.RTOMin), d.RTOMax)
	setDefault(&d.HBInterval, DefaultHBInterval)
	setDefault(&d.SackDelay, DefaultSackDelay)
	// RFC 9260, Section 6.2: "An implementation MUST NOT allow the maximum
	// delay (protocol parameter 'SACK.Delay') to be configured to be more than
	// 500 ms."
	d.SackDelay = min(max(d.SackDelay, 0), MaxSackDelay)
	setDefault(&d.SackEvery, DefaultSackEvery)
	setDefault(&d.AssocMaxRetrans, DefaultAssocMaxRetrans)
	setDefault(&d.PathMaxRetrans, DefaultPathMaxRetrans)
	setDefault(&d.MaxInitRetrans, DefaultMaxInitRetrans)
	setDefault(&d.CookieLife, DefaultCookieLife)
	setDefault(&d.ShutdownGuard, 5*d.RTOMax)
	setDefault(&d.SendBuffer, DefaultSendBuffer)
	d.RecvBuffer = clampRecvBuffer(d.RecvBuffer)
	setDefault(&d.MTU, DefaultMTU)
	d.MTU = clampMTU(d.MTU)
	d.MaxMTU = clampMTU(max(d.MaxMTU, d.MTU))
	// RFC 7829, Section 5, rule 1: "the PSMR MUST be set greater than or equal to
	// the PFMR value", or without potentially failed paths to the PMR value.
	least := d.PFMaxRetrans
	if least < 0 {
		least = d.PathMaxRetrans
	}
	d.SwitchMaxRetrans = max(d.SwitchMaxRetrans, least) // the default; others are refused before
	return d
}

func setDefault[T ~int | ~int64 | ~uint16](p *T, v T) {
	if *p == 0 {
		*p = v
	}
}

// clampRecvBuffer brings the size of a receive buffer into its limits.
func clampRecvBuffer(n int) int {
	setDefault(&n, DefaultRecvBuffer)
	return min(max(n, MinRecvBuffer), 1<<30)
}

// clampMTU brings a packet size into [pmtu.MinMTU, MaxPacket] and down to a multiple
// of four, because chunks are padded to four bytes.
func clampMTU(n int) int { return min(max(n, pmtu.MinMTU), MaxPacket) &^ 3 }
