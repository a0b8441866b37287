package rma

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
	"github.com/weftstack/weft/verbs"
)

// Config says how the caller's part of a window is made.
type Config struct {
	Mem     []byte
	File    *os.File // holds Mem, until other ranks have mapped it; may be nil
	Shared  *Shared  // set for shared memory: Mem is a part of it
	Dynamic bool     // memory is attached later
	Address bool     // displacements in a dynamic window are addresses of the process

	Unit int    // bytes that a displacement counts, at least 1; may differ between ranks if Elem is nil
	Elem *Elem  // of all updates, on all ranks; nil: each update has a type of its own
	Kind uint32 // what the window holds, below 1<<16: the same on all ranks

	Access   Access
	Messages bool // no RDMA and no copies
	Hints    Hints
	Bad      error  // why this rank cannot make its part
	Freed    func() // called by Free when the window is not used any more
}

// Window is a window, on one rank. Methods may be called from several goroutines at a time.
type Window struct {
	c    Comm
	rank int
	mem  []byte
	unit int   // bytes that a displacement counts here
	elem *Elem // of all updates; nil: any

	access Access
	remote []Part // of all ranks
	to     []targetState
	dev    *rdmadev.Device // nil: all operations are active messages
	mr     *verbs.MR       // mem, registered
	direct []directMem     // by target; nil if this rank shares no memory
	file   *os.File        // holds mem, until other ranks have mapped it; may be nil

	dynamic *dynamicMem // set for a dynamic window, which has no mem
	shared  *Shared     // set for shared memory: mem is a part of it

	memory sync.Mutex // held while active messages access mem

	locks lockQueue // the lock of mem

	mu      sync.Mutex // guards what follows
	posted  []Request  // since Post: receives of the Complete messages of the origins; nil: no Post
	started []int      // since Start: the targets; nil: no Start
	kept    keptPosts  // since a Post that has failed; nil: none has

	hints atomic.Pointer[Hints]

	requests atomic.Uint32 // counts requests with bulk data or an answer: see number
	freed    atomic.Bool
	onFreed  func()
	stop     context.CancelFunc
	served   sync.WaitGroup // goroutines of the services
}

// Part describes the part of one rank to the others.
type Part struct {
	Bytes  uint64
	Unit   uint32 // bytes that a displacement counts
	Elem   uint32 // bytes of an element; 0: each update has a type of its own
	Kind   uint32
	Sig    datatype.Sig
	Access Access
	Skew   uint8        // address of its memory, modulo maxAlign
	Bad    uint8        // 1: the rank cannot make its part
	Same   uint8        // 1: all are to have memory of one length
	Eager  uint8        // 1: queue pairs are connected at once
	Key    envelope.Key // of its memory; without a port it has no RDMA device
	Addr   uint64       // address of the memory in the process; 0: no direct copies
	FD     uint32       // 1 + descriptor of its file; 0: it has none
	File   uint64       // inode of the file
}

