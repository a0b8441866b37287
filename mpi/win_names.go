package mpi

func (w *Win[T]) attributes() *attributes { return w.w.attributes() }
func (w *Window) attributes() *attributes { return &w.own.attrs }

// Name returns the name given with SetName (MPI_Win_get_name).
func (w *Win[T]) Name() string { return w.w.Name() }

// Name returns the name given with SetName (MPI_Win_get_name).
func (w *Window) Name() string { return w.own.getName() }

// SetName names the window (MPI_Win_set_name). It is local.
func (w *Win[T]) SetName(name string) { w.w.SetName(name) }

// SetName names the window (MPI_Win_set_name). It is local.
func (w *Window) SetName(name string) {
	w.own.setName(name)
	w.c.SetName("window " + name)
}

// Base returns the caller's own memory in the window; nil for a dynamic window (MPI_WIN_BASE).
func (w *Window) Base() []byte { return w.mem }

// Size returns the bytes of the memory of a rank, 0 for a rank that does not exist (MPI_WIN_SIZE).
func (w *Window) Size(rank int) int {
	if rank < 0 || rank >= w.rma.Size() {
		return 0
	}
	return w.rma.Bytes(rank)
}

// Unit returns the bytes that a displacement in the memory of a rank counts, 0 for a rank that does not exist
// (MPI_WIN_DISP_UNIT).
func (w *Window) Unit(rank int) int {
	if rank < 0 || rank >= w.rma.Size() {
		return 0
	}
	return w.rma.Unit(rank)
}

// Flavor returns how the window was made (MPI_WIN_CREATE_FLAVOR). Its memory model is always unified
// (MPI_WIN_MODEL).
func (w *Window) Flavor() WinFlavor { return w.flavor }

// SharedQuery returns the memory of a rank in the window, for direct loads and stores: see [Win.SharedQuery]
// (MPI_Win_shared_query; MPI-4.1, Section 12.2.3).
func (w *Window) SharedQuery(rank int) ([]byte, error) { return w.rma.Query(rank) }
