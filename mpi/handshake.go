package mpi

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/envelope"
)

// Handshake of a link: a challenge-response exchange, in which each side proves to the other one
// that it knows the key of the job. A process without the key that finds the port cannot join:
//
//	connector                                acceptor
//	  hello    version, setup, ranks, nonce    →
//	           ←   nonce, HMAC(key, "accept" + all of the above)    answer
//	  prove    HMAC(key, "connect" + all of the above)    →
//	           ←                                                    welcome
//
// The acceptor sends and receives messages of the job once it has checked prove. The connector may
// receive once it has checked answer, and send once it has received welcome.
//
// Between ranks of one job setup is 0. Processes of two jobs that make an intercommunicator send
// the id of their link setup, which has a key of its own, and their numbers in it instead of ranks.

const (
	// wireVersion is the version of all messages between ranks. Version 3 added the type
	// signature of elements. A peer of another version is refused.
	wireVersion = 3
	nonceLen    = 16
	macLen      = sha256.Size

	stepHello   = 1
	stepAnswer  = 2
	stepProve   = 3
	stepWelcome = 4

	helloLen  = 1 + 2 + 8 + 4 + 4 + 4 + nonceLen
	answerLen = 1 + nonceLen + macLen
	proveLen  = 1 + macLen
	// maxHandshake is the length of the longest of these messages.
	maxHandshake = helloLen + answerLen
)

// handshake is the state of one side of the exchange.
type handshake struct {
	key        []byte
	self, peer int                        // ranks; the acceptor learns peer from hello
	size       int                        // of the job
	setup      *linkSetup                 // set between processes of two jobs
	find       func(id uint64) *linkSetup // lookup of the acceptor; may be nil
	accept     bool
	next       byte   // step expected from the other side
	transcript []byte // hello, then the nonce of answer
}

// newConnector returns the side that connects to rank peer, and its first message.
func newConnector(key []byte, self, peer, size int) (*handshake, []byte) {
	return newSetupConnector(0, key, self, peer, size)
}

// newSetupConnector is newConnector for a link setup.
func newSetupConnector(setup uint64, key []byte, self, peer, size int) (*handshake, []byte) {
	b := []byte{stepHello}
	b = binary.BigEndian.AppendUint16(b, wireVersion)
	b = binary.BigEndian.AppendUint64(b, setup)
	b = binary.BigEndian.AppendUint32(b, uint32(self))
	b = binary.BigEndian.AppendUint32(b, uint32(peer))
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	b = appendNonce(b)
	h := &handshake{key: key, self: self, peer: peer, size: size, next: stepAnswer, transcript: b}
	return h, b
}

// newAcceptor returns the side that waits for a connector.
func newAcceptor(key []byte, self, size int) *handshake {
	return &handshake{key: key, self: self, peer: -1, size: size, accept: true, next: stepHello}
}

func appendNonce(b []byte) []byte {
	var n [nonceLen]byte
	_, _ = rand.Read(n[:]) // never fails
	return append(b, n[:]...)
}

func (h *handshake) mac(role string) []byte {
	m := hmac.New(sha256.New, h.key)
	m.Write([]byte(role))
	m.Write(h.transcript)
	return m.Sum(nil)
}

// step handles a message of the other side and returns the reply, if any. Then receiving and
// sending report what the link may be used for. An error, which wraps ErrAuth, ends the exchange.
func (h *handshake) step(msg []byte) (reply []byte, err error) {
	if len(msg) == 0 || msg[0] != h.next {
		return nil, fmt.Errorf("%w: unexpected message", ErrAuth)
	}
	switch {
	case h.next == stepHello && len(msg) == helloLen:
		if v := binary.BigEndian.Uint16(msg[1:]); v != wireVersion {
			return nil, fmt.Errorf("%w: version %d, want %d", ErrAuth, v, wireVersion)
		}
		if id := binary.BigEndian.Uint64(msg[3:]); id != 0 {
			if h.find != nil {
				h.setup = h.find(id)
			}
			if h.setup == nil {
				return nil, fmt.Errorf("%w: no link setup %x", ErrAuth, id)
			}
			h.key, h.self, h.size = h.setup.key, h.setup.self, h.setup.size
		}
		from, to, size := binary.BigEndian.Uint32(msg[11:]), binary.BigEndian.Uint32(msg[15:]), binary.BigEndian.Uint32(msg[19:])
		if int(to) != h.self || int(size) != h.size || int(from) <= h.self || int64(from) >= int64(h.size) {
			return nil, fmt.Errorf("%w: rank %d of %d connects to rank %d, but this is rank %d of %d", ErrAuth, from, size, to, h.self, h.size)
		}
		h.peer = int(from)
		h.transcript = appendNonce(bytes.Clone(msg))
		h.next = stepProve
		reply = append([]byte{stepAnswer}, h.transcript[helloLen:]...)
		return append(reply, h.mac("accept")...), nil
	case h.next == stepAnswer && len(msg) == answerLen:
		h.transcript = append(h.transcript, msg[1:1+nonceLen]...)
		if !hmac.Equal(msg[1+nonceLen:], h.mac("accept")) {
			return nil, fmt.Errorf("%w: rank %d", ErrAuth, h.peer)
		}
		h.next = stepWelcome
		return append([]byte{stepProve}, h.mac("connect")...), nil
	case h.next == stepProve && len(msg) == proveLen:
		if !hmac.Equal(msg[1:], h.mac("connect")) {
			return nil, fmt.Errorf("%w: rank %d", ErrAuth, h.peer)
		}
		h.next = 0
		return []byte{stepWelcome}, nil
	case h.next == stepWelcome && len(msg) == 1:
		h.next = 0
		return nil, nil
	}
	return nil, fmt.Errorf("%w: message of %d bytes", ErrAuth, len(msg))
}

// receiving reports whether the peer is known to belong to the job.
func (h *handshake) receiving() bool { return h.next == 0 || h.next == stepWelcome }

// sending reports whether the peer knows that this side belongs to the job.
func (h *handshake) sending() bool { return h.next == 0 }

// handshakeFrame returns msg with the envelope of a handshake message.
func handshakeFrame(msg []byte) []byte {
	v := envelope.Header{Kind: envelope.Handshake, Length: uint64(len(msg))}
	var b [envelope.MaxLen]byte
	return append(bytes.Clone(v.Encode(&b)), msg...)
}

// handshakeBody returns the handshake message in frame, which must be complete.
func handshakeBody(frame []byte) ([]byte, error) {
	var v envelope.Header
	if len(frame) < envelope.MinLen || !v.Decode(frame[:envelope.MinLen]) || v.Kind != envelope.Handshake ||
		v.Length != uint64(len(frame)-envelope.MinLen) {
		return nil, fmt.Errorf("%w: not a handshake message", ErrAuth)
	}
	return frame[envelope.MinLen:], nil
}
