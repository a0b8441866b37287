package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Version is the version of the protocol, in the first byte of every frame.
const Version = 1

const (
	// HeaderSize is the length in bytes of the header of data, ack, probe and refuse frames.
	HeaderSize = 28
	// MaxSize is the length in bytes of the longest frame.
	MaxSize = 8 << 10
	// MaxHops is the number of gateways that a frame may pass, and the largest value of
	// Header.Hops.
	MaxHops = 7
	// MaxJob is the largest job number.
	MaxJob = 1<<24 - 1

	ppidSize   = 4
	ackSize    = HeaderSize + 12
	probeSize  = HeaderSize + 4
	refuseSize = HeaderSize + 1
	pingSize   = 2
)

// Overhead is the largest number of bytes that a data or single frame has in front of its payload.
const Overhead = HeaderSize + ppidSize

// Type is the type of a frame.
type Type uint8

// The types of frames.
const (
	Data    Type = 1 + iota // a part of a message, in sequence
	Single                  // an unordered message, in the other sequence
	Cut                     // the message that was begun ends without its rest
	Ack                     // the target confirms, and grants credit
	Probe                   // the origin asks whether all has arrived
	Refuse                  // a gateway or target refuses a frame
	Ping                    // the leg is alive
	Hello                   // the first step of authentication
	Answer                  // the second
	Prove                   // the third
	Welcome                 // the last
)

// Flags are the flags of a frame. Their meaning depends on the type.
type Flags uint8

// The flags of data, single, cut and probe frames.
const (
	First     Flags = 1 << iota // the frame begins a message
	Last                        // it ends one
	Unordered                   // the message was sent unordered
	Fresh                       // the target has not confirmed anything of the flow yet
	AckNow                      // the target answers at once
)

// Gone is a flag of probe frames: what precedes their numbers and has not arrived never will.
const Gone Flags = 1

// The flags of ack frames.
const (
	Resend       Flags = 1 << iota // the target lacks data before the frame that it answers
	ResendSingle                   // likewise of the single sequence
)

const flagBits = 5

// Reason tells why a frame was refused.
type Reason uint8

// The reasons of refuse frames.
const (
	Unreachable  Reason = 1 + iota // no leg leads to the target at the moment
	UnknownSite                    // no route leads to its site
	UnknownJob                     // the job is not known there
	Loop                           // the frame came back, or passed too many gateways
	TooManyFlows                   // there is no room for another flow at the moment
)

var reasons = [...]string{"reason 0", "unreachable", "unknown site", "unknown job", "routing loop", "too many flows"}

// String returns the name of the reason.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Temporary reports whether an origin may try again.
func (r Reason) Temporary() bool { return r == Unreachable || r == TooManyFlows }

// Address names a process, by numbers from 1.
type Address struct{ Site, Node, Process uint16 }

// String returns the numbers with slashes between them.
func (a Address) String() string { return fmt.Sprintf("%d/%d/%d", a.Site, a.Node, a.Process) }

// Header is what data, single, cut, ack, probe and refuse frames have.
type Header struct {
	Type        Type
	Flags       Flags
	Hops        uint8 // how many gateways it may still pass
	Stream      uint16
	Job         uint32
	Attempt     uint8
	From, To    Address
	Incarnation uint32 // of From; of a refuse frame: of To
	Seq         uint32
}

// Frame is a parsed frame.
type Frame struct {
	Header
	// PPID is that of the message, if First is set or the type is Single.
	PPID uint32
	// Payload aliases the frame.
	Payload []byte
	// PeerIncarnation and Window are of an ack, SingleNext of an ack or probe.
	PeerIncarnation, Window, SingleNext uint32
	// Reason is of a refuse frame.
	Reason Reason
}

// Errors of Parse. VersionError has the version.
var (
	ErrShort = errors.New("relay: frame of the wrong length")
	ErrType  = errors.New("relay: unknown frame type")
)

// VersionError is the version of a peer that does not speak Version.
type VersionError uint8

// Error implements error.
func (v VersionError) Error() string {
	return fmt.Sprintf("relay: peer speaks version %d, this side %d", uint8(v), Version)
}

// TypeOf returns the type of a frame, after a check of its version.
func TypeOf(b []byte) (Type, error) {
	if len(b) < pingSize || len(b) > MaxSize {
		return 0, ErrShort
	}
	if v := b[0] >> 4; v != Version {
		return 0, VersionError(v)
	}
	t := Type(b[0] & 15)
	if t < Data || t > Welcome {
		return 0, ErrType
	}
	return t, nil
}

