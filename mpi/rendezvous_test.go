package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weftstack/weft/mpi/internal/job"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
)

// eachMethod runs f on two ranks over the transport that has RDMA, with each method
// that needs it.
func eachMethod(t *testing.T, f func(ctx context.Context, w *World, method string) error, opts ...Option) {
	t.Helper()
	for _, method := range rendezvousNames[1:] {
		t.Run("rendezvous="+method, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), testTime)
			defer cancel()
			opts := append([]Option{WithTransport(TransportHybrid), WithRendezvous(method)}, opts...)
			err := RunLocal(ctx, 2, func(ctx context.Context, w *World) error { return f(ctx, w, method) }, opts...)
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// moved returns which bodies this rank of two has moved by RDMA: those that it has
// written, or read.
func moved(w *World, method string) Traffic {
	s := w.Stats().Peers[1-w.Rank()]
	if method == RendezvousRead {
		return s.Reads
	}
	return s.Writes
}

// mover returns which rank moves the bodies of messages from 0 to 1.
func mover(method string) int {
	if method == RendezvousRead {
		return 1
	}
	return 0
}

func TestRendezvousHints(t *testing.T) {
	for _, tt := range []struct{ transport, option, hint, want string }{
		{TransportHybrid, "", "", RendezvousMessage},
		{TransportHybrid, "", RendezvousWrite, RendezvousWrite},
		{TransportHybrid, "", "pigeon", RendezvousMessage},
		{TransportHybrid, RendezvousWrite, "", RendezvousWrite},
		{TransportHybrid, RendezvousWrite, "pigeon", RendezvousWrite},
		{TransportHybrid, RendezvousRead, "", RendezvousRead},
		{TransportHybrid, RendezvousWrite, RendezvousRead, RendezvousRead},
		{TransportSCTP, RendezvousRead, RendezvousRead, RendezvousMessage},
		{TransportHybrid, RendezvousWrite, RendezvousMessage, RendezvousMessage},
		{TransportSCTP, RendezvousWrite, RendezvousWrite, RendezvousMessage},
		{TransportTCP, RendezvousWrite, RendezvousWrite, RendezvousMessage},
		{TransportInproc, RendezvousWrite, RendezvousWrite, RendezvousMessage},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			opts := []Option{WithTransport(tt.transport)}
			if tt.option != "" {
				opts = append(opts, WithRendezvous(tt.option))
			}
			err := RunLocal(t.Context(), 1, func(ctx context.Context, w *World) error {
				d, err := w.Comm().Dup(ctx)
				if err != nil {
					return err
				}
				if tt.hint != "" {
					d.SetInfo(Info{InfoRendezvous: tt.hint})
				}
				child, err := d.Dup(ctx)
				if err != nil {
					return err
				}
				for _, c := range []*Comm{d, child} {
					if got := c.Info()[InfoRendezvous]; got != tt.want {
						t.Errorf("rendezvous %q, want %q", got, tt.want)
					}
				}
				return nil
			}, opts...)
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := WithRendezvous("pigeon")(new(options)); !errors.Is(err, ErrOption) {
		t.Errorf("unknown method: %v", err)
	}
}

// TestRendezvousMoves checks that bodies are written or read by RDMA if, and only
// if, the sender says so, whatever the receiver has set.
func TestRendezvousMoves(t *testing.T) {
	const n = 300_000
	eachMethod(t, func(ctx context.Context, w *World, method string) error {
		c, err := w.Comm().Dup(ctx)
		if err != nil {
			return err
		}
		other := 1 - w.Rank()
		exchange := func() error {
			out, in := make([]byte, n), make([]byte, n)
			pattern(out, w.Rank())
			if _, err := Sendrecv(ctx, c, out, other, 0, in, other, 0); err != nil {
				return err
			}
			return checkPattern(in, other)
		}
		if c.SetInfo(Info{InfoRendezvous: RendezvousMessage}); c.Info()[InfoRendezvous] != RendezvousMessage {
			return errors.New("the hint has no effect")
		}
		if err := exchange(); err != nil {
			return err
		}
		if got := w.Stats().Peers[other]; got.Writes != (Traffic{}) || got.Reads != (Traffic{}) {
			return fmt.Errorf("before: %+v moved", got)
		}
		if w.Rank() == 0 {
			c.SetInfo(Info{InfoRendezvous: method})
		}
		for range 3 {
			if err := exchange(); err != nil {
				return err
			}
		}
		want := Traffic{Messages: 3, Bytes: 3 * n}
		if w.Rank() != mover(method) {
			want = Traffic{}
		}
		if got := moved(w, method); got != want {
			return fmt.Errorf("rank %d: %+v moved, want %+v", w.Rank(), got, want)
		}
		if got := w.Stats().Peers[other]; got.Writes.add(got.Reads) != want {
			return fmt.Errorf("rank %d: moved in more ways than one: %+v", w.Rank(), got)
		}
		return nil
	})
}

// TestRendezvousLimits has more receives wait than may be written to, or more sends
// than may be read, and more writes or reads begin than a queue pair takes: the rest
// go as messages.
func TestRendezvousLimits(t *testing.T) {
	const n = rdmadev.MaxExposed + 200
	eachMethod(t, func(ctx context.Context, w *World, method string) error {
		c := w.Comm()
		reqs, bufs := make([]*Request, n), make([][]byte, n)
		start := Isend[byte]
		if c.Rank() == 1 {
			start = Irecv[byte]
		}
		if c.Rank() != mover(method) {
			b := openedBulk(w)
			free, err := holdMemory(b, method)
			if err != nil {
				return err
			}
			defer func() {
				free()
				if n := openMemory(b); n != 0 {
					t.Errorf("peers can still access %d buffers", n)
				}
			}()
		}
		// On a busy machine each body may be there before the next ones want memory.
		const rounds = 20
		for round := range rounds {
			if err := Barrier(ctx, c); err != nil {
				return err
			}
			before := moved(w, method).Messages
			for i := range n {
				bufs[i] = make([]byte, 100+i)
				if c.Rank() == 0 {
					pattern(bufs[i], i)
				}
				var err error
				if reqs[i], err = start(c, bufs[i], 1-c.Rank(), i); err != nil {
					return err
				}
			}
			if _, err := Waitall(ctx, reqs...); err != nil {
				return err
			}
			for i, b := range bufs {
				if err := checkPattern(b, i); err != nil {
					return err
				}
			}
			got := []uint64{moved(w, method).Messages - before} // of the mover
			if err := Bcast(ctx, c, got, mover(method)); err != nil {
				return err
			}
			if got[0] > 0 && got[0] < n {
				break
			}
			if round == rounds-1 {
				return fmt.Errorf("%d of %d bodies were moved by RDMA", got[0], n)
			}
		}
		return Barrier(ctx, c)
	}, WithEager(0))
}

// device returns the RDMA device of w.
func device(w *World) *rdmadev.Device {
	d, err := w.job.Device()
	if err != nil {
		panic(err)
	}
	return d
}

// openedBulk opens the device of w.
func openedBulk(w *World) *job.RDMABulk {
	b := w.eng.Bulk.(*job.RDMABulk)
	open := make(chan struct{})
	if !b.Ready(func() { close(open) }) {
		<-open
	}
	return b
}

// holdMemory uses up some of the buffers that peers may access.
func holdMemory(b *job.RDMABulk, method string) (free func(), err error) {
	var held []func()
	for range rdmadev.MaxExposed - 400 {
		r := p2p.GetRequest(b.Engine)
		r.Buf, r.Status.Bytes = make([]byte, 1), 1
		if method == RendezvousRead {
			if _, ok := b.Offer(r); !ok {
				return nil, errors.New("no offer")
			}
			held = append(held, func() { r.AfterReads(func(bool) {}) })
			continue
		}
		if _, ok := b.Expose(r); !ok {
			return nil, errors.New("no grant")
		}
		held = append(held, func() { r.RevokeKey() })
	}
	return func() {
		for _, f := range held {
			f()
		}
	}, nil
}

// openMemory returns how many buffers peers may access.
func openMemory(b *job.RDMABulk) int {
	d := b.Open()
	if d == nil {
		return 0
	}
	return d.Accessible()
}

// startBodies begins to send (rank 0) or to receive (rank 1) some bodies of n bytes,
// with tags from 0 and patterns from first on.
func startBodies(c *Comm, some, n, first int) (reqs []*Request, bufs [][]byte, err error) {
	for i := range some {
		buf := make([]byte, n)
		start := Irecv[byte]
		if c.Rank() == 0 {
			start = Isend[byte]
			pattern(buf, first+i)
		}
		r, err := start(c, buf, 1-c.Rank(), i)
		if err != nil {
			return nil, nil, err
		}
		reqs, bufs = append(reqs, r), append(bufs, buf)
	}
	return reqs, bufs, nil
}

// TestRendezvousConnectionLost breaks the queue pair again and again, while bodies
// are being written or read and between: they all arrive.
func TestRendezvousConnectionLost(t *testing.T) {
	const rounds, each, n = 20, 4, 200_000
	eachMethod(t, func(ctx context.Context, w *World, _ string) error {
		c := w.Comm()
		b := w.eng.Bulk.(*job.RDMABulk)
		for round := range rounds {
			reqs, bufs, err := startBodies(c, each, n, each*round)
			if err != nil {
				return err
			}
			d := b.Open()
			if d != nil && round%2 == c.Rank() { // either side
				for _, qp := range append(device(w).ServingQPs(), d.QPs()...) {
					_ = qp.Close() // closed before, perhaps
				}
			}
			if _, err := Waitall(ctx, reqs...); err != nil {
				return err
			}
			for i, b := range bufs {
				if err := checkPattern(b, each*round+i); err != nil {
					return fmt.Errorf("round %d: %w", round, err)
				}
			}
			if err := Barrier(ctx, c); err != nil {
				return err
			}
		}
		if n := openMemory(b); n != 0 {
			return fmt.Errorf("peers can still access %d buffers", n)
		}
		return nil
	})
}

// TestRendezvousPieces has bodies that are longer than one write or read may be, and
// one of more pieces than a queue pair takes.
func TestRendezvousPieces(t *testing.T) {
	const piece = 1000
	eachMethod(t, func(ctx context.Context, w *World, method string) error {
		c := w.Comm()
		openedBulk(w).Open().Segment = piece
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		for i, n := range []int{piece, piece + 1, 10 * piece, 100*piece - 1, (rdmadev.BulkDepth + 10) * piece} {
			buf := make([]byte, n)
			if c.Rank() == 0 {
				pattern(buf, i)
				if err := Send(ctx, c, buf, 1, i); err != nil {
					return err
				}
				continue
			}
			if _, err := Recv(ctx, c, buf, 0, i); err != nil {
				return err
			}
			if err := checkPattern(buf, i); err != nil {
				return err
			}
		}
		want := Traffic{Messages: 1 + 2 + 10 + 100, Bytes: 112 * piece}
		if got := moved(w, method); c.Rank() == mover(method) && got != want {
			return fmt.Errorf("%+v moved, want %+v", got, want)
		}
		return nil
	}, WithEager(100))
}

// TestRendezvousReceiveGivenUp gives receives up while their bodies are being written or
// read: those that have matched get them all the same, like the others, and all sends are
// done.
func TestRendezvousReceiveGivenUp(t *testing.T) {
	const rounds, each, n = 30, 4, 150_000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	eachMethod(t, func(ctx context.Context, w *World, _ string) error {
		c := w.Comm()
		rng := rand.New(rand.NewPCG(seed, uint64(w.Rank())))
		for round := range rounds {
			reqs, bufs, err := startBodies(c, each, n, each*round)
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				if _, err := Waitall(ctx, reqs...); err != nil {
					return fmt.Errorf("round %d: sends: %w", round, err)
				}
			} else {
				for range rng.IntN(20) {
					w.eng.PollOnce()
				}
				gone := rng.IntN(each)
				// As a blocking receive does when its context ends.
				_, err := w.eng.AwaitRecv(ended, &reqs[gone].request)
				unmatched := errors.Is(err, context.Canceled)
				if err != nil && !unmatched {
					return fmt.Errorf("round %d: receive %d: %w", round, gone, err)
				}
				if !unmatched {
					if err := checkPattern(bufs[gone], each*round+gone); err != nil {
						return fmt.Errorf("round %d: receive that was given up too late: %w", round, err)
					}
				}
				clear(bufs[gone]) // the program's again
				for i, r := range reqs {
					if i == gone {
						continue
					}
					if _, err := r.Wait(ctx); err != nil {
						return fmt.Errorf("round %d: receive %d: %w", round, i, err)
					}
					if err := checkPattern(bufs[i], each*round+i); err != nil {
						return fmt.Errorf("round %d: %w", round, err)
					}
				}
				for i, v := range bufs[gone] {
					if v != 0 {
						return fmt.Errorf("round %d: byte %d of a receive that was given up is %d", round, i, v)
					}
				}
				if unmatched {
					if _, err := Recv(ctx, c, bufs[gone], 0, gone); err != nil {
						return err
					}
				}
			}
			if err := Barrier(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
}
