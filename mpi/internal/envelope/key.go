package envelope

import "encoding/binary"

// A Key is what a peer needs to reach memory of this rank with RDMA (verbs call it an
// rkey).
type Key struct {
	STag  uint32
	Port  uint16 // of the device of the rank that has the memory
	Token [TokenLen]byte
}

// TokenLen is the length of the secret that a connection to a device must present, in bytes. A peer
// without it cannot connect.
const TokenLen = 16

const keyLen = 8 + TokenLen

// put writes k to b.
func (k *Key) put(b []byte) {
	binary.BigEndian.PutUint32(b, k.STag)
	binary.BigEndian.PutUint16(b[4:], k.Port)
	b[6], b[7] = 0, 0
	copy(b[8:], k.Token[:])
}

// get reads what put wrote. It reports whether it is well-formed.
func (k *Key) get(b []byte) bool {
	k.STag, k.Port = binary.BigEndian.Uint32(b), binary.BigEndian.Uint16(b[4:])
	copy(k.Token[:], b[8:])
	return b[6] == 0 && b[7] == 0
}
