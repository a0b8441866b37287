package mpi

import (
	"fmt"
	"reflect"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
)

// MaxDatarep bounds the length of the name of a data representation, in bytes
// (MPI_MAX_DATAREP_STRING).
const MaxDatarep = 128

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
	if name == "" || len(name) > MaxDatarep || rep.Size < 1 || rep.Size > maxDatarepSize || rep.Read == nil || rep.Write == nil {
		return fmt.Errorf("%w: data representation %.40q of %d bytes", ErrOption, name, rep.Size)
	}
	return w.addDatarep(datatype.LayoutOf(reflect.TypeFor[T]()), &datarep{
		name: name, size: rep.Size,
		read:  func(dst, src []byte) error { return rep.Read(datatype.View[T](dst), src) },
		write: func(dst, src []byte) error { return rep.Write(dst, datatype.View[T](src)) },
	})
}

// maxDatarepSize bounds the bytes of an element in a file.
const maxDatarepSize = 1 << 30

// datarep is a Datarep to code that knows elements as bytes only.
type datarep struct {
	name  string
	size  int // bytes of an element in the file
	read  func(dst, src []byte) error
	write func(dst, src []byte) error
}

// datarepKey names a registered representation.
type datarepKey struct {
	name string
	elem *datatype.Layout
}

func (w *World) addDatarep(e *datatype.Layout, rep *datarep) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := datarepKey{rep.name, e}
	if isBuiltinDatarep(rep.name) || w.datareps[key] != nil {
		return fmt.Errorf("%w: %.40q is known already", ErrDatarep, rep.name)
	}
	if w.datareps == nil {
		w.datareps = make(map[datarepKey]*datarep)
	}
	w.datareps[key] = rep
	return nil
}

func isBuiltinDatarep(name string) bool {
	return name == Native || name == Internal || name == External32
}

// datarep returns the representation with a name for elements e.
func (w *World) datarep(name string, e *datatype.Layout) (*datarep, error) {
	switch name {
	case Native, "":
		return nativeRep(e, Native), nil
	case Internal:
		return nativeRep(e, Internal), nil
	case External32:
		return externalRep(e), nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if rep := w.datareps[datarepKey{name, e}]; rep != nil {
		return rep, nil
	}
	return nil, fmt.Errorf("%w: %w %.40q is not registered for %s", ErrView, ErrDatarep, name, e.Name)
}

// nativeRep is elements as they lie in memory: nothing is converted.
func nativeRep(e *datatype.Layout, name string) *datarep { return &datarep{name: name, size: e.Size} }

func externalRep(e *datatype.Layout) *datarep {
	return &datarep{
		name: External32, size: e.Ext,
		read: func(dst, src []byte) error {
			e.FromExternal(dst, src, len(dst)/e.Size)
			return nil
		},
		write: func(dst, src []byte) error {
			e.ToExternal(dst, src, len(src)/e.Size)
			return nil
		},
	}
}

// converts reports whether elements look different in the file.
func (r *datarep) converts() bool { return r.read != nil }

// toFile converts whole elements for the file.
func (r *datarep) toFile(dst, src []byte) error { return r.failed(r.write(dst, src)) }

// fromFile is the reverse of toFile.
func (r *datarep) fromFile(dst, src []byte) error { return r.failed(r.read(dst, src)) }

func (r *datarep) failed(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %q: %w", ErrConversion, r.name, err)
	}
	return err
}

// convertChunk is about how many bytes are converted at a time.
const convertChunk = 1 << 20

// access reads or writes b at off of the view, and returns how much of b is
// done.
func (f *file) access(v *fileView, off int64, b []byte, write bool) (int, error) {
	rep, size := v.rep, f.elem.Size
	if !rep.converts() {
		if write {
			return f.writeRuns(v, off, b)
		}
		return f.readRuns(v, off, b)
	}
	chunk := max(convertChunk/max(size, rep.size), 1)
	s := bufpool.Get(min(chunk, len(b)/size) * rep.size)
	defer s.Put()
	done := 0
	for done < len(b) {
		n := min(chunk, (len(b)-done)/size)
		part, ext := b[done:][:n*size], s.Bytes(n*rep.size)
		at := off + int64(done/size*rep.size)
		var k int
		var err error
		if !write {
			if k, err = f.readRuns(v, at, ext); err == nil {
				k /= rep.size
				err = rep.fromFile(part[:k*size], ext[:k*rep.size])
			}
		} else if err = rep.toFile(ext, part); err == nil {
			k, err = f.writeRuns(v, at, ext)
			k /= rep.size
		}
		if err != nil {
			if !write {
				k = 0
			}
			return done + k*size, err
		}
		done += k * size
		if k < n {
			break
		}
	}
	return done, nil
}

// TypeExtent returns the bytes from one item of a datatype to the next in the
// file, in the representation of the view (MPI-4.1, Section 14.5.1:
// MPI_File_get_type_extent). It returns ErrView for a datatype whose items are
// no whole number of elements, if that is needed.
func (f *File[T]) TypeExtent(t *Datatype) (int, error) {
	v, _ := f.f.now()
	n, ok := v.rep.scale(f.f.elem, int64(t.typ().Extent()))
	if !ok {
		return 0, fmt.Errorf("%w: %v for elements of %d bytes", ErrView, t, f.f.elem.Size)
	}
	return int(n), nil
}

// scale converts bytes of memory, which are to be whole elements if their size
// differs, to bytes of the file.
func (r *datarep) scale(e *datatype.Layout, n int64) (int64, bool) {
	if r.size == e.Size {
		return n, true
	}
	m, ok := datatype.Mul(int(n/int64(e.Size)), r.size)
	return int64(m), ok && n%int64(e.Size) == 0
}
