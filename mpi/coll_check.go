package mpi

import (
	"errors"

	"github.com/weftstack/weft/mpi/internal/collective"
	"github.com/weftstack/weft/mpi/internal/datatype"
)

func check[T Element](send, recv []T) (b collective.Args) {
	if b.Sig, b.Err = datatype.ElementSig[T](); b.Err == nil {
		b.Send, b.Recv, b.Elem = datatype.Bytes(send), datatype.Bytes(recv), datatype.SizeOf[T]()
	}
	return b
}

// checkBuffers is check of what a call describes. Either may be the zero Buffer.
func checkBuffers(send, recv *Buffer) collective.Args {
	return checkBuffersInto(send, recv, true) // what is not received stays as it was
}

// checkBlocked is checkBuffers for collectives that use only blocks of send, or of recv, which their counts
// and displacements say: items with gaps are not packed before these are known.
func checkBlocked(send, recv *Buffer, ofSend, ofRecv bool) (b collective.Args) {
	x, y := send, recv
	var gaps [2]*datatype.Items
	if ofSend && send.err == nil && !send.items.Dense() {
		items := send.items
		gaps[0], x = &items, &Buffer{}
	}
	if ofRecv && recv.err == nil && !recv.items.Dense() {
		items := recv.items
		gaps[1], y = &items, &Buffer{}
	}
	if b = checkBuffers(x, y); b.Err == nil {
		b.Gaps = gaps
		b.Of(&send.items, &recv.items)
		for i, side := range [2]*Buffer{send, recv} {
			if side.of != nil && side.items.Elem == 0 {
				b.Units[i] = collective.NoData
			}
		}
	}
	return b
}

// checkBuffersInto is checkBuffers; keep says that not all of recv is written for sure.
func checkBuffersInto(send, recv *Buffer, keep bool) (b collective.Args) {
	if b.Err = errors.Join(send.err, recv.err); b.Err != nil {
		return b
	}
	x, y := &send.items, &recv.items
	b.Send, b.Own[0] = x.Packed()
	if keep {
		b.Recv, b.Own[1] = y.Packed()
	} else {
		b.Recv, b.Own[1] = y.Room()
	}
	if b.Own[1] != nil {
		into := *y
		b.Into = &into
	}
	b.Of(x, y)
	return b
}
