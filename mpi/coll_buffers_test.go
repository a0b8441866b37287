package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// An itemShape is a layout of items of three numbers.
type itemShape struct {
	name string
	typ  *Datatype
	at   [3]int // of the numbers of an item
	step int    // from an item to the next
}

// itemShapes returns layouts: without gaps, with gaps between the numbers of an item, and with items that
// interleave with others.
func itemShapes() []itemShape {
	number := MustType(TypeOf[int32]())
	column := MustType(TypeVector(3, 1, 5, number))
	return []itemShape{
		{"dense", MustType(TypeContiguous(3, number)), [3]int{0, 1, 2}, 3},
		{"gaps", MustType(TypeResized(MustType(TypeIndexed([]int{1, 2}, []int{3, 0}, number)), 0, 20)), [3]int{3, 0, 1}, 5},
		{"interleaved", MustType(TypeResized(column, 0, 4)), [3]int{0, 5, 10}, 1},
	}
}

// memory returns memory for n items (of interleaved ones at most 5), all -1.
func (s itemShape) memory(n int) []int32 { return slices.Repeat([]int32{-1}, n*s.step+11) }

// set stores three numbers for each item from number i on.
func (s itemShape) set(mem []int32, i int, v []int32) {
	for j, x := range v {
		mem[(i+j/3)*s.step+s.at[j%3]] = x
	}
}

