package mpi

func (w *Win[T]) attributes() *attributes { return &w.w.own.attrs }

// Name returns the name given with SetName (MPI_Win_get_name).
func (w *Win[T]) Name() string { return w.w.own.getName() }

// SetName names the window (MPI_Win_set_name). It is local.
func (w *Win[T]) SetName(name string) { w.w.own.setName(name) }
