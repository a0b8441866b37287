package fileio

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// An Items is a data representation of items of all datatypes (MPI-4.1, Section 14.5.3:
// MPI_Register_datarep).
type Items struct {
	// Extent returns how many bytes an element of a basic datatype takes in the file.
	Extent func(t *datatype.Type) (int, error)
	// Read stores n elements from src, as they lie in the file, to those of the items dst, from the
	// first on. Write is the reverse. Both are nil for elements that lie in the file as in memory.
	Read, Write func(file []byte, items datatype.Buffer, n int) error
}

// itemsChunk bounds the bytes that are given to a function of Items at once, if an item has less.
const itemsChunk = 64 << 20

// maxElement bounds the bytes of an element in a file.
const maxElement = 1 << 30

func (*Items) chunk() int { return itemsChunk }

func (r *Items) inFile(t *datatype.Type) (*datatype.Type, error) {
	return t.Rebuild(func(t *datatype.Type) (*datatype.Type, error) {
		if pair := t.Named(); pair != nil && pair.Value != nil {
			v, err := r.inFile(pair.Value.Type)
			if err != nil {
				return nil, err
			}
			i, err := r.inFile(pair.Index.Type)
			if err != nil {
				return nil, err
			}
			return datatype.Struct([]int{1, 1}, []int{0, v.Size()}, []*datatype.Type{v, i})
		}
		n, err := r.Extent(t)
		if err == nil && (n < 1 || n > maxElement) {
			err = fmt.Errorf("%w: elements of %d bytes in the file", mpierr.ErrDatarep, n)
		}
		if err != nil {
			return nil, err
		}
		elems, _ := t.Elements(t.Size())
		return datatype.Contiguous(elems, datatype.Opaque(n))
	})
}

func (r *Items) size(t *datatype.Type, n int) (int, error) {
	in, err := r.inFile(t)
	if err != nil {
		return 0, err
	}
	return n / t.Size() * in.Size(), nil
}

func (r *Items) write(dst []byte, src datatype.Buffer) error {
	n, _ := src.Type.Elements(src.Type.Size() * src.Count)
	if r.Write == nil {
		b, own := packed(src)
		defer own.Put()
		copy(dst, b)
		return nil
	}
	return r.Write(dst, src, n)
}

func (r *Items) read(dst datatype.Buffer, src []byte) (int, error) {
	if r.Read == nil {
		return dst.Unpack(src, 0), nil
	}
	in, err := r.inFile(dst.Type)
	if err != nil {
		return 0, err
	}
	n, _ := in.Elements(len(src))
	if n == 0 {
		return 0, nil
	}
	return dst.Type.Prefix(n), r.Read(src, dst, n)
}
