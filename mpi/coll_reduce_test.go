package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/op"
)

// A reduction is one kind of reduction of what Buffers describe, in its three forms.
type reduction struct {
	name  string
	kind  Coll
	run   func(ctx context.Context, c *Comm, a reduceArgs) error
	start func(c *Comm, a reduceArgs) (*Request, error)
	init  func(c *Comm, a reduceArgs) (*Persistent, error)
}

type reduceArgs struct {
	send, recv Buffer
	counts     []int
	op         ItemOp
	root       int
}

var reductions = []reduction{
	{"Reduce", CollReduce,
		func(ctx context.Context, c *Comm, a reduceArgs) error {
			return c.Reduce(ctx, a.send, a.recv, a.op, a.root)
		},
		func(c *Comm, a reduceArgs) (*Request, error) { return c.Ireduce(a.send, a.recv, a.op, a.root) },
		func(c *Comm, a reduceArgs) (*Persistent, error) { return c.ReduceInit(a.send, a.recv, a.op, a.root) }},
	{"Allreduce", CollAllreduce,
		func(ctx context.Context, c *Comm, a reduceArgs) error { return c.Allreduce(ctx, a.send, a.recv, a.op) },
		func(c *Comm, a reduceArgs) (*Request, error) { return c.Iallreduce(a.send, a.recv, a.op) },
		func(c *Comm, a reduceArgs) (*Persistent, error) { return c.AllreduceInit(a.send, a.recv, a.op) }},
	{"Scan", CollScan,
		func(ctx context.Context, c *Comm, a reduceArgs) error { return c.Scan(ctx, a.send, a.recv, a.op) },
		func(c *Comm, a reduceArgs) (*Request, error) { return c.Iscan(a.send, a.recv, a.op) },
		func(c *Comm, a reduceArgs) (*Persistent, error) { return c.ScanInit(a.send, a.recv, a.op) }},
	{"Exscan", CollExscan,
		func(ctx context.Context, c *Comm, a reduceArgs) error { return c.Exscan(ctx, a.send, a.recv, a.op) },
		func(c *Comm, a reduceArgs) (*Request, error) { return c.Iexscan(a.send, a.recv, a.op) },
		func(c *Comm, a reduceArgs) (*Persistent, error) { return c.ExscanInit(a.send, a.recv, a.op) }},
	{"ReduceScatter", CollReduceScatter,
		func(ctx context.Context, c *Comm, a reduceArgs) error {
			return c.ReduceScatter(ctx, a.send, a.recv, a.counts, a.op)
		},
		func(c *Comm, a reduceArgs) (*Request, error) { return c.IreduceScatter(a.send, a.recv, a.counts, a.op) },
		func(c *Comm, a reduceArgs) (*Persistent, error) {
			return c.ReduceScatterInit(a.send, a.recv, a.counts, a.op)
		}},
	{"ReduceScatterBlock", CollReduceScatterBlock,
		func(ctx context.Context, c *Comm, a reduceArgs) error {
			return c.ReduceScatterBlock(ctx, a.send, a.recv, a.op)
		},
		func(c *Comm, a reduceArgs) (*Request, error) { return c.IreduceScatterBlock(a.send, a.recv, a.op) },
		func(c *Comm, a reduceArgs) (*Persistent, error) {
			return c.ReduceScatterBlockInit(a.send, a.recv, a.op)
		}},
}

// do makes the call in a form: 0 blocking, 1 nonblocking, 2 persistent.
func (r *reduction) do(ctx context.Context, c *Comm, a reduceArgs, form int) error {
	var q *Request
	var err error
	switch form {
	case 0:
		return r.run(ctx, c, a)
	case 1:
		q, err = r.start(c, a)
	default:
		p, failed := r.init(c, a)
		if failed != nil {
			return failed
		}
		defer p.Free()
		q, err = p.Start()
	}
	if err == nil {
		_, err = q.Wait(ctx)
	}
	return err
}

