package datatype

import "github.com/weftstack/weft/internal/bufpool"

// Items are what an operation sends or receives: Count items of Type in Mem, or, if Type is nil,
// all of Mem, whose elements have the signature Sig.
type Items struct {
	Mem   []byte // from where the first item is placed on
	Count int
	Type  *Type
	Sig   Sig // of the values in messages
}

// ItemsOf returns count items of t in mem. It returns mpierr.ErrCount if they reach outside mem.
func ItemsOf(mem []byte, count int, t *Type) (Items, error) {
	size, err := t.Span(count, len(mem))
	if err != nil {
		return Items{}, err
	}
	if t.Dense(count) {
		return Items{Mem: mem[:size], Sig: t.values}, nil
	}
	return Items{Mem: mem, Count: count, Type: t, Sig: t.values}, nil
}

// Len returns how many bytes the items are packed.
func (x *Items) Len() int {
	if x.Type == nil {
		return len(x.Mem)
	}
	return x.Type.size * x.Count
}

// Packed returns the data of the items: in place if they are one run of memory, and own is nil, or
// packed in own, which the caller gives back.
func (x *Items) Packed() (b []byte, own *bufpool.Buffer) {
	b, own = x.Room()
	if own != nil {
		x.Type.Pack(b, x.Mem, x.Count)
	}
	return b, own
}

// Copied is Packed that copies in any case.
func (x *Items) Copied() ([]byte, *bufpool.Buffer) {
	if x.Type != nil {
		return x.Packed()
	}
	own := bufpool.Get(len(x.Mem))
	b := own.Bytes(len(x.Mem))
	copy(b, x.Mem)
	return b, own
}

// Room returns where to receive the data of the items: in place if they are one run of memory, and
// own is nil, or in own, from where Unpack stores it in the items.
func (x *Items) Room() (b []byte, own *bufpool.Buffer) {
	if x.Type == nil {
		return x.Mem, nil
	}
	n := x.Len()
	own = bufpool.Get(n)
	return own.Bytes(n), own
}

// Unpack stores packed data in the items. Less than all of it fills the first part of them.
func (x *Items) Unpack(b []byte) {
	if x.Type != nil {
		x.Type.Unpack(x.Mem, b, x.Count)
	}
}
