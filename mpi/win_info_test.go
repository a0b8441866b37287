package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/rma"
)

// TestWinInfo makes windows with hints, changes them and looks at what they do.
func TestWinInfo(t *testing.T) {
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int32](ctx, c, 5, WithInfo(Info{InfoNoLocks: "true", InfoAlignment: "4096", "vendor": "x",
			InfoSameSize: "true", InfoGranularity: "16", InfoAccumulateOps: "same_op", InfoAccumulateOrdering: "rar, war"}))
		if err != nil {
			return err
		}
		if at := uintptr(unsafe.Pointer(&w.Buf()[0])); at%4096 != 0 || len(w.Buf()) != 5 {
			return fmt.Errorf("%d elements at %#x", len(w.Buf()), at)
		}
		i := w.Info()
		if i[InfoNoLocks] != "true" || i["vendor"] != "x" || i[InfoSameDispUnit] != "true" || i[InfoGranularity] != "16" {
			return fmt.Errorf("info %v", i)
		}
		if w.Group().Size() != 2 {
			return fmt.Errorf("group of %d", w.Group().Size())
		}
		for _, err := range []error{w.Lock(ctx, LockShared, 0), w.LockAll(ctx)} {
			if !errors.Is(err, ErrEpoch) {
				return fmt.Errorf("lock in spite of %s: %w", InfoNoLocks, err)
			}
		}
		if err := w.SetInfo(Info{InfoNoLocks: "maybe"}); !errors.Is(err, ErrOption) || w.Info()[InfoNoLocks] != "true" {
			return fmt.Errorf("%s=maybe: %w", InfoNoLocks, err)
		}
		if err := w.SetInfo(Info{InfoNoLocks: "false"}); err != nil {
			return err
		}
		if err := errors.Join(w.LockAll(ctx), w.UnlockAll(ctx)); err != nil {
			return err
		}
		if err := w.Free(ctx); err != nil {
			return err
		}
		plain, err := WinAllocate[int32](ctx, c, 1)
		if err != nil {
			return err
		}
		if i := plain.Info(); i[InfoNoLocks] != "false" || i[InfoAccumulateOrdering] != "rar,raw,war,waw" {
			return fmt.Errorf("default info %v", i)
		}
		return plain.Free(ctx)
	})
}

// TestWinInfoRefused gives values that make no sense, on one rank only: no rank
// may get a window.
func TestWinInfoRefused(t *testing.T) {
	local(t, 2, func(ctx context.Context, c *Comm) error {
		for key, value := range map[string]string{InfoNoLocks: "1", InfoSameSize: "yes", InfoSameDispUnit: "no", InfoNoncontig: "TRUE",
			InfoAccumulateOrdering: "raw,wow", InfoAccumulateOps: "sum", InfoGranularity: "-1", InfoAlignment: "3"} {
			info := Info{}
			if c.Rank() == 1 {
				info[key] = value
			}
			_, err := WinAllocate[int32](ctx, c, 1, WithInfo(info))
			if !errors.Is(err, ErrOption) || ErrorClass(err) != ClassArg {
				return fmt.Errorf("%s=%q: %w, want %w", key, value, err, ErrOption)
			}
		}
		for _, info := range []Info{{InfoAlignment: fmt.Sprint(2 * MaxAlignment)}, {InfoAlignment: "0"}, {InfoGranularity: "x"}} {
			if _, err := WinAllocateShared[int32](ctx, c, 1, WithInfo(info)); !errors.Is(err, ErrOption) {
				return fmt.Errorf("%v: %w", info, err)
			}
		}
		// Different sizes, in spite of what one rank promises.
		info := Info{}
		if c.Rank() == 0 {
			info[InfoSameSize] = "true"
		}
		if _, err := WinAllocate[int32](ctx, c, 1+c.Rank(), WithInfo(info)); !errors.Is(err, ErrWindow) {
			return fmt.Errorf("two sizes with %s: %w", InfoSameSize, err)
		}
		return nil
	})
}

