package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestWinDynamic attaches buffers, tells their addresses, and lets others work
// on them with all operations.
func TestWinDynamic(t *testing.T) {
	const p, n = 3, 1500
	eachTransport(t, p, func(ctx context.Context, c *Comm) error {
		w, err := WinCreateDynamic[int64](ctx, c)
		if err != nil {
			return err
		}
		me, next := c.Rank(), (c.Rank()+1)%p
		if w.RDMA() || w.Len(next) != 0 {
			return errors.New("a dynamic window has memory from the start")
		}
		one, two := make([]int64, 10), make([]int64, p*n)
		mine := make([]int, 2)
		for i, b := range [][]int64{one, two} {
			if mine[i], err = w.Attach(b); err != nil {
				return err
			}
		}
		addrs := make([]int, 2*p)
		if err := Allgather(ctx, c, mine, addrs); err != nil {
			return err
		}
		src := make([]int64, n)
		for i := range src {
			src[i] = int64(me*n + i)
		}
		for target := range p {
			if err := w.Put(ctx, src, target, addrs[2*target+1]+me*n); err != nil {
				return err
			}
			if err := w.Accumulate(ctx, []int64{1, 2}, target, addrs[2*target]+3, Sum); err != nil {
				return err
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if !slices.Equal(one[3:5], []int64{p, 2 * p}) {
			return fmt.Errorf("updated %v", one)
		}
		for i, v := range two {
			if v != int64(i) {
				return fmt.Errorf("element %d is %d", i, v)
			}
		}
		for target := range p {
			got := make([]int64, 2)
			if err := errors.Join(w.Get(ctx, got, target, addrs[2*target+1]+5), w.Flush(ctx, target)); err != nil || got[1] != 6 {
				return fmt.Errorf("got %v, %w", got, err)
			}
			if old, err := w.FetchAndOp(ctx, 5, target, addrs[2*target]+me, Sum); err != nil || old != []int64{0, 0, 0}[me] {
				return fmt.Errorf("fetched %d, %w", old, err)
			}
			if old, err := w.CompareAndSwap(ctx, 5, 9, target, addrs[2*target]+me); err != nil || old != 5 {
				return fmt.Errorf("swapped %d, %w", old, err)
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		// What is not attached cannot be reached; the next operation works.
		for _, bad := range []int{0, addrs[2*next] - 1, addrs[2*next] + 9, addrs[2*next+1] + p*n, 1 << (30 + 10*(^uint(0)>>63))} {
			err := errors.Join(w.Put(ctx, []int64{1, 2}, next, bad), w.Flush(ctx, next))
			if !errors.Is(err, ErrRange) {
				return fmt.Errorf("address %d: %w", bad, err)
			}
			if err := errors.Join(w.Put(ctx, []int64{1}, me, bad), w.Flush(ctx, me)); bad == 0 && !errors.Is(err, ErrRange) {
				return fmt.Errorf("own address %d: %w", bad, err)
			}
		}
		if err := w.Put(ctx, src, next, -1); !errors.Is(err, ErrRange) {
			return fmt.Errorf("a negative address: %w", err)
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if err := w.Detach(mine[0]); err != nil {
			return err
		}
		if err := w.Detach(mine[0]); !errors.Is(err, ErrRange) {
			return fmt.Errorf("detached twice: %w", err)
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if err := errors.Join(w.Get(ctx, make([]int64, 1), next, addrs[2*next]), w.Flush(ctx, next)); err == nil {
			return errors.New("read what was detached")
		}
		if again, err := w.Attach(one); err != nil || again == mine[0] {
			return fmt.Errorf("attached at %d again, %w", again, err)
		}
		return w.Free(ctx)
	})
	local(t, 1, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int](ctx, c, 1)
		if err != nil {
			return err
		}
		if _, err := w.Attach(nil); !errors.Is(err, ErrWindow) {
			return fmt.Errorf("attached to a window with memory: %w", err)
		}
		d, err := WinCreateDynamic[byte](ctx, c)
		if err != nil {
			return err
		}
		for range MaxAttached {
			if _, err := d.Attach(nil); err != nil {
				return err
			}
		}
		if _, err := d.Attach(nil); !errors.Is(err, ErrWindow) {
			return fmt.Errorf("attached too many: %w", err)
		}
		return errors.Join(w.Free(ctx), d.Free(ctx))
	})
}

// TestWinAttachOverlap attaches buffers that overlap what is attached.
func TestWinAttachOverlap(t *testing.T) {
	local(t, 1, func(ctx context.Context, c *Comm) error {
		w, err := WinCreateDynamic[int32](ctx, c)
		if err != nil {
			return err
		}
		mem := make([]int32, 100)
		disp := make(map[int]int)
		for _, lo := range []int{40, 20, 60, 0, 80} {
			if disp[lo], err = w.Attach(mem[lo : lo+20]); err != nil {
				return fmt.Errorf("attaching [%d:%d]: %w", lo, lo+20, err)
			}
		}
		for _, part := range [][]int32{mem, mem[:1], mem[99:], mem[19:21], mem[20:40], mem[45:50], mem[10:90]} {
			if _, err := w.Attach(part); !errors.Is(err, ErrWindow) {
				return fmt.Errorf("attaching %d elements twice: %v, want %v", len(part), err, ErrWindow)
			}
		}
		for range 2 { // buffers without elements overlap nothing
			if _, err := w.Attach(mem[30:30]); err != nil {
				return err
			}
		}
		if err := w.Detach(disp[40]); err != nil {
			return err
		}
		if _, err := w.Attach(mem[39:60]); !errors.Is(err, ErrWindow) {
			return fmt.Errorf("attaching across the end of another: %v, want %v", err, ErrWindow)
		}
		again, err := w.Attach(mem[40:60])
		if err != nil || again == disp[40] {
			return fmt.Errorf("attaching again: at %d, %w", again, err)
		}
		if err := w.Put(ctx, []int32{7}, 0, again+3); err != nil || mem[43] != 7 {
			return fmt.Errorf("%v, %w", mem[43], err)
		}
		return w.Free(ctx)
	})
}

// TestWinClasses compares the error classes of windows with those of the standard (MPI-4.1, Section 12.6.2).
func TestWinClasses(t *testing.T) {
	local(t, 1, func(ctx context.Context, c *Comm) error {
		fixed, err := WindowAllocate(ctx, c, 8, 1)
		if err != nil {
			return err
		}
		dynamic, err := WindowCreateDynamic(ctx, c)
		if err != nil {
			return err
		}
		bytes, err := TypeOf[byte]()
		if err != nil {
			return err
		}
		mem := make([]byte, 8)
		if _, err := dynamic.Attach(mem); err != nil {
			return err
		}
		_, flavor := fixed.Attach(mem)
		_, attach := dynamic.Attach(mem[4:])
		_, shared := dynamic.SharedQuery(0)
		for _, tt := range []struct {
			name string
			err  error
			want Class
		}{
			{"attach to a window of fixed memory", flavor, ClassRMAFlavor},
			{"attach memory twice", attach, ClassRMAAttach},
			{"memory of a dynamic window", shared, ClassRMAFlavor},
			{"beyond the end", fixed.Put(ctx, Elements(mem), 0, 1, 8, bytes), ClassRMARange},
			{"unlock without a lock", fixed.Unlock(ctx, 0), ClassRMASync},
		} {
			if got := ErrorClass(tt.err); got != tt.want {
				return fmt.Errorf("%s: %w of class %v, want %v", tt.name, tt.err, got, tt.want)
			}
		}
		return errors.Join(dynamic.Free(ctx), fixed.Free(ctx))
	})
}
