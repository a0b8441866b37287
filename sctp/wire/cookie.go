package wire

// CookieEcho is a COOKIE ECHO chunk (RFC 9260, Section 3.3.11).
type CookieEcho struct {
	// Cookie is the value of the State Cookie parameter of the INIT ACK. A
	// parsed one aliases the packet.
	Cookie []byte
}

// ParseCookieEcho reads a COOKIE ECHO chunk. Cookie aliases c.
func ParseCookieEcho(c Chunk) (CookieEcho, error) {
	if c.Type != ChunkCookieEcho {
		return CookieEcho{}, ErrType
	}
	if len(c.Value) == 0 {
		return CookieEcho{}, ErrTruncated
	}
	return CookieEcho{Cookie: c.Value}, nil
}

// AppendCookieEcho appends a COOKIE ECHO chunk, padded. It copies x.Cookie.
func AppendCookieEcho(b []byte, x CookieEcho) []byte {
	return AppendChunk(b, ChunkCookieEcho, 0, x.Cookie)
}

// ParseCookieAck checks a COOKIE ACK chunk, which carries nothing (RFC 9260,
// Section 3.3.12).
func ParseCookieAck(c Chunk) error { return parseEmpty(c, ChunkCookieAck) }

// AppendCookieAck appends a COOKIE ACK chunk.
func AppendCookieAck(b []byte) []byte { return appendFixed(b, ChunkCookieAck, 0, 0) }
