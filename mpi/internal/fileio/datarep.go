package fileio

import (
	"fmt"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Datarep is a data representation: how data lies in a file (MPI-4.1, Section 14.5).
type Datarep struct {
	Name string
	conv converter // nil: as in memory
}

// A converter says how data lies in a file, if that is not as in memory.
type converter interface {
	// inFile returns t as it lies in the file.
	inFile(t *datatype.Type) (*datatype.Type, error)
	// size returns how many bytes items of t, with n bytes of data, take in the file.
	size(t *datatype.Type, n int) (int, error)
	// chunk is about how many bytes of the file are converted at a time.
	chunk() int
	// write converts items for the file.
	write(dst []byte, src datatype.Buffer) error
	// read is the reverse of write, of the whole elements in src. It returns how many bytes of data
	// they have in memory.
	read(dst datatype.Buffer, src []byte) (int, error)
}

// inFile returns t as it lies in the file.
func (r *Datarep) inFile(t *datatype.Type) (*datatype.Type, error) {
	if r.conv == nil {
		return t, nil
	}
	return r.conv.inFile(t)
}

// size returns how many bytes items of t, with n bytes of data, take in the file.
func (r *Datarep) size(t *datatype.Type, n int) (int, error) {
	if r.conv == nil || n == 0 {
		return n, nil
	}
	return r.conv.size(t, n)
}

// wrap says what representation an error of a conversion is from.
func (r *Datarep) wrap(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %q: %w", mpierr.ErrConversion, r.Name, err)
	}
	return err
}

// convertChunk is about how many bytes of the file are converted at a time.
const convertChunk = 1 << 20

// An Elements converts elements of one Go type, whatever the datatypes in memory are: their data
// together is such elements.
type Elements struct {
	Elem *datatype.Layout
	Size int // bytes of an element in the file
	// Read makes elements in memory of those in the file, Write the reverse.
	Read, Write func(dst, src []byte) error
}

func (e *Elements) chunk() int { return convertChunk }

func (e *Elements) inFile(t *datatype.Type) (*datatype.Type, error) {
	return t.Rebuild(func(t *datatype.Type) (*datatype.Type, error) {
		elem, n := t.Uniform()
		if elem != e.Elem {
			return nil, fmt.Errorf("%w: it is of %s, not of %v", mpierr.ErrDatarep, e.Elem.Name, t)
		}
		return datatype.Contiguous(n, datatype.Opaque(e.Size))
	})
}

func (e *Elements) size(_ *datatype.Type, n int) (int, error) {
	if n%e.Elem.Size != 0 {
		return 0, fmt.Errorf("%w: %d bytes are no elements of %d", mpierr.ErrCount, n, e.Elem.Size)
	}
	return n / e.Elem.Size * e.Size, nil
}

func (e *Elements) write(dst []byte, src datatype.Buffer) error {
	b, own := packed(src)
	defer own.Put()
	return e.Write(dst, b)
}

func (e *Elements) read(dst datatype.Buffer, src []byte) (int, error) {
	b, own := packed(dst)
	defer own.Put()
	n := len(src) / e.Size
	b = b[:n*e.Elem.Size]
	if err := e.Read(b, src[:n*e.Size]); err != nil {
		return 0, err
	}
	if own != nil {
		dst.Unpack(b, 0)
	}
	return len(b), nil
}

// packed returns the data of items: in place, and own is nil, or packed in own.
func packed(x datatype.Buffer) (b []byte, own *bufpool.Buffer) {
	if b, ok := x.Contiguous(); ok {
		return b, nil
	}
	n := x.Type.Size() * x.Count
	own = bufpool.Get(n)
	b = own.Bytes(n)
	x.Pack(b, 0)
	return b, own
}

// external32 is the representation that is the same on all machines.
type external32 struct{}

func (external32) chunk() int { return convertChunk }

func (external32) inFile(t *datatype.Type) (*datatype.Type, error) {
	return t.Rebuild(func(t *datatype.Type) (*datatype.Type, error) {
		return datatype.Opaque(t.ExternalSize()), nil
	})
}

func (external32) size(t *datatype.Type, n int) (int, error) {
	return n / t.Size() * t.ExternalSize(), nil
}

func (external32) write(dst []byte, src datatype.Buffer) error {
	b, own := packed(src)
	defer own.Put()
	return src.Type.ExternalTo(dst, b, src.Count)
}

func (external32) read(dst datatype.Buffer, src []byte) (int, error) {
	b, own := packed(dst) // with what is there, for the padding
	defer own.Put()
	n := dst.Type.ExternalFrom(b, src, dst.Count)
	if own != nil {
		dst.Unpack(b[:n], 0)
	}
	return n, nil
}
