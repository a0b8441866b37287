package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/job"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/verbs"
)

// This file checks that memory is the program's again when a request is done,
// however bodies that are moved by RDMA end.

const (
	foreign = 0xfd // what programs write to buffers that are theirs again
	endings = 6    // of each kind
)

// startEnding starts one send from rank 0 to 1 of n bytes without foreign ones, and
// lets the ranks run until some of it may be there, as a random number decides.
func startEnding(w *World, n int, rng *rand.Rand) (r *Request, buf []byte, err error) {
	buf = make([]byte, n)
	if w.Rank() == 0 {
		pattern(buf, 1)
		for i := range buf {
			buf[i] &= 0x7f
		}
		r, err = Isend(w.Comm(), buf, 1, 0)
	} else {
		r, err = Irecv(w.Comm(), buf, 0, 0)
	}
	for start, some := time.Now(), time.Duration(rng.IntN(6000))*time.Microsecond; time.Since(start) < some; {
		w.eng.PollOnce()
	}
	return r, buf, err
}

// overwrite uses a buffer that is the program's again. The race detector sees what
// still reads it or writes to it.
func overwrite(b []byte) {
	for i := range b {
		b[i] = foreign
	}
}

// checkOverwritten checks that nothing was placed in b since.
func checkOverwritten(b []byte) error {
	for i, v := range b {
		if v != foreign {
			return fmt.Errorf("byte %d was placed when the receive was done", i)
		}
	}
	return nil
}

// checkUntouched checks that b has nothing of what the sender wrote to its buffer
// when the send was done.
func checkUntouched(b []byte) error {
	for i, v := range b {
		if v == foreign {
			return fmt.Errorf("byte %d was read when the send was done", i)
		}
	}
	return nil
}

// TestRendezvousPeerDies has the sender or the receiver die while a body is being
// moved: the other's request ends, and then its buffer is not accessed any more.
func TestRendezvousPeerDies(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const n = 2 << 20
	for _, method := range rendezvousNames[1:] {
		for dies := range 2 {
			for i := range uint64(endings) {
				t.Run(fmt.Sprintf("rendezvous=%s/dies=%d/%d", method, dies, i), func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), testTime)
					defer cancel()
					var all sync.WaitGroup
					all.Add(2)
					var bufs [2][]byte
					err := RunLocal(ctx, 2, func(ctx context.Context, w *World) error {
						err := func() error {
							defer all.Done()
							if err := Barrier(ctx, w.Comm()); err != nil {
								return err
							}
							r, buf, err := startEnding(w, n, rand.New(rand.NewPCG(seed+i, uint64(w.Rank()))))
							if bufs[w.Rank()] = buf; err != nil && !errors.Is(err, ErrProcFailed) {
								return err
							}
							if w.Rank() == dies {
								w.eng.Peers[1-dies].Link.Abort("rank dies")
							}
							if err != nil {
								return nil
							}
							if _, err = r.Wait(ctx); err == nil && w.Rank() == 1 {
								return checkUntouched(buf)
							}
							if err != nil && !errors.Is(err, ErrProcFailed) {
								return fmt.Errorf("request: %w, want ErrProcFailed", err)
							}
							overwrite(buf)
							return nil
						}()
						all.Wait()
						if err != nil {
							t.Errorf("rank %d: %v", w.Rank(), err)
						}
						return errTestOver
					}, WithTransport(TransportHybrid), WithRendezvous(method))
					if !errors.Is(err, errTestOver) {
						t.Error(err)
					}
					for _, v := range bufs[1] {
						if v != bufs[1][0] && (v == foreign || bufs[1][0] == foreign) {
							t.Fatal("a buffer was accessed when its request was done")
						}
					}
				})
			}
		}
	}
}

// halfWriter writes half of the first body, and lets the test go on.
type halfWriter struct {
	*job.RDMABulk
	stag chan uint32
	conn chan *verbs.QP
}

func (h *halfWriter) Write(r *p2p.Request, v *envelope.Header) {
	d, g := h.Open(), v.Key
	go func() {
		h.conn <- d.Connect((*job.RDMAPeer)(r.Peer), &g)
		h.stag <- g.STag
	}()
}

