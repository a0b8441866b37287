package fileio

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// View is the part of a file that a rank sees. It is never changed.
type View struct {
	disp   int64
	tile   []run // of the filetype, in the order of the file
	size   int64 // bytes of data in a tile
	extent int64 // bytes from one tile to the next
	rep    *Datarep
	// etype is the elementary datatype, without gaps, of elem bytes in memory and unit bytes in the
	// file. Places are counted in it.
	etype *datatype.Type
	elem  int
	unit  int64
	// unordered is true if items of the filetype interleave, or see the same
	// bytes: the order of the data is not that of the file.
	unordered bool
}

// run is a run of data.
type run struct {
	off, n int64 // in the file
	at     int64 // where it is in the data
}

// ViewArgs are the arguments of SetView.
type ViewArgs struct {
	// Disp is the byte of the file where the view begins, or DisplacementCurrent.
	Disp  int64
	Etype *datatype.Type
	// Filetype nil is items of Etype, one after the other.
	Filetype *datatype.Type
	Rep      *Datarep
	RepName  string // for messages, and if there is no Rep
	// Scaled says that displacements in bytes of the filetype are those of elements in memory. Without
	// it they are those of the file (MPI-4.1, Section 14.5.1).
	Scaled bool
	// Hints, if not nil, are put into effect. All ranks have the same.
	Hints *Hints
	Bad   error // what is wrong with the arguments of this rank
}

// DisplacementCurrent is where the shared pointer is: the displacement of views of files opened
// with Sequential (MPI_DISPLACEMENT_CURRENT).
const DisplacementCurrent = -1

// firstView is the view of everything.
func firstView(etype *datatype.Type) (*View, error) {
	return newView(&ViewArgs{Etype: etype, Rep: NativeDatarep()}, false)
}

// newView checks the arguments of SetView. MPI-4.1, Section 14.1.1: displacements
// of the filetype "are not required to be distinct, but they must be non-negative
// and monotonically nondecreasing". Its extent may be less than its span. Section
// 14.3: the filetype of a file opened for writing is not "permitted to contain
// overlapping regions".
func newView(a *ViewArgs, writable bool) (*View, error) {
	if a.Disp < 0 {
		return nil, fmt.Errorf("%w: displacement %d", mpierr.ErrView, a.Disp)
	}
	if a.Etype.Size() == 0 {
		return nil, fmt.Errorf("%w: etype without data: %v", mpierr.ErrView, a.Etype)
	}
	v := &View{disp: a.Disp, rep: a.Rep, etype: a.Etype.InRow(), elem: a.Etype.Size()}
	unit, err := v.rep.size(a.Etype, v.elem)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", mpierr.ErrView, err)
	}
	v.unit = int64(unit)
	t := a.Filetype
	if t == nil {
		v.tile, v.size, v.extent = []run{{0, v.unit, 0}}, v.unit, v.unit
		return v, nil
	}
	if t.Size() == 0 {
		return v, nil // sees nothing of the file
	}
	if t.Size()%v.elem != 0 {
		return nil, fmt.Errorf("%w: %v for elements of %d bytes", mpierr.ErrView, t, v.elem)
	}
	inFile := func(n int) (int64, bool) { return int64(n), true }
	if a.Scaled {
		inFile = v.scale
	} else if t, err = v.rep.inFile(t); err != nil {
		return nil, fmt.Errorf("%w: %w", mpierr.ErrView, err)
	}
	return v, v.setTile(t, inFile, writable)
}

// scale converts bytes of memory, which are to be whole elements if their size
// differs, to bytes of the file.
func (v *View) scale(bytes int) (int64, bool) {
	n, size := int64(bytes), int64(v.elem)
	if v.unit == size {
		return n, true
	}
	count := n / size
	if most := maxOffset / v.unit; count > most || count < -most {
		return 0, false
	}
	return count * v.unit, n%size == 0
}

// setTile sets the places of the items of a filetype, whose bytes inFile converts to those of the file.
func (v *View) setTile(t *datatype.Type, scale func(int) (int64, bool), writable bool) error {
	bad := t.Extent() < 1
	inFile := func(n int) int64 {
		m, ok := scale(n)
		bad = bad || !ok
		return m
	}
	v.size, v.extent = inFile(t.Size()), inFile(t.Extent())
	if bad {
		return fmt.Errorf("%w: %v for elements of %d bytes", mpierr.ErrView, t, v.elem)
	}
	at := int64(0)
	for off, n := range t.Runs(1) {
		o, n := inFile(off), inFile(n)
		if k := len(v.tile) - 1; k >= 0 {
			last := &v.tile[k]
			switch end := last.off + last.n; {
			case o < last.off:
				return fmt.Errorf("%w: displacements of the filetype decrease", mpierr.ErrView)
			case o < end:
				v.unordered = true
			case o == end:
				last.n += n
				at += n
				continue
			}
		}
		if o < 0 {
			return fmt.Errorf("%w: the filetype begins before the view", mpierr.ErrView)
		}
		v.tile = append(v.tile, run{o, n, at})
		at += n
	}
	if bad {
		return fmt.Errorf("%w: %v cuts elements of %d bytes, which have another size in the file",
			mpierr.ErrView, t, v.elem)
	}
	overlap := v.unordered
	for _, r := range v.tile {
		v.unordered = v.unordered || r.off+r.n > v.tile[0].off+v.extent
	}
	if v.unordered && writable && (overlap || v.overlaps()) {
		return fmt.Errorf("%w: items of the filetype overlap, and the file is open for writing", mpierr.ErrView)
	}
	return nil
}

