package fileio

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Datarep is a data representation: how elements lie in a file (MPI-4.1, Section 14.5).
type Datarep struct {
	Name string
	Size int // bytes of an element in the file
	// Read makes elements in memory of those in the file, Write the reverse. Both are nil for
	// elements that lie in the file as they do in memory.
	Read, Write func(dst, src []byte) error
}

// converts reports whether elements look different in the file.
func (r *Datarep) converts() bool { return r.Read != nil }

// toFile converts whole elements for the file.
func (r *Datarep) toFile(dst, src []byte) error { return r.wrap(r.Write(dst, src)) }

// fromFile is the reverse of toFile.
func (r *Datarep) fromFile(dst, src []byte) error { return r.wrap(r.Read(dst, src)) }

func (r *Datarep) wrap(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %q: %w", mpierr.ErrConversion, r.Name, err)
	}
	return err
}

// scale converts bytes of memory, which are to be whole elements if their size
// differs, to bytes of the file.
func (r *Datarep) scale(elem int, n int64) (int64, bool) {
	if r.Size == elem {
		return n, true
	}
	size := int64(elem)
	count := n / size
	if most := maxOffset / int64(r.Size); count > most || count < -most {
		return 0, false
	}
	return count * int64(r.Size), n%size == 0
}
