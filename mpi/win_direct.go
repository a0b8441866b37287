package mpi

import (
	"sync/atomic"
	"unsafe"
)

// directMem is the memory of a target on the same host, for Put and Get by one
// copy that the system makes from process to process. The target takes no part, and
// what was copied is complete: nothing is left to flush.
type directMem struct {
	pid    int
	addr   uint64
	size   int
	access Access
	open   atomic.Bool
}

// directAddr tells where the caller's memory is, for ranks that share memory with it.
// It does not move: the window holds it, and the collector moves nothing.
func (w *window) directAddr() uint64 {
	if w.dev == nil || w.dynamic != nil || len(w.mem) == 0 || !w.c.w.shared.active() {
		return 0
	}
	return uint64(uintptr(unsafe.Pointer(&w.mem[0])))
}

// openDirect finds the targets whose memory the system lets this process copy.
func (w *window) openDirect() {
	if w.dev == nil || w.dynamic != nil || !w.c.w.shared.active() {
		return
	}
	w.direct = make([]directMem, len(w.remote))
	for target := range w.remote {
		r, d := &w.remote[target], &w.direct[target]
		l := w.c.peers[target].shared.Load()
		if w.self(target) || l == nil || l.theirs == nil || r.Addr == 0 || r.Bytes == 0 {
			continue
		}
		d.pid, d.addr, d.size, d.access = l.pid, r.Addr, int(r.Bytes), r.Access
		var probe [1]byte
		d.open.Store(readProcess(d.pid, d.addr, probe[:]) == nil)
	}
}

// directTo returns the memory of a target that can be copied directly, or nil. What
// it lets through is checked once more, since nobody does so at the target.
func (w *window) directTo(target, off, n int, need Access) *directMem {
	if w.direct == nil {
		return nil
	}
	d := &w.direct[target]
	if !d.open.Load() || w.c.peers[target].failure() != nil || d.access&need != need || off < 0 || n > d.size-off {
		return nil
	}
	return d
}

// putDirect is Put by a copy. It reports false if that cannot be: RDMA tells why, or
// does it.
func (w *window) putDirect(src []byte, target, off int) bool {
	d := w.directTo(target, off, len(src), AccessWrite)
	if d == nil {
		return false
	}
	if writeProcess(d.pid, d.addr+uint64(off), src) != nil {
		d.open.Store(false)
		return false
	}
	w.to[target].copied.Store(true)
	w.c.peers[target].rdma.writes.count(len(src))
	return true
}

// getDirect is Get by a copy.
func (w *window) getDirect(dst []byte, target, off int) bool {
	d := w.directTo(target, off, len(dst), AccessRead)
	if d == nil {
		return false
	}
	if readProcess(d.pid, d.addr+uint64(off), dst) != nil {
		d.open.Store(false)
		return false
	}
	w.to[target].copied.Store(true)
	w.c.peers[target].rdma.reads.count(len(dst))
	return true
}
