package mpi

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/rdmadev"
	"github.com/weftstack/weft/mpi/internal/rma"
)

// winComm is a communicator as the engine of windows sees it.
type winComm Comm

func (c *winComm) Rank() int { return c.comm.rank }

func (c *winComm) Size() int { return len(c.comm.peers) }

func (c *winComm) Usable() error { return c.comm.usable() }

func (c *winComm) Failure(rank int) error { return c.comm.peers[rank].failure() }

func (c *winComm) Free() { (*Comm)(c).Free() }

// modeOf returns how a message of a window is sent.
func modeOf(held bool) sendMode {
	if held {
		return sendHeld
	}
	return sendStandard
}

func (c *winComm) Send(ctx context.Context, b []byte, to, tag int, held bool) error {
	return c.comm.send(ctx, slotWin, modeOf(held), b, to, tag)
}

func (c *winComm) Isend(b []byte, to, tag int, held bool) (rma.Request, error) {
	r, err := c.comm.isend(slotWin, modeOf(held), b, to, tag)
	if err != nil {
		return nil, err
	}
	return (*winRequest)(r), nil
}

func (c *winComm) FlushSends() { c.comm.eng.coalescer.flushBeforeWait() }

func (c *winComm) Recv(ctx context.Context, b []byte, from, tag int) (int, error) {
	st, err := c.comm.recv(ctx, slotWin, b, from, tag)
	return st.Bytes, err
}

func (c *winComm) Receive(ctx context.Context, b []byte, from, tag int) (int, error) {
	st, err := c.comm.recvInternal(ctx, slotWin, b, from, tag)
	return st.Bytes, err
}

func (c *winComm) Irecv(b []byte, from, tag int) (rma.Request, error) {
	r, err := c.comm.irecv(slotWin, b, from, tag)
	if err != nil {
		return nil, err
	}
	return (*winRequest)(r), nil
}

func (c *winComm) Inbox(from, tag int, found func()) rma.Inbox {
	return &winInbox{c: &c.comm, from: from, tag: tag, arrival: waiter{found: found}}
}

func (c *winComm) Attend(s rma.Service) bool { return c.comm.eng.prog.hook.add(s) }

func (c *winComm) Serves() { c.comm.eng.prog.hook.used.Store(true) }

func (c *winComm) Barrier(ctx context.Context) error { return Barrier(ctx, (*Comm)(c)) }

func (c *winComm) Allgather(ctx context.Context, mine, all []byte) error {
	return Allgather(ctx, (*Comm)(c), mine, all)
}

func (c *winComm) Bcast(ctx context.Context, b []byte, root int) error {
	return Bcast(ctx, (*Comm)(c), b, root)
}

func (c *winComm) Agree(ctx context.Context, err error) error { return (*Comm)(c).consent(ctx, err) }

func (c *winComm) Device() (*rdmadev.Device, error) { return c.w.rdmaDevice() }

func (c *winComm) Handle(rank int) int32 { return c.group[rank] }

func (c *winComm) Counters(rank int) *rdmadev.Counters { return &c.comm.peers[rank].rdma }

func (c *winComm) Host() int { return c.w.hostColor() }

func (c *winComm) Name() string {
	return fmt.Sprint(c.comm.id, c.comm.eng.appendNames(nil, c.group[:1]))
}

func (c *winComm) Shares() bool { return c.w.shared.active() }

func (c *winComm) Process(rank int) (pid int, ok bool) {
	l := sharedLink(c.comm.peers[rank])
	if rank == c.comm.rank || l == nil || l.theirs == nil {
		return 0, false
	}
	return l.pid, true
}

// winRequest is a message of a window.
type winRequest request

func (r *winRequest) Done() bool { return r.done.Load() }

func (r *winRequest) Wait(ctx context.Context) (int, error) {
	st, err := (*request)(r).wait(ctx)
	return st.Bytes, err
}

func (r *winRequest) Finish(ctx context.Context) error {
	_, err := r.eng.finishRecv(ctx, (*request)(r))
	return err
}

func (r *winRequest) Await() {
	r.internal = true
	_, _ = (*request)(r).wait(context.Background()) // fails if the link does
}

func (r *winRequest) Test() (bool, error) {
	_, done, err := (*request)(r).test()
	return done, err
}

func (r *winRequest) Cancel() { (*request)(r).cancel(ErrCanceled) }

func (r *winRequest) Free() { (*request)(r).free() }

// winInbox receives the requests of a rank to a window.
type winInbox struct {
	c         *comm
	from, tag int
	arrival   waiter
	r         *request // posted
}

func (x *winInbox) Post(b []byte) bool {
	x.r = getRequest(x.c.eng)
	x.c.startRecv(x.r, slotWin, b, x.from, x.tag)
	return x.r.addWaiter(&x.arrival)
}

func (x *winInbox) Arrived() bool { return x.r.done.Load() }

func (x *winInbox) Result() (int, error) { return x.r.status.Bytes, x.r.err }

func (x *winInbox) Next() {
	x.r.recycle() // unless it has failed
	x.r = nil
}

func (x *winInbox) Close(err error) {
	if !x.c.eng.cancel(x.r, err) {
		x.r.fail(err)
	}
	x.r = nil
}

const _ = uint(ProcNull-rma.ProcNull) + uint(rma.ProcNull-ProcNull) // the rank of no process is one number
