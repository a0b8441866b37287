package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// sharedMem is memory that the ranks of a window share.
type sharedMem struct {
	all  []byte
	at   [][2]int // begin and end of the part of each rank
	drop func() error
	// order is incremented by all ranks of the process when they synchronize: in the Go
	// memory model a datagram alone orders no memory accesses.
	order *atomic.Uint64
}

// sharedHere is memory shared by ranks of one process.
type sharedHere struct {
	mem   []byte
	order atomic.Uint64
}

// part returns the memory of a rank.
func (s *sharedMem) part(rank int) []byte {
	at := s.at[rank]
	return s.all[at[0]:at[1]:at[1]]
}

// MaxShared bounds the bytes of a shared window, and of the memory that WinAllocate makes on a
// rank: 1 TiB, or 1 GiB where an int has 32 bits.
const MaxShared = 1 << (30 + 10*(^uint(0)>>63))

// WinAllocateShared makes a window of n new elements on each rank that all ranks can also read and
// write as memory: see [Win.SharedQuery]. The parts follow one another in the order of the ranks
// (MPI-4.1, Section 12.2.3). All ranks of c must call it; it blocks until all have. If it fails on
// one rank it fails on all. They must be on one host, as after [Comm.SplitShared], else it returns
// ErrWindow. Ranks that are processes share a mapped file, which needs a Unix system; elsewhere it
// returns errors.ErrUnsupported. It returns ErrCount for an n that is negative, or if all parts are
// longer than [MaxShared].
//
// The program orders the accesses of the ranks: by [Win.Fence], or by [Win.Sync] together with a
// message or [Barrier]. The memory must not be touched after Free, which may unmap it: an access
// then ends the program.
func WinAllocateShared[T Element](ctx context.Context, c *Comm, n int, opts ...WinOption) (*Win[T], error) {
	o := readWinOptions(opts)
	hints, _ := readWinHints(o.info) // window.create returns the error
	at := c.enter()
	if err := c.consent(ctx, datatype.CheckElement[T]()); err != nil {
		c.leave(at, "WinAllocateShared", NoPeer, 0, 0, err)
		return nil, fmt.Errorf("creating shared window: %w", err)
	}
	t := reflect.TypeFor[T]()
	elem := max(datatype.SizeOf[T](), 1)
	shared, err := shareMemory(ctx, c, n, elem, hints.noncontig)
	if err != nil {
		c.leave(at, "WinAllocateShared", NoPeer, 0, 0, err)
		return nil, fmt.Errorf("creating shared window: %w", err)
	}
	mem := shared.part(c.Rank())
	w := &window{mem: mem, elem: elem, word: isWord(t), sig: datatype.SigOf(t), ops: reducersOf[T](t.Kind()), shared: shared}
	err = w.create(ctx, c, uint32(t.Kind()), o)
	c.leave(at, "WinAllocateShared", NoPeer, 0, len(mem), err)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("creating shared window: %w", err), shared.drop())
	}
	return &Win[T]{w, datatype.View[T](mem)}, nil
}

// SharedQuery returns the memory of a rank in the window, for direct loads and stores (MPI-4.1,
// Section 12.2.3). ProcNull stands for the lowest rank that has memory; if no rank has, the result
// is empty. It works for all ranks of a window of [WinAllocateShared], for the caller's own memory
// in any window but a dynamic one, and for memory of [WinAllocate] on ranks that share memory with
// the caller ([WithSharedMemory]). For other memory it returns ErrWindow, and for memory of
// [WinAllocate] on a rank that restricts access ([WithAccess]) ErrAccess. The result must not be
// touched after Free.
func (w *Win[T]) SharedQuery(rank int) ([]T, error) {
	if rank == ProcNull {
		if err := w.w.usable(); err != nil {
			return nil, err
		}
		rank = slices.IndexFunc(w.w.remote, func(r winInfo) bool { return r.Bytes > 0 })
		if rank < 0 {
			return nil, nil
		}
	}
	mem, err := w.w.query(rank)
	if err != nil {
		return nil, err
	}
	return datatype.View[T](mem), nil
}

// query returns the memory of a rank if it is mapped here.
func (w *window) query(rank int) ([]byte, error) {
	if err := w.checkTarget(rank); err != nil {
		return nil, err
	}
	switch {
	case w.shared != nil:
		return w.shared.part(rank), nil
	case w.dynamic != nil:
		return nil, fmt.Errorf("%w: a dynamic window is not shared", ErrWindow)
	case w.self(rank):
		return w.mem, nil
	case w.direct == nil || w.direct[rank].mapped == nil:
		return nil, fmt.Errorf("%w: the memory of rank %d is not shared with rank %d", ErrWindow, rank, w.c.rank)
	case w.direct[rank].access != AccessAll:
		return nil, fmt.Errorf("%w: the memory of rank %d", ErrAccess, rank)
	}
	return w.direct[rank].mapped.mem, nil
}

