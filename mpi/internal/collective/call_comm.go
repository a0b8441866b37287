package collective

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// callComm is a communicator as the algorithms of one collective use it: see coll.Comm for its
// methods.
type callComm struct {
	ctx  context.Context
	c    *Comm
	tag  int
	slot p2p.Slot   // of the messages: with the type of the elements, if all of them have it
	red  op.Reducer // of SendrecvReduce
	elem int        // bytes of an element of red

	mismatch error // the first disagreement about the length or the type of a message
	reqs     []startedMessage
}

// tolerate turns an error about the length or the type of a message into one that is
// reported at the end: the collective goes on, so that the other ranks are not
// left waiting because of this one. After a wrong type what this rank sends matches no
// type, as it may depend on data that has not been received.
func (m *callComm) tolerate(err error) error {
	if err != nil && errors.Is(err, mpierr.ErrTypeMismatch) {
		m.slot = p2p.SlotColl.Of(datatype.SigFailed)
	}
	if errors.Is(err, mpierr.ErrTruncate) || errors.Is(err, mpierr.ErrCount) || errors.Is(err, mpierr.ErrTypeMismatch) {
		if m.mismatch == nil {
			m.mismatch = err
		}
		return nil
	}
	return err
}

func (m *callComm) expect(st p2p.Status, err error, src, want int) error {
	if err == nil && st.Bytes != want && src != coll.ProcNull {
		err = fmt.Errorf("%w: rank %d sent %d bytes, not %d", mpierr.ErrCount, src, st.Bytes, want)
	}
	return m.tolerate(err)
}

// Send implements coll.Comm.
func (m *callComm) Send(b []byte, dst int) error {
	return m.c.P2P.Send(m.ctx, m.slot, p2p.SendStandard, b, dst, m.tag)
}

// Recv implements coll.Comm.
func (m *callComm) Recv(b []byte, src int) error {
	st, err := m.c.P2P.Recv(m.ctx, m.slot, b, src, m.tag)
	return m.expect(st, err, src, len(b))
}

// Sendrecv implements coll.Comm.
func (m *callComm) Sendrecv(sb []byte, dst int, rb []byte, src int) error {
	st, err := m.c.P2P.Sendrecv(m.ctx, m.slot, sb, dst, m.tag, m.slot, rb, src, m.tag)
	return m.expect(st, err, src, len(rb))
}

// A startedMessage is a message that StartSend or StartRecv has started.
type startedMessage struct {
	r    *p2p.Request
	peer int
	want int // bytes expected; -1 for a message that is sent
}

// StartSend implements coll.Comm.
func (m *callComm) StartSend(b []byte, dst int) error {
	r, err := m.c.P2P.Isend(m.slot, p2p.SendStandard, b, dst, m.tag)
	return m.started(startedMessage{r, dst, -1}, err)
}

// StartSendAwaited implements coll.Comm.
func (m *callComm) StartSendAwaited(b []byte, dst int) error {
	r, err := m.c.P2P.IsendAwaited(m.slot, p2p.SendStandard, b, dst, m.tag)
	return m.started(startedMessage{r, dst, -1}, err)
}

// StartRecv implements coll.Comm.
func (m *callComm) StartRecv(b []byte, src int) error {
	r, err := m.c.P2P.Irecv(m.slot, b, src, m.tag)
	return m.started(startedMessage{r, src, len(b)}, err)
}

func (m *callComm) started(s startedMessage, err error) error {
	if err != nil {
		return m.abandon(err)
	}
	m.reqs = append(m.reqs, s)
	return nil
}

// Wait implements coll.Comm. If a message fails, or the context of the collective ends, it
// withdraws the others: when it returns nothing touches the buffers any more.
func (m *callComm) Wait() error {
	var failed error
	ctx := m.ctx
	for _, s := range m.reqs {
		if err := m.finish(ctx, s); err != nil && failed == nil {
			failed, ctx = err, ended
		}
	}
	m.reqs = m.reqs[:0]
	return failed
}

// finish waits for a message, or withdraws it if ctx ends.
func (m *callComm) finish(ctx context.Context, s startedMessage) error {
	if s.want >= 0 {
		st, err := m.c.P2P.Engine.FinishRecv(ctx, s.r)
		return m.expect(st, err, s.peer, s.want)
	}
	err := m.c.P2P.Engine.AwaitSend(ctx, s.r)
	if err == nil {
		if err = s.r.Err; err == nil {
			s.r.Recycle()
		}
	}
	return err
}

// Copy implements coll.Comm.
func (m *callComm) Copy(dst, src []byte) { copy(dst, src) }

// Combine implements coll.Comm.
func (m *callComm) Combine(acc, a, b []byte) { m.red.Combine(acc, a, b) }

// abandon withdraws all that was started and returns err.
func (m *callComm) abandon(err error) error {
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
func (m *callComm) SendrecvReduce(sb []byte, dst int, acc, mine []byte, src int, lower bool) error {
	st, err := m.sendrecvReduce(sb, dst, acc, src,
		p2p.ReceiveReduce{Reducer: m.red, Mine: mine, Lower: lower, Elem: m.elem})
	return m.expect(st, err, src, len(acc))
}

// sendrecvReduce sends and receives at the same time; the receive combines as reduce says.
func (m *callComm) sendrecvReduce(
	sb []byte, dst int, rb []byte, src int, reduce p2p.ReceiveReduce,
) (p2p.Status, error) {
	if err := m.c.P2P.CheckSource(m.slot, src); err != nil {
		return p2p.Status{}, err
	}
	r := p2p.GetRequest(m.c.P2P.Engine)
	r.Reduce = reduce
	return m.c.P2P.SendWith(m.ctx, r, m.slot, sb, dst, m.tag, m.slot, rb, src, m.tag)
}
