package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/rma"
)

// TestWinEngineMixedAtomics lets all ranks update elements of several types in one window at the same time, in forms
// that wait for the target and that do not. No update is lost, whatever lies beside it.
func TestWinEngineMixedAtomics(t *testing.T) {
	const p, times = 3, 60
	i8, i32 := rma.ElemOf(reflect.TypeFor[int8]()), rma.ElemOf(reflect.TypeFor[int32]())
	i64, f64 := rma.ElemOf(reflect.TypeFor[int64]()), rma.ElemOf(reflect.TypeFor[float64]())
	eachTransport(t, p, func(ctx context.Context, c *Comm) error {
		mem := engineMemory(64, 0)
		cfg := rma.Config{Mem: mem, Unit: 1 << c.Rank()}
		if b, f := rma.Allocate((*winComm)(c), p, 64, 64, true); f != nil {
			mem, cfg.Mem, cfg.File = b, b, f
		}
		w, _, err := engineWindow(ctx, c, cfg)
		if err != nil {
			return err
		}
		bytesOf := func(v any) []byte { b, _ := binary.Append(nil, binary.NativeEndian, v); return b }
		for target := range p {
			at := func(off int) int { return off / w.Unit(target) }
			// An int64 at 0, four int8 at 24, an int32 at 36 and a float64 at 48.
			old := make([]byte, 8)
			for k := range times {
				if err := errors.Join(
					w.Update(ctx, bytesOf(int64(1)), nil, target, at(0), i64, op.Sum[int64]{}),
					w.Update(ctx, bytesOf([]int8{1, 0, 0, 1}), nil, target, at(24), i8, op.Sum[int8]{}),
					w.Update(ctx, bytesOf(1.0), old, target, at(48), f64, op.Sum[float64]{}),
					w.Flush(ctx, target),
				); err != nil {
					return err
				}
				if v := math.Float64frombits(binary.NativeEndian.Uint64(old)); v < float64(k) || v >= p*times {
					return fmt.Errorf("fetched %v after %d updates", v, k)
				}
				if err := w.Fetch(ctx, bytesOf(int64(1)), old, target, at(0), i64, op.Sum[int64]{}); err != nil {
					return err
				}
				if v := binary.NativeEndian.Uint64(old); v < uint64(2*k+1) || v >= 2*p*times {
					return fmt.Errorf("fetched %v after %d updates", v, 2*k+1)
				}
				// A counter that only CompareAndSwap changes: both forms in turn.
				for was, tries := int32(0), 0; ; tries++ {
					if tries == 100_000 {
						return errors.New("CompareAndSwap never succeeds")
					}
					got := make([]byte, 4)
					err := w.Swap(ctx, bytesOf([]int32{was, was + 1}), got, target, at(36), i32, k%2 == 0)
					if err = errors.Join(err, w.FlushLocal(ctx, target)); err != nil {
						return err
					}
					v := int32(binary.NativeEndian.Uint32(got))
					if v == was {
						break
					}
					was = v
				}
			}
		}
		if err := w.Fence(ctx, 0); err != nil {
			return err
		}
		n := uint64(p * times)
		if got := binary.NativeEndian.Uint64(mem); got != 2*n {
			return fmt.Errorf("the int64 is %d, want %d", got, 2*n)
		}
		if got := mem[24:28]; !bytes.Equal(got, []byte{byte(n), 0, 0, byte(n)}) {
			return fmt.Errorf("the int8 are %d, want %d", got, byte(n))
		}
		if got := binary.NativeEndian.Uint32(mem[36:]); got != uint32(n) {
			return fmt.Errorf("the int32 is %d, want %d", got, n)
		}
		if got := math.Float64frombits(binary.NativeEndian.Uint64(mem[48:])); got != float64(n) {
			return fmt.Errorf("the float64 is %v, want %d", got, n)
		}
		return w.Free(ctx)
	})
}

