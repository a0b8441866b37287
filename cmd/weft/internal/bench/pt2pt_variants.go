package bench

import (
	"context"
	"errors"
	"sync"

	"github.com/weftstack/weft/mpi"
)

// startAndFree starts prepared operations and waits for all of them.
func startAndFree(ctx context.Context, ps ...*mpi.Persistent) error {
	reqs, err := mpi.Startall(ps...)
	if err != nil {
		return err
	}
	_, err = mpi.Waitall(ctx, reqs...)
	for _, r := range reqs {
		r.Free()
	}
	return err
}

// latencyPersistent is latency with prepared messages.
func latencyPersistent(_ context.Context, b *state, size int) (*testCase, error) {
	out, in := memory[byte](size), memory[byte](size)
	other, first := b.partner()
	send, err := mpi.SendInit(b.c, out, other, dataTag)
	if err != nil {
		return nil, err
	}
	recv, err := mpi.RecvInit(b.c, in, other, dataTag)
	if err != nil {
		return nil, err
	}
	one, two := send, recv
	if !first {
		one, two = recv, send
	}
	return b.latencyCase(out, in, other, func(ctx context.Context) error {
		if err := startAndFree(ctx, one); err != nil {
			return err
		}
		return startAndFree(ctx, two)
	}), nil
}

// bandwidthPersistent is bandwidth with prepared messages.
func bandwidthPersistent(both bool) func(context.Context, *state, int) (*testCase, error) {
	return func(_ context.Context, b *state, size int) (*testCase, error) {
		other, first := b.partner()
		out, in, ack := memory[byte](size), memory[byte](size), make([]byte, 4)
		var recvs, sends []*mpi.Persistent
		for range b.o.window {
			if !first || both {
				p, err := mpi.RecvInit(b.c, in, other, dataTag)
				if err != nil {
					return nil, err
				}
				recvs = append(recvs, p)
			}
			if first || both {
				p, err := mpi.SendInit(b.c, out, other, dataTag)
				if err != nil {
					return nil, err
				}
				sends = append(sends, p)
			}
		}
		all := append(recvs, sends...)
		return b.bandwidthCase(out, in, both, func(ctx context.Context) error {
			if err := startAndFree(ctx, all...); err != nil {
				return err
			}
			if first {
				_, err := mpi.Recv(ctx, b.c, ack, other, ackTag)
				return err
			}
			return mpi.Send(ctx, b.c, ack, other, ackTag)
		}), nil
	}
}

// threadsTest lets several goroutines of each rank (-t) bounce messages at the
// same time, each pair with a tag of its own. The latency is that of one message.
func threadsTest(_ context.Context, b *state, size int) (*testCase, error) {
	other, first := b.partner()
	outs, ins := make([][]byte, b.o.threads), make([][]byte, b.o.threads)
	for i := range outs {
		outs[i], ins[i] = memory[byte](size), memory[byte](size)
	}
	trip := func(ctx context.Context, i int) error {
		tag := ackTag + 1 + i
		if first {
			if err := mpi.Send(ctx, b.c, outs[i], other, tag); err != nil {
				return err
			}
		}
		if _, err := mpi.Recv(ctx, b.c, ins[i], other, tag); err != nil || first {
			return err
		}
		return mpi.Send(ctx, b.c, outs[i], other, tag)
	}
	all := func(f func(i int) error) error {
		errs := make([]error, b.o.threads)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = f(i) })
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	return &testCase{
		run: func(ctx context.Context, warmup, iters int) ([]float64, error) {
			took := make([]float64, b.o.threads)
			err := all(func(i int) error {
				d, err := timed(warmup, iters, func() error { return trip(ctx, i) })
				took[i] = micros(d, 2*iters)
				return err
			})
			if err != nil {
				return nil, err
			}
			v := []float64{0}
			for _, t := range took {
				v[0] += t / float64(b.o.threads*b.size)
			}
			return v, mpi.Allreduce(ctx, b.c, v, v, mpi.Sum)
		},
		check: func(ctx context.Context) error {
			return all(func(i int) error {
				fillPattern(outs[i], b.me+i)
				clear(ins[i])
				if err := trip(ctx, i); err != nil {
					return err
				}
				return checkPattern(ins[i], other+i)
			})
		},
	}, nil
}

