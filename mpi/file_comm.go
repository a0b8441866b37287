package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/ctxmutex"
	"github.com/weftstack/weft/mpi/internal/fileio"
	"github.com/weftstack/weft/mpi/internal/rma"
)

// fileComm is a communicator as the engine of files uses it.
type fileComm struct{ c *Comm }

func (m fileComm) Rank() int                         { return m.c.comm.Rank }
func (m fileComm) Size() int                         { return m.c.Size() }
func (m fileComm) Usable() error                     { return m.c.comm.Usable() }
func (m fileComm) Free()                             { m.c.Free() }
func (m fileComm) Barrier(ctx context.Context) error { return Barrier(ctx, m.c) }

func (m fileComm) Agree(ctx context.Context, err error, args ...any) error {
	return m.c.consent(ctx, err, args...)
}

func (m fileComm) Bcast(ctx context.Context, n int64, root int) (int64, error) {
	buf := []int64{n}
	err := Bcast(ctx, m.c, buf, root)
	return buf[0], err
}

func (m fileComm) Scan(ctx context.Context, n int64) (int64, error) {
	sum := []int64{n}
	err := Scan(ctx, m.c, sum, sum, Sum)
	return sum[0], err
}

func (m fileComm) Allgather(ctx context.Context, mine fileio.Reach, all []fileio.Reach) error {
	return Allgather(ctx, m.c, []fileio.Reach{mine}, all)
}

func (m fileComm) Alltoall(ctx context.Context, send [][]byte) ([][]byte, error) {
	return AlltoallSlices(ctx, m.c, send)
}

// filePointer is the shared pointer of a file: a number in a window at rank 0.
type filePointer struct {
	win   *Win[int64]
	local ctxmutex.Mutex // held by the goroutine of this rank that has the lock of the window
}

func newFilePointer(ctx context.Context, c *Comm) (fileio.SharedPointer, error) {
	win, err := WinAllocate[int64](ctx, c, 1)
	if err != nil {
		return nil, err
	}
	return &filePointer{win, ctxmutex.New()}, nil
}

func (p *filePointer) Load(ctx context.Context) (int64, error) {
	return p.win.FetchAndOp(ctx, 0, 0, 0, NoOp)
}

func (p *filePointer) Store(ctx context.Context, pos int64) error {
	_, err := p.win.FetchAndOp(ctx, pos, 0, 0, Replace)
	return err
}

func (p *filePointer) FetchAdd(ctx context.Context, n int64) (int64, error) {
	return p.win.FetchAndOp(ctx, n, 0, 0, Sum)
}

func (p *filePointer) Lock(ctx context.Context, exclusive bool) (unlock func(), err error) {
	if err := p.local.Lock(ctx); err != nil {
		return nil, err
	}
	mode := rma.LockShared
	if exclusive {
		mode = rma.LockExclusive
	}
	if err := p.win.w.rma.Lock(ctx, mode, 0, 0); err != nil {
		p.local.Unlock()
		return nil, err
	}
	return func() {
		// An error here is one of the job: the next operation returns it.
		_ = p.win.w.rma.Unlock(context.WithoutCancel(ctx), 0)
		p.local.Unlock()
	}, nil
}

func (p *filePointer) Free(ctx context.Context) error { return p.win.Free(ctx) }
