package rma

import (
	"context"
	"math"
	"os"
	"runtime"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/op"
)

// mapping is memory of another rank of the host that this process has mapped. It stays valid after
// the other rank has ended.
type mapping struct {
	mem     []byte
	users   atomic.Int64 // operations in progress; far below 0 once closed
	cleanup runtime.Cleanup
}

// mappingClosed is added to users when a mapping is closed.
const mappingClosed = math.MinInt64 / 2

func newMapping(mem []byte) *mapping {
	m := &mapping{mem: mem}
	m.cleanup = runtime.AddCleanup(m, unmapHostBytes, mem) // for windows that are not freed
	return m
}

// enter begins an operation. It reports false if the mapping is closed.
func (m *mapping) enter() bool {
	for {
		n := m.users.Load()
		if n < 0 {
			return false
		}
		if m.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave ends an operation.
func (m *mapping) leave() {
	if m.users.Add(-1) == mappingClosed {
		m.unmap()
	}
}

// close unmaps the memory once no operation uses it any more.
func (m *mapping) close() {
	if m.users.Add(mappingClosed) == mappingClosed {
		m.unmap()
	}
}

func (m *mapping) unmap() {
	m.cleanup.Stop()
	unmapHostBytes(m.mem)
}

// Allocate returns memory for a window that other ranks of the host can map, and its file. It returns nil if no
// rank of size shares memory with the caller, or the memory cannot be made. Others write to it only if writable is
// true.
func Allocate(m Memory, size, n, align int, writable bool) ([]byte, *os.File) {
	if n == 0 || !m.Shares() {
		return nil, nil
	}
	for rank := range size {
		if _, ok := m.Process(rank); ok {
			mem, f, err := newHostBytes(n, align, writable)
			if err != nil {
				return nil, nil
			}
			return mem, f
		}
	}
	return nil, nil
}

// offer adds to mine the file that holds the caller's memory, for other ranks to map.
func (w *Window) offer(mine *Part) {
	if w.file == nil || w.dev == nil {
		return
	}
	if id, err := fileID(w.file); err == nil {
		mine.FD, mine.File = uint32(w.file.Fd())+1, id
	}
}

// withdraw closes the file, after all ranks that can have mapped it.
func (w *Window) withdraw() {
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
}

// mapped waits until all ranks have mapped the memory that they can, if any rank offers some.
func (w *Window) mapped(ctx context.Context) error {
	for _, r := range w.remote {
		if r.FD != 0 {
			return w.c.Barrier(ctx)
		}
	}
	return nil
}

// updateDirect performs an update of a target's words by processor atomics, if the words are
// mapped. All updates of mapped words are performed here, so those of a rank keep their order
// (MPI-4.1, Section 12.7.2). They are atomic with those of the target and of RDMA, which use
// processor atomics, too.
func (w *Window) updateDirect(src, old []byte, target, off int, e *Elem, code op.Code) bool {
	d := w.wordsOf(target, off, len(src), e)
	if d == nil {
		return false
	}
	defer d.mapped.leave()
	src = e.aligned(src)
	updateWords(d.mapped.mem[off:off+len(src)], src, old, e.ops[code])
	w.copied(target, &w.to[target].counters.Atomics, len(src))
	return true
}

// swapDirect is CompareAndSwap by a processor atomic.
func (w *Window) swapDirect(operands, old []byte, target, off int, e *Elem) bool {
	d := w.wordsOf(target, off, 8, e)
	if d == nil {
		return false
	}
	defer d.mapped.leave()
	casWord(d.mapped.mem[off:off+8], operands, old)
	w.copied(target, &w.to[target].counters.Atomics, 8)
	return true
}

// wordsOf returns the mapped memory of a target for an update of words, with enter called, or nil.
func (w *Window) wordsOf(target, off, n int, e *Elem) *directMem {
	if !e.word || off%e.align != 0 { // a mapping begins at a page; whatever the target says of its address
		return nil
	}
	d := w.directTo(target, off, n, AccessUpdate)
	if d == nil || d.mapped == nil || !d.mapped.enter() {
		return nil
	}
	return d
}