// partitionedTest bounces a message in partitions (-p), which are handed over one
// by one.
func partitionedTest(_ context.Context, b *state, size int) (*testCase, error) {
	other, first := b.partner()
	out, in := memory[byte](size), memory[byte](size)
	parts := max(gcd(b.o.parts, size), 1)
	send, err := mpi.PsendInit(b.c, out, parts, other, dataTag)
	if err != nil {
		return nil, err
	}
	recv, err := mpi.PrecvInit(b.c, in, parts, other, dataTag)
	if err != nil {
		return nil, err
	}
	give := func(ctx context.Context) error {
		r, err := send.Start()
		if err != nil {
			return err
		}
		for i := range parts {
			if err := send.Pready(i); err != nil {
				return err
			}
		}
		_, err = r.Wait(ctx)
		return err
	}
	take := func(ctx context.Context) error {
		r, err := recv.Start()
		if err != nil {
			return err
		}
		_, err = r.Wait(ctx)
		return err
	}
	one, two := give, take
	if !first {
		one, two = take, give
	}
	c := b.latencyCase(out, in, other, func(ctx context.Context) error {
		if err := one(ctx); err != nil {
			return err
		}
		return two(ctx)
	})
	c.done = func(context.Context) error {
		send.Free()
		recv.Free()
		return nil
	}
	return c, nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// fan measures how much all others send to rank 0 at the same time, or it to
// them.
func fan(in bool) func(context.Context, *state, int) (*testCase, error) {
	return func(_ context.Context, b *state, size int) (*testCase, error) {
		hub := b.me == 0
		buf := make([][]byte, b.size) // by the other end
		var others []int
		for r := range b.size {
			if hub != (r == 0) {
				others = append(others, r)
				buf[r] = memory[byte](size)
			}
		}
		receives := hub == in
		acks := make([]byte, b.size)
		window := func(ctx context.Context) error {
			var reqs []*mpi.Request
			for _, r := range others {
				for range b.o.window {
					start := mpi.Isend[byte]
					if receives {
						start = mpi.Irecv[byte]
					}
					q, err := start(b.c, buf[r], r, dataTag)
					if err != nil {
						return err
					}
					reqs = append(reqs, q)
				}
			}
			if _, err := mpi.Waitall(ctx, reqs...); err != nil {
				return err
			}
			for _, q := range reqs {
				q.Free()
			}
			for _, r := range others { // what was sent has arrived
				if receives {
					if err := mpi.Send(ctx, b.c, acks[:1], r, ackTag); err != nil {
						return err
					}
				} else if _, err := mpi.Recv(ctx, b.c, acks[:1], r, ackTag); err != nil {
					return err
				}
			}
			return nil
		}
		return &testCase{
			run: func(ctx context.Context, warmup, iters int) ([]float64, error) {
				took, err := timed(warmup, iters, func() error { return window(ctx) })
				if err != nil {
					return nil, err
				}
				v := []float64{0, 0}
				if hub {
					n := float64(iters * b.o.window * len(others))
					v = []float64{megabytes(n*float64(size), took), n / took.Seconds()}
				}
				return v, mpi.Allreduce(ctx, b.c, v, v, mpi.Sum)
			},
			check: func(ctx context.Context) error {
				for _, r := range others {
					if clear(buf[r]); !receives {
						fillPattern(buf[r], b.me)
					}
				}
				if err := window(ctx); err != nil || !receives {
					return err
				}
				for _, r := range others {
					if err := checkPattern(buf[r], r); err != nil {
						return err
					}
				}
				return nil
			},
		}, nil
	}
}
