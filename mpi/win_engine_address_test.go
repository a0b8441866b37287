package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/rma"
)

// TestWinEngineAddresses works on a dynamic window whose displacements are addresses of the processes (MPI-4.1,
// Section 12.2.4): at the beginning of buffers, within them, and by datatypes that hold the address.
func TestWinEngineAddresses(t *testing.T) {
	i64 := rma.ElemOf(reflect.TypeFor[int64]())
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w, _, err := engineWindow(ctx, c, rma.Config{Unit: 1, Dynamic: true, Address: true, Messages: true})
		if err != nil {
			return err
		}
		all := rma.AlignedBytes(300, 64) // the middle stays out of the window
		low, high := all[:100:100], all[200:]
		address := func(b []byte) int { return int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
		for _, b := range [][]byte{high, low, low[:0], low[:0]} { // not in order; those without bytes touch others
			if disp, err := w.Attach(b); err != nil || disp != address(b) {
				return fmt.Errorf("attached at %d, %w; want %d", disp, err, address(b))
			}
		}
		if _, err := w.Attach(all[50:210]); !errors.Is(err, ErrWindow) {
			return fmt.Errorf("attached twice: %v", err)
		}
		at := make([]int, 2)
		if err := Allgather(ctx, c, []int{address(all)}, at); err != nil {
			return err
		}
		peer := 1 - c.Rank()
		there := at[peer]
		src := bytes.Repeat([]byte{byte(c.Rank() + 1)}, 10)
		// Bytes 20 to 24 and 30 to 34 from the address, which the datatype holds: its displacement is 0.
		absolute, err := datatype.Hindexed([]int{5, 5}, []int{there + 20, there + 30}, engineType[byte]())
		if err != nil {
			return err
		}
		// And from 240 backwards: two items of 5 bytes, 10 apart, that begin below their displacement.
		back, err := datatype.Hindexed([]int{5}, []int{-5}, engineType[byte]())
		if err == nil {
			back, err = datatype.Resized(back, -5, 10)
		}
		if err != nil {
			return err
		}
		one, old := binary.NativeEndian.AppendUint64(nil, 1), make([]byte, 8)
		if err := errors.Join(
			w.Put(ctx, src[:3], peer, there+7),
			w.Put(ctx, src, peer, there+290),
			w.PutItems(ctx, engineItems(datatype.In(src), 10, engineType[byte]()), peer, 0, 1, absolute),
			w.PutItems(ctx, engineItems(datatype.In(src), 10, engineType[byte]()), peer, there+240, 2, back),
			w.Update(ctx, one, nil, peer, there+40, i64, op.Sum[int64]{}),
			w.Fetch(ctx, one, old, peer, there+40, i64, op.Sum[int64]{}),
			w.Fence(ctx, 0),
		); err != nil {
			return err
		}
		want := make([]byte, 300)
		for _, k := range [][2]int{{7, 3}, {20, 5}, {30, 5}, {235, 5}, {245, 5}, {290, 10}} {
			copy(want[k[0]:], bytes.Repeat([]byte{byte(peer + 1)}, k[1]))
		}
		binary.NativeEndian.PutUint64(want[40:], 2)
		if !bytes.Equal(all, want) || !slices.Equal(old, one) {
			return fmt.Errorf("the memory is %v, want %v; fetched %v", all, want, old)
		}
		for name, tt := range map[string]struct {
			disp int
			want error
		}{
			"before":            {there - 1, ErrRange},
			"over the end":      {there + 96, ErrRange},
			"between":           {there + 100, ErrRange},
			"behind":            {there + 300, ErrRange},
			"not for words":     {there + 41, ErrDatatype},
			"null":              {0, ErrRange},
			"negative":          {-there, ErrRange},
			"beyond any memory": {datatype.MaxBytes, ErrRange},
		} {
			err := w.Update(ctx, one, nil, peer, tt.disp, i64, op.Sum[int64]{})
			if err == nil {
				err = w.Flush(ctx, peer)
			}
			if !errors.Is(err, tt.want) {
				return fmt.Errorf("%s: %v, want %v", name, err, tt.want)
			}
		}
		if err := w.Update(ctx, one, nil, c.Rank(), address(all)+41, i64, op.Sum[int64]{}); !errors.Is(err, ErrDatatype) {
			return fmt.Errorf("own memory, not for words: %v", err)
		}
		if err := w.Fence(ctx, 0); err != nil {
			return err
		}
		for i, want := range []error{nil, nil, nil, ErrRange} { // the buffer and those without bytes
			if err := w.Detach(address(low)); !errors.Is(err, want) {
				return fmt.Errorf("detach %d: %v, want %v", i, err, want)
			}
		}
		if err := w.Fence(ctx, 0); err != nil {
			return err
		}
		if err := errors.Join(w.Put(ctx, src, peer, there+7), w.Flush(ctx, peer)); !errors.Is(err, ErrRange) {
			return fmt.Errorf("to a buffer that is detached: %v", err)
		}
		if !bytes.Equal(all, want) {
			return errors.New("a request that was refused has changed memory")
		}
		if err := w.Fence(ctx, 0); err != nil { // the peer's Put has been refused, too
			return err
		}
		if _, err := w.Attach(all[:150]); err != nil { // the place is free again
			return err
		}
		return w.Free(ctx)
	})
}

