package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/rma"
)

// engineWindow makes a window below the typed face, and returns its communicator, too.
func engineWindow(ctx context.Context, c *Comm, cfg rma.Config) (*rma.Window, *winComm, error) {
	own, err := c.private(ctx, "window")
	if err != nil {
		return nil, nil, err
	}
	if cfg.Access == 0 {
		cfg.Access = rma.AccessAll
	}
	w, err := rma.Create(ctx, (*winComm)(own), cfg)
	return w, (*winComm)(own), err
}

// engineElem is an element type of updates with some of its operators, in plain Go.
type engineElem struct {
	e    *rma.Elem
	t    *datatype.Type
	fill func(rng *rand.Rand, b []byte)
	ops  []engineOp
}

type engineOp struct {
	red   op.Reducer
	model func(a, b []byte) // a = a op b
}

func engineElemOf[T Element](gen func(rng *rand.Rand) T, ops ...engineOp) engineElem {
	fill := func(rng *rand.Rand, b []byte) {
		v := make([]T, len(b)/datatype.SizeOf[T]())
		for i := range v {
			v[i] = gen(rng)
		}
		copy(b, datatype.Bytes(v))
	}
	ops = append(ops, engineOp{op.Replace{}, func(a, b []byte) { copy(a, b) }}, engineOp{op.NoOp{}, func(a, b []byte) {}})
	return engineElem{rma.ElemOf(reflect.TypeFor[T]()), engineType[T](), fill, ops}
}

func engineOpOf[T Element](red op.Reducer, f func(a, b T) T) engineOp {
	return engineOp{red, func(a, b []byte) {
		for i := 0; i < len(a); i += datatype.SizeOf[T]() {
			var x, y [1]T
			copy(datatype.Bytes(x[:]), a[i:])
			copy(datatype.Bytes(y[:]), b[i:])
			copy(a[i:], datatype.Bytes([]T{f(x[0], y[0])}))
		}
	}}
}

func engineNumber[T op.Ordered](ops ...engineOp) engineElem {
	return engineElemOf(func(rng *rand.Rand) T { return T(rng.IntN(100)) }, append(ops,
		engineOpOf(op.Sum[T]{}, func(a, b T) T { return a + b }),
		engineOpOf(op.Prod[T]{}, func(a, b T) T { return a * b }),
		engineOpOf(op.Max[T]{}, func(a, b T) T { return max(a, b) }))...)
}

func engineInt[T op.Integer]() engineElem {
	return engineNumber[T](engineOpOf(op.Bxor[T]{}, func(a, b T) T { return a ^ b }),
		engineOpOf(op.Land[T]{}, func(a, b T) T {
			if a != 0 && b != 0 {
				return 1
			}
			return 0
		}))
}

// engineOdd is a type without operators but Replace and NoOp.
type engineOdd struct {
	A int32
	B [3]int32
}

func engineElems() []engineElem {
	type pair = ValLoc[int]
	return []engineElem{
		engineInt[int8](), engineInt[uint8](), engineInt[int16](), engineInt[uint16](), engineInt[int32](), engineInt[uint32](),
		engineInt[int64](), engineInt[uint64](), engineInt[int](), engineNumber[float32](), engineNumber[float64](),
		engineElemOf(func(rng *rand.Rand) complex128 { return complex(float64(rng.IntN(9)), float64(rng.IntN(9))) },
			engineOpOf(op.Sum[complex128]{}, func(a, b complex128) complex128 { return a + b })),
		engineElemOf(func(rng *rand.Rand) bool { return rng.IntN(2) == 1 },
			engineOpOf(op.Lxor[bool]{}, func(a, b bool) bool { return a != b })),
		engineElemOf(func(rng *rand.Rand) pair { return pair{rng.IntN(3), rng.IntN(100)} },
			engineOpOf(op.MinLoc[int]{}, func(a, b pair) pair {
				if b.Val < a.Val || b.Val == a.Val && b.Loc < a.Loc {
					return b
				}
				return a
			})),
		engineElemOf(func(rng *rand.Rand) engineOdd { return engineOdd{A: rng.Int32(), B: [3]int32{rng.Int32()}} }),
	}
}

// engineItems returns items that are in their memory for sure.
func engineItems(mem datatype.Memory, count int, t *datatype.Type) datatype.Items {
	x, err := datatype.ItemsOf(datatype.Buffer{Mem: mem, Count: count, Type: t})
	if err != nil {
		panic(err)
	}
	return x
}