// TestRendezvousSenderGone has a sender die in the midst of writing a body: the
// receive fails, and by then the buffer cannot be written to any more.
func TestRendezvousSenderGone(t *testing.T) {
	const n = 1 << 20
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	halfway, failed := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Add(2)
	err := RunLocal(ctx, 2, func(ctx context.Context, w *World) error {
		err := func() error {
			defer all.Done()
			if w.Rank() == 0 {
				defer close(failed)
				return receiveHalf(ctx, w, n, halfway)
			}
			return sendHalf(ctx, w, n, halfway, failed)
		}()
		all.Wait()
		if err != nil {
			t.Errorf("rank %d: %v", w.Rank(), err)
		}
		return errTestOver
	}, WithTransport(TransportHybrid), WithRendezvous(RendezvousWrite))
	if !errors.Is(err, errTestOver) {
		t.Error(err)
	}
}

func receiveHalf(ctx context.Context, w *World, n int, halfway chan struct{}) error {
	buf := make([]byte, n)
	r, err := Irecv(w.Comm(), buf, 1, 0)
	if err != nil {
		return err
	}
	<-halfway
	_, err = r.Wait(ctx)
	if !errors.Is(err, ErrProcFailed) {
		return fmt.Errorf("receive: %w, want ErrProcFailed", err)
	}
	if left := openMemory(w.eng.Bulk.(*job.RDMABulk)); left != 0 {
		return fmt.Errorf("%d buffers can be written to after the error", left)
	}
	for i := range buf { // it is the program's again, and the race detector's
		buf[i] = 1
	}
	return nil
}

func sendHalf(ctx context.Context, w *World, n int, halfway, failed chan struct{}) error {
	h := &halfWriter{openedBulk(w), make(chan uint32, 1), make(chan *verbs.QP, 1)}
	w.eng.Bulk = h
	data := make([]byte, n)
	pattern(data, 1)
	if _, err := Isend(w.Comm(), data, 0, 0); err != nil {
		return err
	}
	qp, stag := <-h.conn, <-h.stag
	mr, err := device(w).PD().Register(data[:n/2], 0)
	if err != nil {
		return err
	}
	half := verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{mr.Slice(0, n/2)}, Remote: verbs.RemoteBuf{STag: stag, Len: uint64(n)}}
	if err := qp.PostSend(half); err != nil {
		return err
	}
	close(halfway)
	w.eng.Peers[0].Link.Abort("rank 1 dies")
	select {
	case <-failed:
	case <-ctx.Done():
		return ctx.Err()
	}
	_ = qp.PostSend(half) // refused there, if the connection is still up
	select {
	case <-qp.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("a write to memory that is withdrawn: %w", ctx.Err())
	}
}

// TestRendezvousSendGivenUp ends sends while their bodies are being moved: the
// receive gets all of the body, or fails.
func TestRendezvousSendGivenUp(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const rounds, n = 5 * endings, 300_000
	given := make(map[string]int)
	eachMethod(t, func(ctx context.Context, w *World, method string) error {
		c := w.Comm()
		rng := rand.New(rand.NewPCG(seed, uint64(w.Rank())))
		gave := 0
		for round := range rounds {
			if err := Barrier(ctx, c); err != nil {
				return err
			}
			r, buf, err := startEnding(w, n, rng)
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				over, cancel := context.WithCancel(ctx)
				cancel()
				// As Send does.
				switch err := w.eng.AwaitSend(over, &r.request); {
				case err == nil && r.request.Err != nil, err != nil && !errors.Is(err, context.Canceled):
					return fmt.Errorf("round %d: send: %w, %w", round, err, r.request.Err)
				case err != nil:
					gave++
				}
				if !r.request.Finished.Load() {
					return fmt.Errorf("round %d: the send is not done", round)
				}
				overwrite(buf)
				continue
			}
			// A receive whose message is withdrawn before it is matched waits for ever.
			short, stop := context.WithTimeout(ctx, 20*time.Millisecond)
			_, err = w.eng.AwaitRecv(short, &r.request)
			stop()
			switch {
			case err == nil:
				err = checkUntouched(buf)
			case errors.Is(err, ErrCanceled) || errors.Is(err, context.DeadlineExceeded):
				overwrite(buf)
				err = checkOverwritten(buf)
			}
			if err != nil {
				return fmt.Errorf("round %d: receive: %w", round, err)
			}
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if b := w.eng.Bulk.(*job.RDMABulk); openMemory(b) != 0 {
			return fmt.Errorf("peers can still access %d buffers", openMemory(b))
		}
		if c.Rank() == 0 {
			given[method] = gave
		}
		return nil
	})
	t.Logf("sends given up: %v of %d", given, rounds)
}

