package wire

// Abort is an ABORT chunk (RFC 9260, Section 3.3.7).
type Abort struct {
	// Reflected is the T bit: the packet carries the verification tag of the
	// packet that it answers, because the sender has no association.
	Reflected bool
	// Causes is the encoded error causes, none or more; walk them with
	// [NewCauses]. A parsed one aliases the packet.
	Causes []byte
}

// ParseAbort reads an ABORT chunk. Causes aliases c and is not checked.
func ParseAbort(c Chunk) (Abort, error) {
	if c.Type != ChunkAbort {
		return Abort{}, ErrType
	}
	return Abort{Reflected: c.Flags&tagReflected != 0, Causes: c.Value}, nil
}

// AppendAbort appends an ABORT chunk, padded. It copies x.Causes.
func AppendAbort(b []byte, x Abort) []byte {
	return AppendChunk(b, ChunkAbort, flag(x.Reflected, tagReflected), trimList(x.Causes))
}

// OpError is an operation error (ERROR) chunk (RFC 9260, Section 3.3.10).
type OpError struct {
	// Causes is the encoded error causes, one or more; walk them with
	// [NewCauses]. A parsed one aliases the packet.
	Causes []byte
}

// ParseOpError reads an ERROR chunk. Causes aliases c and is not checked.
func ParseOpError(c Chunk) (OpError, error) {
	if c.Type != ChunkError {
		return OpError{}, ErrType
	}
	if len(c.Value) == 0 {
		return OpError{}, ErrTruncated
	}
	return OpError{Causes: c.Value}, nil
}

// AppendOpError appends an ERROR chunk, padded. It copies x.Causes.
func AppendOpError(b []byte, x OpError) []byte {
	return AppendChunk(b, ChunkError, 0, trimList(x.Causes))
}
