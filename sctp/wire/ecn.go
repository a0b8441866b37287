package wire

import "encoding/binary"

// RFC 9260 reserves the ECNE and CWR chunks and the ECN Capable parameter and
// leaves their layout to RFC 4960, Appendix A.

// ECNE is an explicit congestion notification echo chunk.
type ECNE struct {
	// TSN is the lowest TSN of the first packet that arrived with a congestion
	// mark since the last CWR.
	TSN uint32
}

// ParseECNE reads an ECNE chunk.
func ParseECNE(c Chunk) (ECNE, error) {
	x, err := parseUint32(c, ChunkECNE)
	return ECNE{TSN: x}, err
}

// AppendECNE appends an ECNE chunk.
func AppendECNE(b []byte, x ECNE) []byte {
	b = appendFixed(b, ChunkECNE, 0, 4)
	return binary.BigEndian.AppendUint32(b, x.TSN)
}

// CWR is a congestion window reduced chunk.
type CWR struct {
	// TSN is the one of the ECNE that this chunk answers.
	TSN uint32
}

// ParseCWR reads a CWR chunk.
func ParseCWR(c Chunk) (CWR, error) {
	x, err := parseUint32(c, ChunkCWR)
	return CWR{TSN: x}, err
}

// AppendCWR appends a CWR chunk.
func AppendCWR(b []byte, x CWR) []byte {
	b = appendFixed(b, ChunkCWR, 0, 4)
	return binary.BigEndian.AppendUint32(b, x.TSN)
}