// Parse parses a frame other than those of the authentication into f. All of f is overwritten.
func Parse(b []byte, f *Frame) error {
	t, err := TypeOf(b)
	if err != nil {
		return err
	}
	*f = Frame{Header: Header{Type: t}}
	switch {
	case t == Ping:
		if len(b) != pingSize {
			return ErrShort
		}
		return nil
	case t > Ping:
		return ErrType
	case len(b) < HeaderSize:
		return ErrShort
	}
	f.Flags, f.Hops = Flags(b[1]&(1<<flagBits-1)), b[1]>>flagBits
	f.Stream = binary.BigEndian.Uint16(b[2:])
	f.Job = uint32(b[4])<<16 | uint32(b[5])<<8 | uint32(b[6])
	f.Attempt = b[7]
	f.From, f.To = address(b[8:]), address(b[14:])
	f.Incarnation = binary.BigEndian.Uint32(b[20:])
	f.Seq = binary.BigEndian.Uint32(b[24:])
	rest := b[HeaderSize:]
	switch t {
	case Data, Single:
		if t == Single || f.Flags&First != 0 {
			if len(rest) < ppidSize {
				return ErrShort
			}
			f.PPID = binary.BigEndian.Uint32(rest)
			rest = rest[ppidSize:]
		}
		if len(rest) == 0 { // a message has at least one byte, as in SCTP
			return ErrShort
		}
		f.Payload = rest
	case Cut:
		if len(rest) != 0 {
			return ErrShort
		}
	case Ack:
		if len(b) != ackSize {
			return ErrShort
		}
		f.PeerIncarnation = binary.BigEndian.Uint32(rest)
		f.Window = binary.BigEndian.Uint32(rest[4:])
		f.SingleNext = binary.BigEndian.Uint32(rest[8:])
	case Probe:
		if len(b) != probeSize {
			return ErrShort
		}
		f.SingleNext = binary.BigEndian.Uint32(rest)
	case Refuse:
		if len(b) != refuseSize {
			return ErrShort
		}
		f.Reason = Reason(rest[0])
	}
	return nil
}

// ParseHops returns how many gateways the frame b, which Parse has accepted, may still pass.
func ParseHops(b []byte) uint8 { return b[1] >> flagBits }

func address(b []byte) Address {
	return Address{binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint16(b[4:])}
}

func appendAddress(b []byte, a Address) []byte {
	b = binary.BigEndian.AppendUint16(b, a.Site)
	b = binary.BigEndian.AppendUint16(b, a.Node)
	return binary.BigEndian.AppendUint16(b, a.Process)
}

// AppendHeader appends h, which must be within the limits of its fields.
func AppendHeader(b []byte, h *Header) []byte {
	b = append(b, Version<<4|byte(h.Type), byte(h.Flags)|h.Hops<<flagBits)
	b = binary.BigEndian.AppendUint16(b, h.Stream)
	b = append(b, byte(h.Job>>16), byte(h.Job>>8), byte(h.Job), h.Attempt)
	b = appendAddress(b, h.From)
	b = appendAddress(b, h.To)
	b = binary.BigEndian.AppendUint32(b, h.Incarnation)
	return binary.BigEndian.AppendUint32(b, h.Seq)
}

// Append appends the frame f.
func Append(b []byte, f *Frame) []byte {
	if f.Type == Ping {
		return AppendPing(b)
	}
	b = AppendHeader(b, &f.Header)
	switch f.Type {
	case Data, Single:
		if f.Type == Single || f.Flags&First != 0 {
			b = binary.BigEndian.AppendUint32(b, f.PPID)
		}
		b = append(b, f.Payload...)
	case Ack:
		b = binary.BigEndian.AppendUint32(b, f.PeerIncarnation)
		b = binary.BigEndian.AppendUint32(b, f.Window)
		b = binary.BigEndian.AppendUint32(b, f.SingleNext)
	case Probe:
		b = binary.BigEndian.AppendUint32(b, f.SingleNext)
	case Refuse:
		b = append(b, byte(f.Reason))
	}
	return b
}

// AppendPing appends a ping frame.
func AppendPing(b []byte) []byte { return append(b, Version<<4|byte(Ping), 0) }

// SetHops changes how many gateways the frame b may still pass.
func SetHops(b []byte, hops uint8) { b[1] = b[1]&(1<<flagBits-1) | hops<<flagBits }

// SetAttempt changes attempt and Fresh of the data, single or cut frame b.
func SetAttempt(b []byte, attempt uint8, fresh bool) {
	b[7] = attempt
	b[1] &^= byte(Fresh)
	if fresh {
		b[1] |= byte(Fresh)
	}
}

// SetAckNow sets AckNow of the data, single or cut frame b.
func SetAckNow(b []byte) { b[1] |= byte(AckNow) }

// SetSeq changes the sequence number of the frame b.
func SetSeq(b []byte, seq uint32) { binary.BigEndian.PutUint32(b[24:], seq) }

// SetWindow changes the window of the ack frame b.
func SetWindow(b []byte, window uint32) { binary.BigEndian.PutUint32(b[HeaderSize+4:], window) }
