package wire

import (
	"encoding/binary"
	"fmt"
)

// ChunkHeaderLen is the length of a chunk's type, flags and length fields.
const ChunkHeaderLen = tlvLen

// ChunkType tells what a chunk is (RFC 9260, Section 3.2, and the IANA
// registry "SCTP Chunk Types").
type ChunkType uint8

// The chunk types of RFC 9260 and of the extensions that this package knows.
const (
	ChunkData             ChunkType = 0    // RFC 9260, Section 3.3.1
	ChunkInit             ChunkType = 1    // RFC 9260, Section 3.3.2
	ChunkInitAck          ChunkType = 2    // RFC 9260, Section 3.3.3
	ChunkSack             ChunkType = 3    // RFC 9260, Section 3.3.4
	ChunkHeartbeat        ChunkType = 4    // RFC 9260, Section 3.3.5
	ChunkHeartbeatAck     ChunkType = 5    // RFC 9260, Section 3.3.6
	ChunkAbort            ChunkType = 6    // RFC 9260, Section 3.3.7
	ChunkShutdown         ChunkType = 7    // RFC 9260, Section 3.3.8
	ChunkShutdownAck      ChunkType = 8    // RFC 9260, Section 3.3.9
	ChunkError            ChunkType = 9    // RFC 9260, Section 3.3.10
	ChunkCookieEcho       ChunkType = 10   // RFC 9260, Section 3.3.11
	ChunkCookieAck        ChunkType = 11   // RFC 9260, Section 3.3.12
	ChunkECNE             ChunkType = 12   // RFC 9260, Table 1; layout of RFC 4960, Appendix A
	ChunkCWR              ChunkType = 13   // RFC 9260, Table 1; layout of RFC 4960, Appendix A
	ChunkShutdownComplete ChunkType = 14   // RFC 9260, Section 3.3.13
	ChunkAuth             ChunkType = 15   // RFC 4895, Section 4.1
	ChunkIData            ChunkType = 64   // RFC 8260, Section 2.1
	ChunkAsconfAck        ChunkType = 0x80 // RFC 5061, Section 4.1.2
	ChunkReConfig         ChunkType = 130  // RFC 6525, Section 3.1
	ChunkPad              ChunkType = 0x84 // RFC 4820, Section 3
	ChunkForwardTSN       ChunkType = 192  // RFC 3758, Section 3.2
	ChunkAsconf           ChunkType = 0xC1 // RFC 5061, Section 4.1.1
	ChunkIForwardTSN      ChunkType = 194  // RFC 8260, Section 2.3.1
)

// StopsPacket reports whether a receiver that does not know the type discards
// the rest of the packet: the highest bit is clear (RFC 9260, Section 3.2).
func (t ChunkType) StopsPacket() bool { return t&0x80 == 0 }

// Reported reports whether a receiver that does not know the type answers with
// an Unrecognized Chunk Type cause: the second highest bit is set (RFC 9260,
// Section 3.2).
func (t ChunkType) Reported() bool { return t&0x40 != 0 }

// String returns the name that the RFCs give the type, like "I-DATA".
func (t ChunkType) String() string {
	if s := t.name(); s != "" {
		return s
	}
	return fmt.Sprintf("chunk(%#02x)", uint8(t))
}

// Known reports whether this package can parse chunks of type t.
func (t ChunkType) Known() bool { return t.name() != "" }

