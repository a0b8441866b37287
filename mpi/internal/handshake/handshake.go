package handshake

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

const (
	// wireVersion is the version of all messages between ranks. Version 3 added the type
	// signature of elements, version 4 the type of elements in updates of windows. A peer of another version is refused.
	wireVersion = 4
	nonceLen    = 16
	macLen      = sha256.Size

	stepHello   = 1
	stepAnswer  = 2
	stepProve   = 3
	stepWelcome = 4

	helloLen  = 1 + 2 + 8 + 4 + 4 + 4 + nonceLen
	answerLen = 1 + nonceLen + macLen
	proveLen  = 1 + macLen
	// maxMessage is the length of the longest of these messages.
	maxMessage = helloLen + answerLen
)

// Params are what both ends of a connection agree in before they make it.
type Params struct {
	Setup uint64 // id of the link setup between two jobs; 0 between ranks of one job
	Key   []byte
	Self  int // rank of this end, or its number in the link setup
	Size  int // ranks of the job, or processes of the link setup
}

// Exchange is the state of one end.
type Exchange struct {
	params     Params
	peer       int // rank of the other end; the acceptor learns it from hello
	find       func(setup uint64) (Params, bool)
	accept     bool
	next       byte   // step expected from the other end
	transcript []byte // hello, then the nonce of answer
}

// Connect returns the end that connects to rank peer, and its first message.
func Connect(p Params, peer int) (*Exchange, []byte) {
	b := []byte{stepHello}
	b = binary.BigEndian.AppendUint16(b, wireVersion)
	b = binary.BigEndian.AppendUint64(b, p.Setup)
	b = binary.BigEndian.AppendUint32(b, uint32(p.Self))
	b = binary.BigEndian.AppendUint32(b, uint32(peer))
	b = binary.BigEndian.AppendUint32(b, uint32(p.Size))
	b = appendNonce(b)
	h := &Exchange{params: p, peer: peer, next: stepAnswer, transcript: b}
	return h, b
}

// Accept returns the end that waits for a connector. If hello names a link setup, its parameters are those that find
// returns. find may be nil: then there are no link setups.
func Accept(p Params, find func(setup uint64) (Params, bool)) *Exchange {
	return &Exchange{params: p, peer: -1, find: find, accept: true, next: stepHello}
}

// Peer returns the rank of the other end, or its number in the link setup. At the acceptor it is -1 until hello has
// come.
func (h *Exchange) Peer() int { return h.peer }

// Setup returns the id of the link setup that the connection is made for; 0 between ranks of one job.
func (h *Exchange) Setup() uint64 { return h.params.Setup }

// Accepting reports whether this end waits for a connector.
func (h *Exchange) Accepting() bool { return h.accept }

func appendNonce(b []byte) []byte {
	var n [nonceLen]byte
	_, _ = rand.Read(n[:]) // never fails
	return append(b, n[:]...)
}

func (h *Exchange) mac(role string) []byte {
	m := hmac.New(sha256.New, h.params.Key)
	m.Write([]byte(role))
	m.Write(h.transcript)
	return m.Sum(nil)
}

// Step handles a message of the other end and returns the reply, if any. Then Receiving and Sending report what the
// connection may be used for. An error, which wraps ErrAuth, ends the exchange.
func (h *Exchange) Step(msg []byte) (reply []byte, err error) {
	if len(msg) == 0 || msg[0] != h.next {
		return nil, fmt.Errorf("%w: unexpected message", mpierr.ErrAuth)
	}
	switch {
	case h.next == stepHello && len(msg) == helloLen:
		if v := binary.BigEndian.Uint16(msg[1:]); v != wireVersion {
			return nil, fmt.Errorf("%w: version %d, want %d", mpierr.ErrAuth, v, wireVersion)
		}
		if id := binary.BigEndian.Uint64(msg[3:]); id != 0 {
			known := false
			if h.find != nil {
				h.params, known = h.find(id)
			}
			if !known {
				return nil, fmt.Errorf("%w: no link setup %x", mpierr.ErrAuth, id)
			}
			h.params.Setup = id
		}
		self, of := h.params.Self, h.params.Size
		from, to := binary.BigEndian.Uint32(msg[11:]), binary.BigEndian.Uint32(msg[15:])
		size := binary.BigEndian.Uint32(msg[19:])
		if int(to) != self || int(size) != of || int(from) <= self || int64(from) >= int64(of) {
			return nil, fmt.Errorf("%w: rank %d of %d connects to rank %d, but this is rank %d of %d",
				mpierr.ErrAuth, from, size, to, self, of)
		}
		h.peer = int(from)
		h.transcript = appendNonce(bytes.Clone(msg))
		h.next = stepProve
		reply = append([]byte{stepAnswer}, h.transcript[helloLen:]...)
		return append(reply, h.mac("accept")...), nil
	case h.next == stepAnswer && len(msg) == answerLen:
		h.transcript = append(h.transcript, msg[1:1+nonceLen]...)
		if !hmac.Equal(msg[1+nonceLen:], h.mac("accept")) {
			return nil, fmt.Errorf("%w: rank %d", mpierr.ErrAuth, h.peer)
		}
		h.next = stepWelcome
		return append([]byte{stepProve}, h.mac("connect")...), nil
	case h.next == stepProve && len(msg) == proveLen:
		if !hmac.Equal(msg[1:], h.mac("connect")) {
			return nil, fmt.Errorf("%w: rank %d", mpierr.ErrAuth, h.peer)
		}
		h.next = 0
		return []byte{stepWelcome}, nil
	case h.next == stepWelcome && len(msg) == 1:
		h.next = 0
		return nil, nil
	}
	return nil, fmt.Errorf("%w: message of %d bytes", mpierr.ErrAuth, len(msg))
}

// Receiving reports whether the peer is known to belong to the job.
func (h *Exchange) Receiving() bool { return h.next == 0 || h.next == stepWelcome }

// Sending reports whether the peer knows that this end belongs to the job.
func (h *Exchange) Sending() bool { return h.next == 0 }

// Frame returns msg with the envelope of a handshake message.
func Frame(msg []byte) []byte {
	v := envelope.Header{Kind: envelope.Handshake, Length: uint64(len(msg))}
	var b [envelope.MaxLen]byte
	return append(bytes.Clone(v.Encode(&b)), msg...)
}

// Body returns the handshake message in frame, which must be complete.
func Body(frame []byte) ([]byte, error) {
	var v envelope.Header
	if len(frame) < envelope.MinLen || !v.Decode(frame[:envelope.MinLen]) || v.Kind != envelope.Handshake ||
		v.Length != uint64(len(frame)-envelope.MinLen) {
		return nil, fmt.Errorf("%w: not a handshake message", mpierr.ErrAuth)
	}
	return frame[envelope.MinLen:], nil
}
