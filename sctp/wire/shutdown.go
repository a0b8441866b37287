package wire

import "encoding/binary"

// tagReflected is the T bit of ABORT and SHUTDOWN COMPLETE.
const tagReflected = 0x01

// Shutdown is a SHUTDOWN chunk (RFC 9260, Section 3.3.8).
type Shutdown struct {
	// CumTSN is the cumulative TSN ack.
	CumTSN uint32
}

// ParseShutdown reads a SHUTDOWN chunk.
func ParseShutdown(c Chunk) (Shutdown, error) {
	x, err := parseUint32(c, ChunkShutdown)
	return Shutdown{CumTSN: x}, err
}

// AppendShutdown appends a SHUTDOWN chunk.
func AppendShutdown(b []byte, x Shutdown) []byte {
	b = appendFixed(b, ChunkShutdown, 0, 4)
	return binary.BigEndian.AppendUint32(b, x.CumTSN)
}

// ParseShutdownAck checks a SHUTDOWN ACK chunk, which carries nothing (RFC
// 9260, Section 3.3.9).
func ParseShutdownAck(c Chunk) error { return parseEmpty(c, ChunkShutdownAck) }

// AppendShutdownAck appends a SHUTDOWN ACK chunk.
func AppendShutdownAck(b []byte) []byte { return appendFixed(b, ChunkShutdownAck, 0, 0) }

// ShutdownComplete is a SHUTDOWN COMPLETE chunk (RFC 9260, Section 3.3.13).
type ShutdownComplete struct {
	// Reflected is the T bit: the packet carries the verification tag of the
	// packet that it answers, because the sender has no association.
	Reflected bool
}

// ParseShutdownComplete reads a SHUTDOWN COMPLETE chunk.
func ParseShutdownComplete(c Chunk) (ShutdownComplete, error) {
	if err := parseEmpty(c, ChunkShutdownComplete); err != nil {
		return ShutdownComplete{}, err
	}
	return ShutdownComplete{Reflected: c.Flags&tagReflected != 0}, nil
}

// AppendShutdownComplete appends a SHUTDOWN COMPLETE chunk.
func AppendShutdownComplete(b []byte, x ShutdownComplete) []byte {
	return appendFixed(b, ChunkShutdownComplete, flag(x.Reflected, tagReflected), 0)
}

// parseEmpty checks a chunk of type t whose length must be 4.
func parseEmpty(c Chunk, t ChunkType) error {
	if c.Type != t {
		return ErrType
	}
	if len(c.Value) != 0 {
		return ErrLength
	}
	return nil
}

// parseUint32 reads a chunk of type t whose value is one 32-bit number.
func parseUint32(c Chunk, t ChunkType) (uint32, error) {
	if c.Type != t {
		return 0, ErrType
	}
	if len(c.Value) < 4 {
		return 0, ErrTruncated
	}
	if len(c.Value) != 4 {
		return 0, ErrLength
	}
	return binary.BigEndian.Uint32(c.Value), nil
}
