package envelope

import (
	"encoding/binary"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// MaxMessage bounds the length of one message.
const MaxMessage = 1 << 46

// A Header is the decoded envelope of a message.
type Header struct {
	Kind    Kind // never RTSKey: that is RTS with HasKey
	Flags   uint8
	Sig     datatype.Sig // type signature of the elements
	Source  uint32       // rank of the sender in the communicator
	Context uint64       // communicator and slot
	Tag     int32
	Seq     uint32 // per communicator and destination; valid with FlagSeq
	Length  uint64
	ID      uint64 // request: of the sender, or in control messages see Kind
	PeerID  uint64 // request of the sender of a CTS and CTSKey
	Key     Key    // in CTSKey, and in RTS with HasKey
	HasKey  bool   // RTS only
}

// Encode writes v to b and returns the part written.
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
		v.Key.put(b[idLen:])
		return b[:]
	}
	return b[:idLen]
}

// Decode reads v from b, which holds Kind.HeaderLen bytes. It reports whether the header
// is well-formed.
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
		return v.Tag >= 0 && v.Key.get(b[idLen:])
	}
	return v.Tag >= 0
}
