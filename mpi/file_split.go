package mpi

import "context"

// Split collective operations: Begin starts one, and the method without a
// buffer ends it (MPI-4.1, Section 14.4.5). A file has one at a time; the
// buffer must not be touched between.

// ReadAtAllBegin begins [File.ReadAtAll] (MPI_File_read_at_all_begin). It does not block.
func (f *File[T]) ReadAtAllBegin(offset int64, buf []T) error {
	return f.FileHandle.ReadAtAllBegin(offset, f.items(buf))
}

// ReadAtAllEnd ends [File.ReadAtAllBegin] and returns the number of elements read
// (MPI_File_read_at_all_end). It blocks until they are there; until then the
// buffer of the begin call belongs to the operation.
func (f *File[T]) ReadAtAllEnd(ctx context.Context) (int, error) {
	return f.count(f.FileHandle.ReadAtAllEnd(ctx))
}

// WriteAtAllBegin begins [File.WriteAtAll] (MPI_File_write_at_all_begin). It does not block.
func (f *File[T]) WriteAtAllBegin(offset int64, buf []T) error {
	return f.FileHandle.WriteAtAllBegin(offset, f.items(buf))
}

// WriteAtAllEnd ends [File.WriteAtAllBegin] (MPI_File_write_at_all_end). It blocks until all is
// written; until then the buffer of the begin call belongs to the operation.
func (f *File[T]) WriteAtAllEnd(ctx context.Context) (int, error) {
	return f.count(f.FileHandle.WriteAtAllEnd(ctx))
}

// ReadAllBegin begins [File.ReadAll] (MPI_File_read_all_begin). It does not block.
func (f *File[T]) ReadAllBegin(buf []T) error {
	return f.FileHandle.ReadAllBegin(f.items(buf))
}

// ReadAllEnd ends [File.ReadAllBegin] (MPI_File_read_all_end). It blocks until they are there;
// until then the buffer of the begin call belongs to the operation.
func (f *File[T]) ReadAllEnd(ctx context.Context) (int, error) {
	return f.count(f.FileHandle.ReadAllEnd(ctx))
}

// WriteAllBegin begins [File.WriteAll] (MPI_File_write_all_begin). It does not block.
func (f *File[T]) WriteAllBegin(buf []T) error {
	return f.FileHandle.WriteAllBegin(f.items(buf))
}

// WriteAllEnd ends [File.WriteAllBegin] (MPI_File_write_all_end). It blocks until all is written;
// until then the buffer of the begin call belongs to the operation.
func (f *File[T]) WriteAllEnd(ctx context.Context) (int, error) {
	return f.count(f.FileHandle.WriteAllEnd(ctx))
}

// ReadOrderedBegin begins [File.ReadOrdered] (MPI_File_read_ordered_begin). It does not block.
func (f *File[T]) ReadOrderedBegin(buf []T) error {
	return f.FileHandle.ReadOrderedBegin(f.items(buf))
}

// ReadOrderedEnd ends [File.ReadOrderedBegin] (MPI_File_read_ordered_end). It blocks until they are
// there; until then the buffer of the begin call belongs to the operation.
func (f *File[T]) ReadOrderedEnd(ctx context.Context) (int, error) {
	return f.count(f.FileHandle.ReadOrderedEnd(ctx))
}

// WriteOrderedBegin begins [File.WriteOrdered] (MPI_File_write_ordered_begin). It does not block.
func (f *File[T]) WriteOrderedBegin(buf []T) error {
	return f.FileHandle.WriteOrderedBegin(f.items(buf))
}

// WriteOrderedEnd ends [File.WriteOrderedBegin] (MPI_File_write_ordered_end). It blocks until all is
// written; until then the buffer of the begin call belongs to the operation.
func (f *File[T]) WriteOrderedEnd(ctx context.Context) (int, error) {
	return f.count(f.FileHandle.WriteOrderedEnd(ctx))
}
