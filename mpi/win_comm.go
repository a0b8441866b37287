package mpi

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
	"github.com/weftstack/weft/mpi/internal/rma"
	"github.com/weftstack/weft/mpi/internal/transport/shm"
)

// winComm is a communicator as the engine of windows sees it.
type winComm Comm

func (c *winComm) Rank() int { return c.comm.Rank }

func (c *winComm) Size() int { return len(c.comm.Peers) }

func (c *winComm) Usable() error { return c.comm.Usable() }

func (c *winComm) Failure(rank int) error { return c.comm.Peers[rank].Failure() }

func (c *winComm) Free() { (*Comm)(c).Free() }

// modeOf returns how a message of a window is sent.
func modeOf(held bool) p2p.SendMode {
	if held {
		return p2p.SendHeld
	}
	return p2p.SendStandard
}

func (c *winComm) Send(ctx context.Context, b []byte, to, tag int, held bool) error {
	return c.comm.Send(ctx, p2p.SlotWin, modeOf(held), b, to, tag)
}

func (c *winComm) Isend(b []byte, to, tag int, held bool) (rma.Request, error) {
	r, err := c.comm.Isend(p2p.SlotWin, modeOf(held), b, to, tag)
	if err != nil {
		return nil, err
	}
	return (*winRequest)(r), nil
}

func (c *winComm) FlushSends() { c.comm.Engine.Coalescer.FlushBeforeWait() }

func (c *winComm) Recv(ctx context.Context, b []byte, from, tag int) (int, error) {
	st, err := c.comm.Recv(ctx, p2p.SlotWin, b, from, tag)
	return st.Bytes, err
}

func (c *winComm) Receive(ctx context.Context, b []byte, from, tag int) (int, error) {
	st, err := c.comm.RecvInternal(ctx, p2p.SlotWin, b, from, tag)
	return st.Bytes, err
}

func (c *winComm) Irecv(b []byte, from, tag int) (rma.Request, error) {
	r, err := c.comm.Irecv(p2p.SlotWin, b, from, tag)
	if err != nil {
		return nil, err
	}
	return (*winRequest)(r), nil
}

func (c *winComm) Inbox(from, tag int, found func()) rma.Inbox {
	return &winInbox{c: &c.comm, from: from, tag: tag, arrival: p2p.Waiter{Found: found}}
}

func (c *winComm) Attend(s rma.Service) bool { return c.comm.Engine.Progress.Hook.Add(s) }

func (c *winComm) Serves() { c.comm.Engine.Progress.Hook.Used.Store(true) }

func (c *winComm) Barrier(ctx context.Context) error { return Barrier(ctx, (*Comm)(c)) }

func (c *winComm) Allgather(ctx context.Context, mine, all []byte) error {
	return Allgather(ctx, (*Comm)(c), mine, all)
}

func (c *winComm) Bcast(ctx context.Context, b []byte, root int) error {
	return Bcast(ctx, (*Comm)(c), b, root)
}

func (c *winComm) Agree(ctx context.Context, err error) error { return (*Comm)(c).consent(ctx, err) }

func (c *winComm) Device() (*rdmadev.Device, error) { return c.w.job.Device() }

func (c *winComm) Handle(rank int) int32 { return c.group[rank] }

func (c *winComm) Counters(rank int) *rdmadev.Counters { return &c.comm.Peers[rank].RDMA }

func (c *winComm) Host() int { return c.w.job.HostColor() }

func (c *winComm) Name() string {
	return fmt.Sprint(c.comm.ID, c.comm.Engine.AppendNames(nil, c.group[:1]))
}

func (c *winComm) Shares() bool { return c.w.job.Shared.Active() }

func (c *winComm) Process(rank int) (pid int, ok bool) {
	l := shm.Of(c.comm.Peers[rank])
	if rank == c.comm.Rank || l == nil {
		return 0, false
	}
	return l.Process()
}

// winRequest is a message of a window.
type winRequest p2p.Request

func (r *winRequest) Done() bool { return r.Finished.Load() }

func (r *winRequest) Wait(ctx context.Context) (int, error) {
	st, err := (*p2p.Request)(r).Wait(ctx)
	return st.Bytes, err
}

func (r *winRequest) Finish(ctx context.Context) error {
	_, err := r.Engine.FinishRecv(ctx, (*p2p.Request)(r))
	return err
}

func (r *winRequest) Await() {
	r.Internal = true
	_, _ = (*p2p.Request)(r).Wait(context.Background()) // fails if the link does
}

func (r *winRequest) Test() (bool, error) {
	_, done, err := (*p2p.Request)(r).Test()
	return done, err
}

func (r *winRequest) Cancel() { (*p2p.Request)(r).Cancel(ErrCanceled) }

func (r *winRequest) Free() { (*p2p.Request)(r).Free() }

// winInbox receives the requests of a rank to a window.
type winInbox struct {
	c         *p2p.Comm
	from, tag int
	arrival   p2p.Waiter
	r         *p2p.Request // posted
}

func (x *winInbox) Post(b []byte) bool {
	x.r = p2p.GetRequest(x.c.Engine)
	x.r.Standing = true
	x.c.StartRecv(x.r, p2p.SlotWin, b, x.from, x.tag)
	return x.r.AddWaiter(&x.arrival)
}

func (x *winInbox) Arrived() bool { return x.r.Finished.Load() }

func (x *winInbox) Result() (int, error) { return x.r.Status.Bytes, x.r.Err }

func (x *winInbox) Next() {
	x.r.Recycle() // unless it has failed
	x.r = nil
}

func (x *winInbox) Close(err error) {
	if !x.c.Engine.Cancel(x.r, err) {
		x.r.Fail(err)
	}
	x.r = nil
}

const _ = uint(ProcNull-rma.ProcNull) + uint(rma.ProcNull-ProcNull) // the rank of no process is one number
