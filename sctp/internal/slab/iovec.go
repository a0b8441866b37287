package slab

// IOVec is a part of a buffer whose bytes are elsewhere (scatter-gather I/O): the len(B)
// bytes at offset At are those of B, and the content of the buffer there is undefined. A
// list of them is sorted by offset.
type IOVec struct {
	At int
	B  []byte
}

// Fill copies into b the bytes that vecs refer to.
func Fill(b []byte, vecs []IOVec) {
	for i := range vecs {
		copy(b[vecs[i].At:], vecs[i].B)
	}
}
