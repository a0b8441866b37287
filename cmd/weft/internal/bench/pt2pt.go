package bench

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi"
)

// pt2ptTests are the tests of messages. Ranks of the first half talk to those
// of the second.
func pt2ptTests() []*test {
	lat := test{min: 1, max: 4 << 20, iters: [2]int{10000, 1000}, warmup: [2]int{100, 10}, exact: 2, setup: latency}
	bw := test{min: 1, max: 4 << 20, iters: [2]int{100, 20}, warmup: [2]int{10, 2}, exact: 2}
	with := func(t test, name, title string, columns ...string) *test {
		t.name, t.title, t.columns = name, title, columns
		return &t
	}
	tests := []*test{
		with(lat, "latency", "MPI Latency Test", "Latency (us)"),
		with(bw, "bw", "MPI Bandwidth Test", "Bandwidth (MB/s)"),
		with(bw, "bibw", "MPI Bi-Directional Bandwidth Test", "Bandwidth (MB/s)"),
		with(bw, "mbw_mr", "MPI Multiple Bandwidth / Message Rate Test", "MB/s", "Messages/s"),
		with(lat, "multi_lat", "MPI Multi Latency Test", "Latency (us)"),
	}
	tests[1].setup = bandwidth(false)
	tests[2].setup = bandwidth(true)
	tests[3].setup = bandwidth(false)
	for _, t := range tests[3:] {
		t.even, t.exact = true, 0
	}
	more := []*test{
		with(lat, "latency_mt", "MPI Multi-threaded Latency Test", "Latency (us)"),
		with(lat, "latency_mp", "MPI Multi-process Latency Test", "Latency (us)"),
		with(lat, "latency_persistent", "MPI Persistent Latency Test", "Latency (us)"),
		with(bw, "bw_persistent", "MPI Persistent Bandwidth Test", "Bandwidth (MB/s)"),
		with(bw, "bibw_persistent", "MPI Persistent Bi-Directional Bandwidth Test", "Bandwidth (MB/s)"),
		with(lat, "partitioned_latency", "MPI Partitioned Latency Test", "Latency (us)"),
		with(bw, "bw_fan_in", "MPI Fan-in Bandwidth Test", "MB/s", "Messages/s"),
		with(bw, "bw_fan_out", "MPI Fan-out Bandwidth Test", "MB/s", "Messages/s"),
	}
	for i, setup := range []func(context.Context, *state, int) (*testCase, error){
		threadsTest, processesTest, latencyPersistent, bandwidthPersistent(false), bandwidthPersistent(true),
		partitionedTest, fan(true), fan(false),
	} {
		more[i].setup = setup
	}
	more[1].head = func(o *options) string {
		return fmt.Sprintf("# Number of processes started by the sender: %d\n# Number of processes started by the receiver: %d", o.threads, o.threads)
	}
	for _, t := range more[6:] {
		t.exact = 0
	}
	return append(tests, more...)
}

const (
	dataTag = 1
	ackTag  = 2
)

// partner returns the rank that this one talks to, and whether this one begins.
func (b *state) partner() (int, bool) {
	half := b.size / 2
	if b.me < half {
		return b.me + half, true
	}
	return b.me - half, false
}

// latency bounces a message; the latency is half the round trip, the mean
// over the pairs.
func latency(_ context.Context, b *state, size int) (*testCase, error) {
	out, in := memory[byte](size), memory[byte](size)
	other, first := b.partner()
	trip := func(ctx context.Context) error {
		if first {
			if err := mpi.Send(ctx, b.c, out, other, dataTag); err != nil {
				return err
			}
			_, err := mpi.Recv(ctx, b.c, in, other, dataTag)
			return err
		}
		if _, err := mpi.Recv(ctx, b.c, in, other, dataTag); err != nil {
			return err
		}
		return mpi.Send(ctx, b.c, out, other, dataTag)
	}
	return b.latencyCase(out, in, other, trip), nil
}

// latencyCase measures round trips that take out to other, and what that sends to
// in.
func (b *state) latencyCase(out, in []byte, other int, trip func(context.Context) error) *testCase {
	return &testCase{
		run: func(ctx context.Context, warmup, iters int) ([]float64, error) {
			took, err := timed(warmup, iters, func() error { return trip(ctx) })
			if err != nil {
				return nil, err
			}
			v := []float64{micros(took, 2*iters)}
			if err := mpi.Allreduce(ctx, b.c, v, v, mpi.Sum); err != nil {
				return nil, err
			}
			v[0] /= float64(b.size)
			return v, nil
		},
		check: func(ctx context.Context) error {
			fillPattern(out, b.me)
			clear(in)
			if err := trip(ctx); err != nil {
				return err
			}
			return checkPattern(in, other)
		},
	}
}

// bandwidth sends windows of messages, each answered by a short one. Of
// several pairs it gives the sum.
func bandwidth(both bool) func(context.Context, *state, int) (*testCase, error) {
	return func(_ context.Context, b *state, size int) (*testCase, error) {
		other, first := b.partner()
		out, in := memory[byte](size), memory[byte](size)
		reqs := make([]*mpi.Request, 0, 2*b.o.window)
		ack := make([]byte, 4)
		window := func(ctx context.Context) error {
			reqs = reqs[:0]
			for range b.o.window {
				if !first || both {
					r, err := mpi.Irecv(b.c, in, other, dataTag)
					if err != nil {
						return err
					}
					reqs = append(reqs, r)
				}
			}
			for range b.o.window {
				if first || both {
					r, err := mpi.Isend(b.c, out, other, dataTag)
					if err != nil {
						return err
					}
					reqs = append(reqs, r)
				}
			}
			if _, err := mpi.Waitall(ctx, reqs...); err != nil {
				return err
			}
			for _, r := range reqs {
				r.Free()
			}
			if first {
				_, err := mpi.Recv(ctx, b.c, ack, other, ackTag)
				return err
			}
			return mpi.Send(ctx, b.c, ack, other, ackTag)
		}
		return b.bandwidthCase(out, in, both, window), nil
	}
}

// bandwidthCase measures windows of messages, which take out to the partner, and
// with both its own to in.
func (b *state) bandwidthCase(out, in []byte, both bool, window func(context.Context) error) *testCase {
	other, first := b.partner()
	size := len(out)
	return &testCase{
		run: func(ctx context.Context, warmup, iters int) ([]float64, error) {
			took, err := timed(warmup, iters, func() error { return window(ctx) })
			if err != nil {
				return nil, err
			}
			messages := float64(iters * b.o.window)
			if both {
				messages *= 2
			}
			v := []float64{0, 0}
			if first {
				v = []float64{megabytes(messages*float64(size), took), messages / took.Seconds()}
			}
			err = mpi.Allreduce(ctx, b.c, v, v, mpi.Sum)
			return v, err
		},
		check: func(ctx context.Context) error {
			fillPattern(out, b.me)
			clear(in)
			if err := window(ctx); err != nil {
				return err
			}
			if first && !both {
				return nil
			}
			return checkPattern(in, other)
		},
	}
}