// overlaps reports whether two items of the filetype see the same byte: then two
// places of one item differ by a multiple of the extent.
func (v *View) overlaps() bool {
	var rest []run // modulo the extent
	for _, r := range v.tile {
		if r.n > v.extent {
			return true
		}
		off := r.off % v.extent
		n := min(r.n, v.extent-off)
		rest = append(rest, run{off: off, n: n})
		if n < r.n {
			rest = append(rest, run{n: r.n - n})
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
func sortRuns(runs []run) {
	slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(a.off, b.off) })
}

// empty reports whether no byte of the file is in the view: its filetype has no data.
func (v *View) empty() bool { return len(v.tile) == 0 }

// dense reports whether the view has no gaps.
func (v *View) dense() bool { return len(v.tile) == 1 && v.size == v.extent }

// each calls f for the runs of n bytes of data from pos on, in the order of the
// data, until it returns false.
func (v *View) each(pos, n int64, f func(off, n int64) bool) {
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
func (v *View) offset(pos int64) int64 {
	at := v.disp
	if v.empty() {
		return at
	}
	v.each(pos, 1, func(off, _ int64) bool { at = off; return false })
	return at
}

// length returns where the data of the view ends that lies before byte size of
// the file: also of a run that the end cuts.
func (v *View) length(size int64) int64 {
	if v.empty() {
		return 0
	}
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

// list returns the runs of n bytes of data from pos on, in the order of the file.
func (v *View) list(pos, n int64) []run {
	var runs []run
	at := int64(0)
	v.each(pos, n, func(off, n int64) bool {
		if k := len(runs) - 1; k >= 0 && runs[k].off+runs[k].n == off {
			runs[k].n += n
		} else {
			runs = append(runs, run{off, n, at})
		}
		at += n
		return true
	})
	if v.unordered {
		sortRuns(runs)
	}
	return runs
}

// endOf returns where in the file the last byte of runs is.
func endOf(runs []run) int64 {
	end := int64(0)
	for _, r := range runs {
		end = max(end, r.off+r.n)
	}
	return end
}

// before returns how much of the data of all runs, from the first on, lies before
// byte size of the file.
func before(runs []run, size int64) int {
	n, total := int64(-1), int64(0)
	for _, r := range runs {
		total += r.n
		if there := min(max(size-r.off, 0), r.n); there < r.n && (n < 0 || r.at+there < n) {
			n = r.at + there
		}
	}
	if n < 0 {
		n = total
	}
	return int(n)
}

// SetView changes what this rank sees of the file: from byte Disp on, the data of items of Filetype.
// The pointers begin at 0 again. All ranks call it, with the same name of the representation and the
// same size of the etype in it.
func (f *File) SetView(ctx context.Context, a *ViewArgs) error {
	if err := f.Usable(); err != nil {
		return err
	}
	return f.InOrder(ctx, func() error {
		var v *View
		args, err := f.place(ctx, *a)
		if err == nil {
			v, err = newView(&args, f.mode&ReadOnly == 0)
		}
		unit := int64(0)
		if err == nil {
			unit = v.unit
		}
		if err = f.agree(ctx, err, a.RepName, unit); err != nil {
			return err
		}
		if a.Hints != nil {
			if err := f.SetHints(ctx, a.Hints, nil); err != nil {
				return err
			}
		}
		f.mu.Lock()
		f.view, f.pos = v, 0
		f.mu.Unlock()
		if f.c.Rank() == 0 {
			if err := f.pointer.Store(ctx, 0); err != nil {
				return err
			}
		}
		return f.c.Barrier(ctx)
	})
}

// place replaces DisplacementCurrent in the arguments of a view: it is for files opened with Sequential
// only, and only it is for them (MPI-4.1, Section 14.3).
func (f *File) place(ctx context.Context, a ViewArgs) (ViewArgs, error) {
	current := a.Disp == DisplacementCurrent
	switch {
	case a.Bad != nil:
		return a, a.Bad
	case f.mode&Sequential != 0 && !current:
		return a, sequentialOnly(fmt.Sprintf("a view from byte %d on", a.Disp))
	case f.mode&Sequential == 0 && current:
		return a, fmt.Errorf("%w: the current displacement without FileSequential", mpierr.ErrView)
	case current:
		pos, err := f.pointer.Load(ctx)
		if err != nil {
			return a, err
		}
		v, _ := f.now()
		a.Disp = v.offset(pos * v.unit)
	}
	return a, nil
}

// now returns the view and the individual pointer.
func (f *File) now() (*View, int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view, f.pos
}

// ByteOffset returns the byte of the file at which element offset of the view lies.
func (f *File) ByteOffset(offset int64) (int64, error) {
	v, _ := f.now()
	at, err := v.place(offset, v.unit)
	if err != nil {
		return 0, err
	}
	return v.offset(at), nil
}

// Extent returns the bytes from one item of t to the next in the file, in the representation of the
// view.
func (f *File) Extent(t *datatype.Type) (int, error) {
	v, _ := f.now()
	in, err := v.rep.inFile(t)
	return in.Extent(), err
}

// Scale converts bytes of memory to bytes of the file, in the representation of the view. It reports
// false if they are no whole number of elements, and that is needed.
func (f *File) Scale(n int) (int64, bool) {
	v, _ := f.now()
	return v.scale(n)
}