// engineMemory returns memory of a rank that begins skew bytes above an aligned address.
func engineMemory(n, skew int) []byte { return rma.AlignedBytes(n+skew, 64)[skew:] }

// engineRound is what a rank does to one block of a target in one round. All ranks make the same plan.
type engineRound struct {
	origin, target, disp, off int
	elem                      engineElem
	op                        engineOp
	kind                      int // put, get, update, update with old, fetch, later fetch, swap, later swap
	n                         int // elements
	stride                    int // elements from one block of one element to the next; 1: no gaps
	src, old, want            []byte
}

const engineKinds = 8

// span returns the bytes from the first to the last one at the target.
func (r *engineRound) span() int { return ((r.n-1)*r.stride + 1) * r.elem.e.Size() }

// eachElem calls f with the place of each element at the target and in the buffer.
func (r *engineRound) eachElem(f func(at, i int)) {
	size := r.elem.e.Size()
	for k := range r.n {
		f(r.off+k*r.stride*size, k*size)
	}
}

// run does it, and returns what is to be compared after the next synchronization.
func (r *engineRound) run(ctx context.Context, w *rma.Window) error {
	items := func(b []byte) datatype.Items {
		mem := datatype.In(b)
		if r.n%2 == 0 { // as C programs give it
			mem = datatype.Address(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
		}
		return engineItems(mem, r.n, r.elem.t)
	}
	t := r.elem.t
	if r.stride > 1 {
		var err error
		if t, err = datatype.Vector(r.n, 1, r.stride, r.elem.t); err != nil {
			return err
		}
	}
	gaps, e := r.stride > 1, r.elem.e
	switch r.kind {
	case 0:
		if gaps {
			return w.PutItems(ctx, items(r.src), r.target, r.disp, 1, t)
		}
		return w.Put(ctx, r.src, r.target, r.disp)
	case 1:
		if gaps {
			return w.GetItems(ctx, items(r.old), r.target, r.disp, 1, t)
		}
		return w.Get(ctx, r.old, r.target, r.disp)
	case 2:
		if gaps {
			return w.UpdateItems(ctx, items(r.src), nil, r.target, r.disp, 1, t, e, r.op.red)
		}
		return w.Update(ctx, r.src, nil, r.target, r.disp, e, r.op.red)
	case 3:
		if gaps {
			old := items(r.old)
			return w.UpdateItems(ctx, items(r.src), &old, r.target, r.disp, 1, t, e, r.op.red)
		}
		return w.Update(ctx, r.src, r.old, r.target, r.disp, e, r.op.red)
	case 4:
		return w.Fetch(ctx, r.src, r.old, r.target, r.disp, e, r.op.red)
	case 5:
		return w.Update(ctx, r.src, r.old, r.target, r.disp, e, r.op.red)
	default:
		return w.Swap(ctx, r.src, r.old, r.target, r.disp, e, r.kind == 6)
	}
}

// model does it to the plain memory of the target.
func (r *engineRound) model(rng *rand.Rand, mem []byte) {
	size := r.elem.e.Size()
	r.src, r.old, r.want = make([]byte, r.n*size), make([]byte, r.n*size), make([]byte, r.n*size)
	r.elem.fill(rng, r.src)
	if r.kind >= 6 {
		r.src = append(r.src, r.src...) // compare and swap
		if r.elem.fill(rng, r.src[:size]); rng.IntN(2) == 0 {
			copy(r.src, mem[r.off:r.off+size])
		}
	}
	r.eachElem(func(at, i int) {
		there := mem[at : at+size]
		if r.kind != 0 && r.kind != 2 {
			copy(r.want[i:], there)
		}
		switch r.kind {
		case 0:
			copy(there, r.src[i:i+size])
		case 1:
		case 2, 3, 4, 5:
			r.op.model(there, r.src[i:i+size])
		default:
			if bytes.Equal(there, r.src[:size]) {
				copy(there, r.src[size:])
			}
		}
	})
}

// TestWinEngine does operations on elements of many types in one window, whose displacement unit and alignment
// differ from rank to rank, and compares memory and results with plain memory.
func TestWinEngine(t *testing.T) {
	const p, size, rounds = 3, 6000, 6
	const align = 8 // the largest of all elements
	seed := testSeed(t)
	for try := range uint64(4) {
		eachTransport(t, p, func(ctx context.Context, c *Comm) error {
			rng := rand.New(rand.NewPCG(seed, try)) // the same on all ranks
			elems := engineElems()
			var unit, skew [p]int
			mem, plain := make([][]byte, p), make([][]byte, p)
			for rank := range p {
				unit[rank], skew[rank] = []int{1, 2, 3, 4, 8, 16, 40}[rng.IntN(7)], []int{0, 0, 1, 4}[rng.IntN(4)]
				plain[rank] = make([]byte, size)
			}
			me := c.Rank()
			cfg := rma.Config{Mem: engineMemory(size, skew[me]), Unit: unit[me]}
			if try%2 == 1 { // memory that others may map
				skew = [p]int{}
				cfg.Mem = engineMemory(size, 0)
				if b, f := rma.Allocate((*winComm)(c), p, size, 64, true); f != nil {
					cfg.Mem, cfg.File = b, f
				}
			}
			mem[me] = cfg.Mem
			w, _, err := engineWindow(ctx, c, cfg)
			if err != nil {
				return err
			}
			for range rounds {
				var plan []*engineRound
				for target := range p {
					at := 0
					for at < size {
						r := &engineRound{origin: rng.IntN(p), target: target, elem: elems[rng.IntN(len(elems))],
							kind: rng.IntN(engineKinds), n: 1, stride: 1}
						r.op = r.elem.ops[rng.IntN(len(r.elem.ops))]
						if r.kind < 4 {
							r.n, r.stride = 1+rng.IntN(9), 1+rng.IntN(3)
						}
						for r.disp = (at + unit[target] - 1) / unit[target]; ; r.disp++ {
							if r.off = r.disp * unit[target]; (r.off+skew[target])%align == 0 || r.off > at+8*unit[target] {
								break
							}
						}
						if at = r.off + r.span(); at > size {
							break
						}
						if (r.off+skew[target])%align != 0 { // no place for words: only Put and Get
							r.kind %= 2
						}
						r.elem.fill(rng, plain[target][r.off:at])
						plan = append(plan, r)
					}
				}
				copy(mem[me], plain[me])
				if err := w.Fence(ctx, 0); err != nil {
					return err
				}
				for _, r := range plan {
					r.model(rng, plain[r.target])
					if r.origin != me {
						continue
					}
					if err := r.run(ctx, w); err != nil {
						return fmt.Errorf("%+v: %w", r, err)
					}
					if (r.kind == 4 || r.kind == 6) && !bytes.Equal(r.old, r.want) {
						return fmt.Errorf("%+v: fetched %v, want %v", r, r.old, r.want)
					}
				}
				if err := w.Fence(ctx, 0); err != nil {
					return err
				}
				for _, r := range plan {
					if r.origin == me && !bytes.Equal(r.old, r.want) {
						return fmt.Errorf("%+v: fetched %v, want %v", r, r.old, r.want)
					}
				}
				if !bytes.Equal(mem[me], plain[me]) {
					return errors.New("the memory differs from the model")
				}
			}
			return w.Free(ctx)
		})
	}
}

// TestWinEngineItemsAllocate moves items with gaps on both sides, which takes no memory however many runs there are.
func TestWinEngineItemsAllocate(t *testing.T) {
	local(t, 1, func(ctx context.Context, c *Comm) error {
		w, _, err := engineWindow(ctx, c, rma.Config{Mem: engineMemory(4000, 0), Unit: 1})
		if err != nil {
			return err
		}
		pairs, err := datatype.Vector(100, 2, 3, engineType[int32]())
		if err != nil {
			return err
		}
		apart, err := datatype.Vector(200, 1, 4, engineType[int32]())
		if err != nil {
			return err
		}
		x := engineItems(datatype.In(make([]byte, pairs.Extent())), 1, pairs)
		n := testing.AllocsPerRun(200, func() {
			if err := w.PutItems(ctx, x, 0, 0, 1, apart); err != nil {
				t.Error(err)
			}
			if err := w.GetItems(ctx, x, 0, 0, 1, apart); err != nil {
				t.Error(err)
			}
		})
		if n > 0 {
			t.Errorf("%v allocations", n)
		}
		return w.Free(ctx)
	})
}
