package mpi

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/weftstack/weft/verbs"
)

// Registration cache: registrations of the buffers of operations are kept for the next operation
// with the same buffer, which saves two allocations. A kept registration has no remote rights. It
// keeps its buffer from being collected, so the number and the total length of kept ones are
// bounded.
const (
	// maxKeptBytes bounds the buffers of kept registrations, in bytes.
	maxKeptBytes = 64 << 20
	// maxKept bounds the number of kept registrations.
	maxKept = 256
)

type regKey struct {
	at     *byte
	n      int
	access verbs.Access
}

// registration is a registered buffer.
type registration struct {
	key  regKey
	mr   *verbs.MR
	sgl  [1]verbs.SGE // the whole buffer
	uses int          // operations in flight that use it
	last uint64       // clock of the last use
	kept bool         // in regCache.kept
}

// regCache is the registration cache of a device.
type regCache struct {
	mu    sync.Mutex // guards what follows
	kept  map[regKey]*registration
	bytes int
	clock uint64      // counts calls of get
	busy  []*verbs.MR // evicted while a queue pair still held them
}

// get returns a registration of buf, to be given back with put.
func (r *regCache) get(pd *verbs.PD, buf []byte, access verbs.Access) (*registration, error) {
	key := regKey{unsafe.SliceData(buf), len(buf), access}
	r.mu.Lock()
	r.clock++
	if g := r.kept[key]; g != nil {
		g.uses++
		g.last = r.clock
		r.mu.Unlock()
		return g, nil
	}
	r.mu.Unlock()
	mr, err := pd.Register(buf, access)
	if err != nil {
		return nil, err
	}
	g := &registration{key: key, mr: mr, uses: 1}
	g.sgl[0] = mr.Slice(0, len(buf))
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(buf) > maxKeptBytes || r.kept[key] != nil {
		return g, nil
	}
	for r.bytes+len(buf) > maxKeptBytes || len(r.kept) >= maxKept {
		if !r.evict() {
			return g, nil
		}
	}
	if r.kept == nil {
		r.kept = make(map[regKey]*registration)
	}
	g.kept, g.last = true, r.clock
	r.kept[key] = g
	r.bytes += len(buf)
	return g, nil
}

// evict frees the least recently used registration. It reports false if all are in use. r.mu is
// held.
func (r *regCache) evict() bool {
	var old *registration
	for _, g := range r.kept {
		if g.uses == 0 && (old == nil || g.last < old.last) {
			old = g
		}
	}
	if old == nil {
		return false
	}
	delete(r.kept, old.key)
	r.bytes -= old.key.n
	r.drop(old.mr)
	return true
}

// drop closes mr now or, if a queue pair that failed still holds it, later.
func (r *regCache) drop(mr *verbs.MR) {
	still := r.busy[:0]
	for _, m := range append(r.busy, mr) {
		if errors.Is(m.Close(), verbs.ErrBusy) {
			still = append(still, m)
		}
	}
	r.busy = still
}

// put gives a registration back. It returns verbs.ErrBusy, and changes nothing, if the registration
// is not kept and a queue pair still holds it.
func (r *regCache) put(g *registration) error {
	if g == nil {
		return nil
	}
	if !g.kept {
		return g.mr.Close()
	}
	r.mu.Lock()
	g.uses--
	r.mu.Unlock()
	return nil
}

// close frees all registrations. No queue pair holds them any more.
func (r *regCache) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, g := range r.kept {
		r.busy = append(r.busy, g.mr)
	}
	for _, mr := range r.busy {
		errs = append(errs, mr.Close())
	}
	r.kept, r.busy, r.bytes = nil, nil, 0
	return errors.Join(errs...)
}
