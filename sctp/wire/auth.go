package wire

import "encoding/binary"

// HMAC identifiers (RFC 4895, Table 2).
const (
	HMACSHA1   = 1
	HMACSHA256 = 3
)

// Auth is an AUTH chunk (RFC 4895, Section 5.1).
type Auth struct {
	// KeyID tells which endpoint pair shared key is used.
	KeyID uint16
	// HMACID tells which message digest is used.
	HMACID uint16
	// HMAC covers the AUTH chunk, with this field zero, and all chunks behind
	// it. A parsed one aliases the packet.
	HMAC []byte
}

// AuthHeaderLen is the length of an AUTH chunk before its HMAC.
const AuthHeaderLen = tlvLen + 4

// ParseAuth reads an AUTH chunk. HMAC aliases c.
func ParseAuth(c Chunk) (Auth, error) {
	if c.Type != ChunkAuth {
		return Auth{}, ErrType
	}
	v := c.Value
	if len(v) < 4 {
		return Auth{}, ErrTruncated
	}
	return Auth{
		KeyID:  binary.BigEndian.Uint16(v[0:]),
		HMACID: binary.BigEndian.Uint16(v[2:]),
		HMAC:   v[4:],
	}, nil
}

// AppendAuth appends an AUTH chunk, padded. It copies x.HMAC. To fill the HMAC
// in later, pass zeros: it is at AuthHeaderLen from where the chunk starts.
func AppendAuth(b []byte, x Auth) []byte {
	at := len(b)
	b = BeginChunk(b, ChunkAuth, 0)
	b = binary.BigEndian.AppendUint16(b, x.KeyID)
	b = binary.BigEndian.AppendUint16(b, x.HMACID)
	return EndChunk(append(b, x.HMAC...), at)
}

// ParseRandom returns the random number of a RANDOM parameter (RFC 4895,
// Section 3.1), which aliases p.
func ParseRandom(p Param) ([]byte, error) { return bytesParam(p, ParamRandom) }

// AppendRandom appends a RANDOM parameter. It copies random, which is 32 bytes
// long in an INIT or INIT ACK.
func AppendRandom(b, random []byte) []byte { return AppendParam(b, ParamRandom, random) }

// ParseChunkList returns the chunk types that the sender of a CHUNKS parameter
// accepts only authenticated (RFC 4895, Section 3.2). The list aliases p. The
// types INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH in it are to be ignored.
func ParseChunkList(p Param) (ChunkTypes, error) {
	v, err := bytesParam(p, ParamChunkList)
	return ChunkTypes(v), err
}

// AppendChunkList appends a CHUNKS parameter.
func AppendChunkList(b []byte, types ...ChunkType) []byte {
	return appendChunkTypes(b, ParamChunkList, types)
}

// ParseHMACAlgo returns the HMAC identifiers of an HMAC-ALGO parameter, the one
// its sender prefers first (RFC 4895, Section 3.3). The view aliases p.
func ParseHMACAlgo(p Param) (Uint16s, error) { return uint16sParam(p, ParamHMACAlgo) }

// AppendHMACAlgo appends an HMAC-ALGO parameter.
func AppendHMACAlgo(b []byte, ids ...uint16) []byte {
	at := len(b)
	b = BeginParam(b, ParamHMACAlgo)
	return EndParam(appendUint16s(b, ids), at)
}
