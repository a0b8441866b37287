package mpi

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// checkReceiveReduce lets a receive combine a message that comes in random pieces, which
// lie anywhere, and compares with the operator on all of it at once.
func checkReceiveReduce[T Element](t *testing.T, rng *rand.Rand, op Op[T], value func(i int) T) {
	t.Helper()
	n := 1 + rng.IntN(3000)
	mine, came, want := make([]T, n), make([]T, n), make([]T, n)
	for i := range n {
		mine[i], came[i] = value(i), value(n+i)
	}
	lower := rng.IntN(2) == 0
	if lower {
		op.reducer().Combine(datatype.Bytes(want), datatype.Bytes(came), datatype.Bytes(mine))
	} else {
		op.reducer().Combine(datatype.Bytes(want), datatype.Bytes(mine), datatype.Bytes(came))
	}
	got := make([]T, n)
	if rng.IntN(2) == 0 {
		got = mine
	}
	r := &p2p.Request{Buf: datatype.Bytes(got)}
	r.Reduce = p2p.ReceiveReduce{Reducer: op.reducer(), Mine: datatype.Bytes(mine), Lower: lower, Elem: datatype.SizeOf[T]()}
	for at, b := 0, datatype.Bytes(came); at < len(b); {
		k := min(1+rng.IntN(1+rng.IntN(9000)), len(b)-at)
		piece := make([]byte, k+8)[rng.IntN(9):][:k]
		copy(piece, b[at:])
		r.Put(uint64(at), piece)
		at += k
	}
	r.Put(uint64(len(r.Buf)), []byte{1}) // too long: what is over goes nowhere
	if !bytes.Equal(datatype.Bytes(got), datatype.Bytes(want)) {
		t.Errorf("%s of %d %T, lower %v: other bytes than at once", op().Name(), n, mine[0], lower)
	}
}

func TestReceiveReduce(t *testing.T) {
	seed := testSeed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		checkReceiveReduce(t, rng, Sum, func(i int) int8 { return int8(i) })
		checkReceiveReduce(t, rng, Sum, func(i int) float32 { return 1 / float32(i+1) })
		checkReceiveReduce(t, rng, NoOp, func(i int) uint16 { return uint16(i) })
		checkReceiveReduce(t, rng, Replace, func(i int) int64 { return int64(i) })
		checkReceiveReduce(t, rng, Prod, func(i int) complex128 { return complex(float64(i), 1) })
		checkReceiveReduce(t, rng, MinLoc, func(i int) ValLoc[int16] { return ValLoc[int16]{int16(i * 31), i} })
	}
}

// A receive that has failed combines nothing any more.
func TestReceiveReduceFails(t *testing.T) {
	got := []int32{1, 2}
	r := &p2p.Request{Buf: datatype.Bytes(got)}
	r.Reduce = p2p.ReceiveReduce{Reducer: Op[int32](Sum[int32]).reducer(), Mine: datatype.Bytes(got), Elem: 4}
	r.Put(0, datatype.Bytes([]int32{10}))
	r.Fail(errTestOver)
	r.Put(4, datatype.Bytes([]int32{10}))
	if got[0] != 11 || got[1] != 2 {
		t.Errorf("%v, want [11 2]", got)
	}
}

// Reductions combine the same operands in place and not, of predefined operators and
// of those of users, which are not called while messages come.
func TestReductionsInPlace(t *testing.T) {
	add := NewOp(func(a, b float64) float64 { return a + b }, true)
	ops := map[string]Op[float64]{"sum": Sum[float64], "user": add}
	for _, p := range []int{1, 2, 3, 4, 5, 8} {
		for _, n := range []int{1, 40, 5000} {
			results := make(map[string][]float64)
			for _, alg := range Algorithms(CollAllreduce) {
				for name, op := range ops {
					for _, inPlace := range []bool{false, true} {
						var got []float64
						local(t, p, func(ctx context.Context, c *Comm) error {
							(&collBench{c: c}).use(CollAllreduce, alg)
							send := make([]float64, n)
							for i := range send {
								send[i] = 1 / float64(1+i+c.Rank())
							}
							keep := bytes.Clone(datatype.Bytes(send))
							recv := make([]float64, n)
							if inPlace {
								recv = send
							}
							if err := Allreduce(ctx, c, send, recv, op); err != nil {
								return err
							}
							if !inPlace && !bytes.Equal(keep, datatype.Bytes(send)) {
								return fmt.Errorf("the send buffer has changed")
							}
							if c.Rank() == p-1 {
								got = recv
							}
							return nil
						})
						if want := results[alg]; want == nil {
							results[alg] = got
						} else if !bytes.Equal(datatype.Bytes(want), datatype.Bytes(got)) {
							t.Errorf("%d ranks, %d elements, %s, %s, in place %v: another result", p, n, alg, name, inPlace)
						}
					}
				}
			}
		}
	}
}
