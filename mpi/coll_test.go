package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/op"
)

// testSeed returns the seed of random skews: WEFT_SEED, or a new one.
func testSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("WEFT_SEED"), 0, 64); err == nil {
		seed = s
	}
	t.Logf("WEFT_SEED=%#x", seed)
	return seed
}

// testTime bounds how long the ranks of a test may wait for each other, on a machine
// that may be busy and slow, and may stand still for a minute.
const testTime = 5 * time.Minute

// local runs f on p ranks in this process.
func local(t *testing.T, p int, f func(ctx context.Context, c *Comm) error, opts ...Option) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), testTime)
	defer stop()
	err := RunLocal(ctx, p, func(ctx context.Context, w *World) error { return f(ctx, w.Comm()) }, opts...)
	if err != nil {
		t.Error(err)
	}
}

// lag keeps a rank back for a random while.
func lag(rng *rand.Rand) {
	if rng.IntN(4) == 0 {
		for range rng.IntN(200) {
			runtime.Gosched()
		}
	}
}

// mat is a 2×2 matrix: an element whose product is associative and not
// commutative.
type mat [4]uint32

func mul(a, b mat) mat {
	return mat{a[0]*b[0] + a[1]*b[2], a[0]*b[1] + a[1]*b[3], a[2]*b[0] + a[3]*b[2], a[2]*b[1] + a[3]*b[3]}
}

// odd is an element of a size that is no power of two.
type odd struct{ a, b, c uint8 }

// A subject is an element type with values, an operator and what it does.
type subject[T comparable] struct {
	name string
	gen  func(x uint64) T
	op   Op[T]
	f    func(a, b T) T
}

// A bench is one rank's part of the test of all collectives.
type collBench struct {
	ctx context.Context
	c   *Comm
	rng *rand.Rand // makes the ranks come at different times
}

// use makes the next collectives of a kind use one algorithm.
func (b *collBench) use(kind Coll, alg string) {
	t := builtinTuning()
	if err := t.Add(Rule{Coll: kind, Algorithm: alg}); err != nil {
		panic(err)
	}
	b.c.SetTuning(t)
	if b.rng != nil {
		lag(b.rng)
	}
}

func value[T comparable](s *subject[T], salt, rank, i int) T {
	return s.gen(uint64(salt)*0x9e3779b97f4a7c15 ^ uint64(rank+1)*0xbf58476d1ce4e5b9 ^ uint64(i+1)*0x94d049bb133111eb)
}

func values[T comparable](s *subject[T], salt, rank, n int) []T {
	v := make([]T, n)
	for i := range v {
		v[i] = value(s, salt, rank, i)
	}
	return v
}

// reduced is the result of reducing values of ranks [0, ranks).
func reduced[T comparable](s *subject[T], salt, ranks, n int) []T {
	v := values(s, salt, 0, n)
	for r := 1; r < ranks; r++ {
		for i := range v {
			v[i] = s.f(v[i], value(s, salt, r, i))
		}
	}
	return v
}

func diff[T comparable](what string, got, want []T) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s: element %d of %d = %v, want %v", what, i, len(got), got[i], want[i])
		}
	}
	return nil
}

// serves reports whether an algorithm is ever used for these ranks and op.
func (b *collBench) serves(kind Coll, alg string, red op.Reducer) bool {
	for _, a := range coll.Algorithms(coll.Kind(kind)) {
		if a.Name == alg {
			return a.Serves(blankSchedule(b.c.Size(), red), false)
		}
	}
	return false
}

// blankSchedule returns a schedule without buffers, as tuning tables look at it.
func blankSchedule(size int, red op.Reducer) *coll.Schedule {
	s := &coll.Schedule{Size: size}
	if red != nil {
		s.Op, s.Fused = red, red.Code() != op.CodeUser
	}
	return s
}

// all tests every collective with every algorithm on n elements (per block).
func all[T comparable](b *collBench, s subject[T], n int) error {
	for kind := range collCount {
		for _, alg := range Algorithms(kind) {
			if !b.serves(kind, alg, s.op.reducer()) {
				continue
			}
			for _, in := range []bool{false, true} {
				b.use(kind, alg)
				if err := one(b, kind, &s, n, in); err != nil {
					return fmt.Errorf("%v by %s of %d %s, in place %v: %w", kind, alg, n, s.name, in, err)
				}
			}
		}
	}
	return nil
}

