package ddp

import (
	"errors"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// MaxRegion bounds the size of a region: 1 TiB, or 1 GiB where an int has 32 bits.
const MaxRegion = 1 << (30 + 10*(^uint(0)>>63))

// Access is a set of rights to a region.
type Access uint8

// Access rights. Local reading needs none.
const (
	// LocalWrite lets work requests of this side write: receives, reads.
	LocalWrite Access = 1 << iota
	// RemoteRead lets peers read.
	RemoteRead
	// RemoteWrite lets peers write.
	RemoteWrite
	// RemoteAtomic lets peers do atomic operations.
	RemoteAtomic
	// BindWindow lets memory windows be bound to the region.
	BindWindow
	// ReadSnapshot makes Read Responses copies of the memory, taken when it is first
	// sent. Windows bound to the region inherit it.
	ReadSnapshot
)

// Domain is a protection domain: the identity that regions and streams must
// share (RFC 5042, Section 2.1).
type Domain struct{ _ byte }

// Scope is the identity of a stream in access checks. It is allocated by itself: a
// region that is limited to a stream refers to the Scope as long as the region exists,
// and must not keep the queues of the stream in memory.
type Scope struct {
	Domain *Domain

	denied atomic.Uint32
}

// Deny replaces the set of remote rights that the peer of the stream does not
// have, whatever regions grant. It does not wait for placements under way.
func (sc *Scope) Deny(a Access) { sc.denied.Store(uint32(a)) }

// Denied returns the rights that Deny withheld.
func (sc *Scope) Denied() Access { return Access(sc.denied.Load()) }

// Region is registered memory: what an STag stands for. It is made by
// Table.Add.
type Region struct {
	mem    []byte
	base   uint64
	stag   uint32
	access Access
	domain *Domain
	scope  *Scope // not nil: remote use on this stream only

	// users counts placements under way; revoked is its sign bit. mem, base,
	// access and scope only change while it is exactly revoked.
	users atomic.Int32
	// pins counts work queue elements and windows that name the region; it is
	// negative once retired.
	pins atomic.Int32
	// epoch counts revocations.
	epoch atomic.Uint32
	// sources counts those that are in use; awaited tells that after is not empty.
	sources atomic.Int32
	awaited atomic.Bool

	mu       sync.Mutex // orders Bind, Revoke and Remove
	bindable bool       // guarded by mu: Bind may make it valid
	parent   *Region    // what a window is bound to, pinned; written under mu when there are no users
	after    []func()   // guarded by mu: what waits for sources to become 0
}

const revoked = -1 << 31

// STag returns the steering tag.
func (r *Region) STag() uint32 { return r.stag }

// Base returns the tagged offset of the first byte.
func (r *Region) Base() uint64 { return r.base }

// Bytes returns the memory, until the region is removed from its table. Like
// Base, Access and Scoped it is not for regions made by Table.Reserve.
func (r *Region) Bytes() []byte { return r.mem }

// Access returns the rights it was registered with.
func (r *Region) Access() Access { return r.access }

// Scoped reports whether Table.Add limited it to a stream.
func (r *Region) Scoped() bool { return r.scope != nil }

// Epoch returns how often the region has been revoked. It changes before
// Revoke returns.
func (r *Region) Epoch() uint32 { return r.epoch.Load() }

// Bind makes a region of Table.Reserve that has no rights, or has none any
// more, stand for mem, with tagged offsets from base on, for the peer of one
// stream (all of the domain if scope is nil). A region that mem is part of is
// the parent: it is pinned until the rights are revoked. Bind reports false, and
// changes nothing, if the region has rights or was removed, the parent is
// retired, or the offsets would wrap.
func (r *Region) Bind(mem []byte, base uint64, access Access, scope *Scope, parent *Region) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.bindable || r.users.Load() != revoked || !fits(mem, base) {
		return false
	}
	if parent != nil && !parent.Pin() {
		return false
	}
	if parent != nil {
		access |= parent.access & ReadSnapshot
	}
	r.mem, r.base, r.access, r.scope, r.parent = mem, base, access, scope, parent
	r.users.Store(0)
	return true
}