// number stores 1, 2 or 3 as a value of a predefined type, so that results are exact; the parts of
// pairs too.
func number(b []byte, n *datatype.Named, v uint64) {
	switch {
	case n.Group == datatype.GroupPair:
		number(b, n.Value, v)
		number(b[n.Value.Size():], n.Index, v*7%5+1)
	case n.Group == datatype.GroupComplex:
		half := n.Size() / 2
		float(b[:half], n.Format, v)
		clear(b[half:])
	case n.Class() == "float" || n.Format != nil:
		float(b[:n.Size()], n.Format, v)
	default:
		clear(b[:n.Size()])
		if n.Group == datatype.GroupLogical {
			v %= 2
		}
		b[0] = byte(v)
	}
}

func float(b []byte, f *datatype.FloatFormat, v uint64) {
	switch {
	case f != nil:
		one := map[*datatype.FloatFormat][]byte{
			datatype.Half:     {0, 0x3c},
			datatype.Extended: {7: 0x80, 8: 0xff, 9: 0x3f, 15: 0},
			datatype.Quad:     {14: 0xff, 15: 0x3f},
		}[f]
		sum := f.Load(one)
		for range v - 1 {
			sum = sum.Add(f.Load(one))
		}
		f.Store(b, sum)
	case len(b) == 4:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(v)))
	default:
		binary.LittleEndian.PutUint64(b, math.Float64bits(float64(v)))
	}
}

