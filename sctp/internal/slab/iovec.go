package slab

// Hole is a part of a buffer that is elsewhere: the len(B) bytes at offset At are
// those of B, and what the buffer has there is void. A list of holes goes by
// ascending offsets.
type IOVec struct {
	At int
	B  []byte
}

// Fill copies into b what its holes stand for.
func Fill(b []byte, holes []IOVec) {
	for i := range holes {
		copy(b[holes[i].At:], holes[i].B)
	}
}
