package ddprelay

import (
	"encoding/binary"
	"errors"
)

// ppidAssociation marks the messages of associations themselves: "WFTD". Those of sessions have the identifiers of RFC
// 5043, Section 5.2.
const ppidAssociation = 0x57465444

// prefixLen is what precedes each message of a session, as RFC 5043 has it: the tag of the receiver's association (4
// bytes) and the stream identifier (2).
const prefixLen = 6

// kind is what a message of an association says.
type kind uint8

const (
	open    kind = 1 // asks for an association
	opened  kind = 2 // answers
	ready   kind = 3 // the answer has come: the association is established at both sides
	abort   kind = 4 // ends it
	unknown kind = 5 // answers a message with a tag that is of no association
	ping    kind = 6 // asks for nothing: the relay confirms it, or finds that the peer has gone
)

const (
	version = 1
	// messageLen is the length of a message without its reason, maxReason that of a reason at most.
	messageLen, maxReason = 12, 128
)

// message is a message of an association.
type message struct {
	kind    kind
	streams uint16 // open and opened: how many the sender would use
	// tag is that of the receiver's association, 0 for open; for unknown the tag that the sender does not know.
	tag uint32
	// own is the tag of the sender's association, of open and opened.
	own    uint32
	reason string // abort: why
}

var errMessage = errors.New("ddprelay: malformed message")

func appendMessage(b []byte, m *message) []byte {
	b = append(b, version<<4|byte(m.kind), 0)
	b = binary.BigEndian.AppendUint16(b, m.streams)
	b = binary.BigEndian.AppendUint32(b, m.tag)
	b = binary.BigEndian.AppendUint32(b, m.own)
	return append(b, m.reason[:min(len(m.reason), maxReason)]...)
}

// parseMessage reads a message. It keeps no reference to b.
func parseMessage(b []byte) (m message, err error) {
	if len(b) < messageLen || len(b) > messageLen+maxReason || b[0]>>4 != version {
		return m, errMessage
	}
	m = message{
		kind: kind(b[0] & 15), streams: binary.BigEndian.Uint16(b[2:]), tag: binary.BigEndian.Uint32(b[4:]),
		own: binary.BigEndian.Uint32(b[8:]),
	}
	var ok bool
	switch m.kind {
	case open:
		ok = m.tag == 0 && m.own != 0 && m.streams > 0
	case opened:
		ok = m.tag != 0 && m.own != 0 && m.streams > 0
	case ready, abort, unknown, ping:
		ok = m.tag != 0
	default:
		ok = false
	}
	if m.kind == abort {
		m.reason = string(b[messageLen:])
	} else if len(b) > messageLen {
		ok = false
	}
	if !ok {
		return m, errMessage
	}
	return m, nil
}
