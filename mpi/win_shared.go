package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/rma"
)

// MaxShared bounds the bytes of a shared window, and of the memory that WinAllocate makes on a
// rank: 1 TiB, or 1 GiB where an int has 32 bits.
const MaxShared = rma.MaxShared

// WinAllocateShared makes a window of n new elements on each rank that all ranks can also read and
// write as memory: see [Win.SharedQuery]. The parts follow one another in the order of the ranks
// (MPI-4.1, Section 12.2.3). All ranks of c must call it; it blocks until all have. If it fails on
// one rank it fails on all. They must be on one host, as after [Comm.SplitShared], else it returns
// ErrWindow. Ranks that are processes share a mapped file, which needs a Unix system; elsewhere it
// returns errors.ErrUnsupported. It returns ErrCount for an n that is negative, or if all parts are
// longer than [MaxShared].
//
// The program orders the accesses of the ranks: by [Win.Fence], or by [Win.Sync] together with a
// message or [Barrier]. The memory must not be touched after Free, which may unmap it: an access
// then ends the program.
func WinAllocateShared[T Element](ctx context.Context, c *Comm, n int, opts ...WinOption) (*Win[T], error) {
	o := readWinOptions(opts)
	cfg := elementConfig[T](rma.Config{})
	o.bad = datatype.CheckElement[T]()
	w, err := newSharedWindow(ctx, c, n, cfg, o)
	if err != nil {
		return nil, err
	}
	return &Win[T]{w, datatype.View[T](w.mem)}, nil
}

// SharedQuery returns the memory of a rank in the window, for direct loads and stores (MPI-4.1,
// Section 12.2.3). ProcNull stands for the lowest rank that has memory; if no rank has, the result
// is empty. It works for all ranks of a window of [WinAllocateShared], for the caller's own memory
// in any window but a dynamic one, and for memory of [WinAllocate] on ranks that share memory with
// the caller ([WithSharedMemory]). For other memory it returns ErrWindow, and for memory of
// [WinAllocate] on a rank that restricts access ([WithAccess]) ErrAccess. The result must not be
// touched after Free.
func (w *Win[T]) SharedQuery(rank int) ([]T, error) {
	mem, err := w.w.SharedQuery(rank)
	if err != nil {
		return nil, err
	}
	return datatype.View[T](mem), nil
}

// shareMemory makes memory with room for n elements of each rank.
func shareMemory(ctx context.Context, c *Comm, n, elem int, gaps bool) (*rma.Shared, error) {
	own, err := c.private(ctx, "window")
	if err != nil {
		return nil, err
	}
	defer own.Free()
	return rma.Share(ctx, (*winComm)(own), n, elem, gaps)
}
