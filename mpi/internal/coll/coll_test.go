package coll

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/weftstack/weft/mpi/internal/op"
)

// memComm is a Comm of goroutines in one process. A message is a copy in the channel of its two ranks.
type memComm struct {
	rank  int
	links [][]chan []byte // by sender and receiver
	op    op.Reducer
	recvs []startedRecv
	cross *crossings // nil: not counted
}

type startedRecv struct {
	b   []byte
	src int
}

func (m *memComm) Send(b []byte, dst int) error {
	if dst != ProcNull {
		m.cross.count(m.rank, dst, len(b))
		m.links[m.rank][dst] <- bytes.Clone(b)
	}
	return nil
}

func (m *memComm) Recv(b []byte, src int) error {
	if src == ProcNull {
		return nil
	}
	in := <-m.links[src][m.rank]
	if copy(b, in); len(in) != len(b) {
		return fmt.Errorf("rank %d sent %d bytes to rank %d, which expects %d", src, len(in), m.rank, len(b))
	}
	return nil
}

func (m *memComm) Sendrecv(sb []byte, dst int, rb []byte, src int) error {
	if err := m.Send(sb, dst); err != nil {
		return err
	}
	return m.Recv(rb, src)
}

func (m *memComm) SendrecvReduce(sb []byte, dst int, acc, mine []byte, src int, lower bool) error {
	in := make([]byte, len(acc))
	if err := m.Sendrecv(sb, dst, in, src); err != nil {
		return err
	}
	if lower {
		m.op.Combine(acc, in, mine)
	} else {
		m.op.Combine(acc, mine, in)
	}
	return nil
}

func (m *memComm) StartSend(b []byte, dst int) error { return m.Send(b, dst) }

func (m *memComm) StartSendAwaited(b []byte, dst int) error { return m.Send(b, dst) }

func (m *memComm) StartRecv(b []byte, src int) error {
	m.recvs = append(m.recvs, startedRecv{b, src})
	return nil
}

func (m *memComm) Wait() error {
	for _, r := range m.recvs {
		if err := m.Recv(r.b, r.src); err != nil {
			return err
		}
	}
	m.recvs = nil
	return nil
}

func (m *memComm) Copy(dst, src []byte) { copy(dst, src) }

func (m *memComm) Combine(acc, a, b []byte) { m.op.Combine(acc, a, b) }

// affine composes the functions x → a·x + b modulo 256, elements of two bytes: associative, but not
// commutative, so a wrong order of operands shows.
var affine = op.NewUser(func(dst, a, b [][2]byte) {
	for i := range dst {
		dst[i] = [2]byte{a[i][0] * b[i][0], a[i][1]*b[i][0] + b[i][1]}
	}
}, false)

// TestAlgorithms runs every algorithm on up to nine ranks, with receives that are fused with the
// reduction and that are not, and compares with what the operation is defined to give.
func TestAlgorithms(t *testing.T) {
	for kind := range Kinds {
		for _, alg := range Algorithms(kind) {
			t.Run(fmt.Sprintf("%v/%s", kind, alg.Name), func(t *testing.T) {
				for size := 1; size <= 9; size++ {
					for _, red := range []op.Reducer{op.Sum[uint16]{}, affine} {
						if !alg.Serves(&Schedule{Size: size, Op: red}, false) {
							continue
						}
						elems := []int{0, 1, 7, 1000}
						if kind == Bcast {
							elems = append(elems, chainSegment) // two segments
						}
						for _, elems := range elems {
							for _, fused := range []bool{false, true} {
								runAlgorithm(t, kind, &alg, size, size/2, red, 2*elems, fused, false, nil)
								if elems == 7 {
									runAlgorithm(t, kind, &alg, size, size/2, red, 2*elems, fused, true, nil)
								}
							}
						}
					}
				}
			})
		}
	}
}

