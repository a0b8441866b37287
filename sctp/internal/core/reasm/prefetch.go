package reasm

import (
	"unsafe"

	"github.com/weftstack/weft/sctp/internal/prefetch"
)

// Head is how much of a reassembly queue tells whether there is anything to read.
const Head = unsafe.Offsetof(Queue{}.loose)

// prefetch has the processor fetch a message that is being received, if there is one,
// ahead of its use.
func (m *message) prefetch() {
	if m != nil {
		prefetch.Range(unsafe.Pointer(m), unsafe.Sizeof(*m))
	}
}

// prefetch has the processor fetch a fragment, if there is one, ahead of its use: by
// the time it is used again there has been a window of data in between.
func (f *frag) prefetch() {
	if f != nil {
		prefetch.Range(unsafe.Pointer(f), unsafe.Sizeof(f.fragState))
	}
}
