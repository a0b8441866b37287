package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi/internal/rma"
)

// A Window is a window without a type of elements: memory of each rank of a communicator, and the datatype with each
// operation, as in C (MPI-4.1, Chapter 12). [Win] is a Window whose elements have a Go type; what its documentation
// says of operations, their completion and the ways that they take holds here, too. Displacements count the
// displacement unit of the target, which may differ between ranks. Methods may be called from several goroutines at a
// time.
type Window struct {
	rma    *rma.Window
	of     *Comm // communicator that the window was made of
	c      *Comm // that of the window itself
	flavor WinFlavor
	mem    []byte    // of the caller
	typ    *rma.Elem // of all elements, for a Win; else nil
	elem   int       // bytes of one
	own    labels

	mu   sync.Mutex
	info Info // guarded by mu
}

// A WinFlavor says how a window was made (MPI_WIN_CREATE_FLAVOR).
type WinFlavor uint8

// Flavors of windows (MPI-4.1, Section 12.2.6).
const (
	WinFlavorCreate   WinFlavor = iota // of memory of the program
	WinFlavorAllocate                  // with memory of its own
	WinFlavorDynamic                   // memory is attached later
	WinFlavorShared                    // of shared memory
)

// WindowCreate makes a window of mem, whose length and displacement unit may differ between ranks (MPI_Win_create;
// MPI-4.1, Section 12.2.1). mem may also be memory that is not Go's, such as that of a C library; it must stay in
// place until the window is freed. All ranks of c must call it; it blocks until all have. If it fails on one rank it
// fails on all. It returns ErrOption for a displacement unit that is not positive.
func WindowCreate(ctx context.Context, c *Comm, mem []byte, unit int, opts ...WinOption) (*Window, error) {
	return newWindow(ctx, c, rma.Config{Mem: mem, Unit: unit}, WinFlavorCreate, readWinOptions(opts))
}

// windowAlign is the alignment of the memory of WindowAllocate, for elements of any type, in bytes.
const windowAlign = rma.CacheLine

// WindowAllocate makes a window of n new bytes, at most [MaxShared] of them, at a multiple of 64 (MPI_Win_allocate;
// MPI-4.1, Section 12.2.2). Else it is like [WinAllocate] and [WindowCreate].
func WindowAllocate(ctx context.Context, c *Comm, n, unit int, opts ...WinOption) (*Window, error) {
	o := readWinOptions(opts)
	cfg := rma.Config{Unit: unit}
	h, err := readWinHints(o.info)
	switch {
	case err != nil: // newWindow returns the error, on all ranks
	case n < 0:
		o.bad = fmt.Errorf("%w: window of %d bytes", ErrCount, n)
	case n > MaxShared || !rma.Room(n):
		o.bad = rma.NoMemory(n)
	default:
		align := max(h.align, windowAlign)
		if !o.messages {
			writable := o.access&(AccessWrite|AccessUpdate) != 0
			cfg.Mem, cfg.File = rma.Allocate((*winComm)(c), c.Size(), n, align, writable)
		}
		if cfg.File == nil {
			cfg.Mem = rma.AlignedBytes(n, align)
		}
	}
	return newWindow(ctx, c, cfg, WinFlavorAllocate, o)
}

// WindowAllocateShared makes a window of n new bytes on each rank that all ranks can also read and write as memory:
// see [Window.SharedQuery] (MPI_Win_allocate_shared; MPI-4.1, Section 12.2.3). Else it is like [WinAllocateShared].
func WindowAllocateShared(ctx context.Context, c *Comm, n, unit int, opts ...WinOption) (*Window, error) {
	return newSharedWindow(ctx, c, n, rma.Config{Unit: unit}, readWinOptions(opts))
}

// newSharedWindow makes a window of n elements of shared memory, which are as long as cfg.Elem, or a byte.
func newSharedWindow(ctx context.Context, c *Comm, n int, cfg rma.Config, o winOptions) (*Window, error) {
	elem := 1
	if cfg.Elem != nil {
		elem = cfg.Elem.Size()
	}
	hints, _ := readWinHints(o.info) // newWindow returns the error
	at := c.enter()
	err := c.consent(ctx, o.bad)
	if err == nil {
		cfg.Shared, err = shareMemory(ctx, c, n, elem, hints.noncontig)
	}
	if err != nil {
		c.leave(at, "WinAllocateShared", NoPeer, 0, 0, err)
		return nil, fmt.Errorf("creating shared window: %w", err)
	}
	cfg.Mem = cfg.Shared.Part(c.Rank())
	w, err := newWindow(ctx, c, cfg, WinFlavorShared, o)
	if err != nil {
		return nil, errors.Join(err, cfg.Shared.Drop())
	}
	return w, nil
}

// WindowCreateDynamic makes a window without memory: ranks attach memory with [Window.Attach], and displacements are
// its addresses in the process of the target, whatever its displacement unit (MPI_Win_create_dynamic; MPI-4.1, Section
// 12.2.4). All operations on it are active messages. All ranks of c must call it; it blocks until all have.
func WindowCreateDynamic(ctx context.Context, c *Comm, opts ...WinOption) (*Window, error) {
	return newWindow(ctx, c, rma.Config{Unit: 1, Address: true}, WinFlavorDynamic, readWinOptions(opts))
}