// fits reports whether memory may be registered with offsets from base on.
func fits(mem []byte, base uint64) bool {
	return uint64(len(mem)) <= MaxRegion && base+uint64(len(mem)) >= base
}

// Domain returns the protection domain.
func (r *Region) Domain() *Domain { return r.domain }

// Pin counts a work queue element that names the region. It fails after Retire has
// succeeded.
func (r *Region) Pin() bool {
	if r.pins.Add(1) > 0 {
		return true
	}
	r.pins.Add(-1)
	return false
}

// Unpin reverts one Pin.
func (r *Region) Unpin() { r.pins.Add(-1) }

// Pinned reports whether there are pins.
func (r *Region) Pinned() bool { return r.pins.Load() > 0 }

// Retire makes Pin fail from now on. It does nothing and returns false while
// there are pins.
func (r *Region) Retire() bool { return r.pins.CompareAndSwap(0, revoked) }

// Revoked reports whether remote rights have been revoked.
func (r *Region) Revoked() bool { return r.users.Load() < 0 }

// Revoke revokes all remote rights, permanently unless Table.Reserve made the region. After
// it has returned, no placement into the region is under way: peers can no longer modify it
// (RFC 5040, Section 8.1.1, item 6). It waits only for segments that are being copied.
func (r *Region) Revoke() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revoke()
}

// revokeSince revokes what was bound at an epoch, unless it is revoked already.
func (r *Region) revokeSince(epoch uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch.Load() == epoch {
		r.revoke()
	}
}

func (r *Region) revoke() { // mu is held
	for {
		n := r.users.Load()
		if n < 0 {
			return // nobody is in it: whoever set the bit waited for that
		}
		if r.users.CompareAndSwap(n, n|revoked) {
			break
		}
	}
	r.epoch.Add(1)
	for r.users.Load() != revoked {
		runtime.Gosched()
	}
	if r.parent != nil {
		r.parent.Unpin()
		r.parent = nil
	}
	if r.bindable {
		// What a window was bound to belongs to others, who may have closed it:
		// the window must not keep it in memory.
		r.mem, r.scope = nil, nil
	}
}

// retired revokes the region, makes Bind fail from now on and forgets the memory.
func (r *Region) retired() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revoke()
	r.bindable = false
	r.mem, r.scope = nil, nil
}

