package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport/shm"
)

// cmaLinkTo returns the link to the other one of two ranks, if each may copy memory of the
// other.
func cmaLinkTo(w *World) (*shm.Link, error) {
	l := shm.Of(w.eng.Peers[1-w.Rank()])
	if l == nil {
		return nil, errors.New("no shared memory")
	}
	if !l.Copies() {
		return nil, errors.New("a process may not copy its own memory")
	}
	return l, nil
}

// withCMA runs two ranks that copy bodies from each other's memory.
func withCMA(t *testing.T, f func(ctx context.Context, c *Comm, l *shm.Link) error) {
	t.Helper()
	copying(t)
	local(t, 2, func(ctx context.Context, c *Comm) error {
		if err := Barrier(ctx, c); err != nil { // both have probed
			return err
		}
		l, err := cmaLinkTo(c.w)
		if err != nil {
			return err
		}
		if err = f(ctx, c, l); err == nil {
			err = Barrier(ctx, c)
		}
		if err != nil {
			return err
		}
		if n := l.Offered(); n != 0 {
			return fmt.Errorf("%d offers are left", n)
		}
		return nil
	}, WithTransport(TransportHybrid), WithSharedMemory(true), WithEager(shm.OfferMin))
}

// Bodies are copied whole from where they are, whichever of send and receive comes
// first, and as much as there is room for.
func TestNearBodies(t *testing.T) {
	sizes := []int{shm.OfferMin + 1, 100_001, shm.CopyChunk, shm.CopyChunk + 1, shm.CopyInline, shm.CopyInline + shm.CopyChunk/2}
	withCMA(t, func(ctx context.Context, c *Comm, l *shm.Link) error {
		for i, n := range sizes {
			for _, room := range []int{n, n + 1, n - 1} {
				for _, early := range []bool{false, true} {
					buf := make([]byte, n)
					if c.Rank() == 0 {
						pattern(buf, i)
						if early {
							if err := Barrier(ctx, c); err != nil { // the receive is there
								return err
							}
						}
						if err := Send(ctx, c, buf, 1, i); err != nil {
							return err
						}
						overwrite(buf)
						continue
					}
					in := make([]byte, room)
					r, err := Irecv(c, in, 0, i)
					if err == nil && early {
						err = Barrier(ctx, c)
					}
					if err != nil {
						return err
					}
					st, err := r.Wait(ctx)
					if room < n && errors.Is(err, ErrTruncate) {
						err = nil
					}
					if err != nil || st.Bytes != min(n, room) {
						return fmt.Errorf("%d bytes to %d: %d, %w", n, room, st.Bytes, err)
					}
					pattern(buf, i)
					if string(in[:st.Bytes]) != string(buf[:st.Bytes]) {
						return fmt.Errorf("%d bytes to %d: others came", n, room)
					}
				}
			}
		}
		if n := p2p.TrafficOf(&c.w.eng.Peers[1-c.Rank()].RDMA.Reads).Messages; c.Rank() == 1 && n != uint64(6*len(sizes)) {
			return fmt.Errorf("%d bodies were copied, want %d", n, 6*len(sizes))
		}
		return nil
	})
}

// What there is no slot for, and what the receiver may not copy, goes through the ring buffer.
func TestNearBodiesBeyondTheSlots(t *testing.T) {
	const more, n = shm.MaxOffers + 20, shm.OfferMin + 100
	withCMA(t, func(ctx context.Context, c *Comm, l *shm.Link) error {
		for _, may := range []bool{true, false} {
			before := p2p.TrafficOf(&c.w.eng.Peers[1-c.Rank()].RDMA.Reads).Messages
			if c.Rank() == 1 && !may {
				l.RefuseCopies()
			}
			if err := Barrier(ctx, c); err != nil {
				return err
			}
			rs := make([]*Request, more)
			bufs := make([][]byte, more)
			if c.Rank() == 0 {
				for i := range rs {
					bufs[i] = make([]byte, n)
					pattern(bufs[i], i)
					var err error
					if rs[i], err = Isend(c, bufs[i], 1, 0); err != nil {
						return err
					}
				}
			}
			if err := Barrier(ctx, c); err != nil { // all are offered
				return err
			}
			for i := range rs {
				if c.Rank() == 0 {
					if _, err := rs[i].Wait(ctx); err != nil {
						return err
					}
					continue
				}
				in := make([]byte, n)
				if _, err := Recv(ctx, c, in, 0, 0); err != nil {
					return err
				}
				if err := checkPattern(in, i); err != nil {
					return err
				}
			}
			want := uint64(0)
			if may {
				want = shm.MaxOffers
			}
			if got := p2p.TrafficOf(&c.w.eng.Peers[1-c.Rank()].RDMA.Reads).Messages - before; c.Rank() == 1 && got != want {
				return fmt.Errorf("%d bodies were copied, want %d", got, want)
			}
		}
		return nil
	})
}

// A send that is given up while its body is being copied ends when it has been, without an
// error, and a receive that is given up then is not copied to afterwards.
func TestNearBodiesEnd(t *testing.T) {
	const n, least, most = 4 * shm.CopyInline, 10, 200
	fresh, foreign := make([]byte, n), bytes.Repeat([]byte{foreign}, n)
	pattern(fresh, 1)
	var late, ended atomic.Int32 // change between the barriers only
	withCMA(t, func(ctx context.Context, c *Comm, l *shm.Link) error {
		buf := make([]byte, n)
		for i := 0; i < least || i < most && late.Load() == 0; i++ {
			copy(buf, fresh)
			if c.Rank() == 1 {
				clear(buf)
			}
			if err := Barrier(ctx, c); err != nil {
				return err
			}
			short, stop := context.WithCancel(ctx)
			watched := make(chan struct{})
			if i%2 != c.Rank() {
				close(watched)
			} else {
				go func() {
					defer close(watched)
					defer stop()
					for j := 0; short.Err() == nil && !l.Copying(j, c.Rank() == 0); j++ {
						runtime.Gosched()
					}
					if short.Err() == nil && c.Rank() == 0 {
						late.Add(1)
					}
				}()
			}
			var err error
			if c.Rank() == 0 {
				err = Send(short, c, buf, 1, i)
			} else if _, err = Recv(short, c, buf, 0, i); err == nil && !bytes.Equal(buf, fresh) {
				err = errors.New("other bytes came")
			}
			copy(buf, foreign)
			stop()
			<-watched
			switch {
			case err == nil:
			case i%2 == 1 && c.Rank() == 1 && errors.Is(err, context.Canceled):
				ended.Add(1)
			default:
				return fmt.Errorf("round %d: %w", i, err)
			}
			if err := Barrier(ctx, c); err != nil {
				return err
			}
			if !bytes.Equal(buf, foreign) {
				return fmt.Errorf("round %d: bytes were placed when the receive was done", i)
			}
		}
		return nil
	})
	if t.Logf("%d sends were given up and %d receives", late.Load(), ended.Load()); late.Load() == 0 {
		t.Skip("no send was given up while it was copied: the processors have too much to do")
	}
}
