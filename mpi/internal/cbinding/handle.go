package cbinding

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// A HandleKind says what handles refer to.
type HandleKind struct {
	Name   string     // as in messages: "communicator"
	Class  int        // error class of bad handles
	Null   abi.Handle // MPI_COMM_NULL, and 0 if there is none
	first  abi.Handle // of the predefined handles
	fixed  int        // how many predefined ones there may be
	Prefix uint32     // in bits 24 to 30, of those that a table gives out
	Bits   uint       // below the prefix
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

// A Table maps the handles of one kind to objects. Get takes no lock.
type Table[T any] struct {
	HandleKind
	chunks []atomic.Pointer[[chunkLen]slot[T]]
	fixeds []atomic.Pointer[T]

	live atomic.Int64 // objects that the program made; changed with mu held

	mu   sync.Mutex // guards all below, and is held by Put, Set and Delete
	free uint32     // first free slot plus one; 0: none
	len  uint32     // slots that have ever been in use
}

// spareSlots of a table are left by calls that find no room, for the calls of other threads that have found room and
// not put their object yet.
const spareSlots = 1024

// counts has the number of live objects of each kind, by name.
var counts sync.Map // string → *atomic.Int64

// CountHandles returns how many objects of a kind the program has made and not freed.
func CountHandles(kind string) int {
	if n, ok := counts.Load(kind); ok {
		return int(n.(*atomic.Int64).Load())
	}
	return 0
}

// NewTable makes a table of the handles of a kind.
func NewTable[T any](k HandleKind) *Table[T] {
	t := &Table[T]{HandleKind: k,
		chunks: make([]atomic.Pointer[[chunkLen]slot[T]], 1<<(k.Bits-generationBits)/chunkLen),
		fixeds: make([]atomic.Pointer[T], k.fixed)}
	counts.Store(k.Name, &t.live)
	return t
}

func (t *Table[T]) index(h abi.Handle) uint32 { return uint32(h) & (1<<(t.Bits-generationBits) - 1) }

// Get returns the object of a handle; nil if there is none.
func (t *Table[T]) Get(h abi.Handle) *T {
	if h < abi.MaxPredefined {
		if i := h - t.first; i < abi.Handle(len(t.fixeds)) {
			return t.fixeds[i].Load()
		}
		return nil
	}
	if uint32(h>>t.Bits) != t.Prefix>>(t.Bits-24) {
		return nil
	}
	i := t.index(h)
	c := t.chunks[i/chunkLen].Load()
	if c == nil {
		return nil
	}
	s := &c[i%chunkLen]
	v := s.value.Load()
	if abi.Handle(s.handle.Load()) != h {
		return nil
	}
	return v
}

// Lookup is get that says why there is no object.
func (t *Table[T]) Lookup(h abi.Handle) (*T, error) {
	if v := t.Get(h); v != nil {
		return v, nil
	}
	return nil, t.Missing(h)
}

// Missing returns the error for a handle without an object.
func (t *Table[T]) Missing(h abi.Handle) error {
	if err := NotRunning(); err != nil && t.first <= h && h < abi.MaxPredefined {
		return err
	}
	switch {
	case h == t.Null && h != 0:
		return ArgError(t.Class, t.Name, HandleName(h), "is the null handle")
	case h >= abi.MaxPredefined && h>>24 < 1<<7 && uint32(h>>t.Bits) == t.Prefix>>(t.Bits-24):
		return ArgError(t.Class, t.Name, HandleName(h), "has been freed, or was never made")
	}
	what := "is no handle"
	if k := kindOf(h); k != "" {
		what = "is the handle of a " + k
	}
	return ArgError(t.Class, t.Name, HandleName(h), what)
}

// Put gives v a handle.
func (t *Table[T]) Put(v *T) (abi.Handle, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.free - 1
	var s *slot[T]
	switch {
	case t.free != 0:
		s = &t.chunks[i/chunkLen].Load()[i%chunkLen]
		t.free = s.next
	case int(t.len) == len(t.chunks)*chunkLen:
		return 0, &CallError{Class: abi.ErrNoMem, Text: fmt.Sprintf("there are %d objects of kind %s already", t.len, t.Name)}
	default:
		i = t.len
		t.len++
		if i%chunkLen == 0 {
			t.chunks[i/chunkLen].Store(new([chunkLen]slot[T]))
		}
		s = &t.chunks[i/chunkLen].Load()[i%chunkLen]
		s.used = t.Prefix<<24 | i
	}
	h := s.used
	s.value.Store(v)
	s.handle.Store(h)
	t.live.Add(1)
	return abi.Handle(h), nil
}

// Room returns an error if the table is full. A call asks before it starts what could not be undone without a handle:
// an operation, or what other ranks take part in.
func (t *Table[T]) Room() error {
	if most := len(t.chunks)*chunkLen - spareSlots; t.live.Load() >= int64(most) {
		return &CallError{Class: abi.ErrNoMem, Text: fmt.Sprintf("there are %d objects of kind %s, the most", most, t.Name)}
	}
	return nil
}

// Set makes a predefined handle refer to v, or with nil to nothing.
func (t *Table[T]) Set(h abi.Handle, v *T) { t.fixeds[h-t.first].Store(v) }

// Delete makes h refer to nothing and reports whether it has referred to an object. Predefined
// handles stay.
func (t *Table[T]) Delete(h abi.Handle) bool {
	if h < abi.MaxPredefined {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Get(h) == nil {
		return false
	}
	i := t.index(h)
	s := &t.chunks[i/chunkLen].Load()[i%chunkLen]
	s.handle.Store(0)
	s.value.Store(nil)
	generation := (uint32(h)>>(t.Bits-generationBits) + 1) & (1<<generationBits - 1)
	s.used = t.Prefix<<24 | generation<<(t.Bits-generationBits) | i
	s.next = t.free
	t.free = i + 1
	t.live.Add(-1)
	return true
}

// Each calls f for all objects that the program made, until f returns false.
func (t *Table[T]) Each(f func(abi.Handle, *T) bool) {
	t.mu.Lock()
	n := t.len
	t.mu.Unlock()
	for i := range n {
		s := &t.chunks[i/chunkLen].Load()[i%chunkLen]
		v, h := s.value.Load(), s.handle.Load()
		if v != nil && h != 0 && !f(abi.Handle(h), v) {
			return
		}
	}
}

// DeleteAll deletes all objects that the program made.
func (t *Table[T]) DeleteAll() {
	var all []abi.Handle
	t.Each(func(h abi.Handle, _ *T) bool { all = append(all, h); return true })
	for _, h := range all {
		t.Delete(h)
	}
}
