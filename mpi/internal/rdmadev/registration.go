package rdmadev

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/weftstack/weft/verbs"
)

// Limits of a registration cache.
const (
	// MaxKept bounds the number of kept registrations.
	MaxKept = 256
	// maxKeptBytes bounds the buffers of kept registrations, in bytes.
	maxKeptBytes = 64 << 20
)

type regionKey struct {
	at     *byte
	n      int
	access verbs.Access
}

// Registration is a registered buffer.
type Registration struct {
	key  regionKey
	mr   *verbs.MR
	sgl  [1]verbs.SGE // the whole buffer
	uses int          // operations in flight that use it
	last uint64       // clock of the last use
	kept bool         // in RegistrationCache.kept
}

// SGL returns the scatter-gather list of the whole buffer.
func (g *Registration) SGL() []verbs.SGE { return g.sgl[:] }

// RegistrationCache keeps registrations of the buffers of operations for the next operation with the
// same buffer, which saves two allocations. A kept registration has no remote rights. It keeps its buffer
// from being collected, so the number and the total length of kept ones are bounded.
type RegistrationCache struct {
	mu    sync.Mutex // guards what follows
	kept  map[regionKey]*Registration
	bytes int
	clock uint64      // counts calls of Get
	busy  []*verbs.MR // evicted while a queue pair still held them
}

// Get returns a registration of buf, to be given back with Put.
func (r *RegistrationCache) Get(pd *verbs.PD, buf []byte, access verbs.Access) (*Registration, error) {
	key := regionKey{unsafe.SliceData(buf), len(buf), access}
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
	g := &Registration{key: key, mr: mr, uses: 1}
	g.sgl[0] = mr.Slice(0, len(buf))
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(buf) > maxKeptBytes || r.kept[key] != nil {
		return g, nil
	}
	for r.bytes+len(buf) > maxKeptBytes || len(r.kept) >= MaxKept {
		if !r.evict() {
			return g, nil
		}
	}
	if r.kept == nil {
		r.kept = make(map[regionKey]*Registration)
	}
	g.kept, g.last = true, r.clock
	r.kept[key] = g
	r.bytes += len(buf)
	return g, nil
}

// evict frees the least recently used registration. It reports false if all are in use. r.mu is
// held.
func (r *RegistrationCache) evict() bool {
	var old *Registration
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
func (r *RegistrationCache) drop(mr *verbs.MR) {
	still := r.busy[:0]
	for _, m := range append(r.busy, mr) {
		if errors.Is(m.Close(), verbs.ErrBusy) {
			still = append(still, m)
		}
	}
	r.busy = still
}

// Put gives a registration back. It returns verbs.ErrBusy, and changes nothing, if the registration
// is not kept and a queue pair still holds it.
func (r *RegistrationCache) Put(g *Registration) error {
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

// Kept returns the number of kept registrations and the length of their buffers.
func (r *RegistrationCache) Kept() (n, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.kept), r.bytes
}

// close frees all registrations. No queue pair holds them any more.
func (r *RegistrationCache) close() error {
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
