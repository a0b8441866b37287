package mpi

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// Access is a set of rights to a window.
type Access uint8

// Rights of the other ranks to a window.
const (
	AccessRead   Access = 1 << iota // Get
	AccessWrite                     // Put
	AccessUpdate                    // Accumulate and its relatives
	AccessAll    = AccessRead | AccessWrite | AccessUpdate
)

// A WinOption changes how a window is made.
type WinOption func(*winOptions)

type winOptions struct {
	access   Access
	messages bool
	info     Info
	bad      error // what makes the window impossible on this rank
}

// readWinOptions applies opts. The hints are checked when the window is made.
func readWinOptions(opts []WinOption) winOptions {
	o := winOptions{access: AccessAll}
	for _, f := range opts {
		f(&o)
	}
	return o
}

// WithAccess restricts what other ranks may do with the caller's memory. The
// default is AccessAll. The rights may differ between ranks.
func WithAccess(a Access) WinOption { return func(o *winOptions) { o.access = a & AccessAll } }

// WithMessages makes the window use messages even where RDMA is available. All
// ranks must agree.
func WithMessages() WinOption { return func(o *winOptions) { o.messages = true } }

// Win is a window: memory of each rank of a communicator that the others read
// and write without its help (MPI-4.1, Chapter 12). Operations start with Put,
// Get and Accumulate and are complete, with their buffers free again and their
// effect visible at the target, after Fence, Complete, Unlock or Flush. They
// may be started at any time: a window is always open, the synchronization
// calls only complete and order operations. Displacements count elements of
// the target's buffer.
//
// With TransportHybrid, Put is an RDMA Write, Get an RDMA Read, and updates of
// one 64-bit integer are RDMA atomics, over queue pairs connected on first use.
// Between ranks that share memory (WithSharedMemory) each maps what WinAllocate makes
// for the others: Put, Get and updates of 64-bit integers are then done at once, as in
// memory of its own. Other memory the system copies from process to process, where it
// allows that; short Puts wait for it here until there are many, another operation on
// the target follows, or a synchronization completes them.
// All else travels in messages that a goroutine of the target serves. Either
// way the target need not call anything.
//
// Updates (Accumulate, GetAccumulate, FetchAndOp, CompareAndSwap) are atomic
// for each element with respect to one another; Put and Get are not. Methods
// may be called from several goroutines at a time.
type Win[T Element] struct {
	w   *window
	buf []T
}

// WinCreate makes a window of buf, which may be of a different length on each
// rank; T must be the same. All ranks of c must call it; it blocks until they
// do (MPI-4.1, Section 12.2.1). The window uses buf until it is freed.
func WinCreate[T Element](ctx context.Context, c *Comm, buf []T, opts ...WinOption) (*Win[T], error) {
	o := readWinOptions(opts)
	if o.bad = datatype.CheckElement[T](); o.bad != nil {
		buf = nil
	}
	return winCreate(ctx, c, buf, nil, o)
}

// winCreate makes a window of buf, and of the file that it is in if that is not nil.
func winCreate[T Element](ctx context.Context, c *Comm, buf []T, f *os.File, o winOptions) (*Win[T], error) {
	t := reflect.TypeFor[T]()
	mem := datatype.Bytes(buf)
	w := &window{mem: mem, file: f, elem: max(datatype.SizeOf[T](), 1), word: isWord(t), sig: datatype.SigOf(t), ops: reducersOf[T](t.Kind())}
	at := c.enter()
	err := w.create(ctx, c, uint32(t.Kind()), o)
	c.leave(at, "WinCreate", NoPeer, 0, len(mem), err)
	if err != nil {
		return nil, fmt.Errorf("creating window: %w", err)
	}
	return &Win[T]{w, buf}, nil
}