// one performs one collective and compares with the plain result; in selects
// the in-place form.
func one[T comparable](b *collBench, kind Coll, s *subject[T], n int, in bool) error {
	ctx, c, p, rank := b.ctx, b.c, b.c.Size(), b.c.Rank()
	salt := n + int(kind)<<16
	root := (n + int(kind)) % p
	mine := values(s, salt, rank, n)
	var everything []T
	for r := range p {
		everything = append(everything, values(s, salt, r, n)...)
	}
	// Blocks of unequal length, with gaps, in reverse order.
	counts, displs, room := make([]int, p), make([]int, p), 0
	for r := p - 1; r >= 0; r-- {
		counts[r], displs[r] = (n*(r+1))/p, room+1
		room = displs[r] + counts[r]
	}
	spread := make([]T, room+1)
	for r := range p {
		copy(spread[displs[r]:], values(s, salt, r, counts[r]))
	}
	own := values(s, salt, rank, counts[rank])
	switch kind {
	case CollBarrier:
		return Barrier(ctx, c)
	case CollBcast:
		buf := make([]T, n)
		if rank == root {
			copy(buf, mine)
		}
		if err := Bcast(ctx, c, buf, root); err != nil {
			return err
		}
		return diff("buf", buf, values(s, salt, root, n))
	case CollReduce:
		send, recv := mine, make([]T, n)
		if rank != root {
			recv = nil
		} else if in {
			recv = send
		}
		if err := Reduce(ctx, c, send, recv, s.op, root); err != nil {
			return err
		}
		if rank == root {
			return diff("recv", recv, reduced(s, salt, p, n))
		}
		return diff("send", send, values(s, salt, rank, n))
	case CollAllreduce, CollScan, CollExscan:
		send, recv := mine, make([]T, n)
		if in {
			recv = send
		}
		ranks, f := p, Allreduce[T]
		switch kind {
		case CollScan:
			ranks, f = rank+1, Scan[T]
		case CollExscan:
			ranks, f = rank, Exscan[T]
		}
		want := append([]T(nil), recv...)
		if ranks > 0 {
			want = reduced(s, salt, ranks, n)
		}
		if err := f(ctx, c, send, recv, s.op); err != nil {
			return err
		}
		if !in {
			if err := diff("send", send, values(s, salt, rank, n)); err != nil {
				return err
			}
		}
		return diff("recv", recv, want)
	case CollGather:
		var recv []T
		send := mine
		if rank == root {
			if recv = make([]T, n*p); in {
				send = recv[root*n : (root+1)*n]
				copy(send, mine)
			}
		}
		if err := Gather(ctx, c, send, recv, root); err != nil || rank != root {
			return err
		}
		return diff("recv", recv, everything)
	case CollGatherv:
		var recv []T
		send := own
		if rank == root {
			if recv = make([]T, room+1); in {
				send = recv[displs[root] : displs[root]+counts[root]]
				copy(send, own)
			}
		}
		if err := Gatherv(ctx, c, send, recv, counts, displs, root); err != nil || rank != root {
			return err
		}
		return diff("recv", recv, spread)
	case CollScatter, CollScatterv:
		recv, want := make([]T, n), mine
		var send []T
		at := root * n
		if rank == root {
			send = append(send, everything...)
		}
		if kind == CollScatterv {
			recv, want = make([]T, counts[rank]), own
			if at = displs[root]; rank == root {
				send = append(send[:0], spread...)
			}
		}
		if in && rank == root {
			recv = send[at : at+len(recv)]
		}
		var err error
		if kind == CollScatter {
			err = Scatter(ctx, c, send, recv, root)
		} else {
			err = Scatterv(ctx, c, send, recv, counts, displs, root)
		}
		if err != nil {
			return err
		}
		return diff("recv", recv, want)
	case CollAllgather:
		recv := make([]T, n*p)
		send := mine
		if in {
			send = recv[rank*n : (rank+1)*n]
			copy(send, mine)
		}
		if err := Allgather(ctx, c, send, recv); err != nil {
			return err
		}
		return diff("recv", recv, everything)
	case CollAllgatherv:
		recv := make([]T, room+1)
		send := own
		if in {
			send = recv[displs[rank] : displs[rank]+counts[rank]]
			copy(send, own)
		}
		if err := Allgatherv(ctx, c, send, recv, counts, displs); err != nil {
			return err
		}
		return diff("recv", recv, spread)
	case CollAlltoall:
		send, want := make([]T, 0, n*p), make([]T, 0, n*p)
		for r := range p {
			send = append(send, values(s, salt+rank*100+r, rank, n)...)
			want = append(want, values(s, salt+r*100+rank, r, n)...)
		}
		recv := make([]T, n*p)
		if in {
			recv = send
		}
		if err := Alltoall(ctx, c, send, recv); err != nil {
			return err
		}
		return diff("recv", recv, want)
	case CollAlltoallv:
		var send, want []T
		scounts, rcounts := make([]int, p), make([]int, p)
		for r := range p {
			scounts[r], rcounts[r] = (n+rank*3+r)%5, (n+r*3+rank)%5
			send = append(send, values(s, salt+rank*100+r, rank, scounts[r])...)
			want = append(want, values(s, salt+r*100+rank, r, rcounts[r])...)
		}
		recv := make([]T, len(want))
		if err := Alltoallv(ctx, c, send, scounts, nil, recv, rcounts, nil); err != nil {
			return err
		}
		return diff("recv", recv, want)
	case CollReduceScatterBlock:
		send := values(s, salt, rank, n*p)
		recv := make([]T, n)
		if in {
			recv = send[:n]
		}
		if err := ReduceScatterBlock(ctx, c, send, recv, s.op); err != nil {
			return err
		}
		return diff("recv", recv, reduced(s, salt, p, n*p)[rank*n:(rank+1)*n])
	case CollReduceScatter:
		total, at := 0, 0
		for r, k := range counts {
			if total += k; r < rank {
				at += k
			}
		}
		send := values(s, salt, rank, total)
		recv := make([]T, counts[rank])
		if in {
			recv = send[:counts[rank]]
		}
		if err := ReduceScatter(ctx, c, send, recv, counts, s.op); err != nil {
			return err
		}
		return diff("recv", recv, reduced(s, salt, p, total)[at:at+counts[rank]])
	}
	return errors.New("no test for this collective")
}

