package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// A collective is one collective call on one rank: a schedule, and the communicator that its
// algorithm sends and receives with. The generic functions have checked the buffers, which are
// bytes here.
type collective struct {
	coll.Schedule

	comm  collComm // the Comm of the schedule
	kind  Coll
	bytes int // what the tuning table goes by, the same on all ranks

	// run, if not nil, is what to do instead of an algorithm of the tuning table.
	run func(k *collective) error

	sendMem, recvMem coll.Layout // memory for SendLayout and RecvLayout

	units [2]int             // bytes that counts of the send and of the receive buffer count
	own   [2]*bufpool.Buffer // have packed copies of items with gaps; nil: there is none
	into  *datatype.Items    // where what is received is stored; nil: the buffer is the memory itself
	gaps  [2]*datatype.Items // of which pack packs blocks
	from  []int              // where the blocks of RecvLayout are in the packed data of into; nil: as there
}

var collectivePool = sync.Pool{New: func() any { return new(collective) }}

// begin starts a collective: it takes the next tag of the communicator, so
// ranks must call it in the same order. ctx is nonblocking for a nonblocking one.
func (c *Comm) begin(ctx context.Context, kind Coll) (*collective, error) {
	if err := c.comm.Usable(); err != nil {
		return nil, err
	}
	if err := c.comm.BrokenBy(); err != nil {
		return nil, err
	}
	if !c.comm.Hold() {
		return nil, ErrFreed
	}
	k := collectivePool.Get().(*collective)
	k.kind, k.Rank, k.Size, k.Comm = kind, c.comm.Rank, len(c.comm.Peers), &k.comm
	k.comm.ctx, k.comm.c, k.comm.slot, k.comm.tag = ctx, c, p2p.SlotColl, c.coll.nextTag(ctx)
	return k, nil
}

// setOp makes red the operator of k. A function of the program is called only where the program
// expects it, and it may take long: it is not fused with receives.
func (k *collective) setOp(red op.Reducer) {
	k.Op, k.comm.red, k.comm.elem = red, red, k.Elem
	k.Fused = red.Code() != op.CodeUser && k.Elem <= p2p.MaxReduceElem
}

// end runs the collective with the algorithm of the tuning table and gives back what
// it holds.
func (k *collective) end() error {
	err := k.perform()
	if err == nil {
		k.store()
	}
	k.release()
	return err
}