func (t ChunkType) name() string {
	switch t {
	case ChunkData:
		return "DATA"
	case ChunkInit:
		return "INIT"
	case ChunkInitAck:
		return "INIT ACK"
	case ChunkSack:
		return "SACK"
	case ChunkHeartbeat:
		return "HEARTBEAT"
	case ChunkHeartbeatAck:
		return "HEARTBEAT ACK"
	case ChunkAbort:
		return "ABORT"
	case ChunkShutdown:
		return "SHUTDOWN"
	case ChunkShutdownAck:
		return "SHUTDOWN ACK"
	case ChunkError:
		return "ERROR"
	case ChunkCookieEcho:
		return "COOKIE ECHO"
	case ChunkCookieAck:
		return "COOKIE ACK"
	case ChunkECNE:
		return "ECNE"
	case ChunkCWR:
		return "CWR"
	case ChunkShutdownComplete:
		return "SHUTDOWN COMPLETE"
	case ChunkAuth:
		return "AUTH"
	case ChunkIData:
		return "I-DATA"
	case ChunkAsconfAck:
		return "ASCONF-ACK"
	case ChunkReConfig:
		return "RE-CONFIG"
	case ChunkPad:
		return "PAD"
	case ChunkForwardTSN:
		return "FORWARD-TSN"
	case ChunkAsconf:
		return "ASCONF"
	case ChunkIForwardTSN:
		return "I-FORWARD-TSN"
	}
	return ""
}

// Chunk is a view of one chunk. Its slices alias the packet.
type Chunk struct {
	Type  ChunkType
	Flags uint8
	// Value is what follows the chunk header, without padding.
	Value []byte
	// Raw is the whole chunk, header included, without padding.
	Raw []byte
}

// Chunks walks the chunks of a packet without allocating:
//
//	it := wire.NewChunks(pkt[wire.HeaderLen:])
//	for it.Next() {
//		c := it.Chunk()
//		…
//	}
//	if err := it.Err(); err != nil { … }
//
// Chunks before a malformed one are given before the error; a partial chunk is
// never given (RFC 9260, Section 6.10).
type Chunks struct {
	tlvs
	cur Chunk
}

// NewChunks returns an iterator over b, which starts behind a common header.
// The chunks that it gives alias b.
func NewChunks(b []byte) Chunks { return Chunks{tlvs: tlvs{rest: b}} }

// Next moves to the next chunk. It returns false at the end or at a malformed
// chunk; Err tells which.
func (it *Chunks) Next() bool {
	if !it.tlvs.Next() {
		return false
	}
	c := &it.cur
	c.Type, c.Flags, c.Value, c.Raw = ChunkType(it.raw[0]), it.raw[1], it.value(), it.raw
	return true
}

// Chunk returns the chunk that the last call of Next, which returned true,
// moved to.
func (it *Chunks) Chunk() Chunk { return it.cur }

// Current is Chunk without a copy: what it points to changes with Next.
func (it *Chunks) Current() *Chunk { return &it.cur }

// Rest returns the bytes behind the current chunk and its padding. AUTH chunks
// need them (RFC 4895, Section 6.2).
func (it *Chunks) Rest() []byte { return it.rest }

// AppendChunk appends a chunk with the given type, flags and value, padded.
func AppendChunk(b []byte, t ChunkType, flags uint8, value []byte) []byte {
	at := len(b)
	b = BeginChunk(b, t, flags)
	return EndChunk(append(b, value...), at)
}

// BeginChunk appends a chunk header whose length is filled in by EndChunk. The
// caller notes len(b) before the call, appends the value after it, and ends the
// chunk:
//
//	at := len(b)
//	b = wire.BeginChunk(b, t, flags)
//	b = append(b, value...)
//	b = wire.EndChunk(b, at)
func BeginChunk(b []byte, t ChunkType, flags uint8) []byte {
	return append(b, uint8(t), flags, 0, 0)
}

// EndChunk sets the length of the chunk that starts at b[at] and runs to the
// end of b, and appends the padding, which the length does not count.
func EndChunk(b []byte, at int) []byte { return endTLV(b, at) }

// appendFixed appends the header of a chunk of known value length.
func appendFixed(b []byte, t ChunkType, flags uint8, valueLen int) []byte {
	b = append(b, uint8(t), flags)
	return binary.BigEndian.AppendUint16(b, uint16(tlvLen+valueLen))
}

// flag returns bit if on, and 0 otherwise.
func flag(on bool, bit uint8) uint8 {
	if on {
		return bit
	}
	return 0
}