// Collectives that move data do with items what they do with the same numbers in a row, and leave
// what is between the items, and outside the blocks, alone: on all layouts, the sender's and the
// receiver's, in all forms.
func TestCollectivesOfItems(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const size = 4
	type call struct {
		send, recv     Buffer
		sc, sd, rc, rd []int
		root           int
	}
	ops := []struct {
		name  string
		v     bool // counts and displacements
		all   bool // the send buffer has a block for each rank
		every bool // the receive buffer has a block from each rank
		root  bool // of the two, the one with many blocks is used at the root only
		run   func(ctx context.Context, c *Comm, a call) error
		start func(c *Comm, a call) (*Request, error)
		init  func(c *Comm, a call) (*Persistent, error)
	}{
		{"Gather", false, false, true, true,
			func(ctx context.Context, c *Comm, a call) error { return c.Gather(ctx, a.send, a.recv, a.root) },
			func(c *Comm, a call) (*Request, error) { return c.Igather(a.send, a.recv, a.root) },
			func(c *Comm, a call) (*Persistent, error) { return c.GatherInit(a.send, a.recv, a.root) }},
		{"Gatherv", true, false, true, true,
			func(ctx context.Context, c *Comm, a call) error {
				return c.Gatherv(ctx, a.send, a.recv, a.rc, a.rd, a.root)
			},
			func(c *Comm, a call) (*Request, error) { return c.Igatherv(a.send, a.recv, a.rc, a.rd, a.root) },
			func(c *Comm, a call) (*Persistent, error) { return c.GathervInit(a.send, a.recv, a.rc, a.rd, a.root) }},
		{"Scatter", false, true, false, true,
			func(ctx context.Context, c *Comm, a call) error { return c.Scatter(ctx, a.send, a.recv, a.root) },
			func(c *Comm, a call) (*Request, error) { return c.Iscatter(a.send, a.recv, a.root) },
			func(c *Comm, a call) (*Persistent, error) { return c.ScatterInit(a.send, a.recv, a.root) }},
		{"Scatterv", true, true, false, true,
			func(ctx context.Context, c *Comm, a call) error {
				return c.Scatterv(ctx, a.send, a.recv, a.sc, a.sd, a.root)
			},
			func(c *Comm, a call) (*Request, error) { return c.Iscatterv(a.send, a.recv, a.sc, a.sd, a.root) },
			func(c *Comm, a call) (*Persistent, error) {
				return c.ScattervInit(a.send, a.recv, a.sc, a.sd, a.root)
			}},
		{"Allgather", false, false, true, false,
			func(ctx context.Context, c *Comm, a call) error { return c.Allgather(ctx, a.send, a.recv) },
			func(c *Comm, a call) (*Request, error) { return c.Iallgather(a.send, a.recv) },
			func(c *Comm, a call) (*Persistent, error) { return c.AllgatherInit(a.send, a.recv) }},
		{"Allgatherv", true, false, true, false,
			func(ctx context.Context, c *Comm, a call) error { return c.Allgatherv(ctx, a.send, a.recv, a.rc, a.rd) },
			func(c *Comm, a call) (*Request, error) { return c.Iallgatherv(a.send, a.recv, a.rc, a.rd) },
			func(c *Comm, a call) (*Persistent, error) { return c.AllgathervInit(a.send, a.recv, a.rc, a.rd) }},
		{"Alltoall", false, true, true, false,
			func(ctx context.Context, c *Comm, a call) error { return c.Alltoall(ctx, a.send, a.recv) },
			func(c *Comm, a call) (*Request, error) { return c.Ialltoall(a.send, a.recv) },
			func(c *Comm, a call) (*Persistent, error) { return c.AlltoallInit(a.send, a.recv) }},
		{"Alltoallv", true, true, true, false,
			func(ctx context.Context, c *Comm, a call) error {
				return c.Alltoallv(ctx, a.send, a.sc, a.sd, a.recv, a.rc, a.rd)
			},
			func(c *Comm, a call) (*Request, error) {
				return c.Ialltoallv(a.send, a.sc, a.sd, a.recv, a.rc, a.rd)
			},
			func(c *Comm, a call) (*Persistent, error) {
				return c.AlltoallvInit(a.send, a.sc, a.sd, a.recv, a.rc, a.rd)
			}},
	}
	// Items of three numbers; the block from rank i to rank j has 1 item, or with counts (i+j)%2.
	err := RunLocal(t.Context(), size, func(ctx context.Context, w *World) error {
		c, me := w.Comm(), w.Rank()
		shapes := itemShapes()
		r := rand.New(rand.NewPCG(seed, 0)) // the same on all ranks
		for _, op := range ops {
			for i := range len(shapes) * len(shapes) {
				for form := range 3 {
					root := r.IntN(size)
					items := func(from, to int) int {
						switch {
						case !op.v:
							return 1
						case op.name == "Gatherv" || op.name == "Allgatherv":
							return from % 2
						case op.name == "Scatterv":
							return to % 2
						}
						return (from + to) % 2
					}
					numbers := func(from, to int) []int32 {
						if !op.all { // the same to all
							to = 0
						}
						v := make([]int32, 3*items(from, to))
						for k := range v {
							v[k] = int32(1000*from + 10*to + k)
						}
						return v
					}
					// With counts the blocks are in reverse order, with an item between them.
					place := func(i int) int {
						if op.v {
							return 2 * (size - 1 - i)
						}
						return i
					}
					ss, rs := shapes[i%len(shapes)], shapes[i/len(shapes)]
					room := size
					if op.v {
						room = 2 * size
					}
					if op.v && ss.step == 1 { // interleaved items must not lie on one another
						ss = shapes[1]
					}
					if op.v && rs.step == 1 {
						rs = shapes[1]
					}
					a := call{root: root}
					sent := op.all && (!op.root || me == root) // many blocks to send
					smem, rmem, want := ss.memory(room), rs.memory(room), rs.memory(room)
					if sent {
						for to := range size {
							ss.set(smem, place(to), numbers(me, to))
							a.sc, a.sd = append(a.sc, items(me, to)), append(a.sd, place(to))
						}
						a.send = Items(smem, room, ss.typ)
					} else if !op.all {
						ss.set(smem, 0, numbers(me, root))
						a.send = Items(smem, items(me, root), ss.typ)
					}
					if op.every && (!op.root || me == root) {
						for from := range size {
							rs.set(want, place(from), numbers(from, me))
							a.rc, a.rd = append(a.rc, items(from, me)), append(a.rd, place(from))
						}
						a.recv = Items(rmem, room, rs.typ)
					} else if !op.every {
						rs.set(want, 0, numbers(root, me))
						a.recv = Items(rmem, items(root, me), rs.typ)
					}
					before := slices.Clone(smem)
					var err error
					switch form {
					case 0:
						err = op.run(ctx, c, a)
					case 1:
						var q *Request
						if q, err = op.start(c, a); err == nil {
							_, err = q.Wait(ctx)
						}
					default:
						var p *Persistent
						if p, err = op.init(c, a); err != nil {
							break
						}
						for range 2 {
							var q *Request
							if q, err = p.Start(); err == nil {
								_, err = q.Wait(ctx)
							}
						}
						p.Free()
					}
					if err == nil && !slices.Equal(rmem, want) {
						err = fmt.Errorf("received %v, want %v", rmem, want)
					}
					if err == nil && !slices.Equal(smem, before) {
						err = fmt.Errorf("the send buffer was %v, is %v", before, smem)
					}
					if err != nil {
						return fmt.Errorf("rank %d: %s of %s items to %s ones, form %d, root %d: %w", me, op.name, ss.name, rs.name, form, root, err)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A broadcast of items: the ranks have them in different layouts.
func TestBcastOfItems(t *testing.T) {
	for _, n := range []int{1, 5} {
		err := RunLocal(t.Context(), 3, func(ctx context.Context, w *World) error {
			c := w.Comm()
			s := itemShapes()[c.Rank()]
			for root := range c.Size() {
				for form := range 3 {
					v := make([]int32, 3*n)
					for i := range v {
						v[i] = int32(100*root + i)
					}
					mem, want := s.memory(n), s.memory(n)
					s.set(want, 0, v)
					if c.Rank() == root {
						s.set(mem, 0, v)
					}
					b := Items(mem, n, s.typ)
					var err error
					var q *Request
					switch form {
					case 0:
						err = c.Bcast(ctx, b, root)
					case 1:
						if q, err = c.Ibcast(b, root); err == nil {
							_, err = q.Wait(ctx)
						}
					default:
						var p *Persistent
						if p, err = c.BcastInit(b, root); err == nil {
							if q, err = p.Start(); err == nil {
								_, err = q.Wait(ctx)
							}
						}
					}
					if err != nil || !slices.Equal(mem, want) {
						return fmt.Errorf("root %d, rank %d, form %d: %v, want %v; %w", root, c.Rank(), form, mem, want, err)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%d items: %v", n, err)
		}
	}
}

// Neighbour collectives of items, in a line of ranks. The ends have one neighbour; the block of the missing
// one is not changed.
func TestNeighborCollectivesOfItems(t *testing.T) {
	err := RunLocal(t.Context(), 4, func(ctx context.Context, w *World) error {
		me := w.Rank()
		line, err := NewCart(ctx, w.Comm(), []int{4}, []bool{false})
		if err != nil {
			return err
		}
		c := line.Comm()
		if err := w.Comm().NeighborAlltoall(ctx, Buffer{}, Buffer{}); !errors.Is(err, ErrTopology) {
			return fmt.Errorf("without a topology: %w", err)
		}
		numbers := func(from, to int) []int32 { return []int32{int32(100*from + 10*to), 1, 2} }
		peers := []int{me - 1, me + 1} // the blocks
		counts := []int{1, 1}
		for _, ss := range itemShapes() {
			for _, rs := range itemShapes() {
				for op := range 4 {
					for form := range 3 {
						all, v := op >= 2, op%2 == 1 // a block for each neighbour; counts and displacements
						if v && (ss.step == 1 || rs.step == 1) {
							continue // interleaved items must not lie on one another
						}
						places := []int{0, 1}
						room := 2
						if v {
							places, room = []int{3, 1}, 4
						}
						smem, rmem, want := ss.memory(room), rs.memory(room), rs.memory(room)
						send, recv := Items(smem, room, ss.typ), Items(rmem, room, rs.typ)
						for i, p := range peers {
							if all {
								ss.set(smem, places[i], numbers(me, p))
							}
							if p < 0 || p > 3 {
								continue
							}
							if all {
								rs.set(want, places[i], numbers(p, me))
							} else {
								rs.set(want, places[i], numbers(p, 0))
							}
						}
						if !all {
							ss.set(smem, 0, numbers(me, 0))
							send = Items(smem, 1, ss.typ)
						}
						var q *Request
						var p *Persistent
						var err error
						switch 3*op + form {
						case 0:
							err = c.NeighborAllgather(ctx, send, recv)
						case 1:
							q, err = c.IneighborAllgather(send, recv)
						case 2:
							p, err = c.NeighborAllgatherInit(send, recv)
						case 3:
							err = c.NeighborAllgatherv(ctx, send, recv, counts, places)
						case 4:
							q, err = c.IneighborAllgatherv(send, recv, counts, places)
						case 5:
							p, err = c.NeighborAllgathervInit(send, recv, counts, places)
						case 6:
							err = c.NeighborAlltoall(ctx, send, recv)
						case 7:
							q, err = c.IneighborAlltoall(send, recv)
						case 8:
							p, err = c.NeighborAlltoallInit(send, recv)
						case 9:
							err = c.NeighborAlltoallv(ctx, send, counts, places, recv, counts, places)
						case 10:
							q, err = c.IneighborAlltoallv(send, counts, places, recv, counts, places)
						default:
							p, err = c.NeighborAlltoallvInit(send, counts, places, recv, counts, places)
						}
						if err == nil && p != nil {
							q, err = p.Start()
						}
						if err == nil && q != nil {
							_, err = q.Wait(ctx)
						}
						if err == nil && !slices.Equal(rmem, want) {
							err = fmt.Errorf("received %v, want %v", rmem, want)
						}
						if err != nil {
							return fmt.Errorf("rank %d: operation %d, form %d, of %s items to %s ones: %w", me, op, form, ss.name, rs.name, err)
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
