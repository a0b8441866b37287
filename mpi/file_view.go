package mpi

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// Data representations of SetView (MPI-4.1, Section 14.5).
const (
	// Native is the representation in memory.
	Native = "native"
	// Internal is the same here: ranks of one job share an architecture.
	Internal = "internal"
	// External32 is the same on all machines: see AppendExternal.
	External32 = "external32"
)

// fileView is the part of a file that a rank sees. It is never changed.
type fileView struct {
	disp     int64
	tile     []fileRun // of the filetype, in the order of the file
	size     int64     // bytes of data in a tile
	extent   int64     // bytes from one tile to the next
	filetype *Datatype
	rep      *datarep
	// mixed tells that items of the filetype lie between one another, or see the same
	// bytes: the order of the data is not that of the file.
	mixed bool
}

// fileRun is a run of data.
type fileRun struct {
	off, n int64
	at     int64 // where it is in the data
}

// wholeFile is the view of everything.
func wholeFile(rep *datarep) *fileView {
	n := int64(rep.size)
	return &fileView{tile: []fileRun{{0, n, 0}}, size: n, extent: n, rep: rep}
}

// newView checks the arguments of SetView. MPI-4.1, Section 14.1.1: displacements
// of the filetype "are not required to be distinct, but they must be non-negative
// and monotonically nondecreasing". Its extent may be less than its span. Section
// 14.3: the filetype of a file opened for writing is not "permitted to contain
// overlapping regions".
func newView(e *datatype.Layout, disp int64, t *Datatype, rep *datarep, writable bool) (*fileView, error) {
	if disp < 0 {
		return nil, fmt.Errorf("%w: displacement %d", ErrView, disp)
	}
	if t == nil {
		v := wholeFile(rep)
		v.disp = disp
		return v, nil
	}
	bad := t.rt.Size() == 0 || t.rt.Size()%e.Size != 0 || t.rt.Extent() < 1
	inFile := func(n int) int64 {
		m, ok := rep.scale(e, int64(n))
		bad = bad || !ok
		return m
	}
	v := &fileView{disp: disp, size: inFile(t.rt.Size()), extent: inFile(t.rt.Extent()), filetype: t, rep: rep}
	if bad {
		return nil, fmt.Errorf("%w: %v for elements of %d bytes", ErrView, t, e.Size)
	}
	at := int64(0)
	for off, n := range t.rt.Runs(1) {
		o, n := inFile(off), inFile(n)
		if k := len(v.tile) - 1; k >= 0 {
			last := &v.tile[k]
			switch end := last.off + last.n; {
			case o < end-int64(rep.size): // where the last element begins
				return nil, fmt.Errorf("%w: displacements of the filetype decrease", ErrView)
			case o < end:
				v.mixed = true
			case o == end:
				last.n += n
				at += n
				continue
			}
		}
		if o < 0 {
			return nil, fmt.Errorf("%w: the filetype begins before the view", ErrView)
		}
		v.tile = append(v.tile, fileRun{o, n, at})
		at += n
	}
	if bad {
		return nil, fmt.Errorf("%w: %v cuts elements of %d bytes, which have another size in the file", ErrView, t, e.Size)
	}
	overlap := v.mixed
	for _, r := range v.tile {
		v.mixed = v.mixed || r.off+r.n > v.tile[0].off+v.extent
	}
	if v.mixed && writable && (overlap || v.overlaps()) {
		return nil, fmt.Errorf("%w: items of the filetype overlap, and the file is open for writing", ErrView)
	}
	return v, nil
}

// overlaps reports whether two items of the filetype see the same byte: then two
// places of one item differ by a multiple of the extent.
func (v *fileView) overlaps() bool {
	var rest []fileRun // modulo the extent
	for _, r := range v.tile {
		if r.n > v.extent {
			return true
		}
		off := r.off % v.extent
		n := min(r.n, v.extent-off)
		rest = append(rest, fileRun{off: off, n: n})
		if n < r.n {
			rest = append(rest, fileRun{n: r.n - n})
		}
	}
	sortRuns(rest)
	for i := 1; i < len(rest); i++ {
		if rest[i].off < rest[i-1].off+rest[i-1].n {
			return true
		}
	}
	return false
}

// sortRuns orders runs by their place in the file.
func sortRuns(runs []fileRun) {
	slices.SortStableFunc(runs, func(a, b fileRun) int { return cmp.Compare(a.off, b.off) })
}

// dense reports whether the view has no gaps.
func (v *fileView) dense() bool { return len(v.tile) == 1 && v.size == v.extent }

// each calls f for the runs of n bytes of data from pos on, in the order of the
// data, until it returns false.
func (v *fileView) each(pos, n int64, f func(off, n int64) bool) {
	if v.dense() {
		if n > 0 {
			f(v.disp+v.tile[0].off+pos, n)
		}
		return
	}
	for n > 0 {
		base := v.disp + pos/v.size*v.extent
		in := pos % v.size
		i := sort.Search(len(v.tile), func(i int) bool { return v.tile[i].at+v.tile[i].n > in })
		for ; i < len(v.tile) && n > 0; i++ {
			r := v.tile[i]
			skip := in - r.at
			k := min(r.n-skip, n)
			if !f(base+r.off+skip, k) {
				return
			}
			in, pos, n = in+k, pos+k, n-k
		}
	}
}

// offset returns where in the file the data at pos is.
func (v *fileView) offset(pos int64) int64 {
	at := int64(0)
	v.each(pos, 1, func(off, _ int64) bool { at = off; return false })
	return at
}

