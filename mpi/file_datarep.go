package mpi

import (
	"fmt"
	"reflect"

	"github.com/weftstack/weft/mpi/internal/bridge"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/fileio"
)

// MaxDatarep bounds the length of the name of a data representation, in bytes
// (MPI_MAX_DATAREP_STRING).
const MaxDatarep = fileio.MaxDatarep

// A Datarep says how elements of type T lie in a file (MPI-4.1, Section 14.5.3).
// Both functions may be called from several goroutines at a time, for some of
// the elements of an operation each, and must not keep the slices.
type Datarep[T Element] struct {
	// Size is the bytes that an element takes in the file, all the same.
	Size int
	// Read makes elements of src, which has Size bytes for each.
	Read func(dst []T, src []byte) error
	// Write fills dst, which has Size bytes for each element of src.
	Write func(dst []byte, src []T) error
}

// RegisterDatarep makes a data representation for files of elements of type T
// known by a name that File.SetView takes (MPI_Register_datarep). The same name
// may be used for different T. It returns ErrDatarep for a name that is taken,
// ErrOption for a representation that makes no sense. It is local; all ranks
// that set a view with it must have called it.
func RegisterDatarep[T Element](w *World, name string, rep Datarep[T]) error {
	if err := datatype.CheckElement[T](); err != nil {
		return err
	}
	if name == "" || len(name) > MaxDatarep || rep.Size < 1 || rep.Size > maxDatarepSize || rep.Read == nil ||
		rep.Write == nil {
		return fmt.Errorf("%w: data representation %.40q of %d bytes", ErrOption, name, rep.Size)
	}
	return w.datareps.AddElements(name, &fileio.Elements{
		Elem: datatype.LayoutOf(reflect.TypeFor[T]()), Size: rep.Size,
		Read:  func(dst, src []byte) error { return rep.Read(datatype.View[T](dst), src) },
		Write: func(dst, src []byte) error { return rep.Write(dst, datatype.View[T](src)) },
	})
}

// maxDatarepSize bounds the bytes of an element in a file.
const maxDatarepSize = 1 << 30

// TypeExtent returns the bytes from one item of a datatype to the next in the
// file, in the representation of the view (MPI-4.1, Section 14.5.1:
// MPI_File_get_type_extent). It returns ErrView for a datatype whose items are
// no whole number of elements, if that is needed.
func (f *File[T]) TypeExtent(t *Datatype) (int, error) {
	n, ok := f.io.Scale(t.typ().Extent())
	if !ok {
		return 0, fmt.Errorf("%w: %v for elements of %d bytes", ErrView, t, f.elem.Size)
	}
	return int(n), nil
}

// TypeExtent returns the bytes from one item of a datatype to the next in the file, in the
// representation of the view (MPI_File_get_type_extent). It returns ErrDatarep for elements that the
// representation does not have, and ErrDatatype if t is nil.
func (f *FileHandle) TypeExtent(t *Datatype) (int, error) {
	if t == nil {
		return 0, fmt.Errorf("%w: nil", ErrDatatype)
	}
	return f.io.Extent(t.rt)
}

func init() {
	bridge.RegisterDatarep = func(world any, name string, rep *fileio.Items) error {
		return world.(*World).datareps.AddItems(name, rep)
	}
}