// Create makes the caller's part of a window and exchanges keys. Every rank of c, which then belongs to the
// window, calls it. A rank that cannot make its part reports that, so that all ranks fail alike: see Comm.Agree.
func Create(ctx context.Context, c Comm, cfg Config) (*Window, error) {
	w := &Window{c: c, rank: c.Rank(), mem: cfg.Mem, file: cfg.File, shared: cfg.Shared, unit: max(cfg.Unit, 1),
		elem: cfg.Elem, access: cfg.Access, onFreed: cfg.Freed}
	if cfg.Dynamic {
		w.dynamic = &dynamicMem{next: dynamicFirst * w.unit, process: cfg.Address}
		cfg.Kind |= kindDynamic
		if cfg.Address {
			cfg.Kind |= kindAddress
		}
	}
	defer w.withdraw()
	if err := w.create(ctx, &cfg); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *Window) create(ctx context.Context, cfg *Config) error {
	c := w.c
	mine := Part{Bytes: uint64(len(w.mem)), Unit: uint32(w.unit), Kind: cfg.Kind, Access: w.access}
	if w.elem != nil {
		mine.Elem, mine.Sig = uint32(w.elem.size), w.elem.sig
	}
	if len(w.mem) > 0 {
		mine.Skew = uint8(addressOf(w.mem) % maxAlign)
	}
	if cfg.Hints.SameSize {
		mine.Same = 1
	}
	if cfg.Hints.Connect {
		mine.Eager = 1
	}
	w.SetHints(cfg.Hints)
	w.to = make([]targetState, c.Size())
	for rank := range w.to {
		w.to[rank].init(c, rank)
	}
	err := cfg.Bad
	if err == nil && (cfg.Unit < 1 || cfg.Unit > math.MaxInt32) {
		err = fmt.Errorf("%w: displacement unit of %d bytes, not 1 to %d", mpierr.ErrOption, cfg.Unit, math.MaxInt32)
	}
	if !cfg.Messages && err == nil {
		err = w.register(&mine)
	}
	if err == nil && cfg.Address && cfg.Unit != 1 {
		err = fmt.Errorf("%w: displacement unit of %d bytes where displacements are addresses", mpierr.ErrOption, cfg.Unit)
	}
	if err != nil {
		mine.Bad = 1
	}
	mine.Addr = w.directAddr()
	w.offer(&mine)
	w.remote = make([]Part, c.Size())
	if e := c.Allgather(ctx, datatype.Bytes([]Part{mine}), datatype.Bytes(w.remote)); e != nil && err == nil {
		err = e
	} else if e == nil && slices.ContainsFunc(w.remote, func(r Part) bool { return r.Bad != 0 }) {
		err = w.c.Agree(ctx, err) // all ranks see that one of them is bad
	}
	same := slices.ContainsFunc(w.remote, func(r Part) bool { return r.Same != 0 })
	for rank, r := range w.remote {
		if err == nil && (r.Key.Port == 0) != (mine.Key.Port == 0) {
			err = fmt.Errorf("%w: only one of rank %d and rank %d uses messages", mpierr.ErrWindow, rank, w.rank)
		}
		like := r.Elem == mine.Elem && r.Kind == mine.Kind && r.Sig == mine.Sig && (mine.Elem == 0 || r.Unit == mine.Unit)
		if err == nil && !like {
			err = fmt.Errorf("%w: elements of rank %d are %v of %d bytes, those of rank %d %v of %d",
				mpierr.ErrWindow, rank, r.Sig, r.Elem, w.rank, mine.Sig, mine.Elem)
		}
		if err == nil && (r.Unit < 1 || r.Unit > math.MaxInt32) {
			err = fmt.Errorf("%w: displacement unit %d of rank %d", mpierr.ErrWindow, r.Unit, rank)
		}
		if err == nil && same && r.Bytes != mine.Bytes {
			err = fmt.Errorf("%w: %d bytes, in spite of same_size %d on rank %d", mpierr.ErrWindow, mine.Bytes, r.Bytes, rank)
		}
	}
	if err != nil {
		w.c.Free()
		return errors.Join(err, w.unregister())
	}
	w.openDirect()
	if err := w.mapped(ctx); err != nil {
		w.closeDirect()
		w.c.Free()
		return errors.Join(err, w.unregister())
	}
	w.locks.init(c.Size())
	life, stop := context.WithCancel(context.Background())
	w.stop = stop
	c.Serves()
	for origin := range w.to {
		w.served.Go(func() { w.serve(life, origin) })
	}
	if w.dev == nil || !slices.ContainsFunc(w.remote, func(r Part) bool { return r.Eager != 0 }) {
		return nil
	}
	if err := w.connectAll(ctx); err != nil {
		w.stop()
		w.served.Wait()
		w.closeDirect()
		w.c.Free()
		return errors.Join(err, w.unregister())
	}
	return nil
}

// connectSome is how many queue pairs a rank connects at a time.
const connectSome = 16

