package main

import (
	"encoding/binary"
	"fmt"
)

// kind is the class and the type of a message (RFC 4666, Section 3.1.2).
type kind uint16

const (
	msgError  kind = 0x0000 // ERR
	msgNotify kind = 0x0001 // NTFY
	msgData   kind = 0x0101 // DATA

	msgUp       kind = 0x0301 // ASPUP
	msgDown     kind = 0x0302 // ASPDN
	msgBeat     kind = 0x0303 // BEAT
	msgUpAck    kind = 0x0304
	msgDownAck  kind = 0x0305
	msgBeatAck  kind = 0x0306
	msgActive   kind = 0x0401 // ASPAC
	msgInactive kind = 0x0402 // ASPIA

	msgActiveAck   kind = 0x0403
	msgInactiveAck kind = 0x0404
)

// Tags of parameters (Section 3.2).
const (
	tagRoutingContext = 0x0006
	tagHeartbeatData  = 0x0009
	tagErrorCode      = 0x000c
	tagStatus         = 0x000d
	tagProtocolData   = 0x0210
)

// Values of the parameter Status: a change of the state of the application server, and to what
// (Section 3.8.2).
const (
	asInactive = 1<<16 | 2
	asActive   = 1<<16 | 3
)

// Values of the parameter Error Code (Section 3.8.1).
const (
	errVersion           = 0x01
	errMessageClass      = 0x03
	errMessageType       = 0x04
	errUnexpectedMessage = 0x06
	errProtocol          = 0x07
	errParameterField    = 0x12
	errRoutingContext    = 0x19
)

// param is a parameter: a tag and a value.
type param struct {
	tag   uint16
	value []byte
}

func number(tag uint16, n uint32) param {
	return param{tag, binary.BigEndian.AppendUint32(nil, n)}
}

// message is an M3UA message.
type message struct {
	kind   kind
	params []param
}

const headerLen = 8

// marshal returns the message as it is sent; each parameter is padded to a multiple of four
// bytes, which its length does not count.
func (m *message) marshal() []byte {
	b := []byte{1, 0, byte(m.kind >> 8), byte(m.kind), 0, 0, 0, 0}
	for _, p := range m.params {
		b = binary.BigEndian.AppendUint16(b, p.tag)
		b = binary.BigEndian.AppendUint16(b, uint16(4+len(p.value)))
		b = append(b, p.value...)
		b = append(b, make([]byte, -len(p.value)&3)...)
	}
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)))
	return b
}

// codedError is an error that the peer is told by its code.
type codedError struct {
	code uint32
	text string
}

func (e *codedError) Error() string { return e.text }

// parse reads a message. Its parameters alias b.
func parse(b []byte) (*message, error) {
	bad := func(code uint32, format string, args ...any) (*message, error) {
		return nil, &codedError{code, fmt.Sprintf("m3ua: "+format, args...)}
	}
	if len(b) < headerLen {
		return bad(errProtocol, "message of %d bytes: at least %d", len(b), headerLen)
	}
	if b[0] != 1 {
		return bad(errVersion, "version %d: 1", b[0])
	}
	if n := binary.BigEndian.Uint32(b[4:]); uint64(n) != uint64(len(b)) {
		return bad(errProtocol, "message of %d bytes says %d", len(b), n)
	}
	m := &message{kind: kind(b[2])<<8 | kind(b[3])}
	for b = b[headerLen:]; len(b) > 0; {
		if len(b) < 4 {
			return bad(errParameterField, "%d bytes behind the last parameter", len(b))
		}
		n := int(binary.BigEndian.Uint16(b[2:]))
		padded := (n + 3) &^ 3
		if n < 4 || padded > len(b) {
			return bad(errParameterField, "parameter %#x of %d bytes: 4 to %d", binary.BigEndian.Uint16(b), n, len(b))
		}
		m.params = append(m.params, param{binary.BigEndian.Uint16(b), b[4:n]})
		b = b[padded:]
	}
	return m, nil
}

// find returns the first parameter with a tag.
func (m *message) find(tag uint16) ([]byte, bool) {
	for _, p := range m.params {
		if p.tag == tag {
			return p.value, true
		}
	}
	return nil, false
}

// number returns a parameter that is one number.
func (m *message) number(tag uint16) (uint32, error) {
	v, ok := m.find(tag)
	if !ok || len(v) != 4 {
		return 0, &codedError{errParameterField, fmt.Sprintf("m3ua: message %#x: parameter %#x of %d bytes: 4", m.kind, tag, len(v))}
	}
	return binary.BigEndian.Uint32(v), nil
}

// protocolData is a message of MTP3 (Section 3.3.1).
type protocolData struct {
	opc, dpc                uint32 // originating and destination point codes
	si, network, prio, link uint8  // service indicator, network indicator, priority, link selection
	data                    []byte
}

const (
	protocolDataLen = 12
	serviceSCCP     = 3
)

func (d *protocolData) param() param {
	b := binary.BigEndian.AppendUint32(nil, d.opc)
	b = binary.BigEndian.AppendUint32(b, d.dpc)
	b = append(b, d.si, d.network, d.prio, d.link)
	return param{tagProtocolData, append(b, d.data...)}
}

func (m *message) protocolData() (*protocolData, error) {
	b, ok := m.find(tagProtocolData)
	if !ok || len(b) < protocolDataLen {
		return nil, &codedError{errParameterField, fmt.Sprintf("m3ua: DATA with Protocol Data of %d bytes: at least %d", len(b), protocolDataLen)}
	}
	return &protocolData{
		opc: binary.BigEndian.Uint32(b), dpc: binary.BigEndian.Uint32(b[4:]),
		si: b[8], network: b[9], prio: b[10], link: b[11], data: b[12:],
	}, nil
}

// unitdata returns a UDT message of SCCP, class 0, from and to the subsystem 252 by its number
// (ITU-T Q.713, Section 4.10).
func unitdata(data []byte) []byte {
	address := []byte{2, 0x42, 252}
	b := []byte{9, 0, 3, 5, 7} // type, class, pointers to the addresses and the data
	b = append(append(b, address...), address...)
	return append(append(b, byte(len(data))), data...)
}