// enter begins a placement. It fails if the region is revoked.
func (r *Region) enter() bool {
	for {
		n := r.users.Load()
		if n < 0 {
			return false
		}
		if r.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave ends a placement.
func (r *Region) leave() { r.users.Add(-1) }

// Sync is a synchronization in the sense of the Go memory model: placements
// that ended before it happen before what follows, and what the caller did
// before it happens before the placements and reads that begin later.
func (r *Region) Sync() { r.users.Add(0) }

// Denial is the result of an access check. DDP and RDMAP number the same
// findings differently.
type Denial uint8

// Results of an access check, in the order they are looked for.
const (
	Granted          Denial = iota
	DeniedSTag              // no such STag, or revoked
	DeniedStream            // not for this domain or stream
	DeniedAccess            // right not granted
	DeniedWrap              // TO + length wraps
	DeniedBounds            // outside the region
	DeniedAlignment         // atomic on an unaligned address
	DeniedInvalidate        // not invalidable by the peer
)

// Tagged returns the fault of a tagged segment that was denied. There is no
// number for a missing access right (RFC 5041, Section 7.2); the region then
// is not one that "allows Placement of the payload" (Section 7.1), which is
// called an invalid STag.
func (d Denial) Tagged() Fault {
	switch d {
	case Granted:
		return 0
	case DeniedStream:
		return FaultNotAssociated
	case DeniedWrap:
		return FaultWrap
	case DeniedBounds:
		return FaultBounds
	}
	return FaultSTag
}

// check is the access check of RFC 5041, Section 7.1 and RFC 5040, Section
// 7.2. It must be called between enter and leave.
func (r *Region) check(sc *Scope, to uint64, n uint32, need Access) Denial {
	if r.domain != sc.Domain || r.scope != nil && r.scope != sc {
		return DeniedStream
	}
	if r.access&^sc.Denied()&need != need {
		return DeniedAccess
	}
	end, carry := bits.Add64(to, uint64(n), 0)
	if carry != 0 {
		return DeniedWrap
	}
	if to < r.base || end > r.base+uint64(len(r.mem)) {
		return DeniedBounds
	}
	return Granted
}

// ErrRegion is returned by Table.Add for memory that is too large or whose
// tagged offsets would wrap.
var ErrRegion = errors.New("ddp: bad region")

// ErrTableFull is returned by Table.Add when MaxRegions regions exist.
var ErrTableFull = errors.New("ddp: too many regions")

// Place copies p to tagged offset to of the region named by stag, on behalf
// of the peer of the stream sc. Everything is checked before the first byte
// moves. A payload of no length is not checked (RFC 5041, Section 5.2).
func (t *Table) Place(sc *Scope, stag uint32, to uint64, p []byte) Denial {
	if len(p) == 0 {
		return Granted
	}
	r := t.Lookup(stag)
	if r == nil || !r.enter() {
		return DeniedSTag
	}
	d := r.check(sc, to, uint32(len(p)), RemoteWrite)
	if d == Granted {
		copy(r.mem[to-r.base:], p)
	}
	r.leave()
	return d
}

// PlaceRun is Place for the payloads of segments that follow one another, of unit bytes
// each, behind tagged headers. It places all, or none and tells why.
func (t *Table) PlaceRun(sc *Scope, stag uint32, to uint64, segs [][]byte, unit int) Denial {
	r := t.Lookup(stag)
	if r == nil || !r.enter() {
		return DeniedSTag
	}
	d := r.check(sc, to, uint32(len(segs)*unit), RemoteWrite)
	if d == Granted {
		mem := r.mem[to-r.base:]
		for i, seg := range segs {
			copy(mem[i*unit:], seg[TaggedHeaderLen:])
		}
	}
	r.leave()
	return d
}

// Atomic replaces the 8 bytes at to by f of them, atomically with respect to
// all other atomic operations of this process on the memory, and returns what
// was there. f may be called more than once.
func (t *Table) Atomic(sc *Scope, stag uint32, to uint64, f func(old uint64) uint64) (old uint64, d Denial) {
	r := t.Lookup(stag)
	if r == nil || !r.enter() {
		return 0, DeniedSTag
	}
	defer r.leave()
	if d := r.check(sc, to, 8, RemoteAtomic); d != Granted {
		return 0, d
	}
	b := r.mem[to-r.base:]
	// RFC 7306, Section 5.2.1: the ULP buffer address, not the TO, is what
	// must be aligned.
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%8 != 0 {
		return 0, DeniedAlignment
	}
	for {
		old = atomic.LoadUint64((*uint64)(p))
		if atomic.CompareAndSwapUint64((*uint64)(p), old, f(old)) {
			return old, Granted
		}
	}
}

// InvalidateRemote revokes the region named by stag for the peer of stream
// sc. Only a region limited to that very stream can be (RFC 5040, Section
// 8.1.1, item 7: not "if the STag is shared on multiple streams").
func (t *Table) InvalidateRemote(sc *Scope, stag uint32) Denial {
	r := t.Lookup(stag)
	if r == nil {
		return DeniedSTag
	}
	epoch := r.Epoch()
	if !r.enter() {
		return DeniedSTag
	}
	d := Granted
	switch {
	case r.domain != sc.Domain || r.scope != nil && r.scope != sc:
		d = DeniedStream
	case r.scope == nil:
		d = DeniedInvalidate
	}
	r.leave()
	if d == Granted {
		r.revokeSince(epoch)
	}
	return d
}

// InvalidateLocal revokes the region named by stag on behalf of a work request
// of stream sc: one of its domain that is not limited to another stream. One
// that is revoked already, or was removed lately, is left as it is.
func (t *Table) InvalidateLocal(sc *Scope, stag uint32) Denial {
	sl := t.find(stag)
	if sl == nil {
		return DeniedSTag
	}
	r := sl.region.Load()
	switch {
	case r == nil:
		return Granted // removed
	case r.domain != sc.Domain:
		return DeniedStream
	case !r.enter():
		return Granted
	}
	other := r.scope != nil && r.scope != sc
	r.leave()
	if other {
		return DeniedStream
	}
	r.Revoke()
	return Granted
}
