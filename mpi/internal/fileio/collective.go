package fileio

import (
	"cmp"
	"context"
	"slices"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// Reach describes the part of one rank in a collective operation to the other ranks.
type Reach struct {
	Lo, Hi, N int64 // stretch of the file; bytes of data in it
	Size      int64 // of the file, as the rank sees it
	Bad       int64 // 1 if the part has an error
}

// collective performs a collective operation after the earlier ones. bad is the error of the rank's
// own part, or nil.
func (f *File) collective(ctx context.Context, op Op, bad error, before, done chan struct{}) (int, error) {
	if err := awaitOrder(ctx, before, done); err != nil {
		return 0, err
	}
	defer close(done)
	if bad != nil {
		op.Data, op.off, op.n = datatype.Items{}, 0, 0
		op.view, _ = f.now()
	}
	if op.At == AtShared {
		if err := f.rankOrder(ctx, &op); err != nil && bad == nil {
			bad, op.Data, op.off, op.n = err, datatype.Items{}, 0, 0
		}
	}
	if op.view.rep.conv != nil {
		return f.collectiveConverted(ctx, op, bad)
	}
	b, own := op.Data.Room()
	defer own.Put()
	if own != nil && op.Write {
		op.Data.Gaps.Pack(b, 0)
	}
	n, err := f.accessAll(ctx, op, b, bad)
	if own != nil && !op.Write {
		op.Data.Unpack(b[:n], 0)
	}
	return n, err
}

// collectiveConverted performs a collective operation with data that looks different in the file.
func (f *File) collectiveConverted(ctx context.Context, op Op, bad error) (int, error) {
	v := op.view
	x := v.items(&op.Data)
	defer x.own.Put()
	b := make([]byte, op.n)
	if op.Write && bad == nil && len(b) > 0 {
		bad = v.rep.wrap(v.rep.conv.write(b, x.Buffer)) // accessAll reports it to the other ranks
	}
	k, err := f.accessAll(ctx, op, b, bad)
	if op.Write || err != nil {
		if err != nil || x.Count == 0 {
			return 0, err
		}
		return k / (len(b) / x.Count) * x.Type.Size(), nil
	}
	n := 0
	if k > 0 {
		n, err = v.rep.conv.read(x.Buffer, b[:k])
	}
	if err = f.agree(ctx, v.rep.wrap(err)); err != nil {
		return 0, err
	}
	x.stored(n, &op)
	return n, nil
}

// rankOrder gives the ranks places behind one another at the shared pointer.
func (f *File) rankOrder(ctx context.Context, op *Op) error {
	n := op.n / op.view.unit
	sum, err := f.c.Scan(ctx, n)
	if err != nil {
		return err
	}
	start, last := int64(0), f.c.Size()-1
	if f.c.Rank() == last { // it knows the total
		if start, err = f.pointer.FetchAdd(ctx, sum); err != nil {
			return err
		}
	}
	if start, err = f.c.Bcast(ctx, start, last); err != nil {
		return err
	}
	op.off, err = op.view.place(start+sum-n, op.n)
	return err
}

// accessAll reads or writes b, in the representation of the file, on all ranks: in two phases, or
// each rank by itself.
func (f *File) accessAll(ctx context.Context, op Op, b []byte, bad error) (int, error) {
	runs := op.view.list(op.off, int64(len(b)))
	mine := Reach{N: int64(len(b))}
	if len(runs) > 0 {
		mine.Lo, mine.Hi = runs[0].off, endOf(runs)
	}
	if bad != nil {
		mine.Bad = 1
	}
	var err error
	if mine.Size, err = f.size(); err != nil && bad == nil {
		bad, mine.Bad = err, 1
	}
	all := make([]Reach, f.c.Size())
	if err := f.c.Allgather(ctx, mine, all); err != nil {
		return 0, err
	}
	size := int64(0)
	for _, r := range all {
		if r.Bad != 0 { // all ranks see it
			return 0, f.agree(ctx, bad)
		}
		size = max(size, r.Size)
	}
	unlock, err := f.lockAll(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock() // the last agree has waited for all ranks
	var n int
	h := f.hints.Load()
	if h.twoPhase(all, op.Write) {
		p := &twoPhase{f: f, h: h, write: op.Write, b: b, runs: runs, size: size}
		p.divide(all)
		n, err = p.run(ctx)
		if op.view.unordered && !op.Write {
			n = min(n, before(runs, size))
		}
	} else if op.Write {
		n, err = f.writeRuns(op.view, op.off, b)
	} else {
		n, err = f.readRuns(op.view, op.off, b)
	}
	return n, f.agree(ctx, err)
}

// lockAll excludes other operations in atomic mode: rank 0 holds the lock for all ranks.
func (f *File) lockAll(ctx context.Context) (unlock func(), err error) {
	unlock = func() {}
	if !f.atomic.Load() {
		return unlock, nil
	}
	if f.c.Rank() == 0 {
		var u func()
		if u, err = f.pointer.Lock(ctx, true); err == nil {
			unlock = u
		}
	}
	if err = f.agree(ctx, err); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// twoPhase reports whether to work in two phases, the same on all ranks.
func (h *Hints) twoPhase(all []Reach, write bool) bool {
	if when := h.buffering(write); when != BufferAuto {
		return when == BufferAlways
	}
	sorted := slices.DeleteFunc(slices.Clone(all), func(r Reach) bool { return r.N == 0 })
	slices.SortFunc(sorted, func(a, b Reach) int { return cmp.Compare(a.Lo, b.Lo) })
	for i := range sorted {
		if i > 0 && sorted[i].Lo < sorted[i-1].Hi {
			return true
		}
	}
	return false
}
