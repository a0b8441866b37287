package mpi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFileShared lets ranks write records with the shared pointer, and then in
// the order of the ranks.
func TestFileShared(t *testing.T) {
	const p, n = 3, 20
	eachFile(t, p, nil, func(ctx context.Context, c *Comm, f *File[[2]int32], _ string) error {
		for i := range n {
			rec := [][2]int32{{int32(c.Rank()), int32(i)}}
			if i%2 == 0 {
				if k, err := f.WriteShared(ctx, rec); err != nil || k != 1 {
					return fmt.Errorf("%d records, %w", k, err)
				}
				continue
			}
			r, err := f.IwriteShared(rec)
			if err == nil {
				_, err = r.Wait(ctx)
			}
			if err != nil {
				return err
			}
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if pos, err := f.PositionShared(ctx); err != nil || pos != p*n {
			return fmt.Errorf("shared pointer at %d, %w", pos, err)
		}
		all := make([][2]int32, p*n)
		if k, err := f.ReadAt(ctx, 0, all); err != nil || k != p*n {
			return fmt.Errorf("%d records, %w", k, err)
		}
		seen := make(map[[2]int32]bool)
		for _, r := range all {
			seen[r] = true
		}
		if len(seen) != p*n {
			return fmt.Errorf("%d different records, want %d", len(seen), p*n)
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if err := f.SeekShared(ctx, -2, io.SeekEnd); err != nil {
			return err
		}
		mine := make([][2]int32, c.Rank()+1)
		for i := range mine {
			mine[i] = [2]int32{int32(c.Rank()), int32(i)}
		}
		if k, err := f.WriteOrdered(ctx, mine); err != nil || k != len(mine) {
			return fmt.Errorf("%d records in order, %w", k, err)
		}
		if err := f.SeekShared(ctx, -6, io.SeekCurrent); err != nil {
			return err
		}
		if err := f.ReadOrderedBegin(all[:p-c.Rank()]); err != nil {
			return err
		}
		if k, err := f.ReadOrderedEnd(ctx); err != nil || k != p-c.Rank() {
			return fmt.Errorf("%d records read in order, %w", k, err)
		}
		order := [][2]int32{{0, 0}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}}
		from := []int{0, 3, 5}[c.Rank()]
		if got, want := all[:p-c.Rank()], order[from:from+p-c.Rank()]; !slices.Equal(got, want) {
			return fmt.Errorf("records %v, want %v", got, want)
		}
		// With the pointer at the end there is nothing to read.
		if k, err := f.ReadShared(ctx, all[:1]); err != nil || k != 0 {
			return fmt.Errorf("%d records behind the end, %w", k, err)
		}
		return Barrier(ctx, c)
	})
}

// TestFileNonblocking starts collectives and waits for them in another order,
// and uses split ones.
func TestFileNonblocking(t *testing.T) {
	const p, n, ops = 3, 100, 5
	eachFile(t, p, Info{InfoCollective: "enable", InfoBuffer: "512"}, func(ctx context.Context, c *Comm, f *File[int64], _ string) error {
		elem, _ := TypeOf[int64]()
		ft, err := TypeResized(elem, 0, 8*p)
		if err != nil {
			return err
		}
		if err := f.SetView(ctx, int64(8*c.Rank()), ft, Native); err != nil {
			return err
		}
		bufs := make([][]int64, ops)
		var reqs []*Request
		for i := range bufs {
			bufs[i] = make([]int64, n)
			for j := range bufs[i] {
				bufs[i][j] = int64(c.Rank()*1_000_000 + i*n + j)
			}
			start := f.IwriteAll
			if i%2 == 1 {
				start = func(b []int64) (*Request, error) { return f.IwriteAtAll(int64(i*n), b) }
				if _, err := f.Seek(n, io.SeekCurrent); err != nil {
					return err
				}
			}
			r, err := start(bufs[i])
			if err != nil {
				return err
			}
			reqs = append(reqs, r)
		}
		for _, i := range rand.Perm(ops) {
			if st, err := reqs[i].Wait(ctx); err != nil || st.Bytes != 8*n {
				return fmt.Errorf("operation %d: %v, %w", i, st, err)
			}
		}
		if err := f.SetView(ctx, 0, nil, Native); err != nil {
			return err
		}
		all := make([]int64, p*n*ops)
		if err := f.ReadAllBegin(all); err != nil {
			return err
		}
		if err := f.WriteAllBegin(all); !errors.Is(err, ErrFile) {
			return fmt.Errorf("two split collectives at a time: %w", err)
		}
		if _, err := f.WriteAllEnd(ctx); !errors.Is(err, ErrFile) {
			return fmt.Errorf("the end of another: %w", err)
		}
		if k, err := f.ReadAllEnd(ctx); err != nil || k != len(all) {
			return fmt.Errorf("%d elements, %w", k, err)
		}
		for i, v := range all {
			if want := int64(i%p*1_000_000 + i/p); v != want {
				return fmt.Errorf("element %d is %d, want %d", i, v, want)
			}
		}
		if err := f.WriteAtAllBegin(int64(c.Rank()), all[:1]); err != nil {
			return err
		}
		if k, err := f.WriteAtAllEnd(ctx); err != nil || k != 1 {
			return fmt.Errorf("%d elements, %w", k, err)
		}
		return nil
	})
}

// TestFileIndividualPointer reads and writes one after the other.
func TestFileIndividualPointer(t *testing.T) {
	eachFile(t, 1, nil, func(ctx context.Context, _ *Comm, f *File[uint16], _ string) error {
		if k, err := f.Write(ctx, []uint16{1, 2, 3, 4}); k != 4 || err != nil {
			return fmt.Errorf("%d, %w", k, err)
		}
		r, err := f.Iwrite([]uint16{5, 6})
		if err != nil {
			return err
		}
		if pos := f.Position(); pos != 6 {
			return fmt.Errorf("pointer at %d", pos)
		}
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
		if pos, err := f.Seek(-3, io.SeekEnd); pos != 3 || err != nil {
			return fmt.Errorf("pointer at %d, %w", pos, err)
		}
		buf := make([]uint16, 9)
		if k, err := f.Read(ctx, buf); k != 3 || err != nil || !slices.Equal(buf[:3], []uint16{4, 5, 6}) {
			return fmt.Errorf("%d: %v, %w", k, buf, err)
		}
		if pos := f.Position(); pos != 6 {
			return fmt.Errorf("pointer at %d after the end", pos)
		}
		if _, err := f.Seek(-7, io.SeekCurrent); !errors.Is(err, ErrView) {
			return fmt.Errorf("a place before the file: %w", err)
		}
		if _, err := f.Seek(0, 9); !errors.Is(err, ErrOption) {
			return fmt.Errorf("whence 9: %w", err)
		}
		e, _ := TypeOf[uint16]()
		ft, err := TypeVector(2, 1, 3, e)
		if err != nil {
			return err
		}
		if err := f.SetView(ctx, 2, ft, Native); err != nil { // elements 1, 4, 5, …
			return err
		}
		if at, err := f.ByteOffset(2); at != 2+8 || err != nil {
			return fmt.Errorf("byte %d, %w", at, err)
		}
		r, err = f.Iread(buf[:3])
		if err != nil {
			return err
		}
		if _, err := r.Wait(ctx); err != nil || !slices.Equal(buf[:3], []uint16{2, 5, 6}) {
			return fmt.Errorf("%v, %w", buf, err)
		}
		if disp, got, rep := f.View(); disp != 2 || got != ft || rep != Native {
			return fmt.Errorf("view %d, %v, %s", disp, got, rep)
		}
		return nil
	})
}

// fileForm is one way to read or write a block.
type fileForm struct {
	name string
	do   func(buf []int32) (n int, err error)
}

// TestFileForms writes blocks in all forms that start what another call ends, and
// reads them so.
func TestFileForms(t *testing.T) {
	const p, n = 3, 50
	eachFile(t, p, nil, func(ctx context.Context, c *Comm, f *File[int32], _ string) error {
		at := int64(c.Rank() * n)
		wait := func(r *Request, err error) (int, error) {
			if err != nil {
				return 0, err
			}
			st, err := r.Wait(ctx)
			return st.Bytes / 4, err
		}
		begun := func(err error, end func(context.Context) (int, error)) (int, error) {
			if err != nil {
				return 0, err
			}
			return end(ctx)
		}
		writes := []fileForm{
			{"IwriteAt", func(b []int32) (int, error) { return wait(f.IwriteAt(at, b)) }},
			{"WriteOrderedBegin", func(b []int32) (int, error) { return begun(f.WriteOrderedBegin(b), f.WriteOrderedEnd) }},
		}
		reads := []fileForm{
			{"IreadAll", func(b []int32) (int, error) {
				if _, err := f.Seek(at, io.SeekStart); err != nil {
					return 0, err
				}
				return wait(f.IreadAll(b))
			}},
			{"ReadAtAllBegin", func(b []int32) (int, error) { return begun(f.ReadAtAllBegin(at, b), f.ReadAtAllEnd) }},
			{"IreadShared", func(b []int32) (int, error) { return wait(f.IreadShared(b)) }},
		}
		for i, w := range writes {
			mine := make([]int32, n)
			for j := range mine {
				mine[j] = int32(1000*i + c.Rank()*n + j)
			}
			if err := f.SeekShared(ctx, 0, io.SeekStart); err != nil {
				return err
			}
			if k, err := w.do(mine); err != nil || k != n {
				return fmt.Errorf("%s: %d elements, %w", w.name, k, err)
			}
			if err := Barrier(ctx, c); err != nil {
				return err
			}
			for _, r := range reads {
				if err := f.SeekShared(ctx, 0, io.SeekStart); err != nil {
					return err
				}
				got := make([]int32, n)
				if k, err := r.do(got); err != nil || k != n {
					return fmt.Errorf("%s after %s: %d elements, %w", r.name, w.name, k, err)
				}
				first := got[0]
				if r.name == "IreadShared" { // one of the blocks, each is another's
					firsts := make([]int32, p)
					if err := Allgather(ctx, c, got[:1], firsts); err != nil {
						return err
					}
					slices.Sort(firsts)
					first = firsts[c.Rank()]
				}
				if first != mine[0] {
					return fmt.Errorf("%s after %s: begins with %d, want %d", r.name, w.name, first, mine[0])
				}
				for j, v := range got {
					if v != got[0]+int32(j) {
						return fmt.Errorf("%s after %s: element %d is %d", r.name, w.name, j, v)
					}
				}
			}
		}
		return nil
	})
}
