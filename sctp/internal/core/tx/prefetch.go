package tx

import (
	"unsafe"

	"github.com/weftstack/weft/sctp/internal/prefetch"
)

// prefetch has the processor fetch the record of a message, if there is one, ahead of
// its use.
func (m *outMsg) prefetch() {
	if m != nil {
		prefetch.Range(unsafe.Pointer(m), unsafe.Sizeof(m.msgState))
	}
}
