package collective

import (
	"context"
	"fmt"
	"sync"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// A Call is one collective call on one rank: a schedule, and the communicator that its
// algorithm sends and receives with.
type Call struct {
	coll.Schedule

	Kind coll.Kind

	comm  callComm // the Comm of the schedule
	bytes int      // what the tuning table goes by, the same on all ranks

	// run, if not nil, is what to do instead of an algorithm of the tuning table.
	run   func(k *Call) error
	plain bool // run uses the Comm alone, and can be recorded

	progress progress // of a nonblocking collective

	sendMem, recvMem coll.Layout // memory for SendLayout and RecvLayout

	units [2]int             // bytes that counts of the send and of the receive buffer count
	own   [2]*bufpool.Buffer // have packed copies of items with gaps; nil: there is none
	into  *datatype.Items    // where what is received is stored; nil: the buffer is the memory itself
	gaps  [2]*datatype.Items // of which pack packs blocks
	from  []int              // where the blocks of RecvLayout are in the packed data of into; nil: as there
}

var callPool = sync.Pool{New: func() any { return new(Call) }}

// begin starts a collective: it takes the next tag of the communicator, so
// ranks must call it in the same order. ctx is nonblocking for a nonblocking one.
func (c *Comm) begin(ctx context.Context, kind coll.Kind) (*Call, error) {
	if err := c.P2P.Usable(); err != nil {
		return nil, err
	}
	if err := c.P2P.BrokenBy(); err != nil {
		return nil, err
	}
	if !c.P2P.Hold() {
		return nil, mpierr.ErrFreed
	}
	k := callPool.Get().(*Call)
	k.Kind, k.Rank, k.Size, k.Comm = kind, c.P2P.Rank, len(c.P2P.Peers), &k.comm
	k.comm.ctx, k.comm.c, k.comm.slot, k.comm.tag = ctx, c, p2p.SlotColl, c.nextTag(ctx)
	return k, nil
}

// setOp makes red the operator of k. A function of the program is called only where the program
// expects it, and it may take long: it is not fused with receives.
func (k *Call) setOp(red op.Reducer) {
	k.Op, k.comm.red, k.comm.elem = red, red, k.Elem
	k.Fused = red.Code() != op.CodeUser && k.Elem <= p2p.MaxReduceElem
}

// End runs the collective with the algorithm of the tuning table and gives back what
// it holds.
func (k *Call) End() error {
	err := k.perform()
	if err == nil {
		k.store()
	}
	k.release()
	return err
}

// store stores what was received in items with gaps, and gives packed copies back.
func (k *Call) store() {
	switch {
	case k.into == nil || k.RecvBuf == nil:
	case k.RecvLayout != nil:
		for i, at := range k.RecvLayout.Displs {
			from := at
			if k.from != nil {
				from = k.from[i]
			}
			k.into.Unpack(k.RecvBuf[at:at+k.RecvLayout.Counts[i]], from)
		}
	default:
		k.into.Unpack(k.RecvBuf, 0)
	}
	for _, b := range k.own {
		b.Put()
	}
}

// algorithm runs, or has the Comm record, what the collective does.
func (k *Call) algorithm() error {
	if k.run != nil {
		return k.run(k)
	}
	k.Sites = k.comm.c.Sites()
	alg, err := k.comm.c.Pick(&k.Schedule, k.Kind, k.bytes)
	if err != nil {
		return err
	}
	return alg.Run(&k.Schedule)
}

func (k *Call) perform() error {
	err := k.algorithm()
	if err == nil {
		err = k.comm.mismatch
	}
	if err != nil {
		return fmt.Errorf("%w (in %v)", err, k.Kind)
	}
	return nil
}

// release returns k and its scratch memory to their pools.
func (k *Call) release() {
	k.comm.c.P2P.Drop()
	clear(k.comm.reqs)
	k.Release()
	k.comm = callComm{reqs: k.comm.reqs[:0]}
	k.run, k.plain, k.into, k.from = nil, false, nil, nil
	k.own, k.gaps = [2]*bufpool.Buffer{}, [2]*datatype.Items{}
	if p := &k.progress; p.request != nil {
		clear(p.record.Steps)
		p.record.Steps, p.next, p.request = p.record.Steps[:0], 0, nil
	}
	callPool.Put(k)
}

// InBackground is End for a goroutine of its own. If an operator of the program does not
// return, it withdraws what is under way: the buffers are the program's again.
func (k *Call) InBackground() error {
	returned := false
	defer func() {
		if !returned {
			_ = k.comm.abandon(mpierr.ErrGoexit)
		}
	}()
	err := k.End()
	returned = true
	return err
}

// RootRank returns the rank that the call names as its root; false if it names none.
func (k *Call) RootRank() (int, bool) {
	switch k.Kind {
	case coll.Bcast, coll.Reduce, coll.Gather, coll.Gatherv, coll.Scatter, coll.Scatterv:
		return k.Root, true
	}
	return 0, false
}

// Bytes returns the length of the buffer of the call: of the send buffer, if it has one.
func (k *Call) Bytes() int {
	if k.SendBuf == nil {
		return len(k.RecvBuf)
	}
	return len(k.SendBuf)
}
