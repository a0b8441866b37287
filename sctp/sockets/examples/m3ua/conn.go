package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	sctp "github.com/weftstack/weft/sctp/sockets"
)

// ppid is the payload protocol identifier of M3UA, in network byte order as the socket wants it
// (RFC 4666, Section 7.1).
var ppid = binary.NativeEndian.Uint32([]byte{0, 0, 0, 3})

// initMsg has a stream for management and some for traffic.
var initMsg = sctp.InitMsg{NumOstreams: 9, MaxInstreams: 9, MaxAttempts: 4, MaxInitTimeout: 2000}

// maxMessage is the largest message that is read, in bytes: MTP3 has at most 272 bytes of data,
// and 4,091 in its broadband form.
const maxMessage = 8 << 10

// conn is an association between a signalling gateway and an application server process.
type conn struct {
	*sctp.SCTPConn
	streams uint16 // outgoing ones
	log     *slog.Logger
	buf     []byte
}

// newConn prepares a new association.
func newConn(c *sctp.SCTPConn, log *slog.Logger) (*conn, error) {
	if err := c.SubscribeEvents(sctp.SCTP_EVENT_DATA_IO); err != nil {
		return nil, err
	}
	st, err := c.GetStatus()
	if err != nil {
		return nil, err
	}
	return &conn{c, st.Ostreams, log.With("peer", c.RemoteAddr().String()), make([]byte, maxMessage)}, nil
}

// send sends a message: DATA on a stream by its link selection, so that messages of one
// sequence stay in order, and all others on stream 0 (Section 1.4.7).
func (c *conn) send(k kind, params ...param) error {
	m := &message{k, params}
	info := &sctp.SndRcvInfo{PPID: ppid}
	if k == msgData && c.streams > 1 {
		d, err := m.protocolData()
		if err != nil {
			return err
		}
		info.Stream = 1 + uint16(d.link)%(c.streams-1)
	}
	_, err := c.SCTPWrite(m.marshal(), info)
	return err
}

// receive returns the next message, which is valid until the next call. It answers BEAT, and
// what is no message by ERR.
func (c *conn) receive() (*message, error) {
	for {
		n, info, err := c.SCTPRead(c.buf)
		if err != nil {
			return nil, err
		}
		if info == nil || info.PPID != ppid {
			c.log.Warn("message of another protocol", "info", info)
			continue
		}
		m, err := parse(c.buf[:n])
		if err == nil && m.kind == msgData && info.Stream == 0 && c.streams > 1 {
			err = &codedError{errProtocol, "m3ua: DATA on stream 0"}
		}
		if err != nil {
			if err := c.refuse(err); err != nil {
				return nil, err
			}
			continue
		}
		if m.kind != msgBeat {
			return m, nil
		}
		var echo []param // of what BEAT carried
		if v, ok := m.find(tagHeartbeatData); ok {
			echo = append(echo, param{tagHeartbeatData, v})
		}
		if err := c.send(msgBeatAck, echo...); err != nil {
			return nil, err
		}
	}
}

// refuse answers a message by ERR. It returns an error that is not about the message.
func (c *conn) refuse(err error) error {
	var coded *codedError
	if !errors.As(err, &coded) {
		return err
	}
	c.log.Warn("refused", "error", err)
	return c.send(msgError, number(tagErrorCode, coded.code))
}

// expect receives a message of one kind.
func (c *conn) expect(k kind) (*message, error) {
	m, err := c.receive()
	if err != nil {
		return nil, fmt.Errorf("waiting for message %#04x: %w", k, err)
	}
	if m.kind != k {
		code, _ := m.number(tagErrorCode)
		return nil, fmt.Errorf("m3ua: message %#04x (error code %#x) instead of %#04x", m.kind, code, k)
	}
	return m, nil
}
