package core

import (
	"unsafe"

	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/prefetch"
)

// Prefetch has the processor fetch what the next packet needs of the association:
// one that is received or, with send set, one that is sent. It may be called
// whatever others do with the association.
func (a *Assoc) Prefetch(send bool) {
	const (
		rx    = unsafe.Offsetof(a.rx)
		tx    = unsafe.Offsetof(a.tx)
		first = unsafe.Offsetof(a.rx.first)
		in    = unsafe.Offsetof(a.asconfIn) // its answers are not needed
		reqs  = unsafe.Offsetof(a.reqs)
	)
	p := unsafe.Pointer(a)
	if send {
		prefetch.Range(p, rx+first+reasm.Head)
		prefetch.Range(unsafe.Add(p, tx), in-tx)
	} else {
		prefetch.Range(p, in)
	}
	prefetch.Range(unsafe.Add(p, reqs), unsafe.Sizeof(*a)-reqs)
}
