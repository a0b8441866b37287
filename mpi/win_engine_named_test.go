package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/rma"
)

// namedFill stores values of a predefined datatype, packed, that all of its operators take: small integers, in numbers
// and parts of numbers alike, of which the bytes of floating point are made by converting.
func namedFill(rng *rand.Rand, n *datatype.Named, b []byte) {
	if n.Group == datatype.GroupPair {
		namedFill(rng, n.Value, b[:n.Value.Size()])
		namedFill(rng, n.Index, b[n.Value.Size():])
		return
	}
	v := uint64(rng.IntN(5))
	switch {
	case n.Format != nil:
		clear(b)
		if n.Format == datatype.Extended && v > 0 { // 1 to 4, in the representation of x86-64
			exp := []uint16{0, 16383, 16384, 16384, 16385}[v]
			m := []uint64{0, 1 << 63, 1 << 63, 3 << 62, 1 << 63}[v]
			binary.LittleEndian.PutUint64(b, m)
			binary.LittleEndian.PutUint16(b[8:], exp)
		}
	case n.Class() == "float" && n.Size() == 4:
		_, _ = binary.Encode(b, binary.NativeEndian, float32(v))
	case n.Class() == "float":
		_, _ = binary.Encode(b, binary.NativeEndian, float64(v))
	case n.Class() == "complex" && n.Size() == 8:
		_, _ = binary.Encode(b, binary.NativeEndian, complex(float32(v), 1))
	case n.Class() == "complex":
		_, _ = binary.Encode(b, binary.NativeEndian, complex(float64(v), 1))
	case n.Size() == 2:
		binary.NativeEndian.PutUint16(b, uint16(v))
	case n.Size() == 4:
		binary.NativeEndian.PutUint32(b, uint32(v))
	case n.Size() == 8:
		binary.NativeEndian.PutUint64(b, v)
	default:
		b[0] = byte(v)
	}
}

// TestWinEngineNamed updates items of all predefined datatypes of C and Fortran, and of vectors of them, with some of
// the operators that they have, and compares memory and old items with what the operators do in plain memory. Padding,
// and what lies between the items, stays.
func TestWinEngineNamed(t *testing.T) {
	const p, items, size = 2, 5, 1024
	seed := testSeed(t)
	eachTransport(t, p, func(ctx context.Context, c *Comm) error {
		rng := rand.New(rand.NewPCG(seed, uint64(c.Rank())))
		plan := rand.New(rand.NewPCG(seed, 2)) // the same on all ranks
		mem := engineMemory(size, 0)
		cfg := rma.Config{Mem: mem, Unit: 16}
		if b, f := rma.Allocate((*winComm)(c), p, size, 64, true); f != nil {
			mem, cfg.Mem, cfg.File = b, b, f
		}
		w, _, err := engineWindow(ctx, c, cfg)
		if err != nil {
			return err
		}
		there := make([]byte, size)
		for _, n := range datatype.Predefined() {
			apart, err := datatype.Vector(items, 1, 2, n.Type)
			if err != nil {
				return err
			}
			var codes []op.Code
			for code := range op.Codes {
				if _, err := op.For(code, n.Type); err == nil {
					codes = append(codes, code)
				}
			}
			for range 2 {
				code := codes[plan.IntN(len(codes))]
				red, err := op.For(code, n.Type)
				if err != nil {
					return err
				}
				for try, k := range []struct {
					target int
					t      *datatype.Type
					count  int
					old    bool
				}{{1 - c.Rank(), n.Type, items, true}, {1 - c.Rank(), apart, 1, false}, {1 - c.Rank(), apart, 1, true},
					{c.Rank(), n.Type, 1, true}, {c.Rank(), apart, 1, true}} {
					e, err := rma.ElemFor(k.t, code)
					if err != nil {
						return err
					}
					// Each target is updated by one rank at a time.
					if !testenv.Race { // which does not see that the Get of the peer is over when its Fence comes
						for i := range mem {
							mem[i] = byte(rng.Uint32())
						}
					}
					disp := rng.IntN(3)
					at := func(b []byte) datatype.Buffer {
						return datatype.Buffer{Mem: datatype.In(b).At(16 * disp), Count: k.count, Type: k.t}
					}
					elems := k.count * k.t.Size() / n.Type.Size()
					fill := func() []byte {
						b := make([]byte, elems*n.Type.Size())
						for i := range elems {
							namedFill(rng, n, b[i*n.Type.Size():])
						}
						return b
					}
					first, operands := fill(), fill()
					if err := w.Fence(ctx, 0); err != nil {
						return err
					}
					if err := w.Get(ctx, there, k.target, 0); err != nil {
						return err
					}
					if err := w.Fence(ctx, 0); err != nil {
						return err
					}
					at(there).Unpack(first, 0)
					if err := errors.Join(w.Put(ctx, there, k.target, 0), w.Fence(ctx, 0)); err != nil {
						return err
					}
					packed, err := datatype.Contiguous(elems, n.Type)
					if err != nil {
						return err
					}
					laid := make([]byte, elems*n.Type.Extent())
					datatype.Buffer{Mem: datatype.In(laid), Count: 1, Type: packed}.Unpack(operands, 0)
					src := engineItems(datatype.In(laid), 1, packed)
					got, keep := bytes.Repeat([]byte{0xa5}, size), bytes.Repeat([]byte{0xa5}, size)
					var old *datatype.Items
					if k.old {
						old = new(engineItems(at(got).Mem, k.count, k.t))
					}
					if err := w.UpdateItems(ctx, src, old, k.target, disp, k.count, k.t, e, red); err != nil {
						return fmt.Errorf("%s, %v, %d: %w", n.Name, code, try, err)
					}
					if err := w.Fence(ctx, 0); err != nil {
						return err
					}
					at(keep).Unpack(first, 0)
					if k.old && !bytes.Equal(got, keep) {
						return fmt.Errorf("%s, %v, %d: old %v, want %v", n.Name, code, try, got, keep)
					}
					want := bytes.Clone(first)
					if code != op.CodeNoOp {
						red.Combine(want, first, operands)
					}
					at(there).Unpack(want, 0)
					now := make([]byte, size)
					if err := errors.Join(w.Get(ctx, now, k.target, 0), w.Fence(ctx, 0)); err != nil {
						return err
					}
					if !bytes.Equal(now, there) {
						return fmt.Errorf("%s, %v, %d: %v, want %v; operands %v of %v", n.Name, code, try, now, there, operands, first)
					}
				}
			}
		}
		return w.Free(ctx)
	})
}