// TestWinEngineAttachedIsBounded attaches buffers without bytes up to the limit.
func TestWinEngineAttachedIsBounded(t *testing.T) {
	local(t, 1, func(ctx context.Context, c *Comm) error {
		w, _, err := engineWindow(ctx, c, rma.Config{Unit: 1, Dynamic: true, Address: true, Messages: true})
		if err != nil {
			return err
		}
		b := make([]byte, 2)
		if _, err := w.Attach(b[:1]); err != nil {
			return err
		}
		for range rma.MaxAttached - 1 {
			if _, err := w.Attach(b[:0]); err != nil {
				return err
			}
		}
		for _, b := range [][]byte{b[:0], b[1:]} {
			if _, err := w.Attach(b); !errors.Is(err, ErrWindow) {
				return fmt.Errorf("attached beyond the limit: %v", err)
			}
		}
		return w.Free(ctx)
	})
}

// TestWinEngineAcross accesses memory that was attached as two buffers, one behind the other.
func TestWinEngineAcross(t *testing.T) {
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w, _, err := engineWindow(ctx, c, rma.Config{Unit: 1, Dynamic: true, Address: true, Messages: true})
		if err != nil {
			return err
		}
		all := rma.AlignedBytes(300, 64)
		at := make([]int, 2)
		for _, b := range [][]byte{all[100:200:200], all[:100:100], all[250:]} {
			disp, err := w.Attach(b)
			if err != nil {
				return err
			}
			if len(b) == 100 { // the last of them is the first in memory
				if err := Allgather(ctx, c, []int{disp}, at); err != nil {
					return err
				}
			}
		}
		peer := 1 - c.Rank()
		src, got := bytes.Repeat([]byte{7}, 150), make([]byte, 150)
		if err := errors.Join(w.Put(ctx, src, peer, at[peer]+20), w.Get(ctx, got, peer, at[peer]+20), w.Fence(ctx, 0)); err != nil {
			return err
		}
		if !bytes.Equal(got, src) || !bytes.Equal(all[20:170], src) || all[19] != 0 || all[170] != 0 {
			return fmt.Errorf("the memory is %v, got %v", all, got)
		}
		for _, disp := range []int{60, 199, 200, 201} { // there is nothing from 200 to 250
			err := errors.Join(w.Put(ctx, src, peer, at[peer]+disp), w.Flush(ctx, peer))
			if !errors.Is(err, ErrRange) {
				return fmt.Errorf("at %d: %v", disp, err)
			}
		}
		return w.Free(ctx)
	})
}
