package datachannel

import (
	"fmt"
	"math"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/datachannel/dcep"
)

// Priorities to be used in WebRTC (RFC 8831, Section 6.4).
const (
	PriorityBelowNormal = 128
	PriorityNormal      = 256
	PriorityHigh        = 512
	PriorityExtraHigh   = 1024
)

// Options are the properties of a channel, the same for both directions. The zero value is a
// reliable, ordered channel of normal priority.
type Options struct {
	// Unordered lets messages overtake each other.
	Unordered bool
	// PR is the partial reliability policy: sctp.Reliable; sctp.LimitedRetransmissions, where a
	// message is abandoned instead of being retransmitted more than MaxRetransmits times; or
	// sctp.Timed, where it is abandoned when Lifetime has passed, at least a millisecond and
	// in whole ones. The parameters of other policies must be 0.
	PR             sctp.PRPolicy
	MaxRetransmits uint32
	Lifetime       time.Duration
	// Priority is the weight by which channels share the association (default PriorityNormal).
	Priority uint16
	// Protocol names the subprotocol, in at most 65,535 bytes.
	Protocol string
	// Negotiated tells that the peer opens the channel, too, with the same ID and options: the
	// two have agreed by other means, and no DATA_CHANNEL_OPEN message is sent (RFC 8831, Section
	// 6.5).
	Negotiated bool
	// ID is the number of a negotiated channel. Otherwise it must be 0.
	ID uint16
}

// open returns o as a DATA_CHANNEL_OPEN message.
func (o *Options) open(label string) (dcep.Open, error) {
	m := dcep.Open{Priority: o.Priority, Label: []byte(label), Protocol: []byte(o.Protocol)}
	if m.Priority == 0 {
		m.Priority = PriorityNormal
	}
	switch o.PR {
	case sctp.Reliable:
	case sctp.LimitedRetransmissions:
		m.Type, m.Reliability = dcep.RetransmitLimited, o.MaxRetransmits
	case sctp.Timed:
		ms := o.Lifetime.Milliseconds()
		if ms < 1 || ms > math.MaxUint32 || o.Lifetime%time.Millisecond != 0 {
			return m, fmt.Errorf("%w: Lifetime %v: want whole milliseconds, 1 to %d", ErrOptions, o.Lifetime, uint32(math.MaxUint32))
		}
		m.Type, m.Reliability = dcep.LifetimeLimited, uint32(ms)
	default:
		return m, fmt.Errorf("%w: policy %d is not one of data channels", ErrOptions, o.PR)
	}
	switch {
	case o.PR != sctp.LimitedRetransmissions && o.MaxRetransmits != 0:
		return m, fmt.Errorf("%w: MaxRetransmits %d without LimitedRetransmissions", ErrOptions, o.MaxRetransmits)
	case o.PR != sctp.Timed && o.Lifetime != 0:
		return m, fmt.Errorf("%w: Lifetime %v without Timed", ErrOptions, o.Lifetime)
	case !o.Negotiated && o.ID != 0:
		return m, fmt.Errorf("%w: ID %d of a channel that is not negotiated", ErrOptions, o.ID)
	case len(label) > dcep.MaxString || len(o.Protocol) > dcep.MaxString:
		return m, fmt.Errorf("%w: label of %d bytes, protocol of %d: at most %d", ErrOptions, len(label), len(o.Protocol), dcep.MaxString)
	}
	if o.Unordered {
		m.Type |= dcep.Unordered
	}
	return m, nil
}

// optionsOf returns the options that a DATA_CHANNEL_OPEN message asks for.
func optionsOf(m *dcep.Open) Options {
	o := Options{Unordered: m.Type&dcep.Unordered != 0, Priority: m.Priority, Protocol: string(m.Protocol)}
	switch m.Type.Reliability() {
	case dcep.RetransmitLimited:
		o.PR, o.MaxRetransmits = sctp.LimitedRetransmissions, m.Reliability
	case dcep.LifetimeLimited:
		// A lifetime of 0 would be none: the shortest one is a millisecond.
		o.PR, o.Lifetime = sctp.Timed, max(time.Duration(m.Reliability), 1)*time.Millisecond
	}
	return o
}

// send returns the options of messages of a channel.
func (o *Options) send(id uint16) sctp.SendOptions {
	return sctp.SendOptions{Stream: id, Unordered: o.Unordered, PR: o.PR, Lifetime: o.Lifetime,
		MaxRetransmits: int(min(o.MaxRetransmits, math.MaxInt32))}
}

// weight returns the weight of the outgoing stream for the scheduler.
func (o *Options) weight() uint16 {
	if o.Priority == 0 {
		return PriorityNormal // a peer's that has no preference
	}
	return o.Priority
}
