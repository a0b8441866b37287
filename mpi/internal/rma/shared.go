package rma

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// MaxShared bounds the bytes of a shared window, and of the memory that Allocate makes: 1 TiB, or 1 GiB where an
// int has 32 bits.
const MaxShared = 1 << (30 + 10*(^uint(0)>>63))

// CacheLine is the alignment of the parts of shared memory if there may be gaps, in bytes.
const CacheLine = 64

// Shared is memory that the ranks of a window share.
type Shared struct {
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

// Part returns the memory of a rank.
func (s *Shared) Part(rank int) []byte {
	at := s.at[rank]
	return s.all[at[0]:at[1]:at[1]]
}

// Query returns the memory of a rank if it is mapped here. ProcNull stands for the lowest rank that has
// memory.
func (w *Window) Query(rank int) ([]byte, error) {
	if rank == ProcNull {
		if err := w.Usable(); err != nil {
			return nil, err
		}
		rank = slices.IndexFunc(w.remote, func(r Part) bool { return r.Bytes > 0 })
		if rank < 0 {
			return nil, nil
		}
	}
	if err := w.checkTarget(rank); err != nil {
		return nil, err
	}
	switch {
	case w.shared != nil:
		return w.shared.Part(rank), nil
	case w.dynamic != nil:
		err := fmt.Errorf("%w: a dynamic window is not shared", mpierr.ErrWindow)
		return nil, mpierr.WithClass(mpierr.ClassRMAFlavor, err)
	case w.self(rank):
		return w.mem, nil
	case w.direct == nil || w.direct[rank].mapped == nil:
		return nil, notShared("the memory of rank %d is not shared with rank %d", rank, w.rank)
	case w.direct[rank].access != AccessAll:
		return nil, fmt.Errorf("%w: the memory of rank %d", mpierr.ErrAccess, rank)
	}
	return w.direct[rank].mapped.mem, nil
}

// notShared is the error of memory that cannot be shared.
func notShared(format string, args ...any) error {
	return mpierr.WithClass(mpierr.ClassRMAShared, fmt.Errorf("%w: "+format, append([]any{mpierr.ErrWindow}, args...)...))
}

// Drop gives the memory up.
func (s *Shared) Drop() error { return s.drop() }

// Share makes memory with room for n elements of each rank, with gaps if all ranks allow them. If it fails on
// one rank it fails on all. own belongs to the call.
func Share(ctx context.Context, own Comm, n, elem int, gaps bool) (*Shared, error) {
	bytes, ok := datatype.Mul(n, elem)
	if n < 0 {
		bytes = -1
	} else if !ok || bytes > MaxShared {
		bytes = MaxShared + 1 // is refused below, on all ranks
	}
	host := own.Host()
	unit := 1
	if gaps {
		unit = CacheLine
	}
	sizes := make([][4]int, own.Size())
	if err := own.Allgather(ctx, datatype.Bytes([][4]int{{bytes, host, thisProcess, unit}}),
		datatype.Bytes(sizes)); err != nil {
		return nil, err
	}
	for _, k := range sizes {
		unit = min(unit, k[3])
	}
	s := &Shared{at: make([][2]int, own.Size()), drop: func() error { return nil }, order: new(atomic.Uint64)}
	total, here := 0, true
	for rank, k := range sizes {
		here = here && k[2] == thisProcess
		if k[0] < 0 {
			return nil, fmt.Errorf("%w: %d elements on rank %d", mpierr.ErrCount, n, rank)
		}
		if total > MaxShared-k[0] {
			return nil, NoMemory(total + k[0])
		}
		if k[1] != host {
			return nil, notShared("the ranks are on several hosts")
		}
		s.at[rank] = [2]int{total, total + k[0]}
		total += (k[0] + unit - 1) / unit * unit
	}
	if total == 0 {
		return s, nil
	}
	var err error
	if here {
		err = s.shareHere(ctx, own, total)
	} else {
		err = s.shareFile(ctx, own, total)
	}
	return s, err
}

// thisProcess is a random number that identifies the process: equal for ranks of one process.
var thisProcess = rand.Int()

// sharedHereNow holds the memories that ranks of this process are about to share, by the name of the
// communicator.
var sharedHereNow = struct {
	sync.Mutex
	memory map[string]*sharedHere
}{memory: make(map[string]*sharedHere)}

// shareHere shares memory between ranks of one process.
func (s *Shared) shareHere(ctx context.Context, c Comm, total int) error {
	j := &sharedHereNow
	key := c.Name()
	if c.Rank() == 0 {
		here := &sharedHere{mem: AlignedBytes(total, CacheLine)}
		j.Lock()
		j.memory[key] = here
		j.Unlock()
	}
	defer func() {
		j.Lock()
		defer j.Unlock()
		delete(j.memory, key) // the ranks refer to it, or have failed
	}()
	if err := c.Barrier(ctx); err != nil {
		return err
	}
	j.Lock()
	here := j.memory[key]
	j.Unlock()
	if here == nil {
		return fmt.Errorf("%w: another rank has given up sharing memory", mpierr.ErrWindow)
	}
	s.all, s.order = here.mem, &here.order
	return c.Barrier(ctx)
}

// maxSharedName bounds the name of the mapped file, in bytes.
const maxSharedName = 4096

// shareFile shares a mapped file, and removes its name when all ranks have mapped it.
func (s *Shared) shareFile(ctx context.Context, c Comm, total int) error {
	var name string
	var err error
	msg := make([]byte, maxSharedName)
	remove := func() error { return nil }
	if c.Rank() == 0 {
		if name, remove, err = makeShared(total); err == nil {
			if len(name) > maxSharedName {
				err = fmt.Errorf("%w: name of %d bytes", mpierr.ErrWindow, len(name))
			}
			copy(msg, name)
		}
		defer func() { _ = remove() }() // by now all ranks have mapped it, or failed
	}
	if e := c.Bcast(ctx, msg, 0); e != nil {
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
	if err = c.Agree(ctx, err); err != nil {
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