// length returns where the data of the view ends that lies before byte size of
// the file: also of a run that the end cuts.
func (v *fileView) length(size int64) int64 {
	first := v.tile[0].off
	rest := size - v.disp - first
	if rest <= 0 {
		return 0
	}
	if v.dense() {
		return rest
	}
	k := (rest - 1) / v.extent // the last item that begins before
	rest -= k * v.extent
	end := int64(0)
	for _, r := range v.tile {
		if n := min(rest-(r.off-first), r.n); n > 0 {
			end = max(end, r.at+n)
		}
	}
	return k*v.size + end
}

// SetView changes what this rank sees of the file: from byte disp on, the data of
// items of filetype, one after the other, or everything if it is nil. rep is Native,
// Internal, External32 or the name of a Datarep. If elements have another size in it
// than in memory the filetype must consist of whole elements, and is taken to describe
// their places: displacements are multiplied alike. Items of the filetype may lie
// between one another, if its extent is less than its span, and, if the file is open
// for reading only, see the same bytes. File pointers begin at 0 again. All ranks must
// call it, with the same rep; they may give different displacements and filetypes
// (MPI-4.1, Section 14.3). It fails on all ranks alike. It blocks until all have
// called it. Errors to test for: ErrView, ErrDatarep, ErrNotSame.
func (f *File[T]) SetView(ctx context.Context, disp int64, filetype *Datatype, rep string) error {
	t := f.f.of.enter()
	err := f.f.setView(ctx, disp, filetype, rep)
	f.f.of.leave(t, "File.SetView", NoPeer, 0, 0, err)
	return err
}

func (f *file) setView(ctx context.Context, disp int64, filetype *Datatype, rep string) error {
	if err := f.usable(); err != nil {
		return err
	}
	return f.inTurn(ctx, func() error {
		var v *fileView
		r, err := f.c.w.datarep(rep, f.elem)
		if err == nil {
			v, err = newView(f.elem, disp, filetype, r, f.mode&FileRead == 0)
		}
		if err == nil && f.mode&FileSequential != 0 {
			err = fmt.Errorf("%w: FileSequential", ErrMode)
		}
		if err = f.agree(ctx, err, rep); err != nil {
			return err
		}
		f.mu.Lock()
		f.view, f.pos = v, 0
		f.mu.Unlock()
		if f.c.rank == 0 {
			if err := f.shared.Put(ctx, []int64{0}, 0, 0); err != nil {
				return err
			}
		}
		return Barrier(ctx, f.c)
	})
}

// View returns what SetView set: displacement, filetype (nil: everything) and
// data representation (MPI_File_get_view).
func (f *File[T]) View() (disp int64, filetype *Datatype, rep string) {
	v, _ := f.f.now()
	return v.disp, v.filetype, v.rep.name
}

// now returns the view and the individual pointer.
func (f *file) now() (*fileView, int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view, f.pos
}

// Seek moves the individual pointer: whence is io.SeekStart, io.SeekCurrent or
// io.SeekEnd, offset counts elements. It returns the new place. It is local
// (MPI-4.1, Section 14.4.3).
func (f *File[T]) Seek(offset int64, whence int) (int64, error) {
	if err := f.f.usable(); err != nil {
		return 0, err
	}
	v, pos := f.f.now()
	to, err := f.f.seek(v, offset, whence, pos)
	if err != nil {
		return 0, err
	}
	f.f.mu.Lock()
	f.f.pos = to
	f.f.mu.Unlock()
	return to, nil
}

func (f *file) seek(v *fileView, offset int64, whence int, pos int64) (int64, error) {
	if f.mode&FileSequential != 0 {
		return 0, fmt.Errorf("%w: FileSequential", ErrMode)
	}
	switch whence {
	case io.SeekStart:
		pos = 0
	case io.SeekCurrent:
	case io.SeekEnd:
		size, err := f.size()
		if err != nil {
			return 0, err
		}
		pos = (v.length(size) + int64(v.rep.size) - 1) / int64(v.rep.size)
	default:
		return 0, fmt.Errorf("%w: whence %d", ErrOption, whence)
	}
	if to, ok := datatype.Add(int(pos), int(offset)); ok && to >= 0 && int64(int(offset)) == offset {
		return int64(to), nil
	}
	return 0, fmt.Errorf("%w: place %d%+d", ErrView, pos, offset)
}

// Position returns the individual pointer, in elements (MPI_File_get_position).
func (f *File[T]) Position() int64 {
	_, pos := f.f.now()
	return pos
}

// ByteOffset returns the byte of the file at which element offset of the view
// lies (MPI-4.1, Section 14.4.3).
func (f *File[T]) ByteOffset(offset int64) (int64, error) {
	v, _ := f.f.now()
	at, err := f.f.bytes(v, offset, 1)
	if err != nil {
		return 0, err
	}
	return v.offset(at), nil
}

// bytes checks a place in elements, with n bytes of memory there, and returns the
// place in bytes of the view.
func (f *file) bytes(v *fileView, pos int64, n int) (int64, error) {
	at, ok := datatype.Mul(int(pos), v.rep.size)
	room, ok2 := datatype.Mul(n/f.elem.Size+1, v.rep.size)
	if _, ok3 := datatype.Add(at, room); pos < 0 || !ok || !ok2 || !ok3 || int64(int(pos)) != pos {
		return 0, fmt.Errorf("%w: %d bytes at element %d", ErrView, n, pos)
	}
	return int64(at), nil
}
