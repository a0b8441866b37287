// Package cc has the congestion controls of a path: CUBIC (RFC 9438) with HyStart++
// (RFC 9406), NewReno as RFC 9260, Section 7.2, has it, and BBR (draft-ietf-ccwg-bbr). A [Control] belongs to one
// path, which tells it what it sent and what each SACK acknowledged.
package cc

import "github.com/weftstack/weft/sctp/internal/core/clock"

// Ack tells a [Control] what one SACK did to its path. All sizes are bytes of
// chunks, headers and padding included (RFC 9260, Section 7.2).
type Ack struct {
	Now clock.Time
	// Acked is the size of the chunks that this SACK newly acknowledges, by
	// cumulative TSN or gap block. Abandoned chunks never count (RFC 3758,
	// Section 3.5, A2).
	Acked int
	// FlightBefore is what was in flight when the SACK came.
	FlightBefore int
	// Flight is what is in flight after it.
	Flight int
	// CumAdvanced reports whether the cumulative TSN ack point moved.
	CumAdvanced bool
	// InRecovery reports whether the path is in fast recovery.
	InRecovery bool
	// RTT is a sample valid under Karn's algorithm, or 0.
	RTT clock.Time
	// SRTT is the smoothed round-trip time, or 0.
	SRTT clock.Time
}

// Control keeps the congestion window of one path, in bytes. For a
// SACK that both acknowledges and reports loss, OnAck comes first (RFC 9260,
// Section 7.2.4, Note).
type Control interface {
	// Name names the algorithm, in lower case.
	Name() string
	// OnSent tells that n bytes went out, after which flight bytes are in
	// flight.
	OnSent(now clock.Time, n, flight int)
	// OnAck takes the news of one SACK. It is called when a.Acked > 0.
	OnAck(a Ack)
	// OnLoss halves (or the like) the window: fast retransmit or RACK entered
	// fast recovery. It is called once per recovery.
	OnLoss(now clock.Time)
	// OnTimeout collapses the window to one packet: T3-rtx expired.
	OnTimeout(now clock.Time)
	// OnIdle decays the window before the first transmission after the path sent
	// nothing for idle.
	OnIdle(idle, rto clock.Time)
	// OnECN reacts to a congestion mark. It is called once per window of data.
	OnECN(now clock.Time)
	// Cwnd returns the congestion window.
	Cwnd() int
	// Ssthresh returns the slow start threshold.
	Ssthresh() int
	// PacingRate returns the bytes per second to pace by, or 0 to take that of the
	// window.
	PacingRate() int64
	// SetMTU tells the size of the largest packet's chunks (PMDCS).
	SetMTU(mtu int)
	// Window returns what a loss would change, and Undo returns to it when the loss
	// turned out to be none, unless the present window is larger.
	Window() Window
	Undo(w Window)
	// Reset starts anew on unknown conditions (RFC 9260, Section 7.2.5).
	Reset()
}

// Algorithm selects a congestion control algorithm.
type Algorithm uint8

// Congestion control algorithms.
const (
	Cubic   Algorithm = iota // RFC 9438
	NewReno                  // RFC 9260, Section 7.2
	BBR                      // draft-ietf-ccwg-bbr
)

// Config configures a [Control]. Zero fields mean the defaults.
type Config struct {
	Algorithm Algorithm
	// IPv6 picks the initial window of an IPv6 peer (RFC 9260, Section 7.2.1).
	IPv6 bool
	// InitialPackets, if not 0, sets the initial window to that many packets in
	// place of the about three of RFC 9260; RFC 6928 has 10 for TCP.
	InitialPackets int
	// MaxWindow bounds the window; 0 is DefaultMaxWindow.
	MaxWindow int
	// SlowStartL is L of RFC 9260, Section 7.2.1: how many packets one SACK may
	// add to the window in slow start; 0 is DefaultSlowStartL.
	SlowStartL int
	// NoHyStart switches HyStart++ of cubic off.
	NoHyStart bool
}

const (
	// DefaultSlowStartL is more than the 1 that RFC 9260, Section 7.2.1
	// recommends ("MAY be larger than 1"): a receiver that acknowledges once per
	// receive batch sends one SACK for some 44 packets, and with L = 1 slow start
	// would be linear. The window still grows by no more than what was
	// acknowledged, so it at most doubles per round trip, and splitting SACKs
	// gains a peer nothing.
	DefaultSlowStartL = 64
	// DefaultMaxWindow bounds the congestion window.
	DefaultMaxWindow = 64 << 20
	// initialSsthresh is "arbitrarily high".
	initialSsthresh = 1 << 30
)

// New returns the algorithm that c selects, for packets that
// carry up to mtu bytes of chunks.
func New(c Config, mtu int) Control {
	return NewIn(nil, c, mtu)
}

// NewIn is New with the memory for CUBIC given; nil allocates it.
func NewIn(mem *CubicControl, c Config, mtu int) Control {
	c = c.withDefaults()
	switch c.Algorithm {
	case NewReno:
		return newNewReno(c, mtu)
	case BBR:
		return newBBR(c, mtu)
	}
	if mem == nil {
		mem = new(CubicControl)
	}
	return mem.init(c, mtu)
}

func (c Config) withDefaults() Config {
	if c.SlowStartL <= 0 {
		c.SlowStartL = DefaultSlowStartL
	}
	if c.MaxWindow <= 0 {
		c.MaxWindow = DefaultMaxWindow
	}
	return c
}

// initialWindow is the window before the first transmission.
func (c *Config) initialWindow(mtu int) int {
	if c.InitialPackets > 0 {
		return min(c.InitialPackets*mtu, c.MaxWindow)
	}
	// "min(4 * PMDCS, max(2 * PMDCS, 4404)) bytes if the peer address is an IPv4
	// address and to min(4 * PMDCS, max(2 * PMDCS, 4344)) bytes if the peer
	// address is an IPv6 address".
	fixed := 4404
	if c.IPv6 {
		fixed = 4344
	}
	return min(4*mtu, max(2*mtu, fixed))
}

// usage watches whether the congestion window is being fully utilized.
type usage struct {
	fullAt clock.Time // when it was used up last; 0 is never
	sentAt clock.Time // when something was sent last
}

// sent notes that flight bytes were in flight after a transmission. A sender
// that has less than one packet of room left can use no more.
func (u *usage) sent(now clock.Time, flight, cwnd, mtu int) {
	u.sentAt = now
	if flight+mtu > cwnd {
		u.fullAt = now
	}
}

// full reports whether the window was used up when the chunks that a
// acknowledges were sent, or after that. The flight at the time of the SACK
// would not do: SACKs may come in a burst, faster than the pacer lets new
// packets out. Nor would the round-trip time alone: after a timeout one packet
// at a time is sent, of which the peer delays the SACK, and retransmissions take
// no sample of that (RFC 9260, Section 6.3.1, C5).
func (u *usage) full(a *Ack) bool {
	return u.fullAt != 0 && (u.fullAt == u.sentAt || u.fullAt >= a.Now-max(a.RTT, a.SRTT))
}

// decayIdle is the rule of RFC 9260, Section 7.2.1 for a path that does not
// send: "the cwnd of the transport address SHOULD be adjusted to
// max(cwnd / 2, 4 * PMDCS) once per RTO". It never enlarges the window.
func decayIdle(cwnd, mtu int, idle, rto clock.Time) int {
	if rto <= 0 {
		return cwnd
	}
	for ; idle >= rto && cwnd > 4*mtu; idle -= rto {
		cwnd = max(cwnd/2, 4*mtu)
	}
	return cwnd
}
