package mpi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftstack/weft/mpi/internal/dynamic"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// TestLinkSetupUnneededLink has a process make a link although both ends know that they
// have one.
func TestLinkSetupUnneededLink(t *testing.T) {
	local(t, 1, func(ctx context.Context, c *Comm) error {
		e, name := c.w.eng, p2p.ProcName{Job: 1}
		old, err := e.AddRemote(name, p2p.RemoteInfo{}, 7)
		if err != nil {
			return err
		}
		p, err := e.AddRemote(name, p2p.RemoteInfo{}, 8)
		if err != nil {
			return err
		}
		m := &linkSetup{w: c.w, size: 2, peers: []*p2p.Peer{nil, p}, claimed: make([]bool, 2), others: []int{1}, need: -1, done: make(chan struct{})}
		if m.claim(1, p2p.NoLink{}) != p {
			return errors.New("the link was not expected")
		}
		both := &dynamic.GroupMessage{Reports: []dynamic.ProcessMessage{{Links: [][2]uint64{{0, 7}}}}}
		if err := m.link(ctx, 0, both, both, []*p2p.Peer{old}, true); !errors.Is(err, ErrProtocol) {
			return fmt.Errorf("one more link: %w", err)
		}
		m.linked(1, io.EOF)
		p.Down(io.EOF) // as the end of a link that has been aborted tells
		return nil
	})
}

// Finalize waits for the processes of another job that are connected, in both
// directions, unless they have disconnected or its context ends.
func TestFinalizeWaitsForConnected(t *testing.T) {
	var left atomic.Int32 // of the clients
	const servers, clients = 2, 3
	side := func(accepts bool) func(context.Context, *World, string) error {
		return func(ctx context.Context, w *World, port string) error {
			var c *Comm
			var err error
			if accepts {
				c, err = w.Comm().Accept(ctx, port, 0)
			} else {
				c, err = w.Comm().Connect(ctx, port, 0, nil)
			}
			if err != nil {
				return err
			}
			d, err := c.Dup(ctx) // one more that needs the links
			if err != nil {
				return err
			}
			c.Free()
			if !accepts {
				// The servers are in Finalize by now, or will be; what they have
				// sent is there nevertheless.
				for r := range servers {
					var x [1]int
					if _, err := Recv(ctx, d, x[:], r, 0); err != nil || x[0] != 7 {
						return fmt.Errorf("%d from %d, %w", x[0], r, err)
					}
				}
				if err := Barrier(ctx, w.Comm()); err != nil {
					return err
				}
				left.Add(1)
				return w.Finalize(ctx)
			}
			for r := range clients {
				if err := Send(ctx, d, []int{7}, r, 0); err != nil {
					return err
				}
			}
			if err := w.Finalize(ctx); err != nil {
				return err
			}
			if n := left.Load(); n != clients {
				return fmt.Errorf("finalized when %d clients had called it", n)
			}
			return nil
		}
	}
	twoJobs(t, servers, clients, func(ctx context.Context, w *World, port string) error {
		if w.Rank() == 0 {
			left.Store(0)
		}
		return side(true)(ctx, w, port)
	}, side(false))
}

// A process that others wait for may be gone, or stay; the context ends the wait.
func TestFinalizeGivesUp(t *testing.T) {
	held := make(chan struct{})
	twoJobs(t, 1, 1, func(ctx context.Context, w *World, port string) error {
		if _, err := w.Comm().Accept(ctx, port, 0); err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		_ = w.Finalize(short) // may tell that the link was not closed as it should be
		held <- struct{}{}
		return nil
	}, func(ctx context.Context, w *World, port string) error {
		if _, err := w.Comm().Connect(ctx, port, 0, nil); err != nil {
			return err
		}
		select {
		case <-held:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