// TestWinEngineRefuses asks for what a window does not have.
func TestWinEngineRefuses(t *testing.T) {
	i32, i64 := rma.ElemOf(reflect.TypeFor[int32]()), rma.ElemOf(reflect.TypeFor[int64]())
	f64 := rma.ElemOf(reflect.TypeFor[float64]())
	long := rma.ElemOf(reflect.TypeFor[[rma.MaxChunk + 1]byte]())
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w, _, err := engineWindow(ctx, c, rma.Config{Mem: engineMemory(100, 4*c.Rank()), Unit: 4})
		if err != nil {
			return err
		}
		peer := 1 - c.Rank()
		b, sum := make([]byte, 16), op.Sum[int64]{}
		half, err := datatype.Vector(2, 1, 3, engineType[int16]())
		if err != nil {
			return err
		}
		word64 := engineType[int64]()
		x := engineItems(datatype.In(b), 1, word64)
		word, bad := peer, 1-peer // displacements of an address that is a multiple of 8, and of one that is not
		for name, tt := range map[string]struct{ err, want error }{
			"behind the end":    {w.Put(ctx, b, peer, 100/w.Unit(peer)), ErrRange},
			"negative":          {w.Get(ctx, b, peer, -1), ErrRange},
			"overflow":          {w.Put(ctx, b, peer, math.MaxInt/2), ErrRange},
			"no type":           {w.Update(ctx, b, nil, peer, word, nil, sum), ErrDatatype},
			"no type to swap":   {w.Swap(ctx, b, b[:8], peer, word, nil, true), ErrDatatype},
			"operator":          {w.Update(ctx, b, nil, peer, word, f64, op.Band[int64]{}), ErrOp},
			"part of an elem":   {w.Update(ctx, b[:12], nil, peer, word, i64, sum), ErrCount},
			"two elements":      {w.Fetch(ctx, b, b, peer, word, i64, sum), ErrCount},
			"one operand":       {w.Swap(ctx, b[:8], b[:8], peer, word, i64, true), ErrCount},
			"long":              {w.Update(ctx, nil, nil, peer, word, long, op.Replace{}), ErrCount},
			"not aligned":       {w.Update(ctx, b, nil, peer, bad, i64, sum), ErrDatatype},
			"not aligned, own":  {w.Update(ctx, b, nil, c.Rank(), word, i64, sum), ErrDatatype},
			"items not aligned": {w.UpdateItems(ctx, x, nil, peer, bad, 1, word64, i64, sum), ErrDatatype},
			"items of parts":    {w.UpdateItems(ctx, engineItems(datatype.In(b), 2, half), nil, peer, 0, 2, half, i32, sum), ErrDatatype},
			"items of others":   {w.UpdateItems(ctx, x, nil, peer, word, 1, word64, f64, sum), ErrTypeMismatch},
		} {
			if !errors.Is(tt.err, tt.want) {
				return fmt.Errorf("%s: %v, want %v", name, tt.err, tt.want)
			}
		}
		return w.Free(ctx)
	})
}

// engineType returns the datatype of a T.
func engineType[T Element]() *datatype.Type {
	t, err := datatype.Of[T]()
	if err != nil {
		panic(err)
	}
	return t
}