// connectAll connects queue pairs to all other ranks. If it fails on one rank it fails on all.
func (w *Window) connectAll(ctx context.Context) error {
	errs := make([]error, len(w.to))
	gate := make(chan struct{}, connectSome)
	var wg sync.WaitGroup
	for i := range w.to {
		target := (w.rank + i) % len(w.to) // each rank begins with another target
		if w.self(target) || w.remote[target].Bytes == 0 {
			continue
		}
		gate <- struct{}{}
		wg.Go(func() {
			_, _, errs[i] = w.connTo(ctx, target)
			<-gate
		})
	}
	wg.Wait()
	return w.c.Agree(ctx, errors.Join(errs...))
}

// Free ends the window.
func (w *Window) Free(ctx context.Context) error {
	if err := w.Usable(); err != nil {
		return err
	}
	for rank := range w.to {
		w.to[rank].proveReleases()
	}
	err := w.Fence(ctx, 0)
	if !w.freed.CompareAndSwap(false, true) {
		return err
	}
	w.stop()
	w.served.Wait()
	if w.onFreed != nil {
		w.onFreed()
	}
	w.c.Free()
	w.closeDirect()
	err = errors.Join(err, w.unregister())
	if w.shared != nil {
		err = errors.Join(err, w.shared.Drop())
	}
	return err
}

// Usable returns why no operation may start, or nil.
func (w *Window) Usable() error {
	if w.freed.Load() {
		return fmt.Errorf("%w: freed", mpierr.ErrWindow)
	}
	return w.c.Usable()
}

// checkTarget checks a rank.
func (w *Window) checkTarget(target int) error {
	if target < 0 || target >= len(w.to) {
		return fmt.Errorf("%w: %d of %d", mpierr.ErrRank, target, len(w.to))
	}
	return w.Usable()
}

// locate checks an access of n bytes at displacement disp of target and returns its byte offset in the
// target's memory. done says that there is nothing to do.
func (w *Window) locate(target, disp, n int, need Access) (off int, done bool, err error) {
	if target == ProcNull {
		return 0, true, w.Usable()
	}
	if err := w.checkTarget(target); err != nil {
		return 0, false, err
	}
	r := &w.remote[target]
	unit := int(r.Unit)
	if w.dynamic != nil {
		off, ok := datatype.Mul(disp, unit)
		switch {
		case !ok || disp < 0:
			return 0, false, fmt.Errorf("%w: address %d", mpierr.ErrRange, disp)
		case r.Access&need != need:
			return 0, false, fmt.Errorf("%w: rank %d", mpierr.ErrAccess, target)
		}
		return off, n == 0, nil // the target checks the address
	}
	room := int(r.Bytes) - n
	if disp < 0 || room < 0 || disp > room/unit {
		if n == 0 { // of items: their bytes are not looked at
			return 0, false, fmt.Errorf("%w: displacement %d × %d of rank %d, which has %d bytes",
				mpierr.ErrRange, disp, unit, target, r.Bytes)
		}
		return 0, false, fmt.Errorf("%w: %d bytes at %d × %d of rank %d, which has %d",
			mpierr.ErrRange, n, disp, unit, target, r.Bytes)
	}
	if r.Access&need != need {
		return 0, false, fmt.Errorf("%w: rank %d", mpierr.ErrAccess, target)
	}
	return disp * unit, n == 0, nil
}

// self reports whether target is the caller.
func (w *Window) self(target int) bool { return target == w.rank }

// SetHints puts hints into effect.
func (w *Window) SetHints(h Hints) { w.hints.Store(&h) }

// Bytes returns the length of the memory of a rank.
func (w *Window) Bytes(rank int) int { return int(w.remote[rank].Bytes) }

// Unit returns the bytes that a displacement in the memory of a rank counts.
func (w *Window) Unit(rank int) int { return int(w.remote[rank].Unit) }

// Size returns the number of ranks.
func (w *Window) Size() int { return len(w.to) }

// RDMA reports whether Put and Get use RDMA.
func (w *Window) RDMA() bool { return w.dev != nil }

// Started reports whether operations on a target may be in progress here. If not, err is the first error of
// those since the last synchronization.
func (w *Window) Started(target int) (started bool, err error) {
	if target == ProcNull || w.self(target) {
		return false, nil
	}
	if t := &w.to[target]; t.idle() {
		return false, t.reported()
	}
	return true, nil
}
