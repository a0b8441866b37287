package mpi

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// The first messages on a link prove to each side that the other one knows the
// key of the job, so a stranger who finds the port cannot join:
//
//	connector                                acceptor
//	  greet    version, meeting, ranks, nonce    →
//	           ←   nonce, HMAC(key, "accept" + all of the above)    answer
//	  prove    HMAC(key, "connect" + all of the above)    →
//	           ←                                                    welcome
//
// The acceptor takes part in the job from prove on. The connector receives from
// the answer on, and sends from the welcome on.
//
// Between ranks of one job the meeting is 0. Processes of several jobs that are
// making a communicator have a meeting, with a key of its own, and numbers in it
// instead of ranks.

const (
	// helloVersion is that of all messages between ranks: 3 has the types of elements.
	helloVersion = 3
	nonceLen     = 16
	macLen       = sha256.Size

	stepGreet   = 1
	stepAnswer  = 2
	stepProve   = 3
	stepWelcome = 4

	greetLen  = 1 + 2 + 8 + 4 + 4 + 4 + nonceLen
	answerLen = 1 + nonceLen + macLen
	proveLen  = 1 + macLen
	// maxHello is the length of the longest of these messages.
	maxHello = greetLen + answerLen
)

// hello is one side of the exchange.
type hello struct {
	key        []byte
	self, peer int                      // ranks; the acceptor learns peer from greet
	size       int                      // of the job
	meeting    *meeting                 // instead of the job
	find       func(id uint64) *meeting // by the acceptor; may be nil
	accept     bool
	next       byte   // step expected from the other side
	transcript []byte // greet, then the nonce of answer
}

// newConnector returns the side that connects to rank peer, and its first message.
func newConnector(key []byte, self, peer, size int) (*hello, []byte) {
	return newMeetingConnector(0, key, self, peer, size)
}

// newMeetingConnector is newConnector for a meeting.
func newMeetingConnector(meeting uint64, key []byte, self, peer, size int) (*hello, []byte) {
	b := []byte{stepGreet}
	b = binary.BigEndian.AppendUint16(b, helloVersion)
	b = binary.BigEndian.AppendUint64(b, meeting)
	b = binary.BigEndian.AppendUint32(b, uint32(self))
	b = binary.BigEndian.AppendUint32(b, uint32(peer))
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	b = appendNonce(b)
	h := &hello{key: key, self: self, peer: peer, size: size, next: stepAnswer, transcript: b}
	return h, b
}

// newAcceptor returns the side that waits.
func newAcceptor(key []byte, self, size int) *hello {
	return &hello{key: key, self: self, peer: -1, size: size, accept: true, next: stepGreet}
}

func appendNonce(b []byte) []byte {
	var n [nonceLen]byte
	_, _ = rand.Read(n[:]) // never fails
	return append(b, n[:]...)
}

func (h *hello) mac(role string) []byte {
	m := hmac.New(sha256.New, h.key)
	m.Write([]byte(role))
	m.Write(h.transcript)
	return m.Sum(nil)
}

// step takes a message of the other side and returns the answer, if any. After
// it, receiving and sending tell what the link may be used for. An error ends
// the exchange; it wraps ErrAuth.
func (h *hello) step(msg []byte) (reply []byte, err error) {
	if len(msg) == 0 || msg[0] != h.next {
		return nil, fmt.Errorf("%w: unexpected message", ErrAuth)
	}
	switch {
	case h.next == stepGreet && len(msg) == greetLen:
		if v := binary.BigEndian.Uint16(msg[1:]); v != helloVersion {
			return nil, fmt.Errorf("%w: version %d, want %d", ErrAuth, v, helloVersion)
		}
		if id := binary.BigEndian.Uint64(msg[3:]); id != 0 {
			if h.find != nil {
				h.meeting = h.find(id)
			}
			if h.meeting == nil {
				return nil, fmt.Errorf("%w: no meeting %x", ErrAuth, id)
			}
			h.key, h.self, h.size = h.meeting.key, h.meeting.self, h.meeting.size
		}
		from, to, size := binary.BigEndian.Uint32(msg[11:]), binary.BigEndian.Uint32(msg[15:]), binary.BigEndian.Uint32(msg[19:])
		if int(to) != h.self || int(size) != h.size || int(from) <= h.self || int64(from) >= int64(h.size) {
			return nil, fmt.Errorf("%w: rank %d of %d calls rank %d, this is %d of %d", ErrAuth, from, size, to, h.self, h.size)
		}
		h.peer = int(from)
		h.transcript = appendNonce(bytes.Clone(msg))
		h.next = stepProve
		reply = append([]byte{stepAnswer}, h.transcript[greetLen:]...)
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
func (h *hello) receiving() bool { return h.next == 0 || h.next == stepWelcome }

// sending reports whether the peer knows that this side belongs to the job.
func (h *hello) sending() bool { return h.next == 0 }

// frame returns msg with the envelope of a hello message.
func helloFrame(msg []byte) []byte {
	v := envelope{kind: kindHello, length: uint64(len(msg))}
	var b [envelopeMaxLen]byte
	return append(bytes.Clone(v.put(&b)), msg...)
}

// helloBody returns the hello message in frame, which must be whole.
func helloBody(frame []byte) ([]byte, error) {
	var v envelope
	if len(frame) < envelopeLen || !v.get(frame[:envelopeLen]) || v.kind != kindHello ||
		v.length != uint64(len(frame)-envelopeLen) {
		return nil, fmt.Errorf("%w: not a greeting", ErrAuth)
	}
	return frame[envelopeLen:], nil
}
