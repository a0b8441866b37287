package mpi

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/rma"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// TestServedByTheProgram has origins update, put and get while the program of the target
// waits for a message, polling or parked: most requests are performed by the goroutine
// that waits, in order with those that its service has to wait for.
func TestServedByTheProgram(t *testing.T) {
	for _, limit := range []time.Duration{time.Minute, 0} {
		t.Run(fmt.Sprint("spin=", limit), func(t *testing.T) {
			local(t, 3, serveProgram(t), overTransport(TransportSCTP), WithSpin(limit))
		})
	}
}

func serveProgram(t *testing.T) func(ctx context.Context, c *Comm) error {
	const rounds = 200
	return func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[uint64](ctx, c, 2*rma.MaxInline)
		if err != nil {
			return err
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if c.Rank() == 0 {
			for range 2 { // what the others say last
				if _, err := Recv(ctx, c, make([]byte, 1), AnySource, 0); err != nil {
					return err
				}
			}
			if seen := c.w.eng.Progress.Hook.Runs.Load(); seen < rounds/10 {
				t.Errorf("the program performed requests %d times", seen)
			}
			w.Sync()
			if got := w.Buf()[0]; got != 2*rounds {
				t.Errorf("%d updates, want %d", got, 2*rounds)
			}
		} else if err := serveOrigin(ctx, w, c.Rank(), rounds); err != nil {
			return err
		} else if err := Send(ctx, c, []byte{1}, 0, 0); err != nil {
			return err
		}
		return w.Free(ctx)
	}
}

// serveOrigin updates a word, and puts and gets a block whose length is below and above
// what a request may hold, and checks that each round sees what the one before it did.
func serveOrigin(ctx context.Context, w *Win[uint64], rank, rounds int) error {
	block, got := make([]uint64, rma.MaxInline/8+1), make([]uint64, rma.MaxInline/8+1)
	for i := range rounds {
		n := 1
		if i%7 == 0 {
			n = len(block) // of its own message: for the goroutine of the service
		}
		for k := range block {
			block[k] = uint64(i + k)
		}
		at := 1 + (rank-1)*len(block)
		if err := w.Put(ctx, block[:n], 0, at); err != nil {
			return err
		}
		if err := w.Get(ctx, got[:n], 0, at); err != nil {
			return err
		}
		if err := w.Accumulate(ctx, []uint64{1}, 0, 0, Sum); err != nil {
			return err
		}
		if i%3 > 0 && i%7 > 0 {
			continue // more under way
		}
		if err := w.Flush(ctx, 0); err != nil {
			return err
		}
		if !bytes.Equal(datatype.Bytes(got[:n]), datatype.Bytes(block[:n])) {
			return fmt.Errorf("round %d: a Get after a Put of %d words read something else", i, n)
		}
	}
	return w.Flush(ctx, 0)
}

// Services and the like do not wait where the program does: one that waits there would
// keep the program from reading the sockets itself.
func TestServicesWaitAside(t *testing.T) {
	var inside, most atomic.Int32
	local(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[byte](ctx, c, 8)
		if err != nil {
			return err
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		e := c.w.eng
		park := e.Waiters.Make
		e.Waiters = p2p.WaiterPool{Make: func() transport.Parker { return &countedParker{park(), &inside, &most} }}
		if c.Rank() == 0 {
			if err := w.Put(ctx, []byte{1}, 1, 0); err != nil {
				return err
			}
			if err := w.Flush(ctx, 1); err != nil {
				return err
			}
		}
		if _, err := Sendrecv(ctx, c, []byte{1}, 1-c.Rank(), 0, make([]byte, 1), 1-c.Rank(), 0); err != nil {
			return err
		}
		return w.Free(ctx)
	}, overTransport(TransportSCTP), WithSpin(0))
	if n := most.Load(); n > 2 {
		t.Errorf("%d goroutines of 2 ranks wait for the program", n)
	}
}

type countedParker struct {
	transport.Parker
	inside, most *atomic.Int32
}

func (p *countedParker) Wait(stop <-chan struct{}) bool {
	if n := p.inside.Add(1); n > p.most.Load() {
		p.most.Store(n)
	}
	defer p.inside.Add(-1)
	return p.Parker.Wait(stop)
}
