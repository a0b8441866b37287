package collective

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// start starts a call that has been made.
func start(c *Comm, k *Call, err error) (*p2p.Request, error) {
	if err != nil {
		return nil, err
	}
	if !k.Recordable() {
		return nil, errors.New("the call cannot be recorded")
	}
	r := p2p.GetRequest(c.P2P.Engine)
	k.Start(r)
	return r, nil
}

// TestStartMany has many collectives in progress, and waits for them from the last to the first.
func TestStartMany(t *testing.T) {
	const n, live = 5, 40
	run(t, n, func(ctx context.Context, c *Comm) error {
		me := byte(c.P2P.Rank)
		var reqs []*p2p.Request
		var bufs [][]byte
		for i := range live {
			var k *Call
			var err error
			send, recv := []byte{me + 1}, make([]byte, 1)
			switch i % 4 {
			case 0:
				k, err = c.Barrier(Nonblocking)
			case 1:
				if recv[0] = me; int(me) == i%n {
					recv[0] = byte(i)
				}
				k, err = c.Bcast(Nonblocking, bytesOf(nil, recv), i%n)
			case 2:
				k, err = c.Reduce(Nonblocking, coll.Allreduce, bytesOf(send, recv), op.Sum[byte]{}, -1)
			case 3:
				recv = make([]byte, n)
				k, err = c.Allgather(Nonblocking, coll.Allgather, bytesOf(send, recv), nil, nil)
			}
			r, err := start(c, k, err)
			if err != nil {
				return err
			}
			reqs, bufs = append(reqs, r), append(bufs, recv)
		}
		for i := live - 1; i >= 0; i-- {
			if _, err := reqs[i].Wait(ctx); err != nil {
				return fmt.Errorf("collective %d: %w", i, err)
			}
			want := [][]byte{{0}, {byte(i)}, {1 + 2 + 3 + 4 + 5}, {1, 2, 3, 4, 5}}[i%4]
			if !bytes.Equal(bufs[i], want) {
				return fmt.Errorf("collective %d: %v, want %v", i, bufs[i], want)
			}
		}
		return nil
	})
}

// TestStartWithoutCalls has rank 2 pass a broadcast on while its program makes no call.
func TestStartWithoutCalls(t *testing.T) {
	arrived := make(chan struct{})
	run(t, 4, func(ctx context.Context, c *Comm) error {
		buf := []byte{byte(c.P2P.Rank)}
		if c.P2P.Rank == 0 {
			buf[0] = 9
		}
		k, err := c.Bcast(Nonblocking, bytesOf(nil, buf), 0)
		r, err := start(c, k, err)
		if err != nil {
			return err
		}
		if c.P2P.Rank == 2 {
			select {
			case <-arrived:
			case <-ctx.Done():
				return fmt.Errorf("rank 3 waits: %w", ctx.Err())
			}
		}
		if _, err := r.Wait(ctx); err != nil || buf[0] != 9 {
			return fmt.Errorf("%d, %w", buf[0], err)
		}
		if c.P2P.Rank == 3 {
			close(arrived)
		}
		return nil
	})
}

// TestStartWithOtherLengths ends with an error at the ranks that got another length, after all have got what was sent.
func TestStartWithOtherLengths(t *testing.T) {
	run(t, 3, func(ctx context.Context, c *Comm) error {
		k, err := c.Bcast(Nonblocking, bytesOf(nil, make([]byte, 1+c.P2P.Rank)), 0)
		r, err := start(c, k, err)
		if err != nil {
			return err
		}
		if _, err = r.Wait(ctx); (c.P2P.Rank == 0) != (err == nil) || err != nil && !errors.Is(err, mpierr.ErrCount) {
			return fmt.Errorf("Bcast of %d bytes: %w", 1+c.P2P.Rank, err)
		}
		return nil
	})
}

// TestStartAllocatesNothing starts collectives on one rank, whose memory is used again.
func TestStartAllocatesNothing(t *testing.T) {
	e := newEngines(1)[0]
	c := newComm(e, worldID, 0, e.Peers)
	args := bytesOf([]byte{1}, make([]byte, 1))
	call := func() {
		k, err := c.Allgather(Nonblocking, coll.Allgather, args, nil, nil)
		r, err := start(c, k, err)
		if err != nil || !r.Finished.Load() {
			t.Fatalf("not done: %v", err)
		}
		r.Recycle()
	}
	if n := testing.AllocsPerRun(100, call); n >= 1 {
		t.Errorf("%v allocations a call", n)
	}
}