// All reductions of all predefined datatypes with all operators that they have give what folding the
// operands gives, in all forms, in place and not; what lies between items stays.
func TestReductionsOfPredefinedTypes(t *testing.T) {
	if !littleEndian() {
		t.Skip("the values of this test are those of little-endian machines")
	}
	const size = 3
	err := RunLocal(t.Context(), size, func(ctx context.Context, w *World) error {
		c := w.Comm()
		turn := 0
		for _, n := range datatype.Predefined() {
			typ, err := NamedType(n.Name)
			if err != nil {
				return err
			}
			for code := op.CodeSum; code < op.Codes; code++ {
				red, err := op.For(code, n.Type)
				if err != nil {
					continue
				}
				turn++
				r := &reductions[turn%len(reductions)]
				if err := checkReduction(ctx, c, r, ItemOp{code: code}, typ, red, turn, func(b []byte, v uint64) {
					number(b, n, v)
				}); err != nil {
					return fmt.Errorf("%v of %s: %w", code, n.Name, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }

// affineItem is an operator that is associative and not commutative: (a, b)∘(c, d) = (ac, ad+b).
func affineItem(in, inout []byte, count int, t *Datatype) {
	lb, _ := t.TrueExtent()
	_, extent := t.Extent()
	for i := range count {
		x, y := in[i*extent-lb:], inout[i*extent-lb:]
		a, b := binary.NativeEndian.Uint32(x), binary.NativeEndian.Uint32(x[8:])
		c, d := binary.NativeEndian.Uint32(y), binary.NativeEndian.Uint32(y[8:])
		binary.NativeEndian.PutUint32(y, a*c)
		binary.NativeEndian.PutUint32(y[8:], a*d+b)
	}
}

// Reductions with an operator of the program on items with gaps: it is called with whole items, and in
// the order of the ranks.
func TestReductionsOfItems(t *testing.T) {
	word := MustType(TypeOf[uint32]())
	// The two words lie at 0 and 8 of 16 bytes.
	item := MustType(TypeResized(MustType(TypeHindexed([]int{1, 1}, []int{0, 8}, word)), 0, 16))
	o := NewItemOp(affineItem, false)
	if !o.Valid() || o.Commutative() || o.Name() != "user" {
		t.Errorf("operator %q: valid %v, commutative %v", o.Name(), o.Valid(), o.Commutative())
	}
	for _, size := range []int{1, 2, 4, 5} {
		err := RunLocal(t.Context(), size, func(ctx context.Context, w *World) error {
			red, err := o.on(item.typ())
			if err != nil {
				return err
			}
			for i := range reductions {
				for turn := range 12 {
					err := checkReduction(ctx, w.Comm(), &reductions[i], o, item, red, turn, func(b []byte, v uint64) {
						binary.NativeEndian.PutUint32(b, uint32(v))
						binary.NativeEndian.PutUint32(b[4:], uint32(v*v+1))
					})
					if err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%d ranks: %v", size, err)
		}
	}
}

// checkReduction makes one reduction and compares the result with a fold of the packed operands. turn
// varies the form, the number of items, the root, and whether it is in place.
func checkReduction(
	ctx context.Context, c *Comm, r *reduction, o ItemOp, typ *Datatype, red op.Reducer, turn int,
	value func(b []byte, v uint64),
) error {
	size, me := c.Size(), c.Rank()
	rnd := rand.New(rand.NewPCG(uint64(turn), uint64(len(r.name)))) // the same on all ranks
	a := reduceArgs{op: o, root: rnd.IntN(size)}
	form, inPlace := rnd.IntN(3), rnd.IntN(3) == 0
	n := []int{0, 1, 7, 700}[rnd.IntN(4)]
	for i := range size {
		a.counts = append(a.counts, (n+i)%(n+1))
	}
	items := n
	switch r.kind {
	case CollReduceScatter:
		items = total(a.counts)
	case CollReduceScatterBlock:
		items = n * size
	}
	elem := typ.Size()
	operands := make([][]byte, size)
	for i := range operands {
		operands[i] = make([]byte, items*elem)
		for k := range items {
			value(operands[i][k*elem:], rnd.Uint64N(3)+1)
		}
	}
	fold := func(to int) []byte { // of ranks 0 to to-1
		acc := bytes.Clone(operands[0])
		for _, x := range operands[1:to] {
			red.Combine(acc, acc, x)
		}
		return acc
	}
	var want []byte // nil: recv is not touched
	var at int
	got := items
	switch r.kind {
	case CollReduce:
		if me == a.root {
			want = fold(size)
		}
	case CollAllreduce:
		want = fold(size)
	case CollScan:
		want = fold(me + 1)
	case CollExscan:
		if me > 0 {
			want = fold(me)
		}
	case CollReduceScatter:
		at, got = total(a.counts[:me]), a.counts[me]
		want = fold(size)[at*elem : (at+got)*elem]
	case CollReduceScatterBlock:
		at, got = n*me, n
		want = fold(size)[at*elem : (at+got)*elem]
	}
	_, extent := typ.Extent()
	memory := func(packed []byte) []byte {
		m := bytes.Repeat([]byte{0xee}, items*extent)
		typ.typ().Unpack(m, packed, items)
		return m
	}
	smem, rmem := memory(operands[me]), memory(nil)
	expect := bytes.Clone(rmem)
	if inPlace {
		rmem, expect = smem, bytes.Clone(smem)
	}
	if want != nil {
		typ.typ().Unpack(expect, want, got)
	}
	a.send, a.recv = Items(smem, items, typ), Items(rmem, got, typ)
	if err := r.do(ctx, c, a, form); err != nil {
		return fmt.Errorf("rank %d: %s of %d items, form %d, in place %v: %w", me, r.name, items, form, inPlace, err)
	}
	if inPlace { // what of the receive buffer is beyond the result is undefined, as is that of a Reduce elsewhere
		used := got * extent
		if want == nil {
			used = 0
		}
		rmem, expect = rmem[:used], expect[:used]
	}
	for i := range expect {
		if rmem[i] != expect[i] {
			return fmt.Errorf("rank %d: %s of %d items, form %d, in place %v, root %d: byte %d is %#x, want %#x",
				me, r.name, items, form, inPlace, a.root, i, rmem[i], expect[i])
		}
	}
	return nil
}

// Reductions refuse operators that a datatype does not have, and buffers that do not go together.
func TestReductionsRefuse(t *testing.T) {
	err := RunLocal(t.Context(), 1, func(ctx context.Context, w *World) error {
		c := w.Comm()
		ints := make([]int32, 8)
		floats := make([]float64, 8)
		pair := MustType(TypeContiguous(2, MustType(TypeOf[int32]())))
		user := NewItemOp(func(_, _ []byte, _ int, _ *Datatype) {}, true)
		for _, x := range []struct {
			name       string
			send, recv Buffer
			op         ItemOp
			want       error
		}{
			{"bits of floats", Elements(floats[:1]), Elements(floats[1:2]), OpBand, ErrOp},
			{"sum of pairs", Items(ints, 1, pair), Items(ints[2:], 1, pair), OpSum, ErrOp},
			{"no operator", Elements(ints[:1]), Elements(ints[1:2]), ItemOp{}, ErrOp},
			{"nil function", Elements(ints[:1]), Elements(ints[1:2]), NewItemOp(nil, true), ErrOp},
			{"two datatypes", Elements(ints[:2]), Elements(floats[:1]), OpSum, ErrDatatype},
			{"two lengths", Elements(ints[:2]), Elements(ints[2:3]), OpSum, ErrCount},
			{"bad buffer", Items(ints, 9, pair), Elements(ints), user, ErrCount},
			{"overlap", Elements(ints[:4]), Elements(ints[2:6]), OpSum, ErrOverlap},
		} {
			if err := c.Allreduce(ctx, x.send, x.recv, x.op); !errors.Is(err, x.want) {
				return fmt.Errorf("%s: %w, want %w", x.name, err, x.want)
			}
			if err := x.op.ReduceLocal(x.send, x.recv); !errors.Is(err, x.want) {
				return fmt.Errorf("%s locally: %w, want %w", x.name, err, x.want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// ReduceLocal of items with gaps that interleave with those of the other operand.
func TestReduceLocalOfItems(t *testing.T) {
	column := MustType(TypeVector(3, 1, 2, MustType(TypeOf[int32]())))
	mem := []int32{1, 10, 2, 20, 3, 30}
	add := NewItemOp(func(in, inout []byte, count int, t *Datatype) {
		x, y := datatype.View[int32](in), datatype.View[int32](inout)
		for i := 0; i < len(x); i += 2 {
			y[i] += x[i]
		}
	}, true)
	if err := add.ReduceLocal(Items(mem, 1, column), Items(mem[1:], 1, column)); err != nil {
		t.Fatal(err)
	}
	if want := []int32{1, 11, 2, 22, 3, 33}; !slices.Equal(mem, want) {
		t.Errorf("got %v, want %v", mem, want)
	}
}

// Reductions of Buffers allocate nothing in steady state, but where the receive buffer has gaps what
// describes it.
func TestReductionsOfItemsAllocations(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	pair, double := MustType(NamedType("MPI_DOUBLE_INT")), MustType(NamedType("MPI_DOUBLE"))
	user := NewItemOp(func(_, _ []byte, _ int, _ *Datatype) {}, true)
	err := RunLocal(t.Context(), 1, func(ctx context.Context, w *World) error {
		send, recv := make([]byte, 160), make([]byte, 160)
		for _, x := range []struct {
			op   ItemOp
			typ  *Datatype
			most float64
		}{{OpSum, double, 0}, {user, double, 0}, {OpMinLoc, pair, 1}, {user, pair, 1}} {
			n := testing.AllocsPerRun(200, func() {
				if err := w.Comm().Allreduce(ctx, Items(send, 10, x.typ), Items(recv, 10, x.typ), x.op); err != nil {
					t.Error(err)
				}
			})
			if n > x.most {
				t.Errorf("%s of %v: %v allocations, want %v", x.op.Name(), x.typ, n, x.most)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// An operator that combines complex numbers as pairs of any kind.
func ExampleNewItemOp() {
	err := RunLocal(context.Background(), 3, func(ctx context.Context, w *World) error {
		interval := MustType(TypeContiguous(2, MustType(TypeOf[float64]()))) // from, to
		hull := NewItemOp(func(in, inout []byte, count int, t *Datatype) {
			x, y := datatype.View[float64](in), datatype.View[float64](inout)
			for i := 0; i < 2*count; i += 2 {
				y[i], y[i+1] = min(x[i], y[i]), max(x[i+1], y[i+1])
			}
		}, true)
		mine, all := []float64{float64(w.Rank()), float64(2 * w.Rank())}, make([]float64, 2)
		err := w.Comm().Allreduce(ctx, Items(mine, 1, interval), Items(all, 1, interval), hull)
		if w.Rank() == 0 {
			fmt.Println(all)
		}
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [0 4]
}
