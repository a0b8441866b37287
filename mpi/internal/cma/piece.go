package cma

// Piece is a range of bytes in the memory of another process.
type Piece struct{ Off, N int }

// Run is a range of bytes in the memory of another process, by its address.
type Run struct {
	Addr uint64
	Len  int
}

const (
	// MaxPieces bounds the pieces of one WritePieces, and those on either side of a ReadRuns. Linux takes
	// up to 1024 (IOV_MAX).
	MaxPieces = 64
	// ProbeLen is the length of what Holds compares, in bytes.
	ProbeLen = 16
)