// TestRendezvousAborted ends the job while bodies are being moved, and while some are
// only announced: all requests end.
func TestRendezvousAborted(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, method := range rendezvousNames[1:] {
		for i := range uint64(endings) {
			t.Run(fmt.Sprintf("rendezvous=%s/%d", method, i), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), testTime)
				defer cancel()
				err := RunLocal(ctx, 2, func(ctx context.Context, w *World) error {
					c := w.Comm()
					if err := Barrier(ctx, c); err != nil {
						return err
					}
					r, buf, err := startEnding(w, 2<<20, rand.New(rand.NewPCG(seed+i, uint64(w.Rank()))))
					if err != nil {
						return err
					}
					// Nobody receives this, or sends it.
					other, begin, tag := make([]byte, 500_000), Isend[byte], 7
					if w.Rank() == 1 {
						begin, tag = Irecv[byte], 8
					}
					unmatched, err := begin(c, other, 1-w.Rank(), tag)
					if w.Rank() == int(i%2) {
						w.Abort(3, "enough")
					}
					if err != nil {
						return err
					}
					if _, err := unmatched.Wait(ctx); err == nil {
						t.Errorf("rank %d: a request that nothing matches is done", w.Rank())
					}
					overwrite(other)
					_, _ = r.Wait(ctx)
					overwrite(buf)
					if ctx.Err() == context.DeadlineExceeded {
						t.Error("requests of an aborted job did not end")
					}
					return nil
				}, WithTransport(TransportHybrid), WithRendezvous(method))
				if !errors.Is(err, ErrAborted) {
					t.Errorf("end of the job: %v, want ErrAborted", err)
				}
			})
		}
	}
}

// offerNotes keeps what is offered.
type offerNotes struct {
	*job.RDMABulk
	offers map[*p2p.Request]job.BodyOffer
}

func (o *offerNotes) Offer(r *p2p.Request) (g envelope.Key, ok bool) {
	if g, ok = o.RDMABulk.Offer(r); ok {
		o.offers[r] = r.Offered.(job.BodyOffer)
	}
	return g, ok
}

// TestRendezvousReadDrains: when a send is done nothing refers to its buffer, though
// the receiver had all of it, and said so, before its acknowledgements came, which
// this network loses.
func TestRendezvousReadDrains(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(seed)
		defer net.Close()
		net.SetDefault(sctptest.Link{Delay: time.Millisecond, Loss: 0.1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := RunLocal(ctx, 2, func(ctx context.Context, w *World) error {
			c, b := w.Comm(), make([]byte, 50_000)
			notes := &offerNotes{w.eng.Bulk.(*job.RDMABulk), make(map[*p2p.Request]job.BodyOffer)}
			w.eng.Bulk = notes
			const sends = 100
			for i := range sends {
				if c.Rank() == 1 {
					if _, err := Recv(ctx, c, b, 0, i); err != nil {
						return err
					}
					continue
				}
				r, err := Isend(c, b, 1, i)
				if err != nil {
					return err
				}
				if _, err := r.Wait(ctx); err != nil {
					return err
				}
				drained := false
				notes.offers[&r.request].AfterDrain(func() { drained = true })
				if !drained {
					return fmt.Errorf("send %d is done, and its buffer still referred to", i)
				}
			}
			if got := w.Stats().Peers[0].Reads.Messages; c.Rank() == 1 && got < sends/2 {
				return fmt.Errorf("%d of %d bodies were read", got, sends)
			}
			return nil
		}, WithTransport(TransportHybrid), WithRendezvous(RendezvousRead), WithEager(1000), WithSpin(0),
			WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
				addr := fmt.Sprintf("10.0.0.%d", rank+1)
				pc, err := net.NewHost(addr).ListenPacket(addr + ":9899")
				return []sctp.PacketConn{pc}, err
			}))
		if err != nil {
			t.Error(err)
		}
	})
}
