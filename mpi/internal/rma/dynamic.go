package rma

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// MaxAttached bounds the buffers that a rank has attached to a dynamic window.
const MaxAttached = 1 << 16

// dynamicMem is the memory of one rank in a dynamic window: buffers, each at an address of its own. Addresses are
// those of the process, in bytes, as MPI_Get_address returns them; or they are made up and not reused, so that an
// operation on a buffer that is not attached any more finds no other one in its place.
type dynamicMem struct {
	process bool // addresses are those of the process

	mu       sync.Mutex // guards what follows
	next     int        // address of the next buffer, in bytes
	attached []attached // ordered by address
	held     []memRange // memory of the attached buffers, ordered by its place in the process
	empty    []int      // addresses of the process where a buffer without bytes is attached
}

// memRange is memory of the process, from lo up to hi.
type memRange struct{ lo, hi uintptr }

func rangeOf(mem []byte) memRange {
	lo := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	return memRange{lo, lo + uintptr(len(mem))}
}

// findHeld returns the index in held of the first range that ends behind lo.
func (d *dynamicMem) findHeld(lo uintptr) int {
	i, _ := slices.BinarySearchFunc(d.held, lo, func(r memRange, lo uintptr) int {
		if r.hi <= lo {
			return -1
		}
		return 1
	})
	return i
}

// attached is a buffer of a dynamic window.
type attached struct {
	at  int // address, in bytes
	mem []byte
}

// dynamicFirst is the first address that is made up, in displacement units. Address 0 is never used, so programs may
// use it as null.
const dynamicFirst = 1 << 12

// Marks of dynamic windows in Part.Kind, so that ranks that make windows of different kinds get ErrWindow.
const (
	kindDynamic = 1 << (16 + iota)
	kindAddress // displacements are addresses of the process
)

// errNotDynamic is the error of windows that memory cannot be attached to.
var errNotDynamic = mpierr.WithClass(mpierr.ClassRMAFlavor, fmt.Errorf("%w: not dynamic", mpierr.ErrWindow))

// attachError is the error of memory that cannot be attached.
func attachError(format string, args ...any) error {
	return mpierr.WithClass(mpierr.ClassRMAAttach, fmt.Errorf("%w: "+format, append([]any{mpierr.ErrWindow}, args...)...))
}

// Attach adds mem to the caller's part of a dynamic window and returns its displacement: its address divided by the
// displacement unit.
func (w *Window) Attach(mem []byte) (disp int, err error) {
	if err := w.Usable(); err != nil {
		return 0, err
	}
	d := w.dynamic
	if d == nil {
		return 0, errNotDynamic
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.attached)+len(d.empty) >= MaxAttached {
		return 0, attachError("%d buffers are attached", MaxAttached)
	}
	at, next := d.next, d.next
	var ok bool
	if d.process {
		a := addressOf(mem)
		if at, ok = int(a), a <= datatype.MaxBytes; !ok {
			return 0, attachError("memory at %#x, above %#x", a, uint64(datatype.MaxBytes))
		}
		if len(mem) == 0 { // others may be attached there, too
			d.empty = append(d.empty, at)
			return at, nil
		}
	} else if next, ok = datatype.Add(at, len(mem)+dynamicFirst*w.unit); !ok {
		// The gap keeps an access beyond the end of a buffer from reaching the next one.
		return 0, attachError("no addresses are left")
	}
	if len(mem) > 0 {
		r := rangeOf(mem)
		i := d.findHeld(r.lo)
		if i < len(d.held) && d.held[i].lo < r.hi {
			return 0, attachError("%d bytes overlap a buffer of %d that is attached", len(mem), d.held[i].hi-d.held[i].lo)
		}
		d.held = slices.Insert(d.held, i, r)
	}
	i, _ := d.find(at)
	d.attached = slices.Insert(d.attached, i, attached{at, mem})
	d.next = next
	return at / w.unit, nil
}

// Detach removes the buffer that was attached at disp. It waits only for an operation that is being
// performed.
func (w *Window) Detach(disp int) error {
	if err := w.Usable(); err != nil {
		return err
	}
	d := w.dynamic
	if d == nil {
		return errNotDynamic
	}
	at, ok := datatype.Mul(disp, w.unit)
	d.mu.Lock()
	i, found := d.find(at)
	if ok = ok && found; ok {
		if mem := d.attached[i].mem; len(mem) > 0 {
			k := d.findHeld(rangeOf(mem).lo)
			d.held = slices.Delete(d.held, k, k+1)
		}
		d.attached = slices.Delete(d.attached, i, i+1)
	} else if i := slices.Index(d.empty, at); i >= 0 {
		d.empty, ok = slices.Delete(d.empty, i, i+1), true
	}
	d.mu.Unlock()
	if !ok {
		return fmt.Errorf("%w: nothing is attached at %d", mpierr.ErrRange, disp)
	}
	w.Sync() // waits for an operation that is being performed
	return nil
}

// find returns the index of the buffer at an address, or where it would be inserted. d.mu is held.
func (d *dynamicMem) find(at int) (int, bool) {
	return slices.BinarySearchFunc(d.attached, at, func(a attached, at int) int { return a.at - at })
}

// at returns n bytes of the caller's memory, or false if they are not all in the window.
func (w *Window) at(off, n uint64) ([]byte, bool) {
	d := w.dynamic
	if d == nil {
		if off > uint64(len(w.mem)) || n > uint64(len(w.mem))-off {
			return nil, false
		}
		return w.mem[off : off+n], true
	}
	if off > datatype.MaxBytes || n > datatype.MaxBytes {
		return nil, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	i, found := d.find(int(off))
	if !found {
		if i--; i < 0 {
			return nil, false
		}
	}
	a := d.attached[i]
	from := int(off) - a.at
	if from > len(a.mem) {
		return nil, false
	}
	if int(n) <= len(a.mem)-from {
		return a.mem[from : from+int(n)], true
	}
	return d.across(i, from, int(n))
}

// across returns n bytes that begin in an attached buffer and end in another one: they may if the buffers follow one
// another in the memory of the process. d.mu is held.
func (d *dynamicMem) across(i, from, n int) ([]byte, bool) {
	if !d.process {
		return nil, false
	}
	first := d.attached[i]
	end := first.at + len(first.mem)
	for i++; end < first.at+from+n; i++ {
		if i >= len(d.attached) || d.attached[i].at != end {
			return nil, false
		}
		end += len(d.attached[i].mem)
	}
	if len(first.mem) == from { // its last byte is not asked for
		return nil, false
	}
	return unsafe.Slice(&first.mem[from], n), true
}

// ownAt is at for the caller's operations on its own memory.
func (w *Window) ownAt(off, n int) ([]byte, error) {
	mem, ok := w.at(uint64(off), uint64(n))
	if !ok {
		return nil, fmt.Errorf("%w: %d bytes at %d of the own memory", mpierr.ErrRange, n, off)
	}
	return mem, nil
}