// TestCollectives compares every algorithm of every collective, on 1 to 17
// ranks that come at different times, with loops over the ranks.
func TestCollectives(t *testing.T) {
	seed := testSeed(t)
	for p := 1; p <= 17; p++ {
		t.Run(fmt.Sprintf("ranks=%d", p), func(t *testing.T) {
			local(t, p, func(ctx context.Context, c *Comm) error {
				b := &collBench{ctx, c, rand.New(rand.NewPCG(seed, uint64(c.Rank())))}
				sizes := []int{0, 1, 5, 64}
				if p > 8 {
					sizes = []int{0, 23}
				}
				for _, n := range sizes {
					if err := all(b, subject[float64]{"float64", func(x uint64) float64 { return float64(x % 1000) }, Sum[float64],
						func(a, b float64) float64 { return a + b }}, n); err != nil {
						return err
					}
					if err := all(b, subject[mat]{"mat", func(x uint64) mat {
						return mat{uint32(x), uint32(x >> 8), uint32(x >> 16), uint32(x >> 24)}
					}, NewOp(mul, false), mul}, n); err != nil {
						return err
					}
				}
				if err := all(b, subject[int32]{"int32", func(x uint64) int32 { return int32(x) }, Max[int32],
					func(a, b int32) int32 { return max(a, b) }}, 3); err != nil {
					return err
				}
				if err := all(b, subject[ValLoc[int16]]{"ValLoc", func(x uint64) ValLoc[int16] {
					return ValLoc[int16]{int16(x % 5), int(x>>8) % 1000}
				}, MinLoc[int16], func(a, b ValLoc[int16]) ValLoc[int16] {
					if b.Val < a.Val || b.Val == a.Val && b.Loc < a.Loc {
						return b
					}
					return a
				}}, 9); err != nil {
					return err
				}
				xor := func(a, b odd) odd { return odd{a.a ^ b.a, a.b ^ b.b, a.c ^ b.c} }
				return all(b, subject[odd]{"3-byte struct", func(x uint64) odd {
					return odd{uint8(x), uint8(x >> 8), uint8(x >> 16)}
				}, NewOp(xor, true), xor}, 7)
			})
		})
	}
}

// TestCollectivesLarge sends what needs rendezvous and several pieces.
func TestCollectivesLarge(t *testing.T) {
	for _, p := range []int{2, 4, 5} {
		t.Run(fmt.Sprintf("ranks=%d", p), func(t *testing.T) {
			local(t, p, func(ctx context.Context, c *Comm) error {
				b := &collBench{ctx: ctx, c: c}
				return all(b, subject[uint64]{"uint64", func(x uint64) uint64 { return x }, Bxor[uint64],
					func(a, b uint64) uint64 { return a ^ b }}, 10_000)
			})
		})
	}
}

// TestCollectivesNetwork runs every algorithm over the network transports.
func TestCollectivesNetwork(t *testing.T) {
	seed := testSeed(t)
	for _, tr := range []string{TransportTCP, TransportSCTP, TransportHybrid, hybridShared} {
		t.Run(tr, func(t *testing.T) {
			local(t, 5, func(ctx context.Context, c *Comm) error {
				b := &collBench{ctx, c, rand.New(rand.NewPCG(seed, uint64(c.Rank())))}
				for _, n := range []int{3, 3000} {
					if err := all(b, subject[uint64]{"uint64", func(x uint64) uint64 { return x }, Sum[uint64],
						func(a, b uint64) uint64 { return a + b }}, n); err != nil {
						return err
					}
				}
				return nonblockingRound(ctx, c, b.rng, 2000)
			}, overTransport(tr))
		})
	}
}
