package frame

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// Role is what a peer that connects is.
type Role uint8

// The roles of a hello.
const (
	RoleNode Role = 1 + iota
	RoleGateway
)

const (
	// NonceSize is the length in bytes of the nonces.
	NonceSize = 16
	// MACSize is the length in bytes of the proofs, which are HMAC-SHA-256.
	MACSize = sha256.Size

	helloSize   = 2 + 6 + 4 + 4 + 6 + NonceSize
	answerBody  = 2 + 2 + 2 + 4 + NonceSize
	answerSize  = answerBody + MACSize
	proveSize   = 2 + MACSize
	welcomeSize = 2
)

// Greeting is what a peer that connects says about itself in hello. A gateway has its number as
// Node of From, the number of the association, from 0, as Process, and no job.
type Greeting struct {
	Role        Role
	From        Address
	Job         uint32
	Incarnation uint32
	// Site is the one that it expects at the other end, Node and Process the process there, or as Node the number
	// of the gateway; 0 is any gateway.
	Site, Node, Process uint16
	Nonce               [NonceSize]byte
}

// To returns the address that is expected at the other end.
func (g *Greeting) To() Address { return Address{Site: g.Site, Node: g.Node, Process: g.Process} }

// Reply is what the peer that accepts says in answer. Gateway is 0 if it is a process.
type Reply struct {
	Site, Gateway uint16
	Incarnation   uint32
	Nonce         [NonceSize]byte
}

// AppendHello appends a hello frame.
func AppendHello(b []byte, g *Greeting) []byte {
	b = append(b, Version<<4|byte(Hello), byte(g.Role))
	b = appendAddress(b, g.From)
	b = binary.BigEndian.AppendUint32(b, g.Job)
	b = binary.BigEndian.AppendUint32(b, g.Incarnation)
	b = appendAddress(b, g.To())
	return append(b, g.Nonce[:]...)
}

// ParseHello parses a hello frame.
func ParseHello(b []byte) (g Greeting, err error) {
	if err = expect(b, Hello, helloSize); err != nil {
		return g, err
	}
	g.Role, g.From = Role(b[1]), address(b[2:])
	g.Job = binary.BigEndian.Uint32(b[8:])
	g.Incarnation = binary.BigEndian.Uint32(b[12:])
	to := address(b[16:])
	g.Site, g.Node, g.Process = to.Site, to.Node, to.Process
	copy(g.Nonce[:], b[22:])
	return g, nil
}

// AppendAnswer appends an answer frame to hello, with its proof.
func AppendAnswer(b []byte, r *Reply, key, hello []byte) []byte {
	start := len(b)
	b = append(b, Version<<4|byte(Answer), 0)
	b = binary.BigEndian.AppendUint16(b, r.Site)
	b = binary.BigEndian.AppendUint16(b, r.Gateway)
	b = binary.BigEndian.AppendUint32(b, r.Incarnation)
	b = append(b, r.Nonce[:]...)
	return append(b, proof("accept", key, hello, b[start:])...)
}

// ParseAnswer parses an answer frame. It reports by ok whether the proof is right.
func ParseAnswer(b, key, hello []byte) (r Reply, ok bool, err error) {
	if err = expect(b, Answer, answerSize); err != nil {
		return r, false, err
	}
	r.Site, r.Gateway = binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint16(b[4:])
	r.Incarnation = binary.BigEndian.Uint32(b[6:])
	copy(r.Nonce[:], b[10:])
	return r, hmac.Equal(b[answerBody:], proof("accept", key, hello, b[:answerBody])), nil
}

// AppendProve appends a prove frame for hello and answer.
func AppendProve(b, key, hello, answer []byte) []byte {
	b = append(b, Version<<4|byte(Prove), 0)
	return append(b, proof("connect", key, hello, answer[:answerBody])...)
}

// ParseProve parses a prove frame. It reports by ok whether the proof is right.
func ParseProve(b, key, hello, answer []byte) (ok bool, err error) {
	if err = expect(b, Prove, proveSize); err != nil {
		return false, err
	}
	return hmac.Equal(b[2:], proof("connect", key, hello, answer[:answerBody])), nil
}

// AppendWelcome appends a welcome frame.
func AppendWelcome(b []byte) []byte { return append(b, Version<<4|byte(Welcome), 0) }

// ParseWelcome parses a welcome frame.
func ParseWelcome(b []byte) error { return expect(b, Welcome, welcomeSize) }

func expect(b []byte, t Type, size int) error {
	got, err := TypeOf(b)
	switch {
	case err != nil:
		return err
	case got != t:
		return ErrType
	case len(b) != size:
		return ErrShort
	}
	return nil
}

func proof(role string, key, hello, answer []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(role))
	m.Write(hello)
	m.Write(answer)
	return m.Sum(nil)
}