// winCalls are the names of the calls that make windows, by flavor.
var winCalls = [...]string{WinFlavorCreate: "WinCreate", WinFlavorAllocate: "WinAllocate",
	WinFlavorDynamic: "WinCreateDynamic", WinFlavorShared: "WinAllocateShared"}

// newWindow makes a window: cfg says of what memory.
func newWindow(ctx context.Context, c *Comm, cfg rma.Config, flavor WinFlavor, o winOptions) (*Window, error) {
	at := c.enter()
	w, err := makeWindow(ctx, c, cfg, flavor, o)
	c.leave(at, winCalls[flavor], NoPeer, 0, len(cfg.Mem), err)
	if err != nil {
		return nil, fmt.Errorf("creating window: %w", err)
	}
	return w, nil
}

func makeWindow(ctx context.Context, c *Comm, cfg rma.Config, flavor WinFlavor, o winOptions) (*Window, error) {
	w := &Window{of: c, flavor: flavor, mem: cfg.Mem, typ: cfg.Elem, elem: 1}
	if w.typ != nil {
		w.elem = w.typ.Size()
	}
	cfg.Access, cfg.Messages, cfg.Bad, cfg.Freed = rma.Access(o.access), o.messages, o.bad, w.own.attrs.dropAll
	if cfg.Dynamic = flavor == WinFlavorDynamic; cfg.Dynamic {
		cfg.Messages = true
	}
	own, err := c.private(ctx, "window")
	if err != nil {
		if cfg.File != nil {
			_ = cfg.File.Close()
		}
		return nil, err
	}
	w.c = own
	hints, err := readWinHints(o.info)
	if err != nil && cfg.Bad == nil {
		cfg.Bad = err
	}
	cfg.Hints = hints.Hints
	w.setInfo(o.info)
	if w.rma, err = rma.Create(ctx, (*winComm)(own), cfg); err != nil {
		return nil, err
	}
	return w, nil
}

// Free completes the caller's operations, blocks until all ranks have called it, and ends the use of the window
// (MPI_Win_free). All ranks must call it. It returns errors of operations that no synchronization has returned yet.
// Even if ctx ends it waits until ranks that have read the memory have acknowledged that, or are known to have failed.
// Memory of [WindowAllocate] and [WindowAllocateShared] must not be touched afterwards.
func (w *Window) Free(ctx context.Context) error {
	t := w.of.enter()
	err := w.rma.Free(ctx)
	w.of.leave(t, "Win.Free", NoPeer, 0, 0, err)
	return err
}

// Put stores the items of origin in tcount items of ttype that begin at disp in the window of target (MPI-4.1,
// Section 12.3.1). Each range of bytes that is contiguous on both sides is one transfer from the buffer, without
// packing. Put may wait for room in queues, and its buffers must not be touched until the operation is complete. It
// returns ErrTypeMismatch if the items differ in type, ErrCount if they differ in size, and ErrRange or ErrAccess if
// the window of target does not have that place, or does not allow to write it.
func (w *Window) Put(ctx context.Context, origin Buffer, target, disp, tcount int, ttype *Datatype) error {
	t := w.of.enter()
	err := origin.err
	if err == nil {
		err = w.rma.PutItems(ctx, origin.items, target, disp, tcount, ttype.typ())
	}
	w.of.leave(t, "Win.Put", target, 0, origin.Len(), err)
	return err
}

// Get loads tcount items of ttype that begin at disp in the window of target into the items of origin (MPI-4.1,
// Section 12.3.2). It blocks and fails like [Window.Put].
func (w *Window) Get(ctx context.Context, origin Buffer, target, disp, tcount int, ttype *Datatype) error {
	t := w.of.enter()
	err := origin.err
	if err == nil {
		err = w.rma.GetItems(ctx, origin.items, target, disp, tcount, ttype.typ())
	}
	w.of.leave(t, "Win.Get", target, 0, origin.Len(), err)
	return err
}

// Rput is [Window.Put] with a request that is done when origin may be used again (MPI_Rput; MPI-4.1, Section 12.3.5).
// The effect at the target still needs a [Window.Flush]. The call does not wait for the target, but may wait for room
// in queues.
func (w *Window) Rput(
	ctx context.Context, origin Buffer, target, disp, tcount int, ttype *Datatype,
) (*Request, error) {
	return w.request(target, w.Put(ctx, origin, target, disp, tcount, ttype))
}

// Rget is [Window.Get] with a request that is done when origin holds the data (MPI_Rget). The call does not wait for
// the target, but may wait for room in queues.
func (w *Window) Rget(
	ctx context.Context, origin Buffer, target, disp, tcount int, ttype *Datatype,
) (*Request, error) {
	return w.request(target, w.Get(ctx, origin, target, disp, tcount, ttype))
}

// request returns a request for the operations started on target so far.
func (w *Window) request(target int, err error) (*Request, error) {
	if err != nil {
		return nil, err
	}
	started, err := w.rma.Started(target)
	if !started {
		return doneRequest(w.of.w, Status{Source: target}, err), nil
	}
	return goRequest(w.of.w, func() (Status, error) {
		return Status{Source: target}, w.rma.FlushLocal(context.Background(), target)
	}), nil
}