// TestWinSharedNoncontig looks at where the parts of shared memory lie.
func TestWinSharedNoncontig(t *testing.T) {
	const p, n = 3, 5
	local(t, p, func(ctx context.Context, c *Comm) error {
		for _, gaps := range []bool{true, false} {
			info := Info{InfoNoncontig: fmt.Sprint(gaps)}
			if !gaps && c.Rank() == 1 {
				info[InfoNoncontig] = "true" // not all do
			}
			w, err := WinAllocateShared[int32](ctx, c, n, WithInfo(info))
			if err != nil {
				return err
			}
			for r := range p {
				part, err := w.SharedQuery(r)
				if err != nil || len(part) != n {
					return fmt.Errorf("part of %d elements: %w", len(part), err)
				}
				first, _ := w.SharedQuery(0)
				at, from := uintptr(unsafe.Pointer(&part[0])), uintptr(unsafe.Pointer(&first[0]))
				if want := from + uintptr(4*n*r); !gaps && at != want || gaps && at%rma.CacheLine != 0 {
					return fmt.Errorf("gaps %t: part %d at %#x, the first at %#x", gaps, r, at, from)
				}
			}
			if err := w.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestWinWithMessages has a window do without RDMA where there is RDMA.
func TestWinWithMessages(t *testing.T) {
	local(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int64](ctx, c, 1, WithMessages())
		if err != nil {
			return err
		}
		other := 1 - c.Rank()
		if err := w.Put(ctx, []int64{int64(c.Rank() + 5)}, other, 0); err != nil {
			return err
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if got, want := w.Buf()[0], int64(other+5); got != want || w.RDMA() {
			return fmt.Errorf("%d, want %d; RDMA: %v", got, want, w.RDMA())
		}
		if n := c.World().Stats().Peers[other].Writes.Messages; n != 0 {
			return fmt.Errorf("%d RDMA Writes", n)
		}
		return w.Free(ctx)
	}, WithTransport(TransportHybrid))
}

// With InfoConnect of one rank all have queue pairs to all others when the window
// is there, where RDMA is in use; else a rank has those that it has used.
func TestWinInfoConnect(t *testing.T) {
	eachTransport(t, 3, func(ctx context.Context, c *Comm) error {
		conns := func(w *Win[int32]) int {
			if w.w.rma.Device() == nil {
				return 0
			}
			return w.w.rma.Device().Connections()
		}
		for _, connect := range []bool{false, true} {
			info := Info{}
			if connect && c.Rank() == 1 {
				info[InfoConnect] = "all"
			}
			w, err := WinAllocate[int32](ctx, c, 5, WithInfo(info))
			if err != nil {
				return err
			}
			want := 0
			if connect && w.RDMA() {
				want = 2
			}
			if n := conns(w); n != want {
				return fmt.Errorf("%d queue pairs, want %d", n, want)
			}
			if want := map[bool]string{false: "first_use", true: "all"}[info[InfoConnect] != ""]; w.Info()[InfoConnect] != want {
				return fmt.Errorf("info %v, want %s", w.Info(), want)
			}
			if err := w.Fence(ctx); err != nil { // all have looked
				return err
			}
			if err := errors.Join(w.Put(ctx, []int32{7}, (c.Rank()+1)%3, 2), w.Fence(ctx)); err != nil || w.Buf()[2] != 7 {
				return fmt.Errorf("window %v, %w", w.Buf(), err)
			}
			if err := w.Free(ctx); err != nil {
				return err
			}
			want = 1
			if w.w.rma.Direct() { // Put needs none
				want = 0
			}
			if !connect && w.RDMA() && conns(w) != want {
				return fmt.Errorf("%d queue pairs after use, want %d", conns(w), want)
			}
		}
		_, err := WinAllocate[int32](ctx, c, 5, WithInfo(Info{InfoConnect: "soon"}))
		if !errors.Is(err, ErrOption) {
			return fmt.Errorf("%s=soon: %w", InfoConnect, err)
		}
		return nil
	})
}
