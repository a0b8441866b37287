package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// Blocks of their own: of other lengths and layouts for each pair of ranks, before the place that a
// datatype counts from, in all forms, and in place.
func TestAlltoallwOfBuffers(t *testing.T) {
	word := MustType(TypeOf[int32]())
	before := MustType(TypeHindexed([]int{1, 1}, []int{-8, -4}, word)) // two words that end where it begins
	gaps := MustType(TypeVector(2, 1, 2, word))
	local(t, 3, func(ctx context.Context, c *Comm) error {
		me, size := c.Rank(), c.Size()
		// Rank i sends rank j i+j items of two words.
		var send, recv []Buffer
		var mem [][]int32
		for i := range size {
			n := me + i
			out, in := make([]int32, 4*n+2), slices.Repeat([]int32{-1}, 4*n+2)
			for k := range out {
				out[k] = int32(1000*me + 100*i + k)
			}
			mem = append(mem, in)
			send = append(send, Items(out, n, MustType(TypeResized(gaps, 0, 16))))
			at := MustType(TypeResized(MustType(TypeHindexed([]int{1}, []int{8}, before)), 0, 8))
			recv = append(recv, Items(in, n, at))
		}
		check := func(form string) error {
			for i := range size {
				want := slices.Repeat([]int32{-1}, len(mem[i]))
				for k := range me + i {
					want[2*k], want[2*k+1] = int32(1000*i+100*me+4*k), int32(1000*i+100*me+4*k+2)
				}
				if !slices.Equal(mem[i], want) {
					return fmt.Errorf("%s: rank %d from %d: %v, want %v", form, me, i, mem[i], want)
				}
				for k := range mem[i] {
					mem[i][k] = -1
				}
			}
			return nil
		}
		if err := errors.Join(c.Alltoallw(ctx, send, recv), check("blocking")); err != nil {
			return err
		}
		q, err := c.Ialltoallw(send, recv)
		if err != nil {
			return err
		}
		if _, err := q.Wait(ctx); err != nil {
			return err
		}
		if err := check("nonblocking"); err != nil {
			return err
		}
		p, err := c.AlltoallwInit(send, recv)
		if err != nil {
			return err
		}
		defer p.Free()
		for range 2 {
			if q, err = p.Start(); err == nil {
				_, err = q.Wait(ctx)
			}
			if err = errors.Join(err, check("persistent")); err != nil {
				return err
			}
		}
		// In place: the blocks are swapped, those with gaps too.
		a := []int32{int32(10 * me), -1, int32(10*me + 1), -2, int32(10*me + 2), -3}
		column := []Buffer{Items(a, 1, word), Items(a[2:], 1, word), Items(a[4:], 1, word)}
		if err := c.Alltoallw(ctx, column, column); err != nil {
			return err
		}
		if want := []int32{int32(me), -1, int32(10 + me), -2, int32(20 + me), -3}; !slices.Equal(a, want) {
			return fmt.Errorf("in place: %v, want %v", a, want)
		}
		other := []Buffer{Items(a[1:], 1, word), Items(a[2:], 1, word), Items(a[3:], 1, word)}
		if err := c.Alltoallw(ctx, column, other); !errors.Is(err, ErrOverlap) {
			return fmt.Errorf("overlap: %w", err)
		}
		if err := c.Alltoallw(ctx, send[:2], recv); !errors.Is(err, ErrCount) {
			return fmt.Errorf("two blocks: %w", err)
		}
		return nil
	})
}

// Blocks that a v-collective sends and receives may interleave in one array.
func TestInterleavedBlocks(t *testing.T) {
	local(t, 2, func(ctx context.Context, c *Comm) error {
		me := int32(c.Rank())
		a := []int32{10 * me, -1, 10*me + 1, -1} // sent: 0 and 2, received: 1 and 3
		ones := []int{1, 1}
		if err := Alltoallv(ctx, c, a, ones, []int{0, 2}, a, ones, []int{1, 3}); err != nil {
			return err
		}
		if want := []int32{10 * me, me, 10*me + 1, 10 + me}; !slices.Equal(a, want) {
			return fmt.Errorf("exchanged: %v, want %v", a, want)
		}
		// Sent: 1, received: 0 and 2.
		b := []int32{-1, me + 5, -1}
		if err := Allgatherv(ctx, c, b[1:2], b, ones, []int{0, 2}); err != nil {
			return err
		}
		if want := []int32{5, me + 5, 6}; !slices.Equal(b, want) {
			return fmt.Errorf("gathered: %v, want %v", b, want)
		}
		if err := Alltoallv(ctx, c, a[:3], ones, []int{0, 2}, a[1:], ones, []int{1, 2}); !errors.Is(err, ErrOverlap) {
			return fmt.Errorf("overlap: %w", err)
		}
		// In place, with blocks of others between: those stay.
		d := []int32{10 * me, -7, 10*me + 1}
		if err := Alltoallv(ctx, c, d, ones, []int{0, 2}, d, ones, []int{0, 2}); err != nil {
			return err
		}
		if want := []int32{me, -7, 10 + me}; !slices.Equal(d, want) {
			return fmt.Errorf("in place: %v, want %v", d, want)
		}
		return nil
	})
}
