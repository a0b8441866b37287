package mpi

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/rma"
)

// Access is a set of rights to a window.
type Access uint8

// Rights of the other ranks to a window.
const (
	AccessRead   = Access(rma.AccessRead)   // allows Get
	AccessWrite  = Access(rma.AccessWrite)  // allows Put
	AccessUpdate = Access(rma.AccessUpdate) // allows Accumulate, FetchAndOp, CompareAndSwap and their other forms
	AccessAll    = AccessRead | AccessWrite | AccessUpdate
)

// A WinOption changes how a window is made.
type WinOption func(*winOptions)

type winOptions struct {
	access   Access
	messages bool
	info     Info
	// allocated says that the memory is made for the window.
	allocated bool
	bad       error // why this rank cannot make its part of the window
}

// readWinOptions applies opts. Hints are checked later, when the window is made.
func readWinOptions(opts []WinOption) winOptions {
	o := winOptions{access: AccessAll}
	for _, f := range opts {
		f(&o)
	}
	return o
}

// WithAccess restricts what other ranks may do with the caller's memory: other operations return
// ErrAccess. The default is [AccessAll]. The rights may differ between ranks.
func WithAccess(a Access) WinOption { return func(o *winOptions) { o.access = a & AccessAll } }

// WithMessages makes the window use messages even where RDMA is available. All ranks must agree,
// else they get ErrWindow.
func WithMessages() WinOption { return func(o *winOptions) { o.messages = true } }

// Win is a window: memory of each rank of a communicator that the others read and write without its
// help (MPI-4.1, Chapter 12). [Win.Put], [Win.Get] and [Win.Accumulate] start operations.
// [Win.Fence], [Win.Complete], [Win.Unlock] and [Win.Flush] complete them: then their buffers are
// free and their effect is visible at the target. Operations may start at any time: a window is
// always open, and synchronization calls only complete and order operations. Displacements count
// elements of the target's buffer.
//
// With TransportHybrid, Put is an RDMA Write, Get an RDMA Read, and updates of one 64-bit integer
// are RDMA atomics, over queue pairs that are connected on first use. Ranks that share memory
// ([WithSharedMemory]) map what [WinAllocate] makes: there Put and Get are copies, and updates of
// 64-bit integers processor atomics, which are complete at once. Other memory of the host is copied
// from process to process by cross-memory attach, if the system allows it; short Puts are
// aggregated until there are many, another operation on the target follows, or a synchronization
// completes them. All other operations are active messages, which a goroutine of the target or its
// progress hook performs. In all cases the target need not call anything.
//
// Updates (Accumulate, GetAccumulate, FetchAndOp, CompareAndSwap) are atomic for each element with
// respect to one another; Put and Get are not. Methods may be called from several goroutines at a
// time. Operations and their synchronization return ErrWindow after [Win.Free], and ErrRank for a
// target that does not exist.
type Win[T Element] struct {
	w   *Window
	buf []T
}

// WinCreate makes a window of buf, which may have another length on each rank (MPI-4.1, Section
// 12.2.1). All ranks of c must call it with the same T, else it returns ErrWindow; it blocks until
// all have. If a rank cannot make its part, it fails on all ranks. The window uses buf until it is
// freed.
func WinCreate[T Element](ctx context.Context, c *Comm, buf []T, opts ...WinOption) (*Win[T], error) {
	o := readWinOptions(opts)
	if o.bad = datatype.CheckElement[T](); o.bad != nil {
		buf = nil
	}
	return winCreate(ctx, c, buf, nil, o)
}

// winCreate makes a window of buf. f is the file that holds buf, or nil.
func winCreate[T Element](ctx context.Context, c *Comm, buf []T, f *os.File, o winOptions) (*Win[T], error) {
	flavor := WinFlavorCreate
	if f != nil || o.allocated {
		flavor = WinFlavorAllocate
	}
	w, err := newWindow(ctx, c, elementConfig[T](rma.Config{Mem: datatype.Bytes(buf), File: f}), flavor, o)
	if err != nil {
		return nil, err
	}
	return &Win[T]{w, buf}, nil
}

// elementConfig makes cfg that of a window of elements of type T.
func elementConfig[T Element](cfg rma.Config) rma.Config {
	t := reflect.TypeFor[T]()
	cfg.Elem = rma.ElemOf(t)
	cfg.Unit, cfg.Kind = cfg.Elem.Size(), uint32(t.Kind())
	return cfg
}