// store stores what was received in items with gaps, and gives packed copies back.
func (k *collective) store() {
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

func (k *collective) perform() error {
	var err error
	if k.run != nil {
		err = k.run(k)
	} else {
		var alg *coll.Algorithm
		k.Sites = k.comm.c.sites()
		if alg, err = k.comm.c.Tuning().pick(&k.Schedule, k.kind, k.bytes); err == nil {
			err = alg.Run(&k.Schedule)
		}
	}
	if err == nil {
		err = k.comm.mismatch
	}
	if err != nil {
		return fmt.Errorf("%w (in %v)", err, k.kind)
	}
	return nil
}

// release returns k and its scratch memory to their pools.
func (k *collective) release() {
	k.comm.c.comm.Drop()
	clear(k.comm.reqs)
	k.Release()
	*k = collective{
		Schedule: k.Schedule, comm: collComm{reqs: k.comm.reqs[:0]}, sendMem: k.sendMem, recvMem: k.recvMem,
	}
	collectivePool.Put(k)
}

// collComm is a communicator as the algorithms of one collective use it: see coll.Comm for its
// methods.
type collComm struct {
	ctx  context.Context
	c    *Comm
	tag  int
	slot p2p.Slot   // of the messages: with the type of the elements, if all of them have it
	red  op.Reducer // of SendrecvReduce
	elem int        // bytes of an element of red

	mismatch error // the first disagreement about the length or the type of a message
	reqs     []startedMessage
}

// Compile-time check: both packages mean the same by ProcNull.
var _ = [1]struct{}{}[coll.ProcNull-ProcNull]

// tolerate turns an error about the length or the type of a message into one that is
// reported at the end: the collective goes on, so that the other ranks are not
// left waiting because of this one. After a wrong type what this rank sends matches no
// type, as it may depend on data that has not been received.
func (m *collComm) tolerate(err error) error {
	if err != nil && errors.Is(err, ErrTypeMismatch) {
		m.slot = p2p.SlotColl.Of(datatype.SigFailed)
	}
	if err != nil && (errors.Is(err, ErrTruncate) || errors.Is(err, ErrCount) || errors.Is(err, ErrTypeMismatch)) {
		if m.mismatch == nil {
			m.mismatch = err
		}
		return nil
	}
	return err
}

func (m *collComm) expect(st p2p.Status, err error, src, want int) error {
	if err == nil && st.Bytes != want && src != ProcNull {
		err = fmt.Errorf("%w: rank %d sent %d bytes, not %d", ErrCount, src, st.Bytes, want)
	}
	return m.tolerate(err)
}

// Send implements coll.Comm.
func (m *collComm) Send(b []byte, dst int) error {
	return m.c.comm.Send(m.ctx, m.slot, p2p.SendStandard, b, dst, m.tag)
}

// Recv implements coll.Comm.
func (m *collComm) Recv(b []byte, src int) error {
	st, err := m.c.comm.Recv(m.ctx, m.slot, b, src, m.tag)
	return m.expect(st, err, src, len(b))
}

// Sendrecv implements coll.Comm.
func (m *collComm) Sendrecv(sb []byte, dst int, rb []byte, src int) error {
	st, err := m.c.comm.Sendrecv(m.ctx, m.slot, sb, dst, m.tag, m.slot, rb, src, m.tag)
	return m.expect(st, err, src, len(rb))
}

// A startedMessage is a message that StartSend or StartRecv has started.
type startedMessage struct {
	r    *p2p.Request
	peer int
	want int // bytes expected; -1 for a message that is sent
}

// StartSend implements coll.Comm.
func (m *collComm) StartSend(b []byte, dst int) error {
	r, err := m.c.comm.Isend(m.slot, p2p.SendStandard, b, dst, m.tag)
	return m.started(startedMessage{r, dst, -1}, err)
}

// StartSendAwaited implements coll.Comm.
func (m *collComm) StartSendAwaited(b []byte, dst int) error {
	r, err := m.c.comm.IsendAwaited(m.slot, p2p.SendStandard, b, dst, m.tag)
	return m.started(startedMessage{r, dst, -1}, err)
}

// StartRecv implements coll.Comm.
func (m *collComm) StartRecv(b []byte, src int) error {
	r, err := m.c.comm.Irecv(m.slot, b, src, m.tag)
	return m.started(startedMessage{r, src, len(b)}, err)
}

func (m *collComm) started(s startedMessage, err error) error {
	if err != nil {
		return m.abandon(err)
	}
	m.reqs = append(m.reqs, s)
	return nil
}

// Wait implements coll.Comm. If a message fails, or the context of the collective ends, it
// withdraws the others: when it returns nothing touches the buffers any more.
func (m *collComm) Wait() error {
	var failed error
	ctx := m.ctx
	for _, s := range m.reqs {
		var err error
		if s.want >= 0 {
			var st p2p.Status
			st, err = m.c.w.eng.FinishRecv(ctx, s.r)
			err = m.expect(st, err, s.peer, s.want)
		} else if err = m.c.w.eng.AwaitSend(ctx, s.r); err == nil {
			if err = s.r.Err; err == nil {
				s.r.Recycle()
			}
		}
		if err != nil && failed == nil {
			failed, ctx = err, ended
		}
	}
	m.reqs = m.reqs[:0]
	return failed
}

// abandon withdraws all that was started and returns err.
func (m *collComm) abandon(err error) error {
	m.ctx = ended
	_ = m.Wait() // err came first
	return err
}

// ended is a context that is over.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// SendrecvReduce implements coll.Comm.
func (m *collComm) SendrecvReduce(sb []byte, dst int, acc, mine []byte, src int, lower bool) error {
	st, err := m.sendrecvReduce(sb, dst, acc, src,
		p2p.ReceiveReduce{Reducer: m.red, Mine: mine, Lower: lower, Elem: m.elem})
	return m.expect(st, err, src, len(acc))
}

// sendrecvReduce sends and receives at the same time; the receive combines as reduce says.
func (m *collComm) sendrecvReduce(
	sb []byte, dst int, rb []byte, src int, reduce p2p.ReceiveReduce,
) (p2p.Status, error) {
	if err := m.c.comm.CheckSource(m.slot, src); err != nil {
		return p2p.Status{}, err
	}
	r := p2p.GetRequest(m.c.comm.Engine)
	r.Reduce = reduce
	return m.c.comm.SendWith(m.ctx, r, m.slot, sb, dst, m.tag, m.slot, rb, src, m.tag)
}
