package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
	"github.com/weftstack/weft/verbs"
)

// window is a Win without its element type: it handles elements as bytes.
type window struct {
	c    *Comm // private communicator of the window
	of   *Comm // communicator that the window was made of
	mem  []byte
	elem int          // bytes of an element
	word bool         // elements are 64-bit integers
	sig  datatype.Sig // type signature of an element
	ops  op.Table     // operators that updates may use

	access Access
	remote []winInfo // of all ranks
	to     []winTarget
	dev    *rdmadev.Device // nil: all operations are active messages
	mr     *verbs.MR       // mem, registered
	direct []directMem     // by target; nil if this rank shares no memory
	file   *os.File        // holds mem, until other ranks have mapped it; may be nil

	dynamic *dynamicMem // set for a dynamic window, which has no mem
	shared  *sharedMem  // set for a window of WinAllocateShared: mem is a part of it

	memory sync.Mutex // held while active messages access mem

	locks winLocks // the lock of mem

	mu      sync.Mutex // guards what follows
	posted  []*request // since Post: receives of the Complete messages of the origins; nil: no Post
	started []int      // since Start: the targets; nil: no Start
	info    Info

	hints atomic.Pointer[winHints]

	own labels

	requests atomic.Uint32 // counts requests with bulk data or an answer: see number
	freed    atomic.Bool
	stop     context.CancelFunc
	served   sync.WaitGroup // goroutines of the services
}

// winInfo describes the part of one rank to the others.
type winInfo struct {
	Bytes  uint64
	Elem   uint32
	Kind   uint32
	Sig    datatype.Sig
	Access Access
	Bad    uint8        // 1: the rank cannot make its part
	Same   uint8        // 1: InfoSameSize
	Eager  uint8        // 1: InfoConnect is "all"
	Key    envelope.Key // of its memory; without a port it has no RDMA device
	Addr   uint64       // address of the memory in the process; 0: no direct copies
	FD     uint32       // 1 + descriptor of its file; 0: it has none
	File   uint64       // inode of the file
}

