package wire

// Heartbeat is a HEARTBEAT or HEARTBEAT ACK chunk (RFC 9260, Sections 3.3.5 and
// 3.3.6).
type Heartbeat struct {
	// Info is the value of the Heartbeat Info parameter, which only its sender
	// understands. A parsed one aliases the packet.
	Info []byte
}

// ParseHeartbeat reads a HEARTBEAT chunk. Info aliases c. To answer it,
// [AppendHeartbeatAck] takes the result as it is.
func ParseHeartbeat(c Chunk) (Heartbeat, error) { return parseHeartbeat(c, ChunkHeartbeat) }

// ParseHeartbeatAck reads a HEARTBEAT ACK chunk. Info aliases c.
func ParseHeartbeatAck(c Chunk) (Heartbeat, error) { return parseHeartbeat(c, ChunkHeartbeatAck) }

func parseHeartbeat(c Chunk, t ChunkType) (Heartbeat, error) {
	if c.Type != t {
		return Heartbeat{}, ErrType
	}
	// RFC 9260, Section 3.3.5: the one mandatory parameter is the Heartbeat
	// Info. What follows it is ignored.
	it := NewParams(c.Value)
	if !it.Next() {
		if it.err != nil {
			return Heartbeat{}, it.err
		}
		return Heartbeat{}, ErrTruncated
	}
	p := it.Param()
	if p.Type != ParamHeartbeatInfo {
		return Heartbeat{}, ErrType
	}
	return Heartbeat{Info: p.Value}, nil
}

// AppendHeartbeat appends a HEARTBEAT chunk, padded. It copies x.Info.
func AppendHeartbeat(b []byte, x Heartbeat) []byte { return appendHeartbeat(b, ChunkHeartbeat, x) }

// AppendHeartbeatAck appends a HEARTBEAT ACK chunk, padded. It copies x.Info.
func AppendHeartbeatAck(b []byte, x Heartbeat) []byte {
	return appendHeartbeat(b, ChunkHeartbeatAck, x)
}

// maxHeartbeatInfo is the longest Info that fits with both headers.
const maxHeartbeatInfo = MaxLength - 2*tlvLen

func appendHeartbeat(b []byte, t ChunkType, x Heartbeat) []byte {
	info := x.Info[:min(len(x.Info), maxHeartbeatInfo)]
	b = appendFixed(b, t, 0, tlvLen+len(info))
	return AppendParam(b, ParamHeartbeatInfo, info)
}
