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
		asc   = unsafe.Offsetof(a.asc)
		acks  = unsafe.Offsetof(a.asc.in)
		reqs  = unsafe.Offsetof(a.reqs)
	)
	p := unsafe.Pointer(a)
	if send {
		prefetch.Range(p, rx+first+reasm.Head)
		prefetch.Range(unsafe.Add(p, tx), asc+acks-tx)
	} else {
		prefetch.Range(p, asc+acks)
	}
	prefetch.Range(unsafe.Add(p, reqs), unsafe.Sizeof(*a)-reqs)
}
