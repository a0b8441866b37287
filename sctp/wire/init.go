package wire

import "encoding/binary"

// initValueLen is the length of the fixed part of INIT and INIT ACK, without
// the chunk header.
const initValueLen = 16

// Init is an INIT or INIT ACK chunk (RFC 9260, Sections 3.3.2 and 3.3.3).
type Init struct {
	// Tag is the initiate tag: the verification tag that the receiver of this
	// chunk puts into its packets. It must not be 0.
	Tag uint32
	// RWND is the advertised receiver window credit, in bytes.
	RWND uint32
	// OutStreams is how many streams the sender of this chunk wants to send
	// on; InStreams is how many it can receive. Neither may be 0.
	OutStreams, InStreams uint16
	// TSN is the initial TSN that the sender of this chunk will use.
	TSN uint32
	// Params is the encoded parameters; walk them with [NewParams]. A parsed
	// one aliases the packet.
	Params []byte
}

// MinRWND is the smallest window that an INIT or INIT ACK may advertise (RFC
// 9260, Section 3.3.2).
const MinRWND = 1500

// Valid reports whether the fixed fields have values that the RFC allows: a
// non-zero tag, at least one stream each way, and a window of MinRWND (RFC 9260,
// Section 3.3.2). What to do otherwise differs between INIT and INIT ACK, and
// between the tag and the other fields, so the parser leaves it to the caller.
func (x *Init) Valid() bool {
	return x.Tag != 0 && x.OutStreams != 0 && x.InStreams != 0 && x.RWND >= MinRWND
}

// ParseInit reads an INIT chunk. Params aliases c and is not checked.
func ParseInit(c Chunk) (Init, error) { return parseInit(c, ChunkInit) }

// ParseInitAck reads an INIT ACK chunk. Params aliases c and is not checked.
func ParseInitAck(c Chunk) (Init, error) { return parseInit(c, ChunkInitAck) }

func parseInit(c Chunk, t ChunkType) (Init, error) {
	if c.Type != t {
		return Init{}, ErrType
	}
	v := c.Value
	if len(v) < initValueLen {
		return Init{}, ErrTruncated
	}
	return Init{
		Tag:        binary.BigEndian.Uint32(v[0:]),
		RWND:       binary.BigEndian.Uint32(v[4:]),
		OutStreams: binary.BigEndian.Uint16(v[8:]),
		InStreams:  binary.BigEndian.Uint16(v[10:]),
		TSN:        binary.BigEndian.Uint32(v[12:]),
		Params:     v[initValueLen:],
	}, nil
}

// AppendInit appends x as an INIT chunk, padded. It copies x.Params.
func AppendInit(b []byte, x Init) []byte { return appendInit(b, ChunkInit, x) }

// AppendInitAck appends x as an INIT ACK chunk, padded. It copies x.Params.
func AppendInitAck(b []byte, x Init) []byte { return appendInit(b, ChunkInitAck, x) }

func appendInit(b []byte, t ChunkType, x Init) []byte {
	at := len(b)
	b = BeginChunk(b, t, 0)
	b = binary.BigEndian.AppendUint32(b, x.Tag)
	b = binary.BigEndian.AppendUint32(b, x.RWND)
	b = binary.BigEndian.AppendUint16(b, x.OutStreams)
	b = binary.BigEndian.AppendUint16(b, x.InStreams)
	b = binary.BigEndian.AppendUint32(b, x.TSN)
	return EndChunk(append(b, trimList(x.Params)...), at)
}