// runAlgorithm performs one collective with blocks, or buffers, of n bytes.
func runAlgorithm(
	t *testing.T, kind Kind, alg *Algorithm, size, root int, red op.Reducer, n int, fused, recorded bool, cross *crossings,
) {
	t.Helper()
	links := make([][]chan []byte, size)
	for r := range links {
		links[r] = make([]chan []byte, size)
		for i := range links[r] {
			links[r][i] = make(chan []byte, 4*size+n/chainSegment)
		}
	}
	schedules := make([]*Schedule, size)
	var all sync.WaitGroup
	for r := range size {
		s := &Schedule{Comm: &memComm{rank: r, links: links, op: red, cross: cross}, Rank: r, Size: size, Root: root, Block: n,
			Op: red, Elem: 2, Fused: fused}
		if cross != nil {
			s.Sites = cross.sites
		}
		if kind == Barrier {
			s.Block = 0
		}
		s.SendBuf, s.RecvBuf = testBuffers(kind, s)
		switch kind {
		case Gatherv, Allgatherv:
			s.RecvLayout = new(Layout).SetEven(size, n)
		case Scatterv, ReduceScatter:
			s.SendLayout = new(Layout).SetEven(size, n)
		case Alltoallv:
			s.SendLayout, s.RecvLayout = new(Layout).SetEven(size, n), new(Layout).SetEven(size, n)
		}
		schedules[r] = s
		all.Go(func() {
			if err := runOn(s, alg, recorded); err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		})
	}
	all.Wait()
	for src := range links {
		for dst, c := range links[src] {
			if len(c) > 0 {
				t.Errorf("%d messages from rank %d to %d were not received", len(c), src, dst)
			}
		}
	}
	for r, s := range schedules {
		if want := defined(kind, r, s); want != nil && !bytes.Equal(s.RecvBuf, want) {
			t.Fatalf("%d ranks, operator %s, %d bytes, fused %v: rank %d has another result", size, red.Name(), n, fused, r)
		}
		s.Release()
	}
}

// operand returns n bytes that are different for each rank.
func operand(rank, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + rank*31 + 3)
	}
	return b
}

// testBuffers returns the buffers of a rank.
func testBuffers(kind Kind, s *Schedule) (send, recv []byte) {
	one, all := s.Block, s.Block*s.Size
	switch kind {
	case Bcast:
		if s.Rank == s.Root {
			return nil, operand(s.Root, one)
		}
		return nil, make([]byte, one)
	case Gather, Gatherv, Allgather, Allgatherv:
		return operand(s.Rank, one), make([]byte, all)
	case Scatter, Scatterv, ReduceScatter, ReduceScatterBlock:
		return operand(s.Rank, all), make([]byte, one)
	case Alltoall, Alltoallv:
		return operand(s.Rank, all), make([]byte, all)
	}
	return operand(s.Rank, one), make([]byte, one)
}

// defined returns what the receive buffer of a rank is to hold, or nil if that is undefined.
func defined(kind Kind, rank int, s *Schedule) []byte {
	n := s.Block
	reduced := func(ranks, n int) []byte {
		acc := operand(0, n)
		for r := 1; r < ranks; r++ {
			s.Op.Combine(acc, acc, operand(r, n))
		}
		return acc
	}
	var want []byte
	switch kind {
	case Barrier:
		return nil
	case Bcast:
		return operand(s.Root, n)
	case Reduce:
		if rank != s.Root {
			return nil
		}
		return reduced(s.Size, n)
	case Allreduce:
		return reduced(s.Size, n)
	case Scan:
		return reduced(rank+1, n)
	case Exscan:
		if rank == 0 {
			return nil
		}
		return reduced(rank, n)
	case ReduceScatter, ReduceScatterBlock:
		return reduced(s.Size, n*s.Size)[rank*n : (rank+1)*n]
	case Scatter, Scatterv:
		return operand(s.Root, n*s.Size)[rank*n : (rank+1)*n]
	case Gather, Gatherv, Allgather, Allgatherv:
		if rank != s.Root && (kind == Gather || kind == Gatherv) {
			return nil
		}
		for r := range s.Size {
			want = append(want, operand(r, n)...)
		}
	case Alltoall, Alltoallv:
		for r := range s.Size {
			want = append(want, operand(r, n*s.Size)[rank*n:(rank+1)*n]...)
		}
	}
	return want
}

// TestNewrank checks that ranks and their numbers in a butterfly are inverse, and that a rank that
// must take part does.
func TestNewrank(t *testing.T) {
	for size := 1; size <= 40; size++ {
		for must := -1; must < size; must++ {
			g := (&Schedule{Size: size}).pof2Group(must)
			took := 0
			for rank := range size {
				newrank, partner := g.newrank(rank)
				if newrank < 0 {
					if rank == must || partner < 0 {
						t.Errorf("rank %d of %d does not take part (must: %d, partner: %d)", rank, size, must, partner)
					}
					continue
				}
				took++
				if g.rank(newrank) != rank {
					t.Errorf("rank(newrank(%d)) of %d = %d", rank, size, g.rank(newrank))
				}
			}
			if took != g.pof2 {
				t.Errorf("%d of %d ranks take part, want %d", took, size, g.pof2)
			}
		}
	}
}