// WinAllocate makes a window of n new elements, at most [MaxShared] bytes, which ranks that share
// memory with the caller ([WithSharedMemory]) access directly (MPI_Win_allocate; MPI-4.1, Section
// 12.2.2). After Free the elements are ordinary memory of the program. All ranks of c must call it;
// it blocks until all have. If it fails on one rank it fails on all. It returns ErrCount for an n
// that is negative or too large.
func WinAllocate[T Element](ctx context.Context, c *Comm, n int, opts ...WinOption) (*Win[T], error) {
	o := readWinOptions(opts)
	o.allocated = true
	h, err := readWinHints(o.info)
	bytes, ok := datatype.Mul(n, datatype.SizeOf[T]())
	if o.bad = datatype.CheckElement[T](); o.bad == nil && (n < 0 || !ok || bytes > MaxShared) {
		o.bad = fmt.Errorf("%w: window of %d elements", ErrCount, n)
	} else if o.bad == nil && !rma.Room(bytes) {
		o.bad = rma.NoMemory(bytes)
	}
	if err != nil || o.bad != nil {
		return winCreate(ctx, c, []T(nil), nil, o) // returns the error, on all ranks
	}
	if !o.messages {
		writable := o.access&(AccessWrite|AccessUpdate) != 0
		if mem, f := rma.Allocate((*winComm)(c), c.Size(), bytes, h.align, writable); f != nil {
			return winCreate(ctx, c, datatype.View[T](mem), f, o)
		}
	}
	if h.align > 8 {
		return winCreate(ctx, c, datatype.View[T](rma.AlignedBytes(bytes, h.align)), nil, o)
	}
	return winCreate(ctx, c, make([]T, n), nil, o)
}

// Buf returns the caller's own memory in the window (MPI_WIN_BASE).
func (w *Win[T]) Buf() []T { return w.buf }

// Len returns the number of elements in the window of a rank, 0 for a rank that does not exist
// (MPI_WIN_SIZE).
func (w *Win[T]) Len(rank int) int {
	if rank < 0 || rank >= w.w.rma.Size() {
		return 0
	}
	return w.w.rma.Bytes(rank) / w.w.elem
}

// RDMA reports whether Put and Get use RDMA.
func (w *Win[T]) RDMA() bool { return w.w.rma.RDMA() }

// Free completes the caller's operations, blocks until all ranks have called it, and ends the use
// of the window (MPI_Win_free). All ranks must call it. It returns errors of operations that no
// synchronization has returned yet. Even if ctx ends it waits until ranks that have read the memory have
// acknowledged that, or are known to have failed.
func (w *Win[T]) Free(ctx context.Context) error {
	return w.w.Free(ctx)
}

// Put stores src at disp in the window of target (MPI-4.1, Section 12.3.1). src must not be changed
// until the operation is complete. Put does not wait for the target, but may wait for a connection
// or for room in queues. It returns ErrRange or ErrAccess if the window of target does not have
// that place, or does not allow to write it.
func (w *Win[T]) Put(ctx context.Context, src []T, target, disp int) error {
	t := w.w.of.enter()
	err := w.w.rma.Put(ctx, datatype.Bytes(src), target, disp)
	w.w.of.leave(t, "Win.Put", target, 0, len(src)*w.w.elem, err)
	return err
}

// Get loads len(dst) elements from disp in the window of target into dst, which must not be touched
// until the operation is complete (MPI-4.1, Section 12.3.2). It blocks and fails like [Win.Put].
func (w *Win[T]) Get(ctx context.Context, dst []T, target, disp int) error {
	t := w.w.of.enter()
	err := w.w.rma.Get(ctx, datatype.Bytes(dst), target, disp)
	w.w.of.leave(t, "Win.Get", target, 0, len(dst)*w.w.elem, err)
	return err
}

// Accumulate combines src into the window of target: each element there becomes old op new
// (MPI-4.1, Section 12.3.4). op is one of the predefined operators that T has, or [Replace]; others
// give ErrOp. Like [Win.Put] it may wait for room in queues, and its buffers must not be touched
// until the operation is complete. Errors to test for: ErrRange, ErrAccess, ErrOp, and ErrCount for
// elements longer than 1 MiB.
func (w *Win[T]) Accumulate(ctx context.Context, src []T, target, disp int, op Op[T]) error {
	t := w.w.of.enter()
	err := w.w.rma.Update(ctx, datatype.Bytes(src), nil, target, disp, w.w.typ, op.reducer())
	w.w.of.leave(t, "Win.Accumulate", target, 0, len(src)*w.w.elem, err)
	return err
}

// GetAccumulate is [Win.Accumulate] that also stores the old elements to result
// (MPI_Get_accumulate). With [NoOp] it is an atomic Get. src and result must have the same length,
// else it returns ErrCount. Like Put it may wait for room in queues, and its buffers must not be
// touched until the operation is complete. Errors to test for: ErrRange, ErrAccess, ErrOp,
// ErrCount.
func (w *Win[T]) GetAccumulate(ctx context.Context, src, result []T, target, disp int, op Op[T]) error {
	if len(src) != len(result) {
		return fmt.Errorf("%w: result holds %d elements, not %d", ErrCount, len(result), len(src))
	}
	t := w.w.of.enter()
	err := w.w.rma.Update(ctx, datatype.Bytes(src), datatype.Bytes(result), target, disp, w.w.typ, op.reducer())
	w.w.of.leave(t, "Win.GetAccumulate", target, 0, len(src)*w.w.elem, err)
	return err
}