// shareMemory makes memory with room for n elements of each rank, with gaps if all ranks allow
// them. If it fails on one rank it fails on all.
func shareMemory(ctx context.Context, c *Comm, n, elem int, gaps bool) (*sharedMem, error) {
	own, err := c.private(ctx)
	if err != nil {
		return nil, err
	}
	defer own.Free()
	bytes, ok := datatype.Mul(n, elem)
	if n < 0 || !ok || bytes > MaxShared {
		bytes = -1
	}
	host := c.w.hostColor()
	unit := 1
	if gaps {
		unit = cacheLine
	}
	sizes := make([][4]int, c.Size())
	if err := Allgather(ctx, own, [][4]int{{bytes, host, thisProcess, unit}}, sizes); err != nil {
		return nil, err
	}
	for _, k := range sizes {
		unit = min(unit, k[3])
	}
	s := &sharedMem{at: make([][2]int, c.Size()), drop: func() error { return nil }, order: new(atomic.Uint64)}
	total, here := 0, true
	for rank, k := range sizes {
		here = here && k[2] == thisProcess
		if k[0] < 0 || total > MaxShared-k[0] {
			return nil, fmt.Errorf("%w: %d elements on rank %d", ErrCount, n, rank)
		}
		if k[1] != host {
			return nil, fmt.Errorf("%w: the ranks are on several hosts", ErrWindow)
		}
		s.at[rank] = [2]int{total, total + k[0]}
		total += (k[0] + unit - 1) / unit * unit
	}
	if total == 0 {
		return s, nil
	}
	if here {
		err = s.shareHere(ctx, own, total)
	} else {
		err = s.shareFile(ctx, own, total)
	}
	return s, err
}

// thisProcess is a random number that identifies the process: equal for ranks of one process.
var thisProcess = rand.Int()

// sharedHereNow holds the memories that ranks of this process are about to share, by the id and the
// first member of the communicator.
var sharedHereNow = struct {
	sync.Mutex
	memory map[string]*sharedHere
}{memory: make(map[string]*sharedHere)}

// shareHere shares memory between ranks of one process.
func (s *sharedMem) shareHere(ctx context.Context, c *Comm, total int) error {
	j := &sharedHereNow
	key := fmt.Sprint(c.id, c.w.eng.appendNames(nil, c.group[:1]))
	if c.rank == 0 {
		here := &sharedHere{mem: alignedBytes(total, cacheLine)}
		j.Lock()
		j.memory[key] = here
		j.Unlock()
	}
	defer func() {
		j.Lock()
		defer j.Unlock()
		delete(j.memory, key) // the ranks refer to it, or have failed
	}()
	if err := Barrier(ctx, c); err != nil {
		return err
	}
	j.Lock()
	here := j.memory[key]
	j.Unlock()
	if here == nil {
		return fmt.Errorf("%w: another rank has given up sharing memory", ErrWindow)
	}
	s.all, s.order = here.mem, &here.order
	return Barrier(ctx, c)
}

// maxSharedName bounds the name of the mapped file, in bytes.
const maxSharedName = 4096

// shareFile shares a mapped file, and removes its name when all ranks have mapped it.
func (s *sharedMem) shareFile(ctx context.Context, c *Comm, total int) error {
	var name string
	var err error
	msg := make([]byte, maxSharedName)
	remove := func() error { return nil }
	if c.rank == 0 {
		if name, remove, err = makeShared(total); err == nil {
			if len(name) > maxSharedName {
				err = fmt.Errorf("%w: name of %d bytes", ErrWindow, len(name))
			}
			copy(msg, name)
		}
		defer func() { _ = remove() }() // by now all ranks have mapped it, or failed
	}
	if e := Bcast(ctx, c, msg, 0); e != nil {
		return errors.Join(err, e)
	}
	if err == nil {
		name = string(msg[:lenZero(msg)])
		if name == "" {
			err = nil // rank 0 reports the error to consent
		} else if s.all, err = mapShared(name, total); err == nil {
			s.drop = func() error { return unmapShared(s.all) }
		}
	}
	if err = c.consent(ctx, err); err != nil {
		err = errors.Join(err, s.drop())
	}
	return err
}

// lenZero returns the length of the text before the first zero byte.
func lenZero(b []byte) int {
	for i, v := range b {
		if v == 0 {
			return i
		}
	}
	return len(b)
}