// create makes the caller's part of the window and exchanges keys. A rank that cannot make its part
// reports that, so that all ranks fail alike: see Comm.consent.
func (w *window) create(ctx context.Context, c *Comm, kind uint32, o winOptions) error {
	defer w.withdraw()
	var err error
	if w.c, err = c.private(ctx); err != nil {
		return err
	}
	w.of, w.access = c, o.access
	mine := winInfo{Bytes: uint64(len(w.mem)), Elem: uint32(w.elem), Kind: kind, Sig: w.sig, Access: o.access}
	hints, err := readWinHints(o.info)
	if hints.sameSize {
		mine.Same = 1
	}
	if hints.connect {
		mine.Eager = 1
	}
	w.setInfo(o.info, hints)
	if err == nil {
		err = o.bad
	}
	if !o.messages && err == nil {
		err = w.register(&mine)
	}
	if err != nil {
		mine.Bad = 1
	}
	mine.Addr = w.directAddr()
	w.offer(&mine)
	w.remote = make([]winInfo, c.Size())
	if e := Allgather(ctx, w.c, []winInfo{mine}, w.remote); e != nil {
		err = orFirst(err, e)
	} else if slices.ContainsFunc(w.remote, func(r winInfo) bool { return r.Bad != 0 }) {
		err = w.c.consent(ctx, err) // all ranks see that one of them is bad
	}
	same := slices.ContainsFunc(w.remote, func(r winInfo) bool { return r.Same != 0 })
	for rank, r := range w.remote {
		if err == nil && (r.Key.Port == 0) != (mine.Key.Port == 0) {
			err = fmt.Errorf("%w: only one of rank %d and rank %d uses messages", ErrWindow, rank, w.c.rank)
		}
		if err == nil && (r.Elem != mine.Elem || r.Kind != mine.Kind || r.Sig != mine.Sig) {
			err = fmt.Errorf("%w: elements of rank %d are %v of %d bytes, those of rank %d %v of %d",
				ErrWindow, rank, r.Sig, r.Elem, w.c.rank, w.sig, w.elem)
		}
		if err == nil && same && r.Bytes != mine.Bytes {
			err = fmt.Errorf("%w: %d bytes, in spite of %s %d on rank %d", ErrWindow, mine.Bytes, InfoSameSize, r.Bytes, rank)
		}
	}
	if err != nil {
		w.c.Free()
		return errors.Join(err, w.unregister())
	}
	w.to = make([]winTarget, c.Size())
	for rank := range w.to {
		w.to[rank].init(rank)
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
	w.c.w.eng.prog.hook.used.Store(true)
	for origin := range w.to {
		w.served.Go(func() { w.serve(life, origin) })
	}
	if w.dev == nil || !slices.ContainsFunc(w.remote, func(r winInfo) bool { return r.Eager != 0 }) {
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
func (w *window) connectAll(ctx context.Context) error {
	errs := make([]error, len(w.to))
	gate := make(chan struct{}, connectSome)
	var wg sync.WaitGroup
	for i := range w.to {
		target := (w.c.rank + i) % len(w.to) // each rank begins with another target
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
	return w.c.consent(ctx, errors.Join(errs...))
}

// free ends the window.
func (w *window) free(ctx context.Context) error {
	if err := w.usable(); err != nil {
		return err
	}
	err := w.fence(ctx, 0)
	if !w.freed.CompareAndSwap(false, true) {
		return err
	}
	w.stop()
	w.served.Wait()
	w.own.attrs.dropAll()
	w.c.Free()
	w.closeDirect()
	err = errors.Join(err, w.unregister())
	if w.shared != nil {
		err = errors.Join(err, w.shared.drop())
	}
	return err
}

// usable returns why no operation may start, or nil.
func (w *window) usable() error {
	if w.freed.Load() {
		return fmt.Errorf("%w: freed", ErrWindow)
	}
	return w.c.usable()
}

// checkTarget checks a rank.
func (w *window) checkTarget(target int) error {
	if target < 0 || target >= len(w.to) {
		return fmt.Errorf("%w: %d of %d", ErrRank, target, len(w.to))
	}
	return w.usable()
}

// locate checks an access of n bytes at element disp of target and returns its byte offset in the
// target's memory. done says that there is nothing to do.
func (w *window) locate(target, disp, n int, need Access) (off int, done bool, err error) {
	if target == ProcNull {
		return 0, true, w.usable()
	}
	if err := w.checkTarget(target); err != nil {
		return 0, false, err
	}
	r := &w.remote[target]
	if w.dynamic != nil {
		off, ok := datatype.Mul(disp, w.elem)
		switch {
		case !ok || disp < 0:
			return 0, false, fmt.Errorf("%w: address %d", ErrRange, disp)
		case r.Access&need != need:
			return 0, false, fmt.Errorf("%w: rank %d", ErrAccess, target)
		}
		return off, n == 0, nil // the target checks the address
	}
	room := int(r.Bytes) - n
	if disp < 0 || room < 0 || disp > room/w.elem {
		return 0, false, fmt.Errorf("%w: %d elements at %d of rank %d, which has %d",
			ErrRange, n/w.elem, disp, target, int(r.Bytes)/w.elem)
	}
	if r.Access&need != need {
		return 0, false, fmt.Errorf("%w: rank %d", ErrAccess, target)
	}
	return disp * w.elem, n == 0, nil
}

// self reports whether target is the caller.
func (w *window) self(target int) bool { return target == w.c.rank }

func (w *window) put(ctx context.Context, src []byte, target, disp int) error {
	off, done, err := w.locate(target, disp, len(src), AccessWrite)
	if done || err != nil {
		return err
	}
	return w.putAt(ctx, src, target, off)
}

// putAt is put at a byte offset that locate has checked.
func (w *window) putAt(ctx context.Context, src []byte, target, off int) error {
	if w.self(target) {
		mem, err := w.ownAt(off, len(src))
		if err != nil {
			return err
		}
		w.hold()
		copy(mem, src)
		w.release()
		return nil
	}
	if w.direct != nil && w.direct[target].near() {
		if done, err := w.putDirect(ctx, src, target, off); done || err != nil {
			return err
		}
	}
	if w.dev != nil {
		if len(src) > rdmadev.MaxInline {
			if err := w.spill(ctx, target); err != nil {
				return err
			}
		} else if done, err := w.aggregateWrite(ctx, src, target, off); done || err != nil {
			return err
		}
		return w.writeRDMA(ctx, src, target, off)
	}
	for len(src) > 0 {
		n := min(len(src), amChunk)
		if err := w.tell(ctx, target, amHeader{kind: amPut, off: uint64(off), n: uint64(n)}, src[:n]); err != nil {
			return err
		}
		src, off = src[n:], off+n
	}
	return nil
}

func (w *window) get(ctx context.Context, dst []byte, target, disp int) error {
	off, done, err := w.locate(target, disp, len(dst), AccessRead)
	if done || err != nil {
		return err
	}
	return w.getAt(ctx, dst, target, off)
}

// getAt is get at a byte offset that locate has checked.
func (w *window) getAt(ctx context.Context, dst []byte, target, off int) error {
	if w.self(target) {
		mem, err := w.ownAt(off, len(dst))
		if err != nil {
			return err
		}
		w.hold()
		copy(dst, mem)
		w.release()
		return nil
	}
	if err := w.spill(ctx, target); err != nil {
		return err
	}
	switch {
	case w.getDirect(dst, target, off):
		return nil
	case w.dev != nil:
		return w.readRDMA(ctx, dst, target, off)
	}
	for len(dst) > 0 {
		n := min(len(dst), amChunk)
		h := amHeader{kind: amGet, off: uint64(off), n: uint64(n)}
		if err := w.tellFor(ctx, dst[:n], target, h, nil); err != nil {
			return err
		}
		dst, off = dst[n:], off+n
	}
	return nil
}

// checkOp returns the code of an operator, or ErrOp if updates cannot use it.
func (w *window) checkOp(red op.Reducer) (op.Code, error) {
	if red == nil || w.ops[red.Code()] == nil {
		return 0, fmt.Errorf("%w: in an update of a window", ErrOp)
	}
	return red.Code(), nil
}

// update is Accumulate, or GetAccumulate if old is not nil.
func (w *window) update(ctx context.Context, src, old []byte, target, disp int, red op.Reducer) error {
	code, err := w.checkOp(red)
	if err != nil {
		return err
	}
	off, done, err := w.locate(target, disp, len(src), AccessUpdate)
	if done || err != nil {
		return err
	}
	return w.updateAt(ctx, src, old, target, off, code)
}

// updateAt is update at a byte offset that locate has checked.
func (w *window) updateAt(ctx context.Context, src, old []byte, target, off int, code op.Code) error {
	if w.elem > amChunk {
		return fmt.Errorf("%w: elements of %d bytes", ErrCount, w.elem)
	}
	if w.self(target) {
		mem, err := w.ownAt(off, len(src))
		if err == nil {
			w.apply(mem, src, old, w.ops[code])
		}
		return err
	}
	if err := w.spill(ctx, target); err != nil {
		return err
	}
	if w.updateDirect(src, old, target, off, code) {
		return nil
	}
	for len(src) > 0 {
		n := min(len(src), amChunk-amChunk%w.elem)
		h := amHeader{kind: amUpdate, op: uint8(code), off: uint64(off), n: uint64(n)}
		var err error
		if old == nil {
			err = w.tell(ctx, target, h, src[:n])
		} else {
			err = w.tellFor(ctx, old[:n], target, h, src[:n])
			old = old[n:]
		}
		if err != nil {
			return err
		}
		src, off = src[n:], off+n
	}
	return nil
}

// fetch is FetchAndOp.
func (w *window) fetch(ctx context.Context, value, old []byte, target, disp int, red op.Reducer) error {
	code, err := w.checkOp(red)
	if err != nil {
		return err
	}
	off, done, err := w.locate(target, disp, len(value), AccessUpdate)
	if done || err != nil {
		return err
	}
	if !w.self(target) {
		if err := w.spill(ctx, target); err != nil {
			return err
		}
		if w.updateDirect(value, old, target, off, code) {
			return nil
		}
		if w.dev != nil && w.word && w.mayOvertake(target) {
			if wr, ok := fetchWR(code, value); ok {
				return w.atomicRDMA(ctx, wr, old, target, disp)
			}
		}
	}
	if err := w.updateAt(ctx, value, old, target, off, code); err != nil || w.self(target) {
		return err
	}
	return w.answered(ctx, target)
}

// mayOvertake reports whether an RDMA atomic, which does not wait for active messages, may start
// now: the updates of a rank keep their order (MPI-4.1, Section 12.7.2).
func (w *window) mayOvertake(target int) bool {
	return w.hints.Load().unordered || w.to[target].updated()
}

// answered waits for the answer to an update, which proves that earlier updates are performed.
func (w *window) answered(ctx context.Context, target int) error {
	t := &w.to[target]
	t.mu.Lock()
	n := t.updates
	t.mu.Unlock()
	err := w.flushLocal(ctx, target)
	if err == nil {
		t.mu.Lock()
		t.proved = max(t.proved, n)
		t.mu.Unlock()
	}
	return err
}

// swap is CompareAndSwap, or CompareAndSwapTo if waits is false; operands holds compare and swap.
// Only the waiting form uses RDMA atomics, because later updates in messages could overtake one in
// flight.
func (w *window) swap(ctx context.Context, operands, old []byte, target, disp int, waits bool) error {
	off, done, err := w.locate(target, disp, len(old), AccessUpdate)
	if done || err != nil {
		return err
	}
	if w.self(target) {
		mem, err := w.ownAt(off, w.elem)
		if err == nil {
			w.applySwap(mem, operands, old)
		}
		return err
	}
	if err := w.spill(ctx, target); err != nil {
		return err
	}
	if w.swapDirect(operands, old, target, off) {
		return nil
	}
	if waits && w.dev != nil && w.word && w.mayOvertake(target) {
		return w.atomicRDMA(ctx, swapWR(operands), old, target, disp)
	}
	if 2*len(old) > amInline {
		return fmt.Errorf("%w: elements of %d bytes", ErrCount, len(old))
	}
	h := amHeader{kind: amSwap, off: uint64(off), n: uint64(len(old))}
	if err := w.tellFor(ctx, old, target, h, operands); err != nil || !waits {
		return err
	}
	return w.answered(ctx, target)
}

// request returns a request for the operations started on target so far.
func (w *window) request(target int, err error) (*Request, error) {
	if err != nil {
		return nil, err
	}
	if target == ProcNull || w.self(target) {
		return doneRequest(w.c.w, Status{Source: target}, nil), nil
	}
	if t := &w.to[target]; t.idle() {
		return doneRequest(w.c.w, Status{Source: target}, t.reported()), nil
	}
	return goRequest(w.c.w, func() (Status, error) {
		return Status{Source: target}, w.flushLocal(context.Background(), target)
	}), nil
}