// WinAllocate makes a window of n new elements, of up to MaxShared bytes (MPI-4.1,
// Section 12.2.2), which ranks that share memory with the caller (WithSharedMemory)
// can reach directly (MPI_Win_allocate). After Free the elements are the program's,
// like any others. If it fails on one rank it fails on all. It blocks until all
// ranks of c have called it.
func WinAllocate[T Element](ctx context.Context, c *Comm, n int, opts ...WinOption) (*Win[T], error) {
	o := readWinOptions(opts)
	h, err := readWinHints(o.info)
	bytes, ok := datatype.Mul(n, datatype.SizeOf[T]())
	if o.bad = datatype.CheckElement[T](); o.bad == nil && (n < 0 || !ok || bytes > MaxShared) {
		o.bad = fmt.Errorf("%w: window of %d elements", ErrCount, n)
	}
	if err != nil || o.bad != nil {
		return winCreate(ctx, c, []T(nil), nil, o) // which tells what is wrong
	}
	if mem, f := hostBytes(c, bytes, h.align, &o); f != nil {
		return winCreate(ctx, c, datatype.View[T](mem), f, o)
	}
	if h.align > 8 {
		return winCreate(ctx, c, datatype.View[T](alignedBytes(bytes, h.align)), nil, o)
	}
	return winCreate(ctx, c, make([]T, n), nil, o)
}

// Buf returns the caller's own memory in the window (MPI_WIN_BASE).
func (w *Win[T]) Buf() []T { return w.buf }

// Len returns the number of elements in the window of a rank (MPI_WIN_SIZE).
func (w *Win[T]) Len(rank int) int {
	if rank < 0 || rank >= len(w.w.remote) {
		return 0
	}
	return int(w.w.remote[rank].Bytes) / w.w.elem
}

// RDMA reports whether Put and Get use RDMA.
func (w *Win[T]) RDMA() bool { return w.w.dev != nil }

// Free ends the use of the window (MPI_Win_free). All ranks must call it; it
// completes the caller's operations and blocks until all ranks have done so.
// Errors of operations not yet reported are returned.
func (w *Win[T]) Free(ctx context.Context) error {
	t := w.w.of.enter()
	err := w.w.free(ctx)
	w.w.of.leave(t, "Win.Free", NoPeer, 0, 0, err)
	return err
}

// Put stores src at disp in the window of target (MPI-4.1, Section 12.3.1). src
// must not be changed until the operation is complete. It does not wait for
// the target, but may wait for room in queues. It returns ErrRange or ErrAccess
// at once if the window does not have, or allow to write, that place.
func (w *Win[T]) Put(ctx context.Context, src []T, target, disp int) error {
	t := w.w.of.enter()
	err := w.w.put(ctx, datatype.Bytes(src), target, disp)
	w.w.of.leave(t, "Win.Put", target, 0, len(src)*w.w.elem, err)
	return err
}

// Get loads len(dst) elements from disp in the window of target into dst, which
// must not be touched until the operation is complete (MPI-4.1, Section
// 12.3.2). Otherwise it is like Put.
func (w *Win[T]) Get(ctx context.Context, dst []T, target, disp int) error {
	t := w.w.of.enter()
	err := w.w.get(ctx, datatype.Bytes(dst), target, disp)
	w.w.of.leave(t, "Win.Get", target, 0, len(dst)*w.w.elem, err)
	return err
}

// Accumulate combines src into the window of target: each element there becomes
// old op new (MPI-4.1, Section 12.3.4). op is one of the predefined operators
// that T has, or Replace; others give ErrOp. Like Put it may wait for room in
// queues, and its buffers must not be touched until the operation is complete.
// Errors to test for: ErrRange, ErrAccess, ErrOp.
func (w *Win[T]) Accumulate(ctx context.Context, src []T, target, disp int, op Op[T]) error {
	t := w.w.of.enter()
	err := w.w.update(ctx, datatype.Bytes(src), nil, target, disp, op.reducer())
	w.w.of.leave(t, "Win.Accumulate", target, 0, len(src)*w.w.elem, err)
	return err
}

// GetAccumulate is Accumulate that also stores the old elements to result
// (MPI_Get_accumulate). With NoOp it is an atomic Get. Like Put it may wait for
// room in queues, and its buffers must not be touched until the operation is
// complete. Errors to test for: ErrRange, ErrAccess, ErrOp.
func (w *Win[T]) GetAccumulate(ctx context.Context, src, result []T, target, disp int, op Op[T]) error {
	if len(src) != len(result) {
		return fmt.Errorf("%w: result holds %d elements, not %d", ErrCount, len(result), len(src))
	}
	t := w.w.of.enter()
	err := w.w.update(ctx, datatype.Bytes(src), datatype.Bytes(result), target, disp, op.reducer())
	w.w.of.leave(t, "Win.GetAccumulate", target, 0, len(src)*w.w.elem, err)
	return err
}

