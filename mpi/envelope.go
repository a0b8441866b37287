package mpi

import (
	"encoding/binary"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// A message between ranks is one message of the transport: an envelope, then,
// for some kinds, a body. All fields are big endian.
//
//	 0      1      2         4        8          16     20     24       32     40
//	+------+------+---------+--------+----------+------+------+--------+------+
//	| kind | flags| type    | source | context  | tag  | seq  | length | id   |  kindEager … kindReady
//	+------+------+---------+--------+----------+------+------+--------+------+-----------+---------------+----------------+
//	| kind | flags| type    | source | context  | tag  | seq  | length | id   | STag (40) | port | 0 (44) | token (48-64)  |  kindOffer
//	+------+------+---------+--------+----------+------+------+--------+------+-----------+---------------+----------------+
//	| kind | 0    | 0       | 0      | id       | peer id     | length |         kindClear … kindWithdrawn, kindWritten … kindDoorbell
//	+------+------+---------+--------+----------+-------------+--------+-----------+---------------+----------------+
//	| kind | 0    | 0       | 0      | id       | peer id     | length | STag (32) | port | 0 (36) | token (40-56)  |  kindGrant
//	+------+------+---------+--------+----------+-------------+--------+-----------+---------------+----------------+
//
// type is the datatype.Sig of the elements. Only kindEager, kindSync and kindBody carry a body, of length bytes. Control
// messages have kinds of their own, so that no body can be taken for one.
type envelope struct {
	kind   kind
	flags  uint8
	sig    datatype.Sig
	source uint32 // rank of the sender in the communicator
	ctx    uint64 // context: communicator id and slot
	tag    int32
	seq    uint32 // per communicator and destination; see flagSeq
	length uint64
	id     uint64 // request of the sender; in control messages, of the receiver of the message
	peerID uint64 // request of the peer, in kindClear
	grant  grant  // in kindGrant and kindOffer
	offer  bool   // in kindReady: grant is valid
}

type kind uint8

const (
	kindEager     kind = iota + 1 // message with its body
	kindSync                      // eager message that wants a kindMatched with id
	kindReady                     // ready to send length bytes; id names the send (rendezvous)
	kindClear                     // clear to send length bytes of send id to receive peerID
	kindBody                      // body of a rendezvous, for receive id
	kindMatched                   // the kindSync message of send id was matched
	kindRevoke                    // send id has failed, its receive will get no body
	kindCredit                    // length more bytes of eager messages may be sent
	kindBye                       // the sender has finalized
	kindHandshake                 // first message of a link, see handshake.go
	kindCancel                    // send id is to be cancelled if no receive has matched it
	kindWithdrawn                 // send id is forgotten, as kindCancel wanted, or for the reason of flagFreed
	kindGrant                     // kindClear, and the body may be written to memory of the receiver: see rendezvous.go
	kindWritten                   // the body of receive id, granted to the receiver of this, is there
	kindOffer                     // kindReady, and the body may be read from memory of the sender: offer is set, and kind kindReady
	kindFetched                   // the body of send id has been read, or is not wanted any more
	kindDoorbell                  // look at the memory that the ranks share; only between ranks of one host: see shm.go
	kindLimit
)

const (
	envelopeLen   = 32 // shortest envelope
	envelopeIDLen = 40 // kindSync and kindReady
	// envelopeMaxLen is the longest envelope: kindOffer.
	envelopeMaxLen = envelopeIDLen + grantLen

	// flagSeq tells that seq is valid: the message takes its place in the
	// order that wildcard receives obey.
	flagSeq = 1
	// flagFailed, in kindRevoke, tells that the sender knows of ranks that have
	// failed.
	flagFailed = 2
	// flagWrite, in kindReady, tells that the sender would rather write the body
	// to the memory of the receiver.
	flagWrite = 4
	// flagAgain, in kindBody, tells that the receive may have its body already.
	flagAgain = 8
	// flagCMA, in kindOffer, tells that the body may be copied from the memory of the
	// sender by the system, see shm_cma.go: the STag is the slot of the offer, the
	// token its word and the address.
	flagCMA = 16
	// flagFreed, in kindWithdrawn, tells that the receiver has freed the communicator and
	// has dropped the message without being asked to.
	flagFreed = 32
)

// headerLen returns the length of the envelope of kind k.
func (k kind) headerLen() int {
	switch k {
	case kindSync, kindReady:
		return envelopeIDLen
	case kindGrant:
		return envelopeLen + grantLen
	case kindOffer:
		return envelopeMaxLen
	}
	return envelopeLen
}

// hasBody reports whether length bytes follow the envelope.
func (k kind) hasBody() bool {
	return k == kindEager || k == kindSync || k == kindBody || k == kindHandshake
}

// matched reports whether messages of kind k are matched with receives.
func (k kind) matched() bool { return k >= kindEager && k <= kindReady || k == kindOffer }

// put writes v into b, which has room for envelopeMaxLen bytes, and returns the
// part written.
func (v *envelope) put(b *[envelopeMaxLen]byte) []byte {
	b[0], b[1], b[2], b[3] = byte(v.kind), v.flags, 0, 0
	binary.BigEndian.PutUint32(b[4:], v.source)
	if !v.kind.matched() {
		binary.BigEndian.PutUint64(b[8:], v.id)
		binary.BigEndian.PutUint64(b[16:], v.peerID)
		binary.BigEndian.PutUint64(b[24:], v.length)
		if v.kind == kindGrant {
			v.grant.put(b[envelopeLen:])
		}
		return b[:v.kind.headerLen()]
	}
	binary.BigEndian.PutUint16(b[2:], uint16(v.sig))
	binary.BigEndian.PutUint64(b[8:], v.ctx)
	binary.BigEndian.PutUint32(b[16:], uint32(v.tag))
	binary.BigEndian.PutUint32(b[20:], v.seq)
	binary.BigEndian.PutUint64(b[24:], v.length)
	if v.kind == kindEager {
		return b[:envelopeLen]
	}
	binary.BigEndian.PutUint64(b[32:], v.id)
	if v.offer {
		b[0] = byte(kindOffer)
		v.grant.put(b[envelopeIDLen:])
		return b[:]
	}
	return b[:envelopeIDLen]
}

// get reads v from b, which holds kind.headerLen bytes. It reports whether the
// envelope is well-formed.
func (v *envelope) get(b []byte) bool {
	*v = envelope{kind: kind(b[0]), flags: b[1], source: binary.BigEndian.Uint32(b[4:])}
	if v.kind == 0 || v.kind >= kindLimit || !v.kind.matched() && (b[2] != 0 || b[3] != 0) {
		return false
	}
	v.length = binary.BigEndian.Uint64(b[24:])
	if v.length > maxMessage {
		return false
	}
	if !v.kind.matched() {
		v.id = binary.BigEndian.Uint64(b[8:])
		v.peerID = binary.BigEndian.Uint64(b[16:])
		return v.kind != kindGrant || v.grant.get(b[envelopeLen:])
	}
	v.sig = datatype.Sig(binary.BigEndian.Uint16(b[2:]))
	v.ctx = binary.BigEndian.Uint64(b[8:])
	v.tag = int32(binary.BigEndian.Uint32(b[16:]))
	v.seq = binary.BigEndian.Uint32(b[20:])
	if v.kind != kindEager {
		v.id = binary.BigEndian.Uint64(b[32:])
	}
	if v.kind == kindOffer {
		v.kind, v.offer = kindReady, true
		return v.tag >= 0 && v.grant.get(b[envelopeIDLen:])
	}
	return v.tag >= 0
}

// grant is what a peer needs to know of memory here that it may write to or read from.
type grant struct {
	stag  uint32
	port  uint16 // of the device of the rank whose memory it is
	token [tokenLen]byte
}

// tokenLen is the length of the secret that a connection to a device must show: a peer
// that was not given it cannot make one.
const tokenLen = 16

const grantLen = 8 + tokenLen

func (g *grant) put(b []byte) {
	binary.BigEndian.PutUint32(b, g.stag)
	binary.BigEndian.PutUint16(b[4:], g.port)
	b[6], b[7] = 0, 0
	copy(b[8:], g.token[:])
}

// get reads what put wrote. It reports whether it is well-formed.
func (g *grant) get(b []byte) bool {
	g.stag, g.port = binary.BigEndian.Uint32(b), binary.BigEndian.Uint16(b[4:])
	copy(g.token[:], b[8:])
	return b[6] == 0 && b[7] == 0
}

// maxMessage bounds the length of one message.
const maxMessage = 1 << 46
