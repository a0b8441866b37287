package envelope

import (
	"encoding/binary"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// A message between ranks is one message of the transport: an envelope, then,
// for some kinds, a body. All fields are big endian.
//
//	 0      1      2         4        8          16     20     24       32     40
//	+------+------+---------+--------+----------+------+------+--------+------+
//	| kind | flags| type    | source | context  | tag  | seq  | length | id   |  Eager … RTS
//	+------+------+---------+--------+----------+------+------+--------+------+-----------+---------------+----------------+
//	| kind | flags| type    | source | context  | tag  | seq  | length | id   | STag (40) | port | 0 (44) | token (48-64)  |  RTSKey
//	+------+------+---------+--------+----------+------+------+--------+------+-----------+---------------+----------------+
//	| kind | 0    | 0       | 0      | id       | peer id     | length |         CTS … Canceled, WriteFIN … Doorbell
//	+------+------+---------+--------+----------+-------------+--------+-----------+---------------+----------------+
//	| kind | 0    | 0       | 0      | id       | peer id     | length | STag (32) | port | 0 (36) | token (40-56)  |  CTSKey
//	+------+------+---------+--------+----------+-------------+--------+-----------+---------------+----------------+
//
// type is the datatype.Sig of the elements. Only Eager, Sync and Data carry a body, of length bytes. Control
// messages have kinds of their own, so that no body can be taken for one.
type Header struct {
	Kind    Kind
	Flags   uint8
	Sig     datatype.Sig
	Source  uint32 // rank of the sender in the communicator
	Context uint64 // context: communicator id and slot
	Tag     int32
	Seq     uint32 // per communicator and destination; see FlagSeq
	Length  uint64
	ID      uint64 // request of the sender; in control messages, of the receiver of the message
	PeerID  uint64 // request of the peer, in CTS
	Key     Key    // in CTSKey and RTSKey
	HasKey  bool   // in RTS: grant is valid
}

type Kind uint8

const (
	Eager      Kind = iota + 1 // message with its body
	Sync                       // eager message that wants a SyncAck with id
	RTS                        // ready to send length bytes; id names the send (rendezvous)
	CTS                        // clear to send length bytes of send id to receive PeerID
	Data                       // body of a rendezvous, for receive id
	SyncAck                    // the Sync message of send id was matched
	SendFailed                 // send id has failed, its receive will get no body
	Credit                     // length more bytes of eager messages may be sent
	Disconnect                 // the sender has finalized
	Handshake                  // first message of a link, see handshake.go
	Cancel                     // send id is to be cancelled if no receive has matched it
	Canceled                   // send id is forgotten, as Cancel wanted, or for the reason of FlagFreed
	CTSKey                     // CTS, and the body may be written to memory of the receiver: see rendezvous.go
	WriteFIN                   // the body of receive id, granted to the receiver of this, is there
	RTSKey                     // RTS, and the body may be read from memory of the sender: offer is set, and kind RTS
	ReadFIN                    // the body of send id has been read, or is not wanted any more
	Doorbell                   // look at the memory that the ranks share; only between ranks of one host: see shm.go
	Kinds
)

const (
	MinLen = 32 // shortest envelope
	IDLen  = 40 // Sync and RTS
	// MaxLen is the longest envelope: RTSKey.
	MaxLen = IDLen + KeyLen

	// FlagSeq tells that seq is valid: the message takes its place in the
	// order that wildcard receives obey.
	FlagSeq = 1
	// FlagFailed, in SendFailed, tells that the sender knows of ranks that have
	// failed.
	FlagFailed = 2
	// FlagWrite, in RTS, tells that the sender would rather write the body
	// to the memory of the receiver.
	FlagWrite = 4
	// FlagAgain, in Data, tells that the receive may have its body already.
	FlagAgain = 8
	// FlagCMA, in RTSKey, tells that the body may be copied from the memory of the
	// sender by the system, see shm_cma.go: the STag is the slot of the offer, the
	// token its word and the address.
	FlagCMA = 16
	// FlagFreed, in Canceled, tells that the receiver has freed the communicator and
	// has dropped the message without being asked to.
	FlagFreed = 32
)

// HeaderLen returns the length of the envelope of kind k.
func (k Kind) HeaderLen() int {
	switch k {
	case Sync, RTS:
		return IDLen
	case CTSKey:
		return MinLen + KeyLen
	case RTSKey:
		return MaxLen
	}
	return MinLen
}

// HasBody reports whether length bytes follow the envelope.
func (k Kind) HasBody() bool {
	return k == Eager || k == Sync || k == Data || k == Handshake
}

// matched reports whether messages of kind k are matched with receives.
func (k Kind) Matched() bool { return k >= Eager && k <= RTS || k == RTSKey }

// put writes v into b, which has room for MaxLen bytes, and returns the
// part written.
func (v *Header) Encode(b *[MaxLen]byte) []byte {
	b[0], b[1], b[2], b[3] = byte(v.Kind), v.Flags, 0, 0
	binary.BigEndian.PutUint32(b[4:], v.Source)
	if !v.Kind.Matched() {
		binary.BigEndian.PutUint64(b[8:], v.ID)
		binary.BigEndian.PutUint64(b[16:], v.PeerID)
		binary.BigEndian.PutUint64(b[24:], v.Length)
		if v.Kind == CTSKey {
			v.Key.put(b[MinLen:])
		}
		return b[:v.Kind.HeaderLen()]
	}
	binary.BigEndian.PutUint16(b[2:], uint16(v.Sig))
	binary.BigEndian.PutUint64(b[8:], v.Context)
	binary.BigEndian.PutUint32(b[16:], uint32(v.Tag))
	binary.BigEndian.PutUint32(b[20:], v.Seq)
	binary.BigEndian.PutUint64(b[24:], v.Length)
	if v.Kind == Eager {
		return b[:MinLen]
	}
	binary.BigEndian.PutUint64(b[32:], v.ID)
	if v.HasKey {
		b[0] = byte(RTSKey)
		v.Key.put(b[IDLen:])
		return b[:]
	}
	return b[:IDLen]
}

// get reads v from b, which holds kind.HeaderLen bytes. It reports whether the
// envelope is well-formed.
func (v *Header) Decode(b []byte) bool {
	*v = Header{Kind: Kind(b[0]), Flags: b[1], Source: binary.BigEndian.Uint32(b[4:])}
	if v.Kind == 0 || v.Kind >= Kinds || !v.Kind.Matched() && (b[2] != 0 || b[3] != 0) {
		return false
	}
	v.Length = binary.BigEndian.Uint64(b[24:])
	if v.Length > MaxMessage {
		return false
	}
	if !v.Kind.Matched() {
		v.ID = binary.BigEndian.Uint64(b[8:])
		v.PeerID = binary.BigEndian.Uint64(b[16:])
		return v.Kind != CTSKey || v.Key.get(b[MinLen:])
	}
	v.Sig = datatype.Sig(binary.BigEndian.Uint16(b[2:]))
	v.Context = binary.BigEndian.Uint64(b[8:])
	v.Tag = int32(binary.BigEndian.Uint32(b[16:]))
	v.Seq = binary.BigEndian.Uint32(b[20:])
	if v.Kind != Eager {
		v.ID = binary.BigEndian.Uint64(b[32:])
	}
	if v.Kind == RTSKey {
		v.Kind, v.HasKey = RTS, true
		return v.Tag >= 0 && v.Key.get(b[IDLen:])
	}
	return v.Tag >= 0
}

// grant is what a peer needs to know of memory here that it may write to or read from.
type Key struct {
	STag  uint32
	Port  uint16 // of the device of the rank whose memory it is
	Token [TokenLen]byte
}

// TokenLen is the length of the secret that a connection to a device must show: a peer
// that was not given it cannot make one.
const TokenLen = 16

const KeyLen = 8 + TokenLen

func (g *Key) put(b []byte) {
	binary.BigEndian.PutUint32(b, g.STag)
	binary.BigEndian.PutUint16(b[4:], g.Port)
	b[6], b[7] = 0, 0
	copy(b[8:], g.Token[:])
}

// get reads what put wrote. It reports whether it is well-formed.
func (g *Key) get(b []byte) bool {
	g.STag, g.Port = binary.BigEndian.Uint32(b), binary.BigEndian.Uint16(b[4:])
	copy(g.Token[:], b[8:])
	return b[6] == 0 && b[7] == 0
}

// MaxMessage bounds the length of one message.
const MaxMessage = 1 << 46
