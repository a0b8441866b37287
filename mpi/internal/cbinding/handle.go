package cbinding

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// A Handle is an MPI handle as C holds it.
type Handle uintptr

// maxPredefined is where handles of the ABI end (MPI-5.0, Section 20.3): those of objects that a
// program makes are greater.
const maxPredefined = 1 << 12

// A kind says what handles refer to.
type kind struct {
	name   string // as in messages: "communicator"
	class  int    // error class of bad handles
	null   Handle // MPI_COMM_NULL, and 0 if there is none
	first  Handle // of the predefined handles
	fixed  int    // how many predefined ones there may be
	prefix uint32 // in bits 24 to 30, of those that a table gives out
	bits   uint   // below the prefix
}

// generationBits tell objects apart that have had the same index.
const generationBits = 8

// chunkLen is how many slots a table allocates at once.
const chunkLen = 256

// A slot holds one object. handle is 0 if the slot is free.
type slot[T any] struct {
	handle atomic.Uint32
	value  atomic.Pointer[T]
	next   uint32 // the free slot after this one; guarded by the mutex of the table
	used   uint32 // the last handle of the slot, likewise
}

// A table maps the handles of one kind to objects. get takes no lock.
type table[T any] struct {
	kind
	chunks []atomic.Pointer[[chunkLen]slot[T]]
	fixeds []atomic.Pointer[T]

	mu   sync.Mutex // guards all below, and is held by put, set and free
	free uint32     // first free slot plus one; 0: none
	len  uint32     // slots that have ever been in use
	live int
}

func newTable[T any](k kind) *table[T] {
	return &table[T]{kind: k,
		chunks: make([]atomic.Pointer[[chunkLen]slot[T]], 1<<(k.bits-generationBits)/chunkLen),
		fixeds: make([]atomic.Pointer[T], k.fixed)}
}

func (t *table[T]) index(h Handle) uint32 { return uint32(h) & (1<<(t.bits-generationBits) - 1) }

// get returns the object of a handle; nil if there is none.
func (t *table[T]) get(h Handle) *T {
	if h < maxPredefined {
		if i := h - t.first; i < Handle(len(t.fixeds)) {
			return t.fixeds[i].Load()
		}
		return nil
	}
	if uint32(h>>t.bits) != t.prefix>>(t.bits-24) {
		return nil
	}
	i := t.index(h)
	c := t.chunks[i/chunkLen].Load()
	if c == nil {
		return nil
	}
	s := &c[i%chunkLen]
	v := s.value.Load()
	if Handle(s.handle.Load()) != h {
		return nil
	}
	return v
}

// lookup is get that says why there is no object.
func (t *table[T]) lookup(h Handle) (*T, error) {
	if v := t.get(h); v != nil {
		return v, nil
	}
	return nil, t.missing(h)
}

// missing returns the error for a handle without an object.
func (t *table[T]) missing(h Handle) error {
	if err := notRunning(); err != nil && t.first <= h && h < maxPredefined {
		return err
	}
	switch {
	case h == t.null && h != 0:
		return argError(t.class, t.name, fmt.Sprintf("%#x", uint(h)), "is the null handle")
	case h >= maxPredefined && h>>24 < 1<<7 && uint32(h>>t.bits) == t.prefix>>(t.bits-24):
		return argError(t.class, t.name, fmt.Sprintf("%#x", uint(h)), "has been freed, or was never made")
	}
	what := "is no handle"
	if k := kindOf(h); k != "" {
		what = "is the handle of a " + k
	}
	return argError(t.class, t.name, fmt.Sprintf("%#x", uint(h)), what)
}

// put gives v a handle.
func (t *table[T]) put(v *T) (Handle, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.free - 1
	var s *slot[T]
	switch {
	case t.free != 0:
		s = &t.chunks[i/chunkLen].Load()[i%chunkLen]
		t.free = s.next
	case int(t.len) == len(t.chunks)*chunkLen:
		return 0, &callError{class: abi.ErrNoMem, text: fmt.Sprintf("there are %d objects of kind %s already", t.len, t.name)}
	default:
		i = t.len
		t.len++
		if i%chunkLen == 0 {
			t.chunks[i/chunkLen].Store(new([chunkLen]slot[T]))
		}
		s = &t.chunks[i/chunkLen].Load()[i%chunkLen]
		s.used = t.prefix<<24 | i
	}
	h := s.used
	s.value.Store(v)
	s.handle.Store(h)
	t.live++
	return Handle(h), nil
}

// set makes a predefined handle refer to v, or with nil to nothing.
func (t *table[T]) set(h Handle, v *T) { t.fixeds[h-t.first].Store(v) }

// delete makes h refer to nothing and reports whether it has referred to an object. Predefined
// handles stay.
func (t *table[T]) delete(h Handle) bool {
	if h < maxPredefined {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.get(h) == nil {
		return false
	}
	i := t.index(h)
	s := &t.chunks[i/chunkLen].Load()[i%chunkLen]
	s.handle.Store(0)
	s.value.Store(nil)
	generation := (uint32(h)>>(t.bits-generationBits) + 1) & (1<<generationBits - 1)
	s.used = t.prefix<<24 | generation<<(t.bits-generationBits) | i
	s.next = t.free
	t.free = i + 1
	t.live--
	return true
}

// each calls f for all objects that the program made, until f returns false.
func (t *table[T]) each(f func(Handle, *T) bool) {
	t.mu.Lock()
	n := t.len
	t.mu.Unlock()
	for i := range n {
		s := &t.chunks[i/chunkLen].Load()[i%chunkLen]
		v, h := s.value.Load(), s.handle.Load()
		if v != nil && h != 0 && !f(Handle(h), v) {
			return
		}
	}
}