// FetchAndOp combines value into one element and returns the old one (MPI-4.1, Section 12.3.4). It
// blocks until the target has answered; [Win.FetchAndOpTo] does not. Errors to test for: ErrRange,
// ErrAccess, ErrOp.
func (w *Win[T]) FetchAndOp(ctx context.Context, value T, target, disp int, op Op[T]) (T, error) {
	var old T
	t := w.w.of.enter()
	err := w.w.rma.Fetch(ctx, datatype.Bytes([]T{value}), datatype.Bytes(oneOf(&old)), target, disp, w.w.typ, op.reducer())
	w.w.of.leave(t, "Win.FetchAndOp", target, 0, w.w.elem, err)
	return answered(&old, err)
}

// FetchAndOpTo is [Win.FetchAndOp] that does not wait for the target (MPI_Fetch_and_op). *result
// holds the old element once [Win.Flush], [Win.FlushLocal] or another synchronization has completed
// the operation, and must not be touched before. value is copied. Updates of one target by one rank
// are performed in the order of the calls, including those of both forms.
func (w *Win[T]) FetchAndOpTo(ctx context.Context, value T, result *T, target, disp int, op Op[T]) error {
	t := w.w.of.enter()
	old := datatype.Bytes(oneOf(result))
	err := w.w.rma.Update(ctx, datatype.Bytes([]T{value}), old, target, disp, w.w.typ, op.reducer())
	w.w.of.leave(t, "Win.FetchAndOpTo", target, 0, w.w.elem, err)
	return err
}

// CompareAndSwap stores swap in an element if that holds compare, bit by bit, and returns what it
// held (MPI-4.1, Section 12.3.4). It blocks until the target has answered; [Win.CompareAndSwapTo]
// does not. Errors to test for: ErrRange, ErrAccess, and ErrCount for elements longer than 4 KiB.
func (w *Win[T]) CompareAndSwap(ctx context.Context, compare, swap T, target, disp int) (T, error) {
	var old T
	t := w.w.of.enter()
	err := w.w.rma.Swap(ctx, datatype.Bytes([]T{compare, swap}), datatype.Bytes(oneOf(&old)), target, disp, w.w.typ, true)
	w.w.of.leave(t, "Win.CompareAndSwap", target, 0, w.w.elem, err)
	return answered(&old, err)
}

// CompareAndSwapTo is [Win.CompareAndSwap] that does not wait for the target
// (MPI_Compare_and_swap): see [Win.FetchAndOpTo] for *result and the order.
func (w *Win[T]) CompareAndSwapTo(ctx context.Context, compare, swap T, result *T, target, disp int) error {
	t := w.w.of.enter()
	old := datatype.Bytes(oneOf(result))
	err := w.w.rma.Swap(ctx, datatype.Bytes([]T{compare, swap}), old, target, disp, w.w.typ, false)
	w.w.of.leave(t, "Win.CompareAndSwapTo", target, 0, w.w.elem, err)
	return err
}

// answered returns what a target has stored in old. After an error the target may still store to
// old, so its value is not used.
func answered[T any](old *T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return *old, nil
}

// Rput is [Win.Put] with a request that is done when src may be used again (MPI_Rput; MPI-4.1,
// Section 12.3.5). The effect at the target still needs a [Win.Flush]. The call does not wait for
// the target, but may wait for room in queues.
func (w *Win[T]) Rput(ctx context.Context, src []T, target, disp int) (*Request, error) {
	return w.w.request(target, w.Put(ctx, src, target, disp))
}

// Rget is [Win.Get] with a request that is done when dst holds the data (MPI_Rget). The call does
// not wait for the target, but may wait for room in queues.
func (w *Win[T]) Rget(ctx context.Context, dst []T, target, disp int) (*Request, error) {
	return w.w.request(target, w.Get(ctx, dst, target, disp))
}

// Raccumulate is [Win.Accumulate] with a request that is done when src may be used again
// (MPI_Raccumulate). The call does not wait for the target, but may wait for room in queues.
func (w *Win[T]) Raccumulate(ctx context.Context, src []T, target, disp int, op Op[T]) (*Request, error) {
	return w.w.request(target, w.Accumulate(ctx, src, target, disp, op))
}

// RgetAccumulate is [Win.GetAccumulate] with a request that is done when result holds the data
// (MPI_Rget_accumulate). The call does not wait for the target, but may wait for room in queues.
func (w *Win[T]) RgetAccumulate(ctx context.Context, src, result []T, target, disp int, op Op[T]) (*Request, error) {
	return w.w.request(target, w.GetAccumulate(ctx, src, result, target, disp, op))
}

// oneOf returns *p as a slice.
func oneOf[T Element](p *T) []T { return unsafe.Slice(p, 1) }
