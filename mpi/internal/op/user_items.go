package op

import (
	"fmt"
	"unsafe"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// An ItemsFunc is an operator of a program on items of a datatype that is known at run time
// (MPI_User_function): it stores in[i] op inout[i] to inout[i] for count items, which lie as t says
// from the beginning of both. They do not overlap, and are aligned for t.
type ItemsFunc func(in, inout datatype.Memory, count int, t *datatype.Type)

const (
	// userBlock is how many bytes of items are laid out at a time for an ItemsFunc.
	userBlock = 64 << 10
	// MaxUserSpan bounds the bytes from the first to the last of one item of an ItemsFunc, two of
	// which are laid out in memory.
	MaxUserSpan = 1 << 28
)

// UserItems is an operator that is a function on items of a datatype. Operands are packed items;
// the function always gets whole ones.
type UserItems struct {
	// Returns is true if the function always returns: it neither panics nor ends its goroutine.
	Returns bool

	f           ItemsFunc
	t           *datatype.Type
	commutative bool
	dense       bool // packed items lie as the datatype says
	most        int  // items at a time
	origin      int  // where the first item is in memory that begins with its data
	align       int
}

// NewUserItems makes an operator of f on items of t, of which one may span MaxUserSpan bytes. It
// returns mpierr.ErrDatatype if they span more, or have no data.
func NewUserItems(f ItemsFunc, t *datatype.Type, commutative bool) (*UserItems, error) {
	if f == nil {
		return nil, fmt.Errorf("%w: nil function", mpierr.ErrOp)
	}
	if t.Size() == 0 {
		return nil, fmt.Errorf("%w: operator on items without data: %v", mpierr.ErrDatatype, t)
	}
	lo, hi := t.TrueBounds()
	if hi-lo > MaxUserSpan {
		return nil, fmt.Errorf("%w: operator on items of %v, which span more than %d bytes",
			mpierr.ErrDatatype, t, MaxUserSpan)
	}
	o := &UserItems{f: f, t: t, commutative: commutative, dense: t.Dense(2), most: 1, origin: -lo, align: t.Align()}
	if step := abs(t.Extent()); step > 0 {
		o.most = max((userBlock-(hi-lo))/step+1, 1)
	}
	if t.Extent() < 0 {
		o.origin += (o.most - 1) * -t.Extent()
	}
	return o, nil
}

func abs(n int) int { return max(n, -n) }

// Name returns "user".
func (o *UserItems) Name() string { return "user" }

// Commutative reports whether the order of the operands is free.
func (o *UserItems) Commutative() bool { return o.commutative }

// Code returns CodeUser.
func (o *UserItems) Code() Code { return CodeUser }

// Combine stores a op b to dst, which may be a or b.
func (o *UserItems) Combine(dst, a, b []byte) {
	size := o.t.Size()
	if o.dense && o.aligned(dst) && o.aligned(a) && !same(dst, a) {
		if !same(dst, b) {
			copy(dst, b)
		}
		o.f(datatype.In(a), datatype.In(dst), len(dst)/size, o.t)
		return
	}
	lo, hi := o.t.TrueBounds()
	most := min(o.most, len(dst)/size)
	if most == 0 {
		return
	}
	room := hi - lo + (o.most-1)*abs(o.t.Extent())
	pad := o.align - 1
	s := bufpool.Get(2 * (room + pad))
	defer s.Put()
	all := s.Bytes(2 * (room + pad))
	// The data of the first item must lie as far from a multiple of the alignment as in memory
	// of the program, whose items begin at one.
	in := o.place(all[:room+pad])
	inout := o.place(all[room+pad:])
	for len(dst) > 0 {
		k := min(most, len(dst)/size)
		n := k * size
		datatype.Buffer{Mem: in, Count: k, Type: o.t}.Unpack(a[:n], 0)
		datatype.Buffer{Mem: inout, Count: k, Type: o.t}.Unpack(b[:n], 0)
		o.f(in, inout, k, o.t)
		datatype.Buffer{Mem: inout, Count: k, Type: o.t}.Pack(dst[:n], 0)
		dst, a, b = dst[n:], a[n:], b[n:]
	}
}

// place returns the memory of items in b, with the first at a multiple of the alignment.
func (o *UserItems) place(b []byte) datatype.Memory {
	m := datatype.In(b).At(o.origin)
	if over := int(m.Addr() % uintptr(o.align)); over > 0 {
		m = m.At(o.align - over)
	}
	return m
}

// aligned reports whether b may hold items in place.
func (o *UserItems) aligned(b []byte) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(o.align) == 0
}

func same(a, b []byte) bool { return unsafe.SliceData(a) == unsafe.SliceData(b) }
