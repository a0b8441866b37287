package rma

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/cma"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
)

// directMem is the memory of a target on the same host, for Put and Get by one copy: to or from
// memory that is mapped here, or by cross-memory attach. The target takes no part, and a copy is
// complete at once, so there is nothing to flush. Short Puts by cross-memory attach are aggregated
// first.
type directMem struct {
	mapped *mapping    // set for memory of Allocate; else nil
	open   atomic.Bool // the system allows cross-memory attach
	pid    int
	addr   uint64
	size   int
	access Access
}

// directAddr returns the address of the caller's memory for ranks that share memory with it, or 0.
// The address stays valid: the window holds the memory, and the collector does not move it.
func (w *Window) directAddr() uint64 {
	if w.dev == nil || w.dynamic != nil || len(w.mem) == 0 || !w.c.Shares() {
		return 0
	}
	return uint64(uintptr(unsafe.Pointer(&w.mem[0])))
}

// openDirect maps the memory of the targets on this host, or finds out whether the system allows to
// copy it.
func (w *Window) openDirect() {
	if w.dev == nil || w.dynamic != nil || !w.c.Shares() {
		return
	}
	w.direct = make([]directMem, len(w.remote))
	for target := range w.remote {
		r, d := &w.remote[target], &w.direct[target]
		pid, near := w.c.Process(target)
		if !near || r.Addr == 0 || r.Bytes == 0 {
			continue
		}
		d.pid, d.addr, d.size, d.access = pid, r.Addr, int(r.Bytes), r.Access
		if r.FD != 0 {
			mem, err := mapHostBytes(d.pid, int(r.FD-1), r.File, d.size, r.Access&(AccessWrite|AccessUpdate) != 0)
			if err == nil {
				d.mapped = newMapping(mem)
				continue
			}
		}
		var probe [1]byte
		d.open.Store(cma.Read(d.pid, d.addr, probe[:]) == nil)
	}
}

// closeDirect unmaps what openDirect has mapped.
func (w *Window) closeDirect() {
	for target := range w.direct {
		if m := w.direct[target].mapped; m != nil {
			m.close()
		}
	}
}

// near reports whether the memory can be copied directly.
func (d *directMem) near() bool { return d.mapped != nil || d.open.Load() }

// directTo returns the memory of a target for a direct copy, or nil. It checks rights and bounds
// again, because the target does not check them.
func (w *Window) directTo(target, off, n int, need Access) *directMem {
	if w.direct == nil {
		return nil
	}
	d := &w.direct[target]
	if !d.near() {
		return nil
	}
	if w.c.Failure(target) != nil || d.access&need != need || off < 0 || n > d.size-off {
		return nil
	}
	return d
}

// copied counts an operation that is complete.
func (w *Window) copied(target int, count *rdmadev.Counter, n int) {
	w.to[target].markCopied()
	count.Count(n)
}

// putDirect is Put by a direct copy, which may be aggregated. It reports false if that is not
// possible: then RDMA does it, or returns the error.
func (w *Window) putDirect(ctx context.Context, src []byte, target, off int) (bool, error) {
	d := w.directTo(target, off, len(src), AccessWrite)
	if d != nil && d.mapped == nil && len(src) <= AggregateLimit {
		w.to[target].markCopied()
		return w.aggregate(ctx, src, target, off)
	}
	if err := w.spill(ctx, target); err != nil {
		return false, err
	}
	if d != nil && !d.near() {
		return false, nil // spill was refused
	}
	return w.copyTo(d, src, target, off), nil
}

// copyTo is Put by a direct copy now. It reports false if that is not possible.
func (w *Window) copyTo(d *directMem, src []byte, target, off int) bool {
	switch {
	case d == nil:
		return false
	case d.mapped != nil:
		if !d.mapped.enter() {
			return false
		}
		copy(d.mapped.mem[off:], src)
		d.mapped.leave()
	case cma.Write(d.pid, d.addr+uint64(off), src) != nil:
		d.open.Store(false)
		return false
	}
	w.copied(target, &w.to[target].counters.Writes, len(src))
	return true
}

// getDirect is Get by a direct copy. It reports false if that is not possible.
func (w *Window) getDirect(dst []byte, target, off int) bool {
	d := w.directTo(target, off, len(dst), AccessRead)
	switch {
	case d == nil:
		return false
	case d.mapped != nil:
		if !d.mapped.enter() {
			return false
		}
		copy(dst, d.mapped.mem[off:])
		d.mapped.leave()
	case cma.Read(d.pid, d.addr+uint64(off), dst) != nil:
		d.open.Store(false)
		return false
	}
	w.copied(target, &w.to[target].counters.Reads, len(dst))
	return true
}
