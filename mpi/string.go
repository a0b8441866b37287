package mpi

import "fmt"

// The String methods of handles name them in one short line. They take no lock, but
// for that of the name of a communicator.

// String returns the rank and the size of the job.
func (w *World) String() string { return fmt.Sprintf("mpi.World rank %d of %d", w.Rank(), w.Size()) }

// String returns the size.
func (g Group) String() string { return fmt.Sprintf("mpi.Group of %d", len(g.ranks)) }

// String says whether the operation has completed.
func (r *Request) String() string {
	if r.request.Finished.Load() {
		return "mpi.Request, completed"
	}
	return "mpi.Request, pending"
}

// String returns the element type, the length of this rank's memory, and the communicator.
func (w *Win[T]) String() string {
	var v T
	return fmt.Sprintf("mpi.Win of %d %T, %v", len(w.buf), v, w.w.c)
}

// String returns the length of this rank's memory, and the communicator (MPI-4.1, Section 12.2).
func (w *Window) String() string {
	return fmt.Sprintf("mpi.Window of %d bytes, %v", len(w.mem), w.c)
}

// String returns the name of the operator (MPI-4.1, Section 6.9.2).
func (o ItemOp) String() string { return "mpi.ItemOp " + o.Name() }

// String returns the element type and the name of the file.
func (f *File[T]) String() string {
	var v T
	return fmt.Sprintf("mpi.File of %T, %.100q", v, f.io.Name())
}

// String returns the name of the file (MPI-4.1, Section 14.2.1).
func (f *FileHandle) String() string { return fmt.Sprintf("mpi.FileHandle of %.100q", f.io.Name()) }

// String says whether the session was finalized.
func (s *Session) String() string {
	if s.ended.Load() {
		return "mpi.Session, finalized"
	}
	return "mpi.Session"
}

// String returns the source, the tag and the length.
func (m *Message) String() string {
	return fmt.Sprintf("mpi.Message of %d bytes from rank %d, tag %d", m.st.Bytes, m.st.Source, m.st.Tag)
}

// String returns the communicator, if there is one.
func (p *Persistent) String() string {
	if p.c == nil {
		return "mpi.Persistent"
	}
	return fmt.Sprintf("mpi.Persistent on %v", p.c)
}

// String returns the number of partitions.
func (p *PartitionedSend) String() string {
	return fmt.Sprintf("mpi.PartitionedSend of %d parts", p.parts)
}

// String returns the number of partitions.
func (p *PartitionedRecv) String() string {
	return fmt.Sprintf("mpi.PartitionedRecv of %d parts", p.parts)
}

// String says whether Complete was called.
func (g *Grequest) String() string {
	if g.completed.Load() {
		return "mpi.Grequest, completed"
	}
	return "mpi.Grequest, pending"
}

// String returns the dimensions and the communicator.
func (c *Cart) String() string {
	return fmt.Sprintf("mpi.Cart of %.60v, %v", fmt.Sprint(c.grid.Dims), c.c)
}

// String returns the numbers of neighbours and the communicator.
func (g *Graph) String() string {
	return fmt.Sprintf("mpi.Graph with %d sources and %d targets, %v", len(g.sources), len(g.targets), g.c)
}

// String returns a fixed text; [Profile.Calls] returns the contents.
func (p *Profile) String() string { return "mpi.Profile" }

// String returns a fixed text.
func (t *Tracer) String() string { return "mpi.Tracer" }
