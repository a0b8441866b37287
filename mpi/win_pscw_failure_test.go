package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// TestWinPostAgain has a Post fail that has notified one of its origins. The origin has its epoch in the next Post, and
// another one not before the Post after that.
func TestWinPostAgain(t *testing.T) {
	eachTransport(t, 3, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int32](ctx, c, 1)
		if err != nil {
			return err
		}
		said := func(from int) error {
			_, err := Recv(ctx, c, []byte{0}, from, 1)
			return err
		}
		say := func(to int) error { return Send(ctx, c, []byte{1}, to, 1) }
		access := func(v int32) error { return errors.Join(w.Put(ctx, []int32{v}, 0, 0), w.Complete(ctx)) }
		switch c.Rank() {
		case 0:
			err = postAgain(ctx, w, c.comm.Peers[2], func() error { return say(1) }, func() error { return said(1) })
		case 1:
			if err := errors.Join(w.Start(ctx, 0), access(1), say(0), said(0)); err != nil {
				return err
			}
			if err := w.Start(overContext(ctx), 0); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("Start of a second epoch after one Post: %v", err)
			}
			err = errors.Join(say(0), w.Start(ctx, 0), said(0), access(2), w.Start(ctx, 0), access(3))
		case 2:
			err = errors.Join(w.Start(ctx, 0), w.Complete(ctx))
		}
		return errors.Join(err, w.Free(ctx))
	})
}

// postAgain is what the target does in TestWinPostAgain. It exchanges messages with the first origin by say and said.
func postAgain(ctx context.Context, w *Win[int32], second *p2p.Peer, say, said func() error) error {
	second.Announced.Add(p2p.MaxAnnounced)
	err := w.Post(1, 2)
	second.Announced.Add(-p2p.MaxAnnounced)
	if !errors.Is(err, ErrLimit) {
		return fmt.Errorf("Post where nothing can be sent: %v", err)
	}
	if err := said(); err != nil { // the first epoch is over
		return err
	}
	for epoch, origins := range [][]int{{1}, {1}, {1, 2}} {
		if err := w.Post(origins...); err != nil {
			return err
		}
		if epoch == 1 {
			if done, err := w.Test(); done || err != nil {
				return fmt.Errorf("the second epoch is over before Complete: %v", err)
			}
			if err := say(); err != nil {
				return err
			}
		}
		if err := w.Wait(ctx); err != nil {
			return err
		}
		if got := w.Buf()[0]; got != int32(epoch+1) {
			return fmt.Errorf("%d after epoch %d", got, epoch+1)
		}
		if epoch == 0 {
			if err := errors.Join(say(), said()); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestWinWaitAfterAnOriginDied has one of two origins die: Wait waits for the other one, and reports the dead then. The
// memory can be opened again, and the window be freed.
func TestWinWaitAfterAnOriginDied(t *testing.T) {
	runFT(t, 3, func(ctx context.Context, world *World) error {
		c := world.Comm()
		w, err := WinAllocate[int32](ctx, c, 1)
		if err != nil {
			return err
		}
		said := func(from int) error {
			_, err := Recv(ctx, c, []byte{0}, from, 1)
			return err
		}
		say := func(to int) error { return Send(ctx, c, []byte{1}, to, 1) }
		switch c.Rank() {
		case 0:
			kill, gone, goOn := func() error { return say(1) }, func() error { return said(1) }, func() error { return say(2) }
			err = waitForTheOther(ctx, w, kill, gone, goOn)
		case 1:
			return errors.Join(said(0), said(2), errDies)
		case 2:
			access := func(v int32) error { return errors.Join(w.Put(ctx, []int32{v}, 0, 0), w.Complete(ctx)) }
			err = errors.Join(say(1), w.Start(ctx, 0), said(0), access(1), w.Start(ctx, 0), access(2), said(0))
			if e := w.Start(overContext(ctx), 0); !errors.Is(e, context.Canceled) {
				err = errors.Join(err, fmt.Errorf("Start after a Post that failed: %v", e))
			}
		}
		if err != nil {
			return err
		}
		if err := w.Free(ctx); err != nil && !errors.Is(err, ErrProcFailed) {
			return fmt.Errorf("Free: %w", err)
		}
		if err := w.Post(2); !errors.Is(err, ErrWindow) {
			return fmt.Errorf("Post after Free: %v", err)
		}
		return nil
	})
}

// waitForTheOther is what the target does in TestWinWaitAfterAnOriginDied: kill has the first origin die, gone fails
// when it has, and goOn has the second one end its epoch.
func waitForTheOther(ctx context.Context, w *Win[int32], kill, gone, goOn func() error) error {
	if err := errors.Join(w.Post(1, 2), kill()); err != nil {
		return err
	}
	if err := gone(); !errors.Is(err, ErrProcFailed) {
		return fmt.Errorf("received from the dead: %v", err)
	}
	if done, err := w.Test(); done || err != nil {
		return fmt.Errorf("Test before Complete: %v, %v", done, err)
	}
	if err := w.Wait(overContext(ctx)); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("Wait before Complete: %v", err)
	}
	if err := goOn(); err != nil {
		return err
	}
	if err := w.Wait(ctx); !errors.Is(err, ErrProcFailed) || w.Buf()[0] != 1 {
		return fmt.Errorf("Wait: %v, and %d in the window", err, w.Buf()[0])
	}
	if err := errors.Join(w.Post(2), w.Wait(ctx)); err != nil || w.Buf()[0] != 2 {
		return fmt.Errorf("second epoch: %w, and %d in the window", err, w.Buf()[0])
	}
	if err := w.Post(2, 1); !errors.Is(err, ErrProcFailed) {
		return fmt.Errorf("Post to the dead: %v", err)
	}
	return goOn()
}
