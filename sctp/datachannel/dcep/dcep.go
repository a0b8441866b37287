// Package dcep encodes and parses the messages of the WebRTC Data Channel Establishment Protocol
// (RFC 8832). It is a codec: it does no I/O and keeps no state.
package dcep

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// MessageType is the first byte of a message (RFC 8832, Section 8.2.1).
type MessageType uint8

// Message types.
const (
	TypeAck  MessageType = 0x02
	TypeOpen MessageType = 0x03
)

// ChannelType says how the messages of a channel are sent (RFC 8832, Section 5.1).
type ChannelType uint8

// Channel types. Unordered is a bit that goes with each of the three kinds of reliability.
const (
	Reliable          ChannelType = 0x00
	RetransmitLimited ChannelType = 0x01
	LifetimeLimited   ChannelType = 0x02
	Unordered         ChannelType = 0x80
)

// Reliability returns the type without the Unordered bit.
func (t ChannelType) Reliability() ChannelType { return t &^ Unordered }

const (
	// HeaderLen is the length in bytes of a DATA_CHANNEL_OPEN message without label and protocol.
	HeaderLen = 12
	// MaxString is the length in bytes of the longest label or protocol.
	MaxString = 1<<16 - 1
	// MaxLen is the length in bytes of the longest message.
	MaxLen = HeaderLen + 2*MaxString
)

var (
	// ErrType is returned for a message of an unknown type, or without a byte.
	ErrType = errors.New("dcep: unknown message type")
	// ErrLength is returned for a message whose length is not what its fields say, and for a
	// label or protocol that is longer than MaxString.
	ErrLength = errors.New("dcep: bad length")
	// ErrChannelType is returned for a DATA_CHANNEL_OPEN message of an unknown channel type.
	ErrChannelType = errors.New("dcep: unknown channel type")
)

// Open is a DATA_CHANNEL_OPEN message.
type Open struct {
	Type     ChannelType
	Priority uint16
	// Reliability is the number of retransmissions of RetransmitLimited, the lifetime in
	// milliseconds of LifetimeLimited. It is sent as 0 and ignored with Reliable.
	Reliability uint32
	Label       []byte
	Protocol    []byte
}

// TypeOf returns the type of a message. It returns ErrType if that is neither TypeOpen nor
// TypeAck. An acknowledgement is its type; what follows is ignored: pion/datachannel sends three bytes more.
func TypeOf(b []byte) (MessageType, error) {
	switch {
	case len(b) == 0:
		return 0, fmt.Errorf("%w: there is no byte", ErrType)
	case MessageType(b[0]) == TypeOpen:
		return TypeOpen, nil
	case MessageType(b[0]) != TypeAck:
		return 0, fmt.Errorf("%w: %#02x", ErrType, b[0])
	}
	return TypeAck, nil
}

// AppendAck appends a DATA_CHANNEL_ACK message (RFC 8832, Section 5.2) to b.
func AppendAck(b []byte) []byte { return append(b, byte(TypeAck)) }

// AppendOpen appends o to b. It returns b as it was, with ErrLength or ErrChannelType, if o
// cannot be sent.
func AppendOpen(b []byte, o *Open) ([]byte, error) {
	if len(o.Label) > MaxString || len(o.Protocol) > MaxString {
		return b, fmt.Errorf("%w: label of %d bytes, protocol of %d: at most %d",
			ErrLength, len(o.Label), len(o.Protocol), MaxString)
	}
	if o.Type.Reliability() > LifetimeLimited {
		return b, fmt.Errorf("%w: %#02x", ErrChannelType, uint8(o.Type))
	}
	reliability := o.Reliability
	if o.Type.Reliability() == Reliable {
		reliability = 0
	}
	b = append(b, byte(TypeOpen), byte(o.Type))
	b = binary.BigEndian.AppendUint16(b, o.Priority)
	b = binary.BigEndian.AppendUint32(b, reliability)
	b = binary.BigEndian.AppendUint16(b, uint16(len(o.Label)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(o.Protocol)))
	b = append(b, o.Label...)
	return append(b, o.Protocol...), nil
}

// ParseOpen parses a DATA_CHANNEL_OPEN message to o. Label and Protocol alias b. It returns
// ErrType, ErrLength or ErrChannelType if b is not one; o is undefined then.
func ParseOpen(b []byte, o *Open) error {
	if len(b) == 0 || MessageType(b[0]) != TypeOpen {
		return fmt.Errorf("%w: not DATA_CHANNEL_OPEN", ErrType)
	}
	if len(b) < HeaderLen {
		return fmt.Errorf("%w: DATA_CHANNEL_OPEN of %d bytes, want at least %d", ErrLength, len(b), HeaderLen)
	}
	o.Type = ChannelType(b[1])
	o.Priority = binary.BigEndian.Uint16(b[2:])
	o.Reliability = binary.BigEndian.Uint32(b[4:])
	label, protocol := int(binary.BigEndian.Uint16(b[8:])), int(binary.BigEndian.Uint16(b[10:]))
	if len(b) != HeaderLen+label+protocol {
		return fmt.Errorf("%w: DATA_CHANNEL_OPEN of %d bytes with a label of %d and a protocol of %d, want %d",
			ErrLength, len(b), label, protocol, HeaderLen+label+protocol)
	}
	if o.Type.Reliability() > LifetimeLimited {
		return fmt.Errorf("%w: %#02x", ErrChannelType, uint8(o.Type))
	}
	if o.Type.Reliability() == Reliable {
		o.Reliability = 0
	}
	b = b[HeaderLen:]
	o.Label, o.Protocol = b[:label:label], b[label:]
	return nil
}
