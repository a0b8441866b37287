package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/rma"
)

// MaxAttached bounds the buffers that a rank has attached to a dynamic window.
const MaxAttached = rma.MaxAttached

// WinCreateDynamic makes a window without memory: ranks attach memory with [Win.Attach] (MPI-4.1,
// Section 12.2.4). All operations on it are active messages. All ranks of c must call it; it blocks
// until all have.
func WinCreateDynamic[T Element](ctx context.Context, c *Comm, opts ...WinOption) (*Win[T], error) {
	o := readWinOptions(opts)
	o.bad = datatype.CheckElement[T]()
	w, err := newWindow(ctx, c, elementConfig[T](rma.Config{}), WinFlavorDynamic, o)
	if err != nil {
		return nil, err
	}
	return &Win[T]{w, nil}, nil
}

// Attach adds buf to the caller's part of a dynamic window and returns its address: the
// displacement of its first element, which the program sends to the ranks that access it. It is
// local. It returns ErrWindow if the window is not dynamic, if buf overlaps a buffer that is
// attached (MPI-4.1, Section 12.2.4), or if [MaxAttached] buffers are attached.
func (w *Win[T]) Attach(buf []T) (disp int, err error) {
	return w.w.rma.Attach(datatype.Bytes(buf))
}

// Detach removes the buffer that was attached at disp (MPI_Win_detach). Operations of other ranks
// on it must be complete; later ones fail with ErrRange. It is local; it waits only for an
// operation that is being performed. It returns ErrRange if no buffer is attached at disp, and
// ErrWindow if the window is not dynamic.
func (w *Win[T]) Detach(disp int) error { return w.w.rma.Detach(disp) }

// Attach adds mem to the caller's part of a dynamic window and returns its displacement: its address in the process
// (MPI_Win_attach; MPI-4.1, Section 12.2.4). mem may also be memory that is not Go's; it must stay in place until it
// is detached or the window is freed. Otherwise it is like [Win.Attach].
func (w *Window) Attach(mem []byte) (disp int, err error) { return w.rma.Attach(mem) }

// Detach removes the memory that was attached at disp: see [Win.Detach] (MPI_Win_detach).
func (w *Window) Detach(disp int) error { return w.rma.Detach(disp) }