// TestWinEngineUnits makes windows of bad and of different units.
func TestWinEngineUnits(t *testing.T) {
	local(t, 2, func(ctx context.Context, c *Comm) error {
		i32 := rma.ElemOf(reflect.TypeFor[int32]())
		for _, tt := range []struct {
			name string
			cfg  rma.Config
			want error
		}{
			{"none", rma.Config{Unit: 0}, ErrOption},
			{"one negative", rma.Config{Unit: 1 - 2*c.Rank()}, nil},
			{"several", rma.Config{Unit: 1 + c.Rank()}, nil},
			{"several of one", rma.Config{Unit: 4 + c.Rank(), Elem: i32}, ErrWindow},
			{"of a type here", rma.Config{Unit: 4, Elem: []*rma.Elem{i32, nil}[c.Rank()]}, ErrWindow},
			{"of addresses", rma.Config{Unit: 4, Dynamic: true, Address: true}, ErrOption},
			{"dynamic here", rma.Config{Unit: 1, Dynamic: c.Rank() == 0, Messages: true}, ErrWindow},
			{"addresses here", rma.Config{Unit: 1, Dynamic: true, Address: c.Rank() == 0, Messages: true}, ErrWindow},
		} {
			w, _, err := engineWindow(ctx, c, tt.cfg)
			if tt.name == "one negative" {
				if err == nil {
					return fmt.Errorf("%s: no error", tt.name)
				}
				continue
			}
			if !errors.Is(err, tt.want) {
				return fmt.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			}
			if err == nil {
				if err := w.Free(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// TestWinEngineHostile sends requests to a window that no origin would send: all are refused, the error is that of the
// next flush, the memory stays as it is, and the window works on.
func TestWinEngineHostile(t *testing.T) {
	const float64Code, int64Code, pairCode = 10, 4, 16 + 10
	request := func(kind, opcode, elem byte, off uint64, n, size uint32, data int) []byte {
		b := []byte{kind, opcode, elem, 0, 0, 0, 0, 0}
		b = binary.BigEndian.AppendUint64(b, off)
		b = binary.BigEndian.AppendUint32(b, n)
		b = binary.BigEndian.AppendUint32(b, size)
		return append(b, bytes.Repeat([]byte{1}, data)...)
	}
	const put, update, swap = 1, 3, 4
	sum, minloc, noCode := byte(op.CodeSum), byte(op.CodeMinLoc), byte(op.Codes)
	local(t, 2, func(ctx context.Context, c *Comm) error {
		mem := engineMemory(64, 0)
		any, anyComm, err := engineWindow(ctx, c, rma.Config{Mem: mem, Unit: 1, Messages: true})
		if err != nil {
			return err
		}
		typed := engineMemory(64, 0)
		one, oneComm, err := engineWindow(ctx, c, rma.Config{Mem: typed, Unit: 8, Elem: rma.ElemOf(reflect.TypeFor[int64]()), Messages: true})
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			for _, tt := range []struct {
				name string
				w    *rma.Window
				msg  []byte
				want error
			}{
				{"no such type", any, request(update, sum, 200, 0, 8, 8, 8), ErrTypeMismatch},
				{"a gap in the types", any, request(update, sum, 15, 0, 8, 8, 8), ErrTypeMismatch},
				{"size of the type", any, request(update, sum, float64Code, 0, 8, 4, 8), ErrTypeMismatch},
				{"no size", any, request(update, sum, float64Code, 0, 8, 0, 8), ErrProtocol},
				{"part of an element", any, request(update, sum, float64Code, 0, 12, 8, 12), ErrProtocol},
				{"operator of another type", any, request(update, minloc, float64Code, 0, 8, 8, 8), ErrProtocol},
				{"operator of pairs", any, request(update, sum, pairCode, 0, 16, 16, 16), ErrProtocol},
				{"no such operator", any, request(update, noCode, float64Code, 0, 8, 8, 8), ErrProtocol},
				{"user operator", any, request(update, byte(op.CodeUser), float64Code, 0, 8, 8, 8), ErrProtocol},
				{"operator on bytes", any, request(update, sum, 0, 0, 8, 8, 8), ErrProtocol},
				{"not aligned", any, request(update, sum, float64Code, 4, 8, 8, 8), ErrDatatype},
				{"outside", any, request(update, sum, float64Code, 64, 8, 8, 8), ErrRange},
				{"far outside", any, request(update, sum, float64Code, math.MaxUint64-7, 8, 8, 8), ErrRange},
				{"swap of two", any, request(swap, 0, int64Code, 0, 16, 8, 32), ErrProtocol},
				{"swap not aligned", any, request(swap, 0, int64Code, 1, 8, 8, 16), ErrDatatype},
				{"swap of nothing", any, request(swap, 0, int64Code, 0, 0, 8, 0), ErrProtocol},
				{"put of a type", any, request(put, 0, float64Code, 0, 8, 0, 8), ErrProtocol},
				{"type of another window", one, request(update, sum, float64Code, 0, 8, 8, 8), ErrTypeMismatch},
				{"bytes in a window of words", one, request(update, byte(op.CodeReplace), 0, 0, 8, 8, 8), ErrTypeMismatch},
				{"part of a word", one, request(update, sum, int64Code, 4, 8, 8, 8), ErrDatatype},
			} {
				comm := anyComm
				if tt.w == one {
					comm = oneComm
				}
				if err := comm.Send(ctx, tt.msg, 1, 0, false); err != nil {
					return err
				}
				// An operation that is good makes the flush ask the target.
				if err := tt.w.Put(ctx, nil, 1, 0); err != nil {
					return err
				}
				if err := tt.w.Put(ctx, []byte{0}, 1, 0); err != nil {
					return err
				}
				if err := tt.w.Flush(ctx, 1); !errors.Is(err, tt.want) {
					return fmt.Errorf("%s: %v, want %v", tt.name, err, tt.want)
				}
				if err := tt.w.Flush(ctx, 1); err != nil {
					return fmt.Errorf("%s: reported twice: %w", tt.name, err)
				}
			}
		}
		if err := errors.Join(any.Fence(ctx, 0), one.Fence(ctx, 0)); err != nil {
			return err
		}
		if zero := make([]byte, 64); !bytes.Equal(mem, zero) || !bytes.Equal(typed, zero) {
			return errors.New("a request that was refused has changed memory")
		}
		return errors.Join(any.Free(ctx), one.Free(ctx))
	})
}
