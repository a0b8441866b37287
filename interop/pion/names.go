package sctp

import "fmt"

// Reliability types of Stream.SetReliabilityParams.
const (
	// ReliabilityTypeReliable messages are sent until they are acknowledged.
	ReliabilityTypeReliable byte = 0
	// ReliabilityTypeRexmit messages are abandoned after a number of retransmissions (RFC 7496).
	ReliabilityTypeRexmit byte = 1
	// ReliabilityTypeTimed messages are abandoned after a number of milliseconds (RFC 3758).
	ReliabilityTypeTimed byte = 2
)

// PayloadProtocolIdentifier tells what a message carries (RFC 9260, Section 3.3.1).
type PayloadProtocolIdentifier uint32

// Identifiers of WebRTC (RFC 8831, Section 8; RFC 8832, Section 8.1).
const (
	PayloadTypeUnknown           PayloadProtocolIdentifier = 0
	PayloadTypeWebRTCDCEP        PayloadProtocolIdentifier = 50
	PayloadTypeWebRTCString      PayloadProtocolIdentifier = 51
	PayloadTypeWebRTCBinary      PayloadProtocolIdentifier = 53
	PayloadTypeWebRTCStringEmpty PayloadProtocolIdentifier = 56
	PayloadTypeWebRTCBinaryEmpty PayloadProtocolIdentifier = 57
)

// String names the identifier.
func (p PayloadProtocolIdentifier) String() string {
	switch p {
	case PayloadTypeWebRTCDCEP:
		return "WebRTC DCEP"
	case PayloadTypeWebRTCString:
		return "WebRTC String"
	case PayloadTypeWebRTCBinary:
		return "WebRTC Binary"
	case PayloadTypeWebRTCStringEmpty:
		return "WebRTC String (Empty)"
	case PayloadTypeWebRTCBinaryEmpty:
		return "WebRTC Binary (Empty)"
	}
	return fmt.Sprintf("Unknown Payload Protocol Identifier: %d", uint32(p))
}

// StreamState is the state of the outgoing side of a stream.
type StreamState int

// States of a stream.
const (
	// StreamStateOpen: Close was not called.
	StreamStateOpen StreamState = iota
	// StreamStateClosing: Close was called, and the peer has not reset its side.
	StreamStateClosing
	// StreamStateClosed: both sides have closed.
	StreamStateClosed
)

// String names the state.
func (ss StreamState) String() string {
	switch ss {
	case StreamStateOpen:
		return "open"
	case StreamStateClosing:
		return "closing"
	case StreamStateClosed:
		return "closed"
	}
	return "unknown"
}

// PartialReliabilityMode tells how abandoned messages are announced.
type PartialReliabilityMode int

// Modes of partial reliability: none, FORWARD-TSN (RFC 3758), and I-FORWARD-TSN (RFC 8260).
const (
	PartialReliabilityModeNone PartialReliabilityMode = iota
	PartialReliabilityModeForwardTSN
	PartialReliabilityModeIForwardTSN
)

// AssociationMetadata describes what both sides of an association have agreed on.
type AssociationMetadata struct {
	// MessageInterleavingEnabled tells that messages are interleaved (RFC 8260).
	MessageInterleavingEnabled bool `json:"messageInterleavingEnabled"`

	// PartialReliabilityMode tells how abandoned messages are announced.
	PartialReliabilityMode PartialReliabilityMode `json:"partialReliabilityMode"`

	// ZeroChecksumSendingEnabled tells that packets are sent without a checksum (RFC 9653).
	ZeroChecksumSendingEnabled bool `json:"zeroChecksumSendingEnabled"`

	// ZeroChecksumReceivingEnabled tells that packets without a checksum are accepted.
	ZeroChecksumReceivingEnabled bool `json:"zeroChecksumReceivingEnabled"`
}