// FetchAndOp combines value into one element and returns the old one (MPI-4.1, Section
// 12.3.4). It waits for the target's answer; FetchAndOpTo does not.
func (w *Win[T]) FetchAndOp(ctx context.Context, value T, target, disp int, op Op[T]) (T, error) {
	var old T
	t := w.w.of.enter()
	err := w.w.fetch(ctx, datatype.Bytes([]T{value}), datatype.Bytes(oneOf(&old)), target, disp, op.reducer())
	w.w.of.leave(t, "Win.FetchAndOp", target, 0, w.w.elem, err)
	return answered(&old, err)
}

// FetchAndOpTo is FetchAndOp that does not wait for the target (MPI_Fetch_and_op): the
// old element is in *result, which must not be touched before, once a Flush, FlushLocal
// or another synchronization completes the operation. value is copied. Updates of one
// target by one rank are performed in the order of the calls, those of both forms
// included.
func (w *Win[T]) FetchAndOpTo(ctx context.Context, value T, result *T, target, disp int, op Op[T]) error {
	t := w.w.of.enter()
	err := w.w.update(ctx, datatype.Bytes([]T{value}), datatype.Bytes(oneOf(result)), target, disp, op.reducer())
	w.w.of.leave(t, "Win.FetchAndOpTo", target, 0, w.w.elem, err)
	return err
}

// CompareAndSwap stores swap in an element if that holds compare, bit by bit,
// and returns what it held (MPI-4.1, Section 12.3.4). It waits for the target's answer;
// CompareAndSwapTo does not.
func (w *Win[T]) CompareAndSwap(ctx context.Context, compare, swap T, target, disp int) (T, error) {
	var old T
	t := w.w.of.enter()
	err := w.w.swap(ctx, datatype.Bytes([]T{compare, swap}), datatype.Bytes(oneOf(&old)), target, disp, true)
	w.w.of.leave(t, "Win.CompareAndSwap", target, 0, w.w.elem, err)
	return answered(&old, err)
}

// CompareAndSwapTo is CompareAndSwap that does not wait for the target
// (MPI_Compare_and_swap): see FetchAndOpTo for *result and the order.
func (w *Win[T]) CompareAndSwapTo(ctx context.Context, compare, swap T, result *T, target, disp int) error {
	t := w.w.of.enter()
	err := w.w.swap(ctx, datatype.Bytes([]T{compare, swap}), datatype.Bytes(oneOf(result)), target, disp, false)
	w.w.of.leave(t, "Win.CompareAndSwapTo", target, 0, w.w.elem, err)
	return err
}

// answered returns what a target has stored in old. Without an answer it may still be
// about to.
func answered[T any](old *T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return *old, nil
}

// Rput is Put with a request that is done when src may be used again (MPI-4.1,
// Section 12.3.5); the effect at the target still needs a Flush (MPI_Rput). The
// call itself does not wait for the target, but may wait for room in queues.
func (w *Win[T]) Rput(ctx context.Context, src []T, target, disp int) (*Request, error) {
	return w.w.request(target, w.Put(ctx, src, target, disp))
}

// Rget is Get with a request that is done when dst holds the data (MPI_Rget).
// The call itself does not wait for the target, but may wait for room in
// queues.
func (w *Win[T]) Rget(ctx context.Context, dst []T, target, disp int) (*Request, error) {
	return w.w.request(target, w.Get(ctx, dst, target, disp))
}

// Raccumulate is Accumulate with a request that is done when src may be used
// again (MPI_Raccumulate). The call itself does not wait for the target, but
// may wait for room in queues.
func (w *Win[T]) Raccumulate(ctx context.Context, src []T, target, disp int, op Op[T]) (*Request, error) {
	return w.w.request(target, w.Accumulate(ctx, src, target, disp, op))
}

// RgetAccumulate is GetAccumulate with a request that is done when result holds
// the data (MPI_Rget_accumulate). The call itself does not wait for the target,
// but may wait for room in queues.
func (w *Win[T]) RgetAccumulate(ctx context.Context, src, result []T, target, disp int, op Op[T]) (*Request, error) {
	return w.w.request(target, w.GetAccumulate(ctx, src, result, target, disp, op))
}

// oneOf returns *p as a slice.
func oneOf[T Element](p *T) []T { return unsafe.Slice(p, 1) }
